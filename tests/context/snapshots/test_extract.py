"""Snapshots from a live agent, from messages alone, from a log alone; counted with any tokenizer."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context import (
    DEFAULT_CONTEXT_WINDOW,
    SessionUsage,
    TokenCount,
    TurnUsage,
    extract_context_snapshot,
    extract_full_context_snapshot,
    get_model_context_window,
)
from sessionlog.errors import LogNotReadable
from sessionlog.reader.stream import read_events
from tests.context.reports import xray
from tests.context.talks import answer, ask, call, result, tool_loop, user
from tests.profiles import examples

STORY = Path(__file__).parents[3] / "testdata" / "replay" / "story.jsonl"
MODEL = "gpt-4o"


def agent(**more):
    """What pydantic-ai's agents have, as far as it matters."""
    tool = SimpleNamespace(name="read", description="Read", parameters_json_schema={"type": "object"})
    held = {"_system_prompts": ("Be brief.",), "toolsets": [SimpleNamespace(tools={"read": tool})], "model": MODEL}
    return SimpleNamespace(**(held | more))


def test_nothing_is_an_empty_snapshot():
    """No agent, no history, no log: no tokens, and no usage that anybody knows of."""
    snapshot = extract_context_snapshot()
    assert snapshot.total_tokens == 0
    assert snapshot.context_window == DEFAULT_CONTEXT_WINDOW
    assert snapshot.turn_usage is None
    assert snapshot.session_usage is None
    assert not snapshot.estimated


def test_an_agent_alone():
    """Its prompts, its tools, and its model's window."""
    snapshot = extract_context_snapshot(agent(), "a")
    assert snapshot.system_prompts == ("Be brief.",)
    assert [tool.name for tool in snapshot.tools] == ["read"]
    assert snapshot.context_window == get_model_context_window(MODEL)
    assert snapshot.total_tokens == snapshot.system_prompt_tokens + snapshot.tool_tokens > 0


@pytest.mark.parametrize("model", [MODEL, SimpleNamespace(model_name=MODEL), SimpleNamespace(name=MODEL), None])
def test_models_of_every_make(model):
    """A name, or an object that has one; an inner agent's; else the caller's word."""
    wrapped = SimpleNamespace(_agent=agent(model=model))
    full = extract_full_context_snapshot(wrapped, "a", model=None if model else MODEL, env={})
    assert (full.model_name, full.context_window) == (MODEL, get_model_context_window(MODEL))


def test_a_prompt_of_agent_and_history_is_one():
    """Nothing is counted twice: neither the prompt that both have, nor instructions that every request repeats."""
    talk = tool_loop()
    for message in talk:
        message.instructions = "In English."
    snapshot = extract_context_snapshot(agent(), "a", message_history=talk, count=len)
    assert snapshot.system_prompts == ("Be brief.", "In English.")
    assert snapshot.system_prompt_tokens == len("Be brief.In English.")


def test_instructions_of_an_agent_that_has_not_run():
    """They will be sent, and are counted; functions are known when it runs."""
    standing = [SimpleNamespace(instruction="In English."), SimpleNamespace(instruction=print)]
    assert extract_context_snapshot(agent(_instructions=standing), "a").system_prompts == ("Be brief.", "In English.")


def test_the_current_turn_begins_at_the_last_prompt():
    """What is before it is history, by role; the parts sum to the total."""
    snapshot = extract_context_snapshot(message_history=tool_loop(), count=len)
    first, second = (len(json.dumps(_wrapped("user", text))) for text in ("First?", "Second?"))
    assert (snapshot.history_user_tokens, snapshot.current_user_tokens) == (first, second)
    assert snapshot.history_tool_call_tokens == len(
        '{"id": "c1", "type": "tool_use", "name": "read", "input": {"path": "a.py"}}'
    )
    assert snapshot.current_tool_return_tokens > snapshot.history_tool_return_tokens
    assert snapshot.get_history_total() + 9 < snapshot.total_tokens
    assert [(message.role, message.content) for message in snapshot.messages] == [
        ("user", "First?"), ("assistant", "One."), ("user", "Second?"), ("assistant", "Two."),
    ]  # fmt: skip


def _wrapped(role, text):
    return {"role": role, "content": [{"type": "text", "text": text}]}


def test_what_the_caller_knows_goes_first():
    """Usage, tools, window and reported tokens are kept as they are given."""
    turn, session = TurnUsage(requests=7), SessionUsage(turns=8)
    snapshot = extract_context_snapshot(agent(), "a", 500, tool_loop(), 11, 12, turn, session, [("grep", None, {})])
    assert (snapshot.turn_usage, snapshot.session_usage) == (turn, session)
    assert [tool.name for tool in snapshot.tools] == ["grep"]
    assert (snapshot.context_window, snapshot.model_input_tokens, snapshot.model_output_tokens) == (500, 11, 12)


def test_usage_is_what_the_history_tells():
    """The last turn and the session, cached tokens and durations among it."""
    snapshot = extract_context_snapshot(message_history=tool_loop())
    assert (snapshot.turn_usage.input_tokens, snapshot.turn_usage.duration_seconds) == (460, 4)
    assert (snapshot.session_usage.input_tokens, snapshot.session_usage.turns) == (710, 2)
    assert snapshot.sum_response_input_tokens == 710
    assert [step.request_num for step in snapshot.turn_steps] == [3, 4]


