"""Transcript: another agent's session in native events, each request with what is new in it."""

import pytest

from sessionlog.events.encode import encode_event
from sessionlog.events.times import parse_time
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.transcript import Transcript

ONE, TWO, FIVE = (f"2026-11-20T10:00:0{n}.000000Z" for n in (1, 2, 5))


@pytest.fixture
def told():
    """A transcript of session `s`."""
    return Transcript("s")


def test_events_are_numbered_and_without_empty_fields(told):
    """What the log does not tell is not there, rather than null."""
    first, second = told.event("a", ONE, {"x": 1, "y": None}), told.event("b", TWO, {})
    assert [(e.session_id, e.seq, e.type, e.ts, e.data) for e in (first, second)] == [
        ("s", 0, "a", ONE, {"x": 1}), ("s", 1, "b", TWO, {}),
    ]  # fmt: skip


def test_whether_anything_was_told(told):
    """Not before the first event."""
    assert not told.started
    told.start(ONE)
    assert told.started


@pytest.mark.parametrize("ts", [ONE, parse_time(ONE)])
def test_times_are_texts_or_nanoseconds(told, ts):
    """Both are written in the same way; a missing one repeats the last."""
    assert told.event("a", ts, {}).ts == ONE
    assert told.event("b", None, {}).ts == ONE
    assert told.event("c", "", {}).ts == ONE


def test_the_start_says_that_classes_are_disjoint(told):
    """Of metadata only what is known is kept."""
    event = told.start(ONE, provider="inkwell", metadata={"a": 1, "b": None, "c": "", "d": 0})
    assert event.data == {"v": 1, "provider": "inkwell", "metadata": {"a": 1, "d": 0}}
    assert told.start(ONE, metadata={"b": ""}).data == {"v": 1}


def exchange(told):
    """Two answers, with a tool between them."""
    told.hear("user", "Write", ONE)
    yield from told.response(
        TWO, content="Looking", tool_calls=[{"id": "c", "name": "read", "arguments": {"p": 1}}],
        usage=TokenUsage(input=3, output=2, cache_read=1), model="ink-2", key="k",
    )  # fmt: skip
    yield told.result(FIVE, "c", "text")
    yield from told.response("2026-11-20T10:00:06.500000Z", content="Done")


def test_a_request_holds_what_is_new_and_says_how_much_is_not(told):
    """The answer before it, and the tools' results; nothing is repeated."""
    requests = [event.data for event in exchange(told) if event.type == "llm.request"]
    said = {
        "role": "assistant",
        "content": "Looking",
        "tool_calls": [{"id": "c", "name": "read", "arguments": {"p": 1}}],
    }
    assert requests == [
        {"model": "ink-2", "messages": [{"role": "user", "content": "Write"}]},
        {"messages": [said, {"role": "tool", "tool_call_id": "c", "content": "text"}], "earlier_messages": 1},
    ]


def test_a_request_is_at_the_time_of_what_it_answers(told):
    """And the time until the answer is its latency, unless the log tells one."""
    events = list(exchange(told))
    assert [event.ts for event in events if event.type == "llm.request"] == [ONE, FIVE]
    assert [event.data.get("latency_ms") for event in events if event.type == "llm.response"] == [1000.0, 1500.0]
    assert told.response(FIVE, latency_ms=7.0)[1].data["latency_ms"] == 7.0


def test_an_answer_to_nothing_has_no_latency(told):
    """Nor one that came before its question."""
    assert "latency_ms" not in told.response(ONE)[1].data
    told.hear("user", "Write", FIVE)
    assert "latency_ms" not in told.response(TWO)[1].data
    told.hear("user", "Write", "yesterday")
    request, response = told.response(FIVE)
    assert (request.ts, "latency_ms" in response.data) == ("yesterday", False)


def test_the_answer_has_its_tokens_and_its_name(told):
    """As a native log spells them."""
    [response] = [event for event in exchange(told) if event.data.get("key") == "k"]
    assert response.data["usage"] == {"input": 3, "output": 2, "cache_read": 1, "total": 6}
    assert (response.data["model"], response.data["content"]) == ("ink-2", "Looking")
    _, other = told.response(FIVE, provider="elsewhere", error="overloaded", quality="partial", cost_usd=0.5)
    assert other.data["attempt"] == {"provider_system": "elsewhere"}
    assert (other.data["error"], other.data["quality"], other.data["cost_usd"]) == ("overloaded", "partial", 0.5)


def test_a_failed_call_says_nothing_that_is_sent_again(told):
    """What it was asked counts as told."""
    told.hear("user", "Write")
    told.response(ONE, error="overloaded")
    assert told.response(TWO)[0].data == {"messages": [], "earlier_messages": 1}


def test_a_result_is_told_with_its_call(told):
    """Name, arguments and duration come from the call."""
    [call] = [event.data for event in exchange(told) if event.type == "tool.call"]
    assert call == {"tool": "read", "id": "c", "input": {"p": 1}, "output": "text", "duration_ms": 3000.0}


def test_a_result_without_a_call_has_the_name_it_brings(told):
    """Else nobody knows it; a failure says why."""
    assert told.result(ONE, "x", {"n": 1}, name="bash", arguments={"a": 1}).data == {
        "tool": "bash", "id": "x", "input": {"a": 1}, "output": {"n": 1},
    }  # fmt: skip
    assert told.result(ONE, "y", "no such file", failed=True).data["error"] == "no such file"
    failed = told.result(ONE, "z", None, failed=True)
    assert (failed.data["tool"], failed.data["error"]) == ("unknown", "failed")


def test_after_a_compaction_little_is_sent_again(told):
    """Of the earlier messages at most a summary."""
    list(exchange(told))
    event = told.compacted(FIVE, summary="They wrote", tokens_before=9)
    assert (event.type, event.data) == (
        "compaction.end",
        {"success": True, "summary": "They wrote", "tokens_before": 9},
    )
    assert told.response(FIVE)[0].data.get("earlier_messages", 0) <= 1


def test_the_end_says_how(told):
    """Totals are those of the responses."""
    assert told.end(FIVE, "error", error="why").data == {"status": "error", "error": "why"}
    assert told.end(FIVE, "success").data == {"status": "success"}


def test_events_can_be_written(told):
    """Whatever a log held."""
    told.hear("user", [{"text": "\ud800"}], ONE)
    events = [
        told.start(ONE),
        *told.response(TWO, content="\ud800"),
        told.result(FIVE, "c", float("nan")),
        told.end(None, "success"),
    ]
    assert all(encode_event(event).endswith(b"\n") for event in events)


def test_a_question_that_nothing_answers_is_told(told):
    """With what is said besides, once; what only tools gave back waits."""
    assert list(told.unanswered()) == []
    told.hear("system", "be brief", ONE)
    assert list(told.unanswered()) == []
    told.hear("user", "well?", TWO)
    [request] = told.unanswered()
    assert (request.type, request.ts, [m["content"] for m in request.data["messages"]]) == (
        "llm.request", TWO, ["be brief", "well?"],
    )  # fmt: skip
    assert list(told.unanswered()) == []


def test_what_another_session_said_is_marked(told):
    """A fork's history is sent, but it is no turn of the fork's."""
    told.hear("user", "before", inherited=True)
    told.hear("user", "now")
    request, _ = told.response(ONE)
    assert request.data["messages"] == [
        {"role": "user", "content": "before", "inherited": True}, {"role": "user", "content": "now"},
    ]  # fmt: skip
