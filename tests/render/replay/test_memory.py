"""What is new in a request, remembered by digest and within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.replay import memory
from sessionlog.render.replay.memory import Memory
from sessionlog.render.replay.messages import reply_keys, said_keys
from tests.profiles import examples

MESSAGES = st.lists(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=6,
)


@examples(200)
@given(MESSAGES, MESSAGES)
def test_what_goes_on_is_new_and_nothing_else(history, more):
    """A history that goes on has exactly its continuation as news, however often words are repeated."""
    known = Memory()
    assert [m.text for m in known.news(history).messages] == [m["content"] for m in history]
    news = known.news([*history, *more])
    assert [m.text for m in news.messages] == [m["content"] for m in more]
    assert news.left_out == 0


@examples(200)
@given(MESSAGES, st.data())
def test_a_part_of_a_history_brings_no_news(history, data):
    """Messages left out are counted, those kept are not shown again."""
    kept = [m for m in history if data.draw(st.booleans())]
    known = Memory()
    known.news(history)
    news = known.news(kept)
    assert news.messages == ()
    assert news.left_out == len(history) - len(kept) or not history


def test_what_was_expected_is_taken_once():
    """An answer shown once hides one message, not every message of the same words."""
    known = Memory()
    known.expect(said_keys("assistant", "ok"))
    hidden = {"role": "assistant", "content": "ok"}
    assert known.news([hidden, hidden]).messages[0].place == 1


def test_a_message_of_several_results_keeps_the_new_ones():
    """Of two tool results in one message only the one that was not shown is news."""
    known = Memory()
    known.expect(reply_keys("1", "shown"))
    results = [{"type": "tool_result", "tool_use_id": key, "content": f"result {key}"} for key in ("1", "2")]
    [message] = known.news([{"role": "user", "content": results}]).messages
    assert [reply.id for reply in message.replies] == ["2"]


def test_memory_is_bounded(monkeypatch):
    """However much is shown, as many digests are kept as there is room for."""
    monkeypatch.setattr(memory, "_EXPECTED", 10)
    monkeypatch.setattr(memory, "_MEANINGS", 10)
    known = Memory()
    for number in range(100):
        known.expect(said_keys("assistant", f"answer {number}"))
        known.news([{"role": "user", "content": f"question {number}"}])
    assert len(known._expected) <= 10
    assert len(known._meanings) <= 10
    assert len(known._histories) <= memory._HISTORIES


@examples(200)
@given(MESSAGES, MESSAGES, MESSAGES)
def test_a_whole_request_behind_those_that_go_on_brings_no_news(history, more, last):
    """What was told piece by piece, or inherited, is known when a request tells all of it again."""
    known = Memory()
    known.retold(history)
    if more:
        known.news(more, earlier=len(history) or 1)
    news = known.news([*history, *more, *last])
    assert [message.text for message in news.messages] == [message["content"] for message in last]
    assert news.left_out == 0


def test_a_history_that_begins_anew_leaves_nothing_out():
    """What was before is no part of it, and still known."""
    known = Memory()
    known.news([{"role": "user", "content": "a"}])
    known.take_back()
    news = known.news([{"role": "user", "content": "b"}])
    assert ([message.text for message in news.messages], news.left_out) == (["b"], 0)


def test_a_history_that_grows_for_ever_is_forgotten(monkeypatch):
    """Then a request that tells all of it is shown anew: memory is bounded."""
    monkeypatch.setattr(memory, "_LONGEST", 3)
    known, message = Memory(), {"role": "user", "content": "a"}
    for n in range(9):
        known.news([message], earlier=n)
    assert max(map(len, known._histories)) <= 3
