"""The fold: a request repeats the conversation, and only what changes is a splice, only what is new is new."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.transcript import seen
from sessionlog.transcript.fold import ConversationFold
from tests.profiles import examples

MESSAGES = st.lists(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=6,
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3) | st.sampled_from(["user", "tool", "fork"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["messages", "content", "role", "tool_calls", "id", "tool", "dropped", "added", "at", "message",
                         "count", "reason", "earlier_messages", "summary", "error", "output", "prompt", "agent"]),
        inner, max_size=3,
    ),
    max_leaves=8,
)  # fmt: skip


class Log:
    """A conversation's fold, and the list that its splices make."""

    def __init__(self, **options):
        self.fold, self.elements, self.seq = ConversationFold(**options), [], 0

    def event(self, kind, **data):
        """Fold an event; return its splices."""
        self.seq += 1
        splices = self.fold.apply(Event(session_id="s", seq=self.seq, type=kind, ts="", data=data))
        for splice in splices:
            if splice.is_split:
                self.elements = [message for element in self.elements for message in element]
                self.elements = [(message,) for message in self.elements]
            changed = slice(splice.start, splice.start + splice.removed)
            assert len(self.elements[changed]) == splice.removed
            self.elements[changed] = [one.entry.messages for one in splice.added]
        assert len(self.elements) == len(self.fold)
        return splices

    def ask(self, *messages, **more):
        """Send a request; return the texts that are new in it."""
        listed = [message if isinstance(message, dict) else said(message) for message in messages]
        return new_in(self.event("llm.request", messages=listed, **more))

    def answer(self, text, **more):
        return self.event("llm.response", content=text, **more)

    def add(self, *messages, reason="added"):
        return new_in(self.event("history.add", messages=[said(message) for message in messages], reason=reason))

    @property
    def texts(self):
        return [message.text for element in self.elements for message in element]


def said(word):
    """A message of one word; one that begins with a blank is an answer."""
    return {"role": "assistant" if word.startswith(" ") else "user", "content": word}


def new_in(splices):
    return [message.text for splice in splices for one in splice.added for message in one.new]


def test_a_request_repeats_what_was_sent_and_answered():
    """Only the new prompt is new, and only what follows the common beginning changes."""
    log = Log()
    assert log.ask("a") == ["a"]
    log.answer(" b")
    [splice] = log.event("llm.request", messages=[said("a"), said(" b"), said("c")])
    assert (splice.start, splice.removed, new_in([splice])) == (1, 1, ["c"])
    [splice] = log.event("llm.request", messages=[said("a"), said(" b"), said("c")])
    assert (splice.start, splice.removed, splice.added) == (3, 0, ())
    assert log.texts == ["a", " b", "c"]


def test_the_same_words_said_twice_are_two_messages():
    """A place counts, not a text."""
    log = Log()
    assert log.ask("go on") == ["go on"]
    log.answer(" ok")
    assert log.ask("go on", " ok", "go on") == ["go on"]
    log.answer(" ok")
    assert log.ask("go on", " ok", "go on", " ok", "go on") == ["go on"]
    assert log.fold.turns == 3


def test_a_request_may_hold_only_what_is_new():
    """Behind what came before; answers are repeated in it."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    assert log.ask(" b", "a", earlier_messages=1) == ["a"]
    assert log.ask(earlier_messages=3) == []
    log.answer(" d")
    assert log.ask("a", " b", "a", " d", "e") == ["e"]


def test_a_history_that_was_cut_brings_nothing_back():
    """What is left of it was said before; the summary is new."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    log.ask("a", " b", "c")
    log.answer(" d")
    assert log.ask("a", "summary", "c", " d", "e") == ["summary", "e"]
    assert log.texts == ["a", "summary", "c", " d", "e"]


def test_a_conversation_beside_is_not_the_end_of_the_main_one():
    """A title is asked for between two turns."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    assert log.ask("make a title") == ["make a title"]
    log.answer(" t")
    assert log.fold.turns == 2
    assert log.ask("a", " b", "c") == ["c"]
    assert log.texts == ["a", " b", "c"]
    assert log.fold.turns == 2


def test_what_was_taken_back_may_be_said_again():
    """The same prompt after an undo is new, and so is everything after a clear."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    [splice] = log.event("history.pop", count=2)
    assert (splice.cause, splice.start, splice.removed, len(splice.removed_digests)) == ("undone", 0, 2, 2)
    assert log.ask("a") == ["a"]
    log.answer(" b")
    log.event("history.clear")
    assert log.texts == []
    assert log.ask("a", " b") == ["a", " b"]