def test_a_turn_that_waits_for_its_answer():
    """It is the last turn and has used nothing yet; the one before is of the session."""
    snapshot = extract_context_snapshot(message_history=[*tool_loop(), ask(user("Third?"))])
    assert snapshot.turn_usage == TurnUsage()
    assert snapshot.turn_steps == ()
    assert (snapshot.session_usage.turns, snapshot.session_usage.requests) == (3, 4)
    assert snapshot.current_assistant_tokens == 0


def test_a_log_alone(tmp_path):
    """A path or its events: messages, tools, model, steps; other agents' logs as ours."""
    by_path = extract_context_snapshot(log=STORY)
    assert by_path == extract_context_snapshot(log=str(STORY)) == extract_context_snapshot(log=read_events(STORY))
    assert by_path.agent_id == "story"
    assert by_path.context_window == get_model_context_window("claude-opus-4-5")
    assert by_path.session_usage.turns == 3
    with pytest.raises(LogNotReadable):
        extract_context_snapshot(log=tmp_path / "nothing.jsonl")


def test_a_log_at_a_request():
    """What the window held when the first answer had come."""
    snapshot = extract_context_snapshot(log=STORY, request=1)
    assert [tool.name for tool in snapshot.tools] == ["read", "bash"]
    assert len(snapshot.per_request_usage) == 1
    assert snapshot.system_prompts[0].startswith("You are a careful coding agent.")
    full = extract_full_context_snapshot(log=STORY, request=1)
    assert [message.tool_name for message in full.messages if message.is_tool_result] == ["read", "bash"]
    assert full.tool_environment == {}


