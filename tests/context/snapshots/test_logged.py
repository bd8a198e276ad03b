"""A session read back from its log: whole prompts, or only what is new; turns, steps and the conversation."""

import pytest

from sessionlog.context.snapshots.logged import get_step_history, read_logged_session
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event

START = ("session.start", {"v": 1, "provider": "acme", "model": "m"})


def session(*events, **options):
    """What is read of events a second apart."""
    made = [
        Event(session_id="s", seq=n, type=kind, ts=f"2026-11-21T10:{n // 60:02}:{n % 60:02}Z", data=data)
        for n, (kind, data) in enumerate(events)
    ]
    return read_logged_session(made, **options)


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def request(*messages, **more):
    return ("llm.request", {"messages": list(messages), **more})


def response(content="", usage=(1, 1), *, cache_read=0, **more):
    counts = {"input": usage[0], "output": usage[1], "cache_read": cache_read}
    return ("llm.response", {"content": content, "usage": counts, **more})


def texts(found):
    return [(part.kind, part.text) for message in found.messages for part in message.pieces]


def test_whole_prompts():
    """The conversation is the last request's, and the answer to it."""
    found = session(
        START, request(said("user", "a")), response("b"),
        request(said("user", "a"), said("assistant", "b"), said("user", "c"), tools=[{"name": "t"}], model="n"),
        response("d"),
    )  # fmt: skip
    assert texts(found) == [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]
    assert (found.session_id, found.model, found.provider) == ("s", "n", "acme")
    assert [tool.name for tool in found.tools] == ["t"]
    assert [step.turn_id for step in found.steps] == [1, 2]


def test_messages_keep_the_time_they_came():
    """A prompt has its first request's time, an answer its own; and an answer keeps what it used."""
    found = session(
        START, request(said("user", "a")), response("b", (5, 2)),
        request(said("user", "a"), said("assistant", "b"), said("user", "c")),
    )  # fmt: skip
    assert [message.timestamp[17:19] for message in found.messages] == ["01", "02", "03"]
    assert found.messages[1].usage.input_tokens == 5


def test_only_what_is_new():
    """Requests that say how many earlier messages they do not repeat are put together."""
    found = session(
        START, request(said("user", "a")), response("b"),
        request(said("assistant", "b"), said("user", "c"), earlier_messages=1), response("d"),
    )  # fmt: skip
    assert texts(found) == [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]


def test_a_tool_loop_is_one_turn():
    """Results open no turn; those that no request has sent yet are of the conversation."""
    calls = [{"id": "c1", "name": "read", "arguments": {}}]
    found = session(
        START, request(said("user", "a")), response("", tool_calls=calls),
        ("tool.call", {"tool": "read", "id": "c1", "output": "x"}),
        request(said("user", "a"), said("assistant", "", tool_calls=calls), said("tool", "x", tool_call_id="c1")),
        response("", tool_calls=calls), ("tool.call", {"tool": "read", "id": "c1", "output": "y"}),
    )  # fmt: skip
    assert [step.turn_id for step in found.steps] == [1, 1]
    assert texts(found)[-3:] == [("tool_return", "x"), ("tool_call", "{}"), ("tool_return", "y")]
    (turn,) = found.turns
    assert (turn.tool_names, turn.tool_calls, turn.duration_seconds) == (("read", "read"), 2, 5.0)


def test_tools_that_only_ran_are_counted():
    """Where answers do not say what they call, the calls that ran are theirs."""
    found = session(
        START, request(said("user", "a")), response("b"), ("tool.call", {"tool": "read", "output": "x"}),
        ("tool.call", {"tool": "grep", "error": "no"}),
    )  # fmt: skip
    assert found.steps[0].tool_names == ("read", "grep")