def test_what_is_told_beside_requests_is_known_to_them():
    """A fork's inheritance is counted among the earlier messages, and is no turn of its own."""
    log = Log()
    assert log.add("a", " b", reason="fork") == ["a", " b"]
    assert log.ask("c", earlier_messages=2) == ["c"]
    assert log.ask("a", " b", "c", "d") == ["d"]
    assert log.fold.turns == 2


def test_an_id_survives_a_text_that_was_cut():
    """A result is known by its call, an answer by those that it makes."""
    log = Log(own=False)
    call = {"id": "2", "name": "f", "arguments": {"a": 1}}
    log.ask("a")
    log.answer("x ", tool_calls=[call])
    log.event("tool.call", id="2", tool="f", output="a long result")
    repeated = [
        {"role": "assistant", "content": "x", "tool_calls": [{**call, "arguments": {"a": 1.0}}]},
        {"role": "tool", "tool_call_id": "2", "content": "a long…"},
    ]
    assert log.ask(*repeated) == []
    assert log.texts == ["a", "x", "a long…"]


def test_a_message_of_several_results_keeps_the_new_ones():
    """Of two tool results in one message only the one that no event has told is new."""
    log = Log()
    log.ask("a")
    log.answer("", tool_calls=[{"id": key, "name": "f", "arguments": {}} for key in "12"])
    log.event("tool.call", id="1", tool="f", output="result 1")
    results = [{"type": "tool_result", "tool_use_id": key, "content": f"result {key}"} for key in "12"]
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": key, "name": "f", "arguments": {}} for key in "12"],
    }
    assert log.ask("a", call, {"role": "user", "content": results}) == ["result 2"]


def test_a_tool_that_no_answer_has_called_is_beside_the_conversation():
    """In our own logs; the places of a truncation are counted without it."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    assert log.event("tool.call", id="9", tool="own", output="x") == ()
    log.event("compaction.end", success=True, dropped=[[1, 2]], added=[{"at": 1, "message": said(" short")}])
    assert log.texts == ["a", " short"]


def test_a_compaction_of_another_agents_log_swallows_answers():
    """Its summary stands for what was before, and what it swallowed is not heard again."""
    log = Log(own=False)
    log.ask("a")
    log.answer(" b")
    [splice] = log.event("compaction.end", success=True, summary="short")
    assert (splice.start, splice.removed, new_in([splice])) == (0, 2, ["short"])
    assert log.ask(" b", "c") == ["c"]
    assert log.texts == ["short", "c"]
    assert log.fold.turns == 2


def test_a_prompt_that_is_added_before_a_truncation_is_a_turn():
    """It is asked with the next request."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    log.add("c")
    log.event("compaction.end", success=True, dropped=[[0, 2]], added=[])
    assert log.ask("c") == []
    assert log.fold.turns == 2


def test_an_undo_takes_back_only_what_it_takes_back():
    """A prompt that was put in before stays asked."""
    log = Log()
    log.add("a")
    log.add("b")
    log.event("history.pop", count=1)
    log.ask("a")
    assert log.fold.turns == 1


def test_a_truncation_of_many_empty_spans_is_one_change():
    """However many there are."""
    log = Log()
    log.ask("a")
    log.answer(" b")
    assert len(log.event("compaction.end", success=True, dropped=[[0, 0]] * 500 + [[0, 1]], added=[])) == 1
    assert log.texts == [" b"]


def test_prompts_that_are_copied_from_a_parent_are_no_turns_of_a_fork():
    """Its log repeats them, marked."""
    log = Log(own=False)
    log.ask({**said("a"), "inherited": True})
    log.answer(" b")
    log.ask(" b", "c")
    assert (log.fold.turns, log.fold.turn) == (1, 2)


def test_a_request_that_is_never_answered_is_none():
    """Another one follows it; the last may still be waiting."""
    log = Log()
    log.ask("a")
    log.ask("a")
    assert (log.fold.requests, log.fold.is_waiting, log.fold.turns) == (1, True, 1)
    log.answer(" b")
    log.ask("a", " b", "c")
    assert (log.fold.requests, log.fold.is_waiting, log.fold.turns) == (2, True, 2)


