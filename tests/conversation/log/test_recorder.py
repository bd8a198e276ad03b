"""Recorder: what a session writes, event by event."""

from types import SimpleNamespace

import pytest

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log import recorder as module
from sessionlog.conversation.log.fold import Fold
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.pieces import Reply, ToolReturned
from sessionlog.errors import NotRecorded
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.testing import MemorySink

USER, ANSWER, MORE = Message.user("hi"), Message.assistant("ho"), Message.user("more")


@pytest.fixture
def sink():
    """A log in memory."""
    return MemorySink(work_dir="/p")


@pytest.fixture
def recorder(sink):
    """A recorder of a session that has begun."""
    made = Recorder(sink)
    made.begin(system="be brief")
    return made


def payloads(sink):
    """(type, payload) of the events, without session.start."""
    return [(event.type, event.data) for event in sink.events[1:]]


def folded(sink):
    """The history that the log gives."""
    fold = Fold()
    for event in sink.events:
        fold.apply(event, "x")
    return fold.messages()


def test_without_a_logger_nothing_happens():
    """A session without a log has a recorder all the same."""
    made = Recorder(None)
    made.begin(system="s", inherited=[USER])
    made.request([USER])
    made.delta("h")
    made.response(ANSWER)
    made.tool(ToolReturned(ToolRequest("1", "t"), Message.tool("x", "1")))
    made.popped(1)
    made.cleared()
    made.truncated([USER], [], Truncation((USER,)))
    made.sync([USER], state="failed")
    made.end("success")
    made.close()
    assert (made.path, made.session_id, made.as_parent(), made.sibling("x").path) == (None, None, None, None)


def test_a_turn(sink, recorder):
    """The first request is whole; the second holds what is new, the answer and the tool's result included."""
    call = ToolRequest("c1", "read", {"path": "a"})
    asks, result = Message.assistant("let me see", tool_calls=[call]), Message.tool("text", "c1", name="read")
    recorder.request([USER], model="m", provider="p", tools=[{"name": "read"}], options={"temperature": 0})
    recorder.delta("let me ")
    known = {"usage": TokenUsage(input=3, output=2), "model": "m-1", "provider": "p", "cost_usd": 0.5}
    recorder.response(asks, reply=Reply(message=asks, finish_reason="tool", **known), latency_ms=7)
    recorder.tool(ToolReturned(call, result, duration_ms=1.23456))
    recorder.request([USER, asks, result])
    recorder.response(ANSWER)
    recorder.end("success")
    assert sink.events[0].data["system_prompt"] == "be brief"
    spelled = {"id": "c1", "name": "read", "arguments": {"path": "a"}}
    usage = {"input": 3, "output": 2, "total": 5}
    asked = {"role": "assistant", "content": "let me see", "tool_calls": [spelled]}
    said = {"role": "tool", "content": "text", "name": "read", "tool_call_id": "c1"}
    assert payloads(sink)[:-1] == [
        ("llm.request", {
            "model": "m", "provider": "p", "temperature": 0, "tools": [{"name": "read"}],
            "messages": [{"role": "user", "content": "hi"}],
        }),
        ("llm.delta", {"content": "let me "}),
        ("llm.response", {
            "content": "let me see", "tool_calls": [spelled], "usage": usage, "cost_usd": 0.5, "latency_ms": 7,
            "model": "m-1", "attempt": {"provider_system": "p"}, "finish_reason": "tool",
        }),
        ("tool.call", {
            "tool": "read", "id": "c1", "input": {"path": "a"}, "output": "text", "duration_ms": 1.235,
        }),
        ("llm.request", {"messages": [asked, said], "earlier_messages": 1}),
        ("llm.response", {"content": "ho"}),
    ]  # fmt: skip
    assert sink.events[-1].data["tokens"] == usage


def test_what_is_told_is_at_the_end_of_the_line(sink, recorder):
    """Scans look for `earlier_messages` in a line's last bytes."""
    recorder.request([USER])
    recorder.response(ANSWER)
    recorder.request([USER, ANSWER, MORE], options={"max_tokens": 9})
    assert sink.content.rstrip().endswith(b'"earlier_messages":1}}')


