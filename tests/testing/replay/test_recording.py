"""Recordings of logs: which answer belongs to which request."""

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import InvalidHistory
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.find import log_at
from sessionlog.testing.replay.recording import read_recordings
from sessionlog.testing.replay.request import PARTS
from tests.profiles import examples
from tests.testing.replay.logs import ANSWER, calls, session, user, write


def recordings(path):
    """What a log holds."""
    return read_recordings(log_at(str(path)))


def pairs(path):
    """The last message of each request, and its answer or error."""
    return [
        (one.request and one.request.messages[-1]["content"], one.error or one.answer.text)
        for one in recordings(path).recordings
    ]


def test_a_recording_is_a_request_with_its_answer(tmp_path):
    """Text, calls, tokens, model and reason of the answer."""
    found = recordings(session(tmp_path))
    assert (found.left_out, found.damaged) == ((), 0)
    first, second = found.recordings
    assert [one.number for one in found.recordings] == [1, 2]
    assert first.answer.calls[0].arguments == {"path": "a.py"}
    assert first.answer.usage == TokenUsage(input=100, output=20, cache_read=60)
    assert (second.answer.text, second.answer.model, second.answer.finish_reason) == (
        ANSWER,
        "gpt-5-2025-08-07",
        "stop",
    )
    assert len(second.request.messages) == 3


def test_parts_that_no_request_has_are_left_out(tmp_path):
    """A native log always shows whether there was a system prompt."""
    path = write(tmp_path, [user("hi")], "hello")
    assert recordings(path).left_out == ("model", "tools", "parameters")
    assert recordings(
        write(tmp_path, {"messages": [user("hi")], "seed": 1}, "hello", name="t", model="m")
    ).left_out == ("tools",)


def test_a_request_may_add_to_those_before(tmp_path):
    """With `earlier_messages`, as sessions write them; the system prompt stays."""
    path = write(
        tmp_path,
        {"messages": [user("one")], "system": "Be brief."},
        "1",
        {"messages": [{"role": "assistant", "content": "1"}, user("two")], "earlier_messages": 1},
        "2",
    )
    [_, second] = recordings(path).recordings
    assert second.request.system == "Be brief."
    assert [one["content"] for one in second.request.messages] == ["one", "1", "two"]


def test_a_log_of_answers_alone_is_a_conversation(tmp_path):
    """The oldest logs have the prompt of the session, answers and tools."""
    path = write(
        tmp_path, calls("ls"), ("tool.call", {"tool": "ls", "id": "c-ls", "output": "a.py"}), "One.", prompt="?"
    )
    assert pairs(path) == [("?", ""), ("a.py", "One.")]


def test_each_attempt_with_a_request_is_a_recording(tmp_path):
    """An error, then the answer to the same request."""
    path = write(tmp_path, [user("?")], {"error": "429 slow down"}, [user("?")], "yes")
    assert pairs(path) == [("?", "429 slow down"), ("?", "yes")]


def test_attempts_with_other_models_end_in_one_answer(tmp_path):
    """One request, some failed attempts at it, and the answer that the agent got."""
    failed = {"error": "503 busy", "attempt_index": 0, "model": "a"}
    path = write(tmp_path, [user("?")], failed, {**failed, "attempt_index": 1}, "yes", [user("more")], "no")
    assert pairs(path) == [("?", "yes"), ("more", "no")]


def test_attempts_after_a_request_without_an_answer_are_those_of_the_last_one(tmp_path):
    """The agent was killed before; the earlier request stays without an answer."""
    failed = {"error": "503 busy", "attempt_index": 0}
    assert pairs(write(tmp_path, [user("killed")], [user("?")], failed, "yes")) == [("?", "yes")]


def test_a_request_that_got_no_answer_is_none(tmp_path):
    """The agent was killed, and asked something else."""
    path = write(tmp_path, [user("one")], [user("two")], "2", [user("three")], "3")
    assert pairs(path) == [("two", "2"), ("three", "3")]