def test_a_failed_call_is_asked_again():
    """The same prompt again is no new turn, a failure no step; another prompt is one."""
    failed = ("llm.response", {"error": "overloaded"})
    again = session(START, request(said("user", "a")), failed, request(said("user", "a")), response("b"))
    assert [(step.request_num, step.turn_id) for step in again.steps] == [(1, 1)]
    other = session(START, request(said("user", "a")), failed, request(said("user", "b")), response("b"))
    assert [step.turn_id for step in other.steps] == [2]
    assert [turn.requests for turn in other.turns] == [0, 1]


def test_a_compaction_leaves_a_summary():
    """In its turn it goes on with the turn; with a new prompt behind it a turn begins."""
    head = (START, request(said("user", "a")), response("b"), ("compaction.end", {"success": True, "summary": "short"}))
    within = session(*head, request(earlier_messages=1), response("c"))
    assert texts(within) == [("user", "short"), ("assistant", "c")]
    assert [step.turn_id for step in within.steps] == [1, 1]
    behind = session(*head, request(said("user", "d"), earlier_messages=1), response("c"))
    assert texts(behind) == [("user", "short"), ("user", "d"), ("assistant", "c")]
    assert [step.turn_id for step in behind.steps] == [1, 2]


def test_the_state_at_a_request():
    """Up to the answer to it, and nothing after."""
    events = (START, request(said("user", "a")), response("b"), request(said("user", "x")), response("y"))
    found = session(*events, request=1)
    assert texts(found) == [("user", "a"), ("assistant", "b")]
    assert len(found.steps) == 1
    assert session(*events, request=9) == session(*events)


def test_prompts_of_the_start():
    """A system prompt that no request repeats, and a user's words where no request is logged."""
    found = session(("session.start", {"v": 1, "system_prompt": "Be brief.", "prompt": "a"}), response("b"))
    assert texts(found) == [("system", "Be brief."), ("user", "a"), ("assistant", "b")]
    assert found.steps[0].turn_id == 1


def test_a_session_without_an_answer():
    """Has a turn that used nothing, for the prompt it began with or asked; without any it has none."""
    asked = session(START, request(said("user", "a")), ("llm.response", {"error": "overloaded"}))
    assert [(turn.requests, turn.duration_seconds) for turn in asked.turns] == [(0, 1.0)]
    assert len(session(("session.start", {"v": 1, "prompt": "a"})).turns) == 1
    assert session(START).turns == ()


def test_the_dialect_of_the_original():
    """Without `v` the input holds what was read from the cache, unless the provider is known to count otherwise."""
    usage = {"input": 600, "cache_read": 500, "output": 7}
    event = ("llm.response", {"content": "b", "usage": usage})
    assert session(START, event).steps[0].input_tokens == 1100
    assert session(("session.start", {"provider": "openai"}), event).steps[0].input_tokens == 600
    assert session(("session.start", {"provider": "anthropic"}), event).steps[0].input_tokens == 1100


def test_a_provider_counts_in_one_way_all_session_long():
    """One answer with more read than put in shows it, also of the answers before it and of another one's window."""
    plain, telling = response("b", (600, 1), cache_read=500), response("c", (10, 1), cache_read=700)
    start = ("session.start", {"provider": "openai"})
    head = (start, request(said("user", "a")), plain, request(said("user", "b")))
    assert session(*head).steps[0].input_tokens == 600
    found = session(*head, telling)
    assert [step.input_tokens for step in found.steps] == [1100, 710]
    assert [message.usage.input_tokens for message in found.messages if message.usage] == [710]
    assert [step.input_tokens for step in session(*head, telling, request=1).steps] == [1100]
    other = session(*head, ("llm.response", telling[1] | {"attempt": {"provider_system": "acme"}}))
    assert [step.input_tokens for step in other.steps] == [600, 710]