def test_counts_say_whether_they_are_estimates():
    """A caller's tokenizer counts; one that says it estimates is believed."""
    history = [ask(user("Hello"))]
    assert not extract_context_snapshot(message_history=history, count=len).estimated
    rough = extract_context_snapshot(message_history=history, count=lambda text: TokenCount(len(text) // 4))
    assert rough.estimated
    assert rough.to_dict()["estimated"]
    assert (
        extract_full_context_snapshot(message_history=history, count=lambda text: TokenCount(1, exact=True)).estimated
        is False
    )


def test_keys_of_the_environment_are_hidden():
    """It is known which are set, and nothing of their values; without a live agent there are none."""
    env = {"OPENAI_API_KEY": "sk-abcdefghijklmnop", "GITHUB_TOKEN": "short-token", "OTHER_KEY": "x" * 40}
    full = extract_full_context_snapshot(agent(), "a", env=env)
    assert full.tool_environment == {"OPENAI_API_KEY": "***", "GITHUB_TOKEN": "***"}
    assert extract_full_context_snapshot(message_history=[], env=env).tool_environment == {}


def test_the_full_snapshot_is_json():
    """Everything in it can be stored."""
    stored = json.loads(json.dumps(extract_full_context_snapshot(log=STORY).to_dict()))
    assert stored["tokenSummary"]["total"] == stored["systemPromptTokens"] + stored["toolTokens"] + sum(
        message["estimatedTokens"] for message in stored["messages"] if message["inContext"]
    )


def test_memory_and_rules_are_the_callers():
    """What an agent keeps of earlier sessions is in the window, counted as JSON, and takes the room of messages."""
    history, blocks = [ask(user("12345")), ask(user("123"))], [{"label": "persona", "value": "terse"}]
    full = extract_full_context_snapshot(
        message_history=history, context_window=45, count=len, memory_blocks=blocks, tool_rules=[{"tool": "bash"}]
    )
    assert full.memory_blocks == ({"label": "persona", "value": "terse"},)
    assert full.memory_tokens == len(json.dumps(blocks[0])) == 38
    assert (full.total_tokens, full.to_dict()["tokenSummary"]["memory"]) == (41, 38)
    assert [message.in_context for message in full.messages] == [False, True]
    assert full.to_dict()["toolRules"] == [{"tool": "bash"}]


def test_the_last_turn_is_timed_from_its_start():
    """Seconds since 1970, as `time.time()` gives them; a time that is none changes nothing."""
    history = tool_loop()
    plain = extract_context_snapshot(message_history=history)
    ended = datetime.fromisoformat(plain.turn_steps[-1].timestamp).timestamp()
    timed = extract_context_snapshot(message_history=history, turn_start_time=ended - 9)
    assert (plain.turn_usage.duration_seconds, timed.turn_usage.duration_seconds) == (4, 9)
    assert timed.session_usage.duration_seconds == plain.session_usage.duration_seconds + 5
    assert timed.per_request_usage == plain.per_request_usage  # they have times of their own
    for odd in (float("nan"), -1, ended + 99):
        assert extract_context_snapshot(message_history=history, turn_start_time=odd) == plain


def test_the_first_request_of_a_turn_without_times_is_timed_from_its_start():
    """The prompt's time is unknown, the answer's is known: the request took what passed since the turn began."""
    history = [ask(user("Hello")), answer("Hi", tokens=(3, 1), ts="2026-11-21T10:00:05Z")]
    start = datetime(2026, 11, 21, 10, 0, 3, tzinfo=UTC).timestamp()
    snapshot = extract_context_snapshot(None, "", None, history, None, None, None, None, None, start)
    assert (snapshot.per_request_usage[0].duration_ms, snapshot.turn_usage.duration_seconds) == (2000, 2)


_PART = st.builds(user, st.text(max_size=9)) | st.builds(result, st.sampled_from("abc"), st.text(max_size=9))
_SAID = st.text(max_size=9) | st.builds(call, st.sampled_from(["read", "grep"]), st.sampled_from("abc"))
_TALK = st.lists(
    st.lists(_PART, max_size=3).map(lambda parts: ask(*parts))
    | st.lists(_SAID, max_size=3).map(lambda parts: answer(*parts, tokens=(3, 1))),
    max_size=8,
)


@examples(100)
@given(_TALK)
def test_the_parts_are_the_whole(talk):
    """Every token is in one part, in history or in the current turn; and what fits in the window is a suffix."""
    snapshot = extract_context_snapshot(message_history=talk, count=len)
    parts = snapshot.to_dict()["distribution"]
    current = sum(
        getattr(snapshot, f"current_{name}_tokens") for name in ("user", "assistant", "tool_call", "tool_return")
    )
    assert sum(child["value"] for child in parts["children"]) == parts["value"] == snapshot.total_tokens
    assert snapshot.get_history_total() + current == snapshot.total_tokens
    full = extract_full_context_snapshot(message_history=talk, context_window=12, count=len)
    inside = [message.in_context for message in full.messages]
    assert inside == sorted(inside)
    assert full.total_tokens <= 12


def logged(tmp_path, *, model="claude-opus-4-5", reported=144_500):
    """The log of a session whose prompt is mostly not in it."""
    events = [
        ("session.start", {"v": 1, "model": model}),
        ("llm.request", {"messages": [{"role": "user", "content": "go"}]}),
        ("llm.response", {"content": "yes", "usage": {"input": 500, "cache_read": reported - 500, "output": 7}}),
    ]
    path = tmp_path / "s.jsonl"
    lines = [
        json.dumps({"session_id": "s", "seq": n, "type": kind, "ts": f"2026-11-21T10:00:0{n}Z", "data": data})
        for n, (kind, data) in enumerate(events)
    ]
    path.write_text("\n".join([*lines, ""]), "utf-8")
    return str(path)


def test_the_fill_of_a_logged_window_is_what_the_provider_counted(tmp_path):
    """As in the context report; the parts stay estimates, and the difference is named."""
    path = logged(tmp_path)
    snapshot = extract_context_snapshot(log=path)
    assert (snapshot.model_input_tokens, snapshot.model_output_tokens) == (144_500, 7)
    assert snapshot.get_context_total() == xray(path).total_tokens == 144_500
    assert snapshot.get_context_percentage() == pytest.approx(72.25)
    assert snapshot.total_tokens < 100
    assert snapshot.not_in_messages == 144_500 - snapshot.total_tokens
    said = snapshot.to_dict()
    assert (said["contextTokens"], said["contextPercentage"], said["notInMessages"], said["estimated"]) == (
        144_500, pytest.approx(72.25), snapshot.not_in_messages, True
    )  # fmt: skip
    assert extract_context_snapshot(log=path, model_input_tokens=10).get_context_total() == 10
    assert extract_context_snapshot(log=path, message_history=[]).model_input_tokens is None


def test_a_window_that_nobody_knows_gives_no_percentage(tmp_path):
    """The default is used for the method, and marked; a prompt that is larger than the window disproves it."""
    path = logged(tmp_path, model="nonsense", reported=64_000)
    snapshot = extract_context_snapshot(log=path)
    assert (snapshot.context_window, snapshot.get_context_percentage()) == (DEFAULT_CONTEXT_WINDOW, 50.0)
    said = snapshot.to_dict()
    assert (said["contextWindowKnown"], said["contextPercentage"]) == (False, None)
    assert extract_full_context_snapshot(log=path).to_dict()["tokenSummary"]["contextWindowKnown"] is False
    given = extract_context_snapshot(log=path, context_window=100_000).to_dict()
    assert (given["contextWindowKnown"], given["contextPercentage"]) == (True, 64.0)
    assert extract_context_snapshot(log=path, context_window=50_000).to_dict()["contextPercentage"] is None


def test_a_snapshot_is_a_csv_of_its_steps(tmp_path):
    """One row for each request, in both sets of columns."""
    snapshot = extract_context_snapshot(log=logged(tmp_path))
    assert snapshot.to_csv().splitlines() == [
        "Session_ID,Turn_ID,Step_Number,Tool_Name,Input_Tokens,Output_Tokens,Duration_ms,Timestamp",
        "s,turn_01,1,Response,144500,7,1000,2026-11-21T10:00:02Z",
    ]
    assert "Duration_ms" not in snapshot.to_csv(durations=False)
