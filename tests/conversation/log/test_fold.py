"""Fold: a log read back is the session that wrote it, after every step of it."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.log.fold import Fold, state_of
from sessionlog.conversation.log.logged_session import read_logged_session
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.errors import InvalidHistory
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.testing import MemorySink
from tests.conversation.log.scripts import SCRIPTS, Player
from tests.profiles import examples

LAW = examples(150)
WORDS = st.sampled_from(
    ["messages", "content", "role", "tool_calls", "error", "usage", "tokens", "output", "input", "prompt", "id", "tool",
     "status", "partial", "message", "dropped", "added", "count", "reason", "state", "earlier_messages", "system",
     "system_prompt", "parent", "v", "agent", "summary", "truncated", "instructions"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=4) | st.sampled_from(["user", "tool"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def fold(events):
    """The fold of some events."""
    made = Fold()
    for event in events:
        made.apply(event, f"x.jsonl:{event.seq + 1}")
    return made


@LAW
@given(SCRIPTS)
def test_folding_a_log_gives_the_live_session(script):
    """After each step, the log alone gives the history, the usage and the state of the session."""
    player = Player(MemorySink(redact=False))
    for step in script:
        if player.play(step):
            found = fold(player.sink.events)
            assert (found.messages(), found.usage, found.state) == player.expected(), step


@LAW
@given(SCRIPTS, st.integers(0, 3))
def test_a_fork_folds_to_what_it_inherits_and_what_it_does(script, count):
    """The same of a fork, whose log holds what it inherits; turns of the parent are not its own."""
    inherited = [Message.user("hi"), Message.assistant("ho"), Message.user("again")][:count]
    parent = {"session": "p", "path": "/p.jsonl", "seq": 3}
    player = Player(MemorySink(redact=False), system="be brief", parent=parent, inherited=inherited)
    found = fold(player.sink.events)
    assert (found.messages(), found.state, found.turns) == (inherited, player.state, 0)
    for step in script:
        player.play(step)
    found = fold(player.sink.events)
    assert (found.messages(), found.usage, found.state) == player.expected()
    assert (found.parent, found.system) == (parent, "be brief")


def test_memory_is_bounded_by_the_history(tmp_path):
    """Pieces of answers that are whole are let go: a log of any size is folded in the memory of its history."""
    path = tmp_path / "s.jsonl"
    recorder, text = Recorder(SessionLogger(tmp_path, "s", redact=False)), "x" * 4000
    recorder.begin(system=None)
    for turn in range(40):
        recorder.request([Message.user(f"{turn}")])
        for _ in range(50):
            recorder.delta(text)
        recorder.response(Message.assistant("short"))
    assert path.stat().st_size > 8_000_000
    tracemalloc.start()
    try:
        found = read_logged_session(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [message.text for message in found.messages] == ["39", "short"]
    assert peak < 2_000_000


@examples(150)
@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN_TYPES)), st.dictionaries(WORDS, JSON, max_size=5) | JSON)))
def test_no_payload_breaks_the_fold(rows):
    """Whatever stands in a log: either it is folded, or refused by its place."""
    for own in (True, False):
        made = Fold(own=own)
        try:
            for n, (kind, data) in enumerate(rows):
                made.apply(Event(session_id="s", seq=n, type=kind, ts="", data=data), f"x.jsonl:{n + 1}")
        except InvalidHistory as error:
            assert str(error).startswith(f"x.jsonl:{n + 1}: ")  # noqa: PT017 - any other exception fails the test
        assert isinstance(made.messages(), list)


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("history.pop", {"count": 1}, "history.pop takes 1 of 0 messages"),
        ("history.pop", {"count": True}, "takes true"),
        ("history.add", {}, "history.add without messages"),
        ("compaction.end", {"dropped": [[0, 3]]}, "does not fit the history"),
        ("compaction.end", {"dropped": [], "added": [{"at": 0, "message": {"role": "robot", "content": ""}}]}, "robot"),
        ("compaction.end", {"dropped": 7}, "does not fit"),
        ("llm.request", {"messages": [], "earlier_messages": 2}, "2 earlier messages, but the log holds only 0"),
        ("llm.response", {"tool_calls": ["x"]}, "tool_calls"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(kind, data, words):
    """The file, the line, and what is wrong."""
    made, event = Fold(), Event(session_id="s", seq=0, type=kind, ts="", data=data)
    with pytest.raises(InvalidHistory, match=rf"^x\.jsonl:7: .*{words}"):
        made.apply(event, "x.jsonl:7")


def event_list(*rows):
    """Events of a session."""
    return [Event(session_id="s", seq=n, type=kind, ts="", data=data) for n, (kind, data) in enumerate(rows)]


def test_sub_agents_are_beside_the_conversation():
    """Neither their answers nor their tools are of the history."""
    made = fold(event_list(
        ("llm.request", {"messages": [{"role": "user", "content": "a"}]}),
        ("llm.response", {"content": "x", "agent": "helper", "usage": {"input": 9}}),
        ("tool.call", {"tool": "t", "agent": "helper", "output": "y"}),
        ("llm.response", {"content": "b", "usage": {"input": 1}}),
    ))  # fmt: skip
    assert (made.messages(), made.usage.input) == ([Message.user("a"), Message.assistant("b")], 1)


def test_a_compaction_of_another_agents_log():
    """Its summary stands for what was before; answers and results that it swallowed are not heard again."""
    made = Fold(own=False)
    answer = {"role": "assistant", "content": "b"}
    for event in event_list(
        ("llm.request", {"messages": [{"role": "user", "content": "a", "inherited": True}]}),
        ("llm.response", {"content": "b"}),
        ("compaction.end", {"success": True, "summary": "short"}),
        ("llm.request", {"messages": [answer, {"role": "user", "content": {"odd": 1}}], "earlier_messages": 1}),
        ("llm.response", {"content": "c"}),
    ):
        made.apply(event, "x")
    said = [(message.role, message.text) for message in made.messages()]
    assert said == [("user", "short"), ("user", '{"odd":1}'), ("assistant", "c")]


def test_logs_that_tell_answers_only():
    """In the oldest, what was asked and heard stands for the messages."""
    made = fold(event_list(
        ("session.start", {"prompt": "go"}), ("llm.request", {"messages_count": 1}), ("llm.response", {"content": "b"}),
        ("llm.request", {"messages_count": 2}), ("llm.response", {"content": "c"}),
    ))  # fmt: skip
    assert [message.text for message in made.messages()] == ["go", "b", "c"]
    assert made.turns == 1


def test_what_an_end_reports_beyond_its_responses_is_used():
    """A log with totals only has its tokens; totals that responses have told are not counted twice."""
    rows = [("llm.response", {"content": "b", "usage": {"input": 4}}), ("session.end", {"tokens": {"input": 10}})]
    assert fold(event_list(*rows)).usage.input == 10
    assert fold(event_list(*rows, *rows)).usage.input == 20


@pytest.mark.parametrize(
    ("messages", "state"),
    [
        ([], "new"),
        ([Message.user("a")], "interrupted"),
        ([Message.assistant("a")], "complete"),
        ([Message.assistant("a", partial="failed")], "failed"),
        ([Message.assistant("a", tool_calls=[ToolRequest("c", "t")])], "interrupted"),
        ([Message.tool("a", "c")], "interrupted"),
    ],
)
def test_the_state_that_a_history_shows(messages, state):
    """What is left of a history when its newest turn was taken back."""
    assert state_of(messages) == state


def test_a_truncation_with_messages_that_are_none():
    """What it adds is read from its own place."""
    made = fold(event_list(
        ("llm.request", {"messages": [{"role": "user", "content": "a"}]}),
        ("compaction.end", {"dropped": [], "added": [{"at": 0, "message": {"role": "user", "content": "b"}}], "messages": 5}),
    ))  # fmt: skip
    assert [message.text for message in made.messages()] == ["b", "a"]


def test_an_answer_that_says_nothing_is_not_the_one_before():
    """A request may end with an answer; its calls are not those of the empty answer to it."""
    call = {"id": "1", "name": "f", "arguments": {}}
    made = fold(event_list(
        ("llm.request", {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}),
        ("llm.response", {"usage": {"input": 1}}),
    ))  # fmt: skip
    assert (made.state, made.requests) == ("complete", 1)