def test_a_subagent_talks_elsewhere():
    """What it says, uses and runs fills another window."""
    calls = [{"id": "c1", "name": "task", "arguments": {}}]
    mine = (START, request(said("user", "a")), response("", (50, 1), tool_calls=calls))
    theirs = (
        response("Found.", (9000, 60), agent="explore"),
        ("tool.call", {"tool": "grep", "output": "x", "agent": "explore"}),
    )
    behind = (("tool.call", {"tool": "task", "id": "c1", "output": "done"}),)
    found = session(*mine, *theirs, *behind)
    alone = session(*mine, *behind)
    assert texts(found) == texts(alone) == [("user", "a"), ("tool_call", "{}"), ("tool_return", "done")]
    assert [(step.input_tokens, step.tool_names) for step in found.steps] == [(50, ("task",))]
    assert (found.turns[0].input_tokens, found.turns[0].tool_names) == (50, ("task",))


def test_a_compaction_that_failed_is_none():
    """One that does not say is a cut, one that says it failed or did nothing is not."""
    head = (START, request(said("user", "a")), response("b"))
    assert texts(session(*head, ("compaction.end", {"summary": "short"}))) == [("user", "short")]
    for said_so in ({"success": False}, {"success": True, "no_compaction": True}):
        kept = session(*head, ("compaction.end", {"summary": "short", **said_so}))
        assert texts(kept) == [("user", "a"), ("assistant", "b")]


@pytest.mark.parametrize("latency", [None, -1, float("nan"), float("inf"), True, "fast"])
def test_a_latency_that_is_none(latency):
    """The time between request and answer stands for it."""
    assert session(START, request(said("user", "a")), response("b", latency_ms=latency)).steps[0].duration_ms == 1000


def test_problems_and_odd_events_are_passed_over():
    """Damage takes nothing else with it."""
    odd = [
        Problem(path="x", line=1, offset=0, kind="not_json", detail=""),
        Event(session_id="s", seq=0, type="llm.request", ts="", data=None),
        Event(session_id="s", seq=0, type="llm.request", ts="", data={"messages": 3, "tools": 4}),
        Event(session_id="s", seq=0, type="llm.response", ts="", data={"usage": [], "tool_calls": 3}),
        Event(session_id="s", seq=0, type="tool.call", ts="", data={}),
    ]
    found = read_logged_session(odd)
    assert [(step.input_tokens, step.tool_names) for step in found.steps] == [(0, ("unknown",))]


def test_a_path_that_is_no_log(tmp_path):
    """Is a mistake of the caller."""
    with pytest.raises(LogNotReadable):
        get_step_history(tmp_path / "nothing.jsonl")


def test_a_fork_holds_what_it_inherits():
    """Its first request leans on it; what is inherited is no turn of its own."""
    add = ("history.add", {"reason": "fork", "messages": [said("user", "a"), said("assistant", "b")]})
    found = session(START, add, request(said("user", "c"), earlier_messages=2), response("d"))
    assert [text for _, text in texts(found)] == ["a", "b", "c", "d"]
    assert [step.turn_id for step in found.steps] == [1]


def test_changes_of_the_history_between_requests():
    """Messages are added and taken back, and a history begins anew, before any request says so."""
    head = (START, request(said("user", "a")), response("b"))
    added = ("history.add", {"reason": "added", "messages": [said("user", "c")]})
    assert [text for _, text in texts(session(*head, added))] == ["a", "b", "c"]
    assert [text for _, text in texts(session(*head, added, ("history.pop", {"count": 2})))] == ["a"]
    assert texts(session(*head, ("history.clear", {}))) == []


def test_a_truncation_drops_only_what_it_says():
    """The rest of the conversation stays; the prompt behind it is a turn."""
    head = (START, request(said("user", "a")), response("b"))
    cut = ("compaction.end", {"success": True, "dropped": [[0, 1]], "added": [{"at": 0, "message": said("user", "s")}]})
    assert [text for _, text in texts(session(*head, cut))] == ["s", "b"]
    found = session(*head, cut, request(said("user", "s"), said("assistant", "b"), said("user", "d")), response("e"))
    assert [text for _, text in texts(found)] == ["s", "b", "d", "e"]
    assert [step.turn_id for step in found.steps] == [1, 2]
