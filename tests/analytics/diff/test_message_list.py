"""Lists of messages: results in the order of their calls, turns, and long lists in a file."""

import pytest

from sessionlog.analytics.diff.message_list import MessageList
from sessionlog.files import batch_file
from tests.analytics.diff.talks import make_said


def test_results_stand_in_the_order_of_their_calls():
    """Whichever tool was done first; a result of no call stays behind them."""
    asked = make_said("assistant", "", calls=[("f", 1, "a"), ("f", 2, "b")])
    results = [make_said("tool", name, call_id=name) for name in ("x", "b", "a")]
    ordered = MessageList([asked, *results, make_said("assistant", "Done."), make_said("tool", "y")]).finish()
    assert [one.text for one in ordered] == ["", "a", "b", "x", "Done.", "y"]


def test_a_turn_is_a_prompt_and_all_until_the_next_one():
    """Also where another prompt follows without an answer; numbers begin with 1."""
    roles = ["assistant", "user", "user", "assistant", "tool", "assistant", "user"]
    assert [(one.number, one.turn) for one in MessageList(make_said(role, "") for role in roles).finish()] == [
        (1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2), (7, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("has_room", [True, False])
def test_a_long_list_is_read_from_its_file(has_room, monkeypatch):
    """Every message as it was appended, also without a removed one, and without room for a file."""
    if not has_room:
        monkeypatch.setattr(batch_file.files, "open_temporary", _no_room)
    said = [make_said("assistant", f"{n}\ud800", calls=[("f", n, f"c{n}")]) for n in range(3_500)]
    messages = MessageList(said)
    assert messages.remove_last(said[2_000].digest)
    assert not messages.remove_last(said[2_000].digest)
    messages.finish()
    assert [(one.text, one.calls, one.digest) for one in messages] == [
        (one.text, one.calls, one.digest) for one in (*said[:2_000], *said[2_001:])
    ]
    assert [messages[n].number for n in (0, 1_500, 2_000, -1)] == [1, 1_501, 2_001, 3_499]
    assert messages[2_000:2_001] == (messages[2_000],)


def _no_room(folder):
    raise OSError(28, "No space left on device")
