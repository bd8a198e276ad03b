"""A summary is a message that takes no more than its room."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.history.rules import is_summary
from sessionlog.conversation.history.truncation import cap_summary
from sessionlog.messages.message import Message
from tests.conversation.history.histories import weigh
from tests.profiles import examples


def test_only_a_truncation_makes_summaries():
    """What a person says is none, whatever it says."""
    [made], warning = cap_summary("so far", 6, weigh)
    assert (made.role, made.text, is_summary(made), warning) == ("user", "so far", True, None)
    assert not is_summary(Message.user("summary"))
    assert not is_summary(Message("user", "x", extra={"summary": "yes"}))


@given(st.text(min_size=1, max_size=60), st.integers(-3, 70))
@examples(200)
def test_as_much_of_it_as_fits_is_kept(text, room):
    """A beginning with an ellipsis; where not even one letter fits, nothing."""
    made, warning = cap_summary(text, room, weigh)
    if len(text) <= room:
        assert (made[0].text, warning) == (text, None)
    elif min(len(text) - 1, room - 1) > 0:
        assert made[0].text == f"{text[: room - 1]}…"
        assert f"from {len(text)} tokens to the {room}" in warning
    else:
        assert made == []
        assert "left out" in warning


def test_a_counter_that_does_not_follow_length_ends_too():
    """It is asked some times more than once, never for ever."""
    asked = []

    def count(message):
        asked.append(message)
        return 1000

    assert cap_summary("x" * 100_000, 10, count)[0] == []
    assert len(asked) < 20