def test_the_oldest_logs_hold_no_messages():
    """Prompt, answers and results stand for themselves."""
    log = Log()
    log.event("session.start", prompt="do it")
    log.event("llm.request", messages=1)
    log.answer(" b", tool_calls=1)
    log.event("tool.call", tool="f", output="x")
    log.event("llm.request", messages=3)
    log.answer(" c")
    assert log.texts == ["do it", " b", "x", " c"]
    assert (log.fold.requests, log.fold.turns) == (2, 1)


def test_an_answer_that_breaks_off_is_part_of_the_conversation():
    """Until a request repeats what is left of it."""
    log = Log()
    log.ask("a")
    log.event("llm.delta", content=" b")
    [splice] = log.event("session.end", status="cancelled")
    assert (splice.cause, splice.added[0].entry.messages[0].partial) == ("partial", "cancelled")
    assert log.ask("a", " b", "c") == ["c"]


def test_a_request_that_goes_on_from_what_is_lost_says_so():
    """How many messages are missing."""
    log = Log()
    log.ask("a")
    [splice] = log.event("llm.request", messages=[said("d")], earlier_messages=3)
    assert (splice.start, splice.missing) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("history.pop", {"count": 1}),
        ("history.pop", {"count": True}),
        ("history.add", {"messages": 7}),
        ("compaction.end", {"dropped": [[0, 3]]}),
        ("compaction.end", {"dropped": 7}),
        ("compaction.end", {"dropped": [[2, 1]]}),
        ("compaction.end", {"dropped": [[-1, 0]]}),
        ("compaction.end", {"dropped": [[0, 0], [-1, 0]]}),
        ("compaction.end", {"dropped": [], "added": [{"at": 9, "message": {}}]}),
        ("compaction.end", {"dropped": [], "added": [{}]}),
    ],
)
def test_a_change_that_does_not_fit_changes_nothing(kind, data):
    """And says so."""
    [splice] = Log().event(kind, **data)
    assert splice.problem
    assert (splice.removed, splice.added) == (0, ())


@examples(200)
@given(MESSAGES, MESSAGES)
def test_what_goes_on_is_new_and_nothing_else(history, more):
    """A history that goes on has exactly its continuation as news, however often words are repeated."""
    log = Log()
    assert log.ask(*history) == [message["content"] for message in history]
    [splice] = log.event("llm.request", messages=[*history, *more])
    assert new_in([splice]) == [message["content"] for message in more]
    assert (splice.left_out, splice.kept) == (0, len(history))


@examples(200)
@given(MESSAGES, st.data())
def test_a_part_of_a_history_brings_no_news(history, data):
    """Messages left out are counted, those kept are not new."""
    kept = [message for message in history if data.draw(st.booleans())]
    log = Log()
    log.ask(*history)
    [splice] = log.event("llm.request", messages=kept)
    assert new_in([splice]) == []
    assert splice.left_out == len(history) - len(kept)
    assert log.texts == [message["content"] for message in kept]


@examples(200)
@given(MESSAGES, MESSAGES, MESSAGES)
def test_a_whole_request_behind_those_that_go_on_brings_no_news(history, more, last):
    """What was told piece by piece, or inherited, is known when a request tells all of it again."""
    log = Log()
    log.event("history.add", messages=history, reason="restored")
    if more:
        log.ask(*more, earlier_messages=len(history))
    assert log.ask(*history, *more, *last) == [message["content"] for message in last]


@examples(300)
@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN_TYPES)), ODD)), st.booleans())
def test_whatever_a_log_holds_its_splices_fit(rows, own):
    """Each applies to what the ones before it left."""
    log = Log(own=own)
    for kind, data in rows:
        log.event(kind, **(data if isinstance(data, dict) else {}))
        assert 0 <= log.fold.sent <= len(log.fold)
    log.fold.finish()


def test_memory_is_bounded(monkeypatch):
    """However much is said, as many digests are kept as there is room for."""
    monkeypatch.setattr(seen, "_MAX_EXPECTED", 10)
    log = Log()
    for number in range(100):
        log.ask(f"title {number}")
        log.answer(f" answer {number}")
    assert len(log.fold._seen._expected) <= 10
    assert len(log.fold._seen._former) <= seen._MAX_FORMER
