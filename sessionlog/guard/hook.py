"""Hook: what an agent writes to its hook's stdin, and the answer that stops or warns it.

Agents run hooks as commands: JSON on stdin, JSON on stdout, exit code 0 (2 means "block", whatever stdout has). Which
answer really ends a turn was tried with Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI 0.61.0 against a stub of
their APIs:

- Claude Code: a denied call alone is only a failed call, and the model is asked again; `continue: false` ends the turn.
  `decision: block` drops a prompt. A sub-agent's call has the session and log of its parent, and an `agent_id`.
- Codex: a denied call is a failed call, and the model is asked again. `continue` is invalid before a call and without
  effect after it: no answer ends a turn (see `interrupt`). `decision: block` drops a prompt.
- Gemini CLI: `continue: false` ends the turn; `decision: deny` alone drops a prompt, and is a failed call.

References: code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks, and docs/hooks/reference.md of Gemini CLI.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from sessionlog.errors import InvalidQuery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Moment = Literal["prompt", "call", "result"]
    """Before a prompt is sent, before a tool is called, after a sub-agent has returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent whose hooks are known.

    Attributes:
        id: The id of its source.
        title: Its name.
        moments: The event's name → when it occurs.
        matchers: The event's name → the tools that it is limited to; other events are of all tools.
        timeout: After how long the agent stops waiting for its hook, in its own unit.
        usage_marks: Texts in the row of a response's usage, each once at least or never in all rows of a version.
        waits: Tools that only wait for a program or a sub-agent in the background, as its log names them.
        has_subagent_logs: Whether a sub-agent's call names its parent's log; its own is below the folder of that name.
        home: The folder of its settings, below the user's home.
        home_variable: The variable of another folder.
        home_below: The folder of its settings below that one.
        settings_file: The file with its hooks in that folder.
    """

    id: str
    title: str
    moments: Mapping[str, Moment]
    matchers: Mapping[str, str]
    timeout: int
    usage_marks: tuple[bytes, ...]
    waits: frozenset[str] = frozenset()
    has_subagent_logs: bool = False
    home: str
    home_variable: str
    home_below: str = ""
    settings_file: str


AGENTS: Mapping[str, Agent] = {
    agent.id: agent
    for agent in (
        Agent(
            id="claude-code", title="Claude Code",
            moments={"UserPromptSubmit": "prompt", "PreToolUse": "call", "PostToolUse": "result"},
            matchers={"PreToolUse": "*", "PostToolUse": "Agent|Task"}, timeout=10,
            usage_marks=(b'"usage":',), has_subagent_logs=True,
            waits=frozenset({"TaskOutput", "AgentOutputTool", "BashOutput"}),
            home=".claude", home_variable="CLAUDE_CONFIG_DIR", settings_file="settings.json",
        ),
        Agent(
            id="codex", title="Codex", moments={"UserPromptSubmit": "prompt", "PreToolUse": "call"},
            matchers={}, timeout=10, usage_marks=(b'"token_usage_record"', b'"last_token_usage"'),
            waits=frozenset({"write_stdin", "wait_agent", "wait"}),
            home=".codex", home_variable="CODEX_HOME", settings_file="hooks.json",
        ),
        Agent(
            id="gemini", title="Gemini CLI", moments={"BeforeAgent": "prompt", "BeforeTool": "call"},
            matchers={}, timeout=10_000, usage_marks=(b'"tokens":',),
            waits=frozenset({"read_background_output"}),
            home=".gemini", home_variable="GEMINI_CLI_HOME", home_below=".gemini", settings_file="settings.json",
        ),
    )
}  # fmt: skip
"""Agent by the id of its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One call of a hook.

    Attributes:
        agent: The agent that called it.
        event: The event's name, by which the agent reads the answer.
        moment: When it is.
        session: The session's id.
        log: The session's log; "" if it has none.
        call_log: The log that has the tool call: that of the sub-agent that makes it, else the session's.
        cwd: The working folder.
        model: The model; "" where the agent does not name it.
        tool: The tool that is to be called; "" for other moments.
        tool_input: Its arguments.
        call_id: The call's id in the log; "" where the agent does not name it.
    """

    agent: Agent
    event: str
    moment: Moment
    session: str
    log: str
    call_log: str
    cwd: str
    model: str
    tool: str
    tool_input: Any
    call_id: str

    @property
    def call_text(self) -> str:
        """The first text among the call's arguments, such as the command; "" without one."""
        values = self.tool_input.values() if isinstance(self.tool_input, dict) else [self.tool_input]
        return next((value for value in values if isinstance(value, str)), "")


def find_agent(name: str) -> Agent:
    """Return an agent by the id of its source.

    Raises:
        InvalidQuery: Its hooks are not known.
    """
    agent = AGENTS.get(name)
    if agent is None:
        raise InvalidQuery(f"there is no hook for the agent {name!r}; there are hooks for {', '.join(AGENTS)}")
    return agent


def parse_hook(agent: Agent, text: str) -> Hook | None:
    """Return the call that a text describes; None for an event that is not guarded.

    Raises:
        ValueError: The text is not the JSON object of a hook.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"stdin is not the JSON of a hook: {error}") from error
    if not isinstance(value, dict) or not _text(value, "hook_event_name"):
        raise ValueError("stdin is not the JSON of a hook: it has no `hook_event_name`")
    event = value["hook_event_name"]
    moment = agent.moments.get(event)
    if moment is None:
        return None
    log, part = _text(value, "transcript_path"), _text(value, "agent_id")
    log = log if os.path.isabs(log) else ""  # one below the working folder would be the project's
    parts = subagent_logs(log) if part and agent.has_subagent_logs else []
    call_log = next((one for one in parts if os.path.basename(one) == f"agent-{part}.jsonl"), log)
    return Hook(
        agent=agent, event=event, moment=moment, session=_text(value, "session_id"), log=log, call_log=call_log,
        cwd=_text(value, "cwd"), model=_text(value, "model"), tool=_text(value, "tool_name"),
        tool_input=value.get("tool_input"), call_id=_text(value, "tool_use_id"),
    )  # fmt: skip


def subagent_logs(log: str) -> list[str]:
    """Return the logs of the sub-agents of one of Claude Code's sessions: `LOG/subagents/**/agent-ID.jsonl`."""
    if not log:
        return []
    folder = os.path.join(os.path.splitext(log)[0], "subagents")
    return [
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.startswith("agent-") and name.endswith(".jsonl")
    ]


def denial(agent: Agent, event: str, reason: str) -> dict[str, Any]:
    """Return the answer by which an agent does not send the prompt, or does not call the tool and ends its turn."""
    moment = agent.moments[event]
    if moment == "prompt":
        return {"decision": "deny" if agent.id == "gemini" else "block", "reason": reason}
    if agent.id == "gemini":
        return {"decision": "deny", "reason": reason, "continue": False, "stopReason": reason}
    denied = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
    if agent.id == "codex":
        return {"hookSpecificOutput": denied, "systemMessage": reason}
    stopped = {"continue": False, "stopReason": reason}
    return {**stopped, "hookSpecificOutput": denied} if moment == "call" else stopped


def unparsed_denial(reason: str) -> dict[str, Any]:
    """Return the answer to JSON that is not a hook's: every agent denies by it, and may ask its model again."""
    return {"decision": "block", "reason": reason}


def warning(sentence: str) -> dict[str, Any]:
    """Return the answer by which an agent goes on and shows a sentence to its user."""
    return {"systemMessage": sentence}


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found.encode("utf-8", "replace").decode("utf-8") if isinstance(found, str) else ""  # no lone surrogates
