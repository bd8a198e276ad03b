"""cut: what a truncation does to a history, as a value."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.log.event_codec import diff_histories
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_to_dict
from tests.profiles import examples
from tests.transcript.test_fold import Log

A, B, C, D = (Message.user(text) for text in "abcd")


def test_what_goes_and_what_comes():
    """Spans are half-open and of the old history; places are of the new one."""
    summary = Message.user("a and b")
    assert diff_histories([A, B, C, D], [summary, C, D]) == ([(0, 2)], [(0, summary)])
    assert diff_histories([A, B, C, D], [A, D]) == ([(1, 3)], [])
    assert diff_histories([A], [A]) == ([], [])
    assert diff_histories([], [A]) == ([], [(0, A)])


def test_the_same_message_twice():
    """An object that stands in two places is not dropped twice."""
    assert diff_histories([A, B, A], [A]) == ([(1, 3)], [])
    assert diff_histories([A, B, A], [B, A]) == ([(0, 1)], [])


@examples(200)
@given(st.lists(st.sampled_from([A, B, C, D])), st.lists(st.sampled_from([A, B, C, D, Message.user("e")])))
def test_applying_a_cut_gives_what_it_was_made_of(before, after):
    """Whatever was done to the history, also where its order was changed."""
    log = Log()
    log.event("history.add", messages=list(map(message_to_dict, before)), reason="restored")
    dropped, added = diff_histories(before, after)
    put_in = [{"at": at, "message": message_to_dict(message)} for at, message in added]
    log.event("compaction.end", success=True, dropped=list(map(list, dropped)), added=put_in)
    assert log.texts == [message.text for message in after]
