"""The hooks of each agent: what is read from their JSON, and which answers stop and warn."""

import json

import pytest

from sessionlog.errors import InvalidQuery
from sessionlog.guard.hook import AGENTS, denial, find_agent, parse_hook, warning

CLAUDE, CODEX, GEMINI = AGENTS["claude-code"], AGENTS["codex"], AGENTS["gemini"]
CALL = '{"session_id": "s", "transcript_path": "/h/s.jsonl", "cwd": "/p", "hook_event_name": "PreToolUse", %s}'

MOMENTS = [
    (CLAUDE, "UserPromptSubmit", "prompt"), (CLAUDE, "PreToolUse", "call"), (CLAUDE, "PostToolUse", "result"),
    (CODEX, "UserPromptSubmit", "prompt"), (CODEX, "PreToolUse", "call"),
    (GEMINI, "BeforeAgent", "prompt"), (GEMINI, "BeforeTool", "call"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "moment"), MOMENTS)
def test_an_event_has_a_moment(agent, event, moment):
    """Prompts and calls are guarded."""
    assert parse_hook(agent, f'{{"hook_event_name": "{event}"}}').moment == moment


@pytest.mark.parametrize("event", ["Stop", "SessionStart", "Notification", "BeforeModel", "nonsense", "\\u0000"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=[*AGENTS])
def test_other_events_are_not_guarded(agent, event):
    """An agent may be configured to call the hook for any event."""
    assert parse_hook(agent, f'{{"hook_event_name": "{event}"}}') is None


def test_the_call_is_read():
    """The tool, its arguments, and where its log is."""
    given = '"tool_name": "Bash", "tool_input": {"n": 1, "command": "ls"}, "tool_use_id": "toolu_1", "model": "m"'
    hook = parse_hook(CODEX, CALL % given)
    assert (hook.session, hook.log, hook.call_log, hook.cwd) == ("s", "/h/s.jsonl", "/h/s.jsonl", "/p")
    assert (hook.tool, hook.tool_input, hook.call_id, hook.model) == ("Bash", {"n": 1, "command": "ls"}, "toolu_1", "m")
    assert hook.call_text == "ls"


@pytest.mark.parametrize(
    ("part", "log"),
    [
        ("a1b2-c", "s/subagents/agent-a1b2-c.jsonl"), ("w9", "s/subagents/flows/1/agent-w9.jsonl"), ("", "s.jsonl"),
        ("other", "s.jsonl"), ("../../etc/x", "s.jsonl"), ("*", "s.jsonl"),
    ],
)  # fmt: skip
def test_the_call_of_a_subagent_is_in_its_log(part, log, tmp_path):
    """Claude Code names the parent's log; the sub-agent's is somewhere below the session's folder."""
    for name in ("agent-a1b2-c", "flows/1/agent-w9", "flows/1/journal"):
        path = tmp_path / "s" / "subagents" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    given = {"hook_event_name": "PreToolUse", "transcript_path": str(tmp_path / "s.jsonl"), "agent_id": part}
    assert parse_hook(CLAUDE, json.dumps(given)).call_log == str(tmp_path / log)


@pytest.mark.parametrize("path", ["", "s.jsonl", "../s.jsonl"])
def test_a_log_in_the_working_folder_is_none(path, tmp_path, monkeypatch):
    """Agents give absolute paths; the working folder is the project's, which may hold anything."""
    part = tmp_path / "s/subagents/agent-a1.jsonl"
    for place in (part, tmp_path / "subagents/agent-a1.jsonl"):
        place.parent.mkdir(parents=True)
        place.write_text("{}")
    monkeypatch.chdir(tmp_path)
    given = {"hook_event_name": "PreToolUse", "transcript_path": path, "agent_id": "a1"}
    hook = parse_hook(AGENTS["claude-code"], json.dumps(given))
    assert (hook.log, hook.call_log) == ("", "")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", "null", "{}", '{"hook_event_name": 5}', "[" * 100_000, "\0", "{}{}"]
)
def test_what_is_not_a_hook_is_an_error(text):
    """Whoever asks decides whether that allows or denies."""
    with pytest.raises(ValueError, match="JSON"):
        parse_hook(CLAUDE, text)


@pytest.mark.parametrize("value", ["5", "null", "[]", "{}", '"\\ud800"', "true"])
def test_values_of_other_types_are_as_if_absent(value):
    """A hook's fields may have any type."""
    names = ("session_id", "transcript_path", "cwd", "model", "tool_name", "tool_use_id", "agent_id", "tool_input")
    fields = ", ".join(f'"{name}": {value}' for name in names)
    hook = parse_hook(CLAUDE, f'{{"hook_event_name": "PreToolUse", {fields}}}')
    assert {hook.session, hook.log, hook.cwd, hook.model, hook.tool, hook.call_id} <= {"", "?"}
    assert hook.call_text in {"", "\ud800"}


DENIED = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
DENIALS = [
    (CLAUDE, "UserPromptSubmit", {"decision": "block", "reason": "no"}),
    (CLAUDE, "PreToolUse",
     {"continue": False, "stopReason": "no", "hookSpecificOutput": {"hookEventName": "PreToolUse", **DENIED}}),
    (CLAUDE, "PostToolUse", {"continue": False, "stopReason": "no"}),
    (CODEX, "UserPromptSubmit", {"decision": "block", "reason": "no"}),
    (CODEX, "PreToolUse", {"hookSpecificOutput": {"hookEventName": "PreToolUse", **DENIED}, "systemMessage": "no"}),
    (GEMINI, "BeforeAgent", {"decision": "deny", "reason": "no"}),
    (GEMINI, "BeforeTool", {"decision": "deny", "reason": "no", "continue": False, "stopReason": "no"}),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "event", "answer"), DENIALS)
def test_a_denial_is_the_agents_own_json(agent, event, answer):
    """`tests/cli/test_guard_real.py` shows what the agents do with it."""
    assert denial(agent, event, "no") == answer


def test_every_guarded_event_has_a_denial_and_is_installed():
    """No agent's event is left out of the table above."""
    assert {(agent.id, event) for agent, event, _ in DENIALS} == {
        (agent.id, event) for agent in AGENTS.values() for event in agent.moments
    }


def test_a_warning_lets_the_agent_go_on():
    """It is for the user alone."""
    assert warning("nearly") == {"systemMessage": "nearly"}


def test_an_agent_without_hooks_is_named():
    """With those that have some."""
    with pytest.raises(InvalidQuery, match="'crush'; there are hooks for claude-code, codex, gemini"):
        find_agent("crush")