def test_only_plain_options_are_told(sink, recorder):
    """An object of the caller's program may hold its secrets: neither it nor its text goes into the log."""
    given = {"temperature": 0.5, "metadata": {"task": ["a"]}, "deps": SimpleNamespace(key="k"), "hooks": [print]}
    recorder.request([USER], options=given)
    assert {"temperature", "metadata", "messages"} == set(sink.events[-1].data)


def test_a_retry_repeats_nothing(sink, recorder):
    """Another attempt of the same request holds no messages; a failed one has only its error."""
    recorder.request([USER])
    recorder.response(None, error=TimeoutError("slow"))
    recorder.request([USER], attempt=2)
    assert payloads(sink)[1:] == [
        ("llm.response", {"error": "TimeoutError: slow"}),
        ("llm.request", {"attempt_index": 2, "messages": [], "earlier_messages": 1}),
    ]
    assert folded(sink) == [USER]


def test_what_the_plain_fields_do_not_say_stands_beside_them(sink, recorder):
    """An answer or a result with parts, or fields of its own, is in the log as it is."""
    call = ToolRequest("c1", "see", {})
    picture = Message.tool([ContentPart.of_image(b"png")], "c1", name="see")
    odd = Message("tool", "x", tool_call_id="c1", name="other")
    thought = ContentPart(type="thinking", extra={"thinking": "hm"})
    answer = Message("assistant", (thought, ContentPart.of_text("ho")), tool_calls=(call,))
    recorder.request([USER])
    recorder.response(answer)
    recorder.tool(ToolReturned(call, picture))
    assert folded(sink) == [USER, answer, picture]
    assert "message" in payloads(sink)[1][1]
    assert "message" not in payloads(sink)[2][1]
    recorder.tool(ToolReturned(call, odd))
    assert payloads(sink)[3][1]["message"]["name"] == "other"


def test_what_was_streamed_stands_for_an_answer_without_a_message(sink, recorder):
    """Pieces that were shown are never lost, whatever is said of the answer."""
    recorder.request([USER])
    recorder.delta("half ")
    recorder.delta("an answer")
    recorder.response(None, error="broken")
    assert folded(sink) == [USER, Message.assistant("half an answer", partial="failed")]


def test_after_a_change_of_the_history_the_next_request_is_whole(sink, recorder):
    """What was taken back, cleared or cut is said at once, and the request after it leans on nothing."""
    recorder.request([USER])
    recorder.response(ANSWER)
    recorder.sync([USER, ANSWER, MORE])
    recorder.popped(1)
    recorder.request([USER, ANSWER, Message.user("b")])
    assert [kind for kind, _ in payloads(sink)[2:]] == ["history.add", "history.pop", "llm.request"]
    assert payloads(sink)[2][1] == {"reason": "added", "messages": [{"role": "user", "content": "more"}]}
    assert payloads(sink)[3][1] == {"count": 1}
    assert "earlier_messages" not in payloads(sink)[4][1]
    recorder.cleared()
    assert folded(sink) == []
    recorder.request([MORE])
    assert "earlier_messages" not in payloads(sink)[-1][1]


def test_a_changed_beginning_is_noticed(sink, recorder):
    """Nobody has to say that the history is another one: a request that cannot go on is whole."""
    recorder.request([USER])
    recorder.response(ANSWER)
    recorder.request([Message.user("ha"), ANSWER, MORE])
    assert len(payloads(sink)[-1][1]["messages"]) == 3
    assert "earlier_messages" not in payloads(sink)[-1][1]


