"""cut: what a truncation does to a history, as a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.log.cut import apply_cut, cut_of
from sessionlog.messages.message import Message
from tests.profiles import examples

A, B, C, D = (Message.user(text) for text in "abcd")


def test_what_goes_and_what_comes():
    """Spans are half-open and of the old history; places are of the new one."""
    summary = Message.user("a and b")
    assert cut_of([A, B, C, D], [summary, C, D]) == ([(0, 2)], [(0, summary)])
    assert cut_of([A, B, C, D], [A, D]) == ([(1, 3)], [])
    assert cut_of([A], [A]) == ([], [])
    assert cut_of([], [A]) == ([], [(0, A)])


def test_the_same_message_twice():
    """An object that stands in two places is not dropped twice."""
    assert cut_of([A, B, A], [A]) == ([(1, 3)], [])
    assert cut_of([A, B, A], [B, A]) == ([(0, 1)], [])


@examples(200)
@given(st.lists(st.sampled_from([A, B, C, D])), st.lists(st.sampled_from([A, B, C, D, Message.user("e")])))
def test_applying_a_cut_gives_what_it_was_made_of(before, after):
    """Whatever was done to the history, also where its order was changed."""
    assert apply_cut(before, *cut_of(before, after)) == after


@pytest.mark.parametrize("dropped", [[[0, 9]], [[2, 1]], [[1, 2], [0, 1]], [[-1, 1]]])
def test_spans_that_are_none(dropped):
    """A cut of another history is refused."""
    with pytest.raises(ValueError, match="cannot be dropped"):
        apply_cut([A, B], dropped, [])


def test_places_that_are_none():
    """So is a message that is put beyond the end."""
    with pytest.raises(ValueError, match="no message can be put at 3"):
        apply_cut([A], [], [(3, B)])