def test_requests_that_overlap_have_no_known_answer(tmp_path):
    """Which answer is whose is not in the log; those before and after are known."""
    path = write(tmp_path, [user("0")], "a", [user("1")], [user("2")], "b", "c", [user("3")], "d")
    assert pairs(path) == [("0", "a"), (None, "b"), (None, "c"), ("3", "d")]


def test_requests_that_overlap_are_told_apart_by_their_models(tmp_path):
    """Where the answers name them."""
    asked = [{"messages": [user(name)], "model": name} for name in ("one", "two")]
    answered = [{"content": name, "requested_model": name} for name in ("two", "one")]
    assert pairs(write(tmp_path, *asked, *answered)) == [("two", "two"), ("one", "one")]


def test_sub_agents_have_conversations_of_their_own(tmp_path):
    """Their requests come between those of the agent."""
    path = write(
        tmp_path, [user("main")], calls("task"), {"messages": [user("sub")], "agent": "helper"},
        {"content": "done", "agent": "helper"}, [user("main"), user("more")], "ok",
    )  # fmt: skip
    assert pairs(path) == [("main", ""), ("sub", "done"), ("more", "ok")]
    assert [one.agent for one in recordings(path).recordings] == ["", "helper", ""]


def test_reasoning_is_part_of_the_answer(tmp_path):
    """In whichever field the log has it."""
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "", "text": "Hm."}, {"type": "text", "text": "Yes."}],
    }
    path = write(
        tmp_path,
        [user("?")],
        {"content": "Yes.", "message": message},
        [user("!")],
        {"content": "No.", "reasoning": "Hm."},
    )
    assert [(one.answer.thoughts, one.answer.text) for one in recordings(path).recordings] == [
        ("Hm.", "Yes."),
        ("Hm.", "No."),
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [((), "no answer of a model"), (({"content": "x", "tool_calls": 2},), "the number of tool calls")],
)
def test_a_log_without_the_answers_is_refused(tmp_path, answer, reason):
    """The error names the log."""
    path = write(tmp_path, [user("?")], *answer)
    with pytest.raises(InvalidHistory, match=f"s.jsonl: .*{reason}"):
        recordings(path)


NAMES = st.sampled_from([
    "messages", "earlier_messages", "tools", "model", "requested_model", "provider", "system", "system_prompt", "prompt",
    "agent", "role", "content", "text", "type", "tool_calls", "id", "name", "arguments", "error", "attempt_index", "usage",
    "reasoning", "message", "output", "tool", "finish_reason", "response_id", "count", "reason", "dropped", "added",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["user", "assistant", "system", "tool", "m", "", "{", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=15,
)  # fmt: skip
TYPES = st.sampled_from([
    "session.start", "llm.request", "llm.request", "llm.response", "llm.response", "llm.delta", "tool.call",
    "history.add", "history.pop", "compaction.end", "session.end",
])  # fmt: skip


@pytest.fixture(scope="module")
def odd_log(tmp_path_factory):
    """Where a log of odd events is written."""
    return tmp_path_factory.mktemp("odd") / "s.jsonl"


@examples(150)
@given(events=st.lists(st.tuples(TYPES, st.dictionaries(NAMES, VALUES, max_size=6) | VALUES), max_size=8))
def test_no_log_breaks_the_reader(odd_log, events):
    """Whatever its payloads are: there are recordings, each of which has a key, or the log is refused."""
    lines = [
        {"session_id": "s", "seq": seq, "type": kind, "ts": "2026-11-23T10:00:00Z", "data": data}
        for seq, (kind, data) in enumerate([("session.start", {"v": 1}), *events])
    ]
    odd_log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    with suppress(InvalidHistory):
        found = recordings(odd_log)
        assert all(one.request is None or one.request.key(PARTS) for one in found.recordings)


def test_damage_is_counted(tmp_path):
    """What was in the damaged line is missing."""
    path = session(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[3:]]))
    assert recordings(path).damaged == 1