def test_a_truncation(sink, recorder):
    """What was dropped is an event, with what stands in its place, the tokens, and whether it was enough."""
    history = [USER, ANSWER, MORE, ANSWER, USER]
    summary = Message("user", "they greeted", extra={"summary": True})
    cut = Truncation(
        tuple(history[:2]), strategy="summarise", tokens_before=90, tokens_after=50, is_over_budget=True
    )  # fmt: skip
    recorder.request(history[:4])
    recorder.truncated(history, [summary, *history[2:]], cut)
    assert payloads(sink)[1] == ("history.add", {"reason": "added", "messages": [{"role": "user", "content": "hi"}]})
    assert payloads(sink)[2] == ("compaction.end", {
        "success": True, "strategy": "summarise", "messages_before": 5, "messages_after": 4, "tokens_before": 90,
        "tokens_after": 50, "summary": "they greeted", "dropped": [[0, 2]],
        "added": [{"at": 0, "message": {"role": "user", "content": "they greeted", "summary": True}}],
        "warning": "still over budget: nothing more can be dropped",
    })  # fmt: skip
    assert folded(sink) == [summary, *history[2:]]


def test_a_truncation_that_finds_nothing_to_drop(sink, recorder):
    """It is said only where the history is still too long; readers see that nothing was compacted."""
    recorder.request([USER])
    recorder.truncated([USER], [USER], Truncation())
    recorder.truncated([USER], [USER], Truncation(is_over_budget=True))
    [(kind, data)] = payloads(sink)[1:]
    assert (kind, data["no_compaction"]) == ("compaction.end", True)


def test_sync_writes_the_difference(sink, recorder):
    """A history that was changed in another way is taken back to where it is the same, and added to."""
    recorder.request([USER, ANSWER, MORE])
    recorder.sync([USER, Message.user("x")])
    recorder.sync([USER, Message.user("x")], state="cancelled")
    assert payloads(sink)[1:] == [
        ("history.pop", {"count": 2}),
        ("history.add", {"reason": "added", "messages": [{"role": "user", "content": "x"}]}),
        ("history.add", {"reason": "added", "messages": [], "state": "cancelled"}),
    ]


def test_a_fork_names_its_parent_and_holds_what_it_inherits(tmp_path):
    """A fork's log is beside its parent's, written with the same options, and leans on no other file."""
    parent = Recorder(SessionLogger(tmp_path, "p", provider="acme", redact=False))
    parent.begin(system="s")
    parent.request([USER])
    parent.response(ANSWER)
    fork = parent.sibling("f")
    fork.begin(system="s", parent=parent.as_parent(), inherited=[USER, ANSWER])
    fork.request([USER, ANSWER, MORE])
    assert parent.as_parent() == {"session": "p", "path": str(tmp_path / "p.jsonl"), "seq": 2}
    with pytest.raises(ValueError, match="already"):
        parent.sibling("f")
    from sessionlog.reader.stream import read_events

    start, add, request = read_events(tmp_path / "f.jsonl")
    assert (start.data["provider"], start.data["parent"]["seq"]) == ("acme", 2)
    assert (add.data["reason"], len(add.data["messages"]), add.data["parent"]["session"]) == ("fork", 2, "p")
    assert (request.data["messages"], request.data["earlier_messages"]) == ([{"role": "user", "content": "more"}], 2)


def test_what_a_store_restores_counts_with_its_tokens(sink):
    """A restored session's log begins with its history and what that has used."""
    made = Recorder(sink)
    made.begin(system=None, inherited=[USER, ANSWER], usage=TokenUsage(input=5))
    fold = Fold()
    for event in sink.events:
        fold.apply(event, "x")
    assert (fold.messages(), fold.usage.input, payloads(sink)[0][1]["reason"]) == ([USER, ANSWER], 5, "restored")


def test_the_system_of_a_log_that_somebody_else_began(sink):
    """Where session.start does not say it, the next request does, once; the same where it is another one now."""
    sink.emit("session.start", {})
    made = Recorder(sink)
    made.begin(system="be brief")
    made.request([USER])
    made.request([USER])
    assert [data.get("system") for _, data in payloads(sink)] == ["be brief", None]


