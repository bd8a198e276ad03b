"""Places of messages: results in the order of their calls, and turns."""

from sessionlog.analytics.diff.message import in_order_of_calls, numbered
from tests.analytics.diff.talks import make_said


def test_results_stand_in_the_order_of_their_calls():
    """Whichever tool was done first; a result of no call stays behind them."""
    asked = make_said("assistant", "", calls=[("f", 1, "a"), ("f", 2, "b")])
    results = [make_said("tool", name, call_id=name) for name in ("x", "b", "a")]
    ordered = in_order_of_calls([asked, *results, make_said("assistant", "Done."), make_said("tool", "y")])
    assert [one.text for one in ordered] == ["", "a", "b", "x", "Done.", "y"]


def test_a_turn_is_a_prompt_and_all_until_the_next_one():
    """Also where another prompt follows without an answer; numbers begin with 1."""
    roles = ["assistant", "user", "user", "assistant", "tool", "assistant", "user"]
    assert [(one.number, one.turn) for one in numbered([make_said(role, "") for role in roles])] == [
        (1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2), (7, 3),
    ]  # fmt: skip