def test_a_long_history_is_told_in_several_events(sink, recorder, monkeypatch):
    """No event is so long that a reader passes it over, and the history is whole all the same."""
    monkeypatch.setattr(module, "LONG", 1000)
    history = [Message.user("x" * 600), Message.assistant("y" * 600), Message.user("z")]
    recorder.request(history)
    assert [(kind, len(data["messages"])) for kind, data in payloads(sink)] == [
        ("history.add", 1), ("history.add", 1), ("llm.request", 1)
    ]  # fmt: skip
    assert folded(sink) == history
    changed = [Message.user("w" * 600), *history]
    recorder.request(changed)
    assert payloads(sink)[3][0] == "history.clear"
    assert folded(sink) == changed


def test_what_was_not_written_is_told_again(sink, recorder):
    """A full disk loses events, but no message that a later event can tell."""
    recorder.request([USER])
    sink.failure = OSError(28, "full")
    recorder.response(ANSWER)
    recorder.request([USER, ANSWER, MORE])
    sink.failure = None
    assert folded(sink) == [USER]
    recorder.request([USER, ANSWER, MORE])
    assert folded(sink) == [USER, ANSWER, MORE]


def test_a_session_goes_on_after_its_end(sink, recorder):
    """Each run has an end of its own, which tells what that run used."""
    for text in ("a", "b"):
        recorder.request([Message.user(text)])
        recorder.response(ANSWER, reply=Reply(message=ANSWER, usage=TokenUsage(input=4, output=1)))
        recorder.end("success")
        recorder.end("success")
    ends = sink.of_type("session.end")
    assert [end.data["tokens"]["total"] for end in ends] == [5, 5]


def test_a_logger_that_was_asked_to_raises():
    """Who wants to know of every lost event is told."""
    sink = MemorySink(on_error="raise")
    made = Recorder(sink)
    made.begin(system=None)
    sink.failure = OSError(28, "full")
    with pytest.raises(NotRecorded):
        made.request([USER])


def test_what_a_fork_inherits_is_never_said_by_its_requests(sink):
    """Also after a truncation or an undo: prompts of the parent are no turns of the fork."""
    made, old = Recorder(sink), [Message.user("a"), Message.assistant("b"), Message.user("c"), Message.assistant("d")]
    made.begin(system=None, parent={"session": "p"}, inherited=old)
    made.truncated(old, old[1:], Truncation((old[0],)))
    made.request([*old[1:], USER])
    assert payloads(sink)[2:] == [
        ("history.add", {"reason": "fork", "messages": [
            {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
            {"role": "assistant", "content": "d"},
        ]}),
        ("llm.request", {"messages": [{"role": "user", "content": "hi"}], "earlier_messages": 3}),
    ]  # fmt: skip
    made.response(ANSWER)
    made.popped(2)
    made.request([*old[1:], MORE])
    assert payloads(sink)[-1][1] == {"messages": [{"role": "user", "content": "more"}], "earlier_messages": 3}
    assert folded(sink) == [*old[1:], MORE]
    made.request([old[3], MORE])
    assert [kind for kind, _ in payloads(sink)[-3:]] == ["history.clear", "history.add", "llm.request"]
    assert folded(sink) == [old[3], MORE]
    sink.failure = OSError(28, "full")
    made.request([old[1], MORE])
    sink.failure = None
    made.request([old[1], MORE])
    assert folded(sink) == [old[1], MORE]


def test_nothing_long_is_said_twice_in_one_event(sink, recorder, monkeypatch):
    """Where a whole message stands in an event, the plain fields beside it have its beginning."""
    monkeypatch.setattr(module, "LONG", 20_000)
    call = ToolRequest("c1", "see", {"text": "x" * 30_000})
    answer = Message("assistant", "y" * 30_000, tool_calls=[call], name="me")
    result = Message("tool", "z" * 30_000, tool_call_id="c1", name="other")
    recorder.request([USER])
    recorder.response(answer)
    recorder.tool(ToolReturned(call, result))
    (_, said), (_, ran) = payloads(sink)[-2:]
    assert all("characters were cut" in text for text in (said["content"], ran["output"], ran["input"]))
    assert folded(sink) == [USER, answer, result]
