"""copilot: GitHub's Copilot CLI, an `events.jsonl` for each session.

Where: `$COPILOT_HOME`, else `~/.copilot`: `session-state/<session>/events.jsonl`. Shape: `{"type", "data", "timestamp",
"id", "parentId"}` a row, `agentId` besides where a sub-agent acts. `session.start` (sessionId, copilotVersion,
context), `user.message`, `assistant.turn_start`, `session.usage_record` (usage, one for each request),
`assistant.message` (content, reasoningText, apiCallId), `tool.execution_start` and `tool.execution_complete`,
`subagent.started`, `session.error`, `abort`, `session.shutdown`.

Traps:

- `inputTokens` contains what was read from and written to a cache, `outputTokens` the reasoning.
- `session.shutdown` repeats the session's sums, and `session-store.db` the same requests: neither is added. Early
  versions (1.0.30) have no usage records: there the sums of each process by model, `modelMetrics`, are all there is.
- `apiCallId` is the response's id with its provider, so it names a response in all logs; a usage record comes before
  the words of its answer.
- `cost` counts premium requests, not money. `modelProvider` is `other` for users' own keys: then `providerType` names
  which protocol is spoken.
- A request that was refused or interrupted has no usage record; `session.error` is a failed one.

Seen: 1.0.30 and 1.0.102 (November 2026).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.kit import (
    SUB_AGENT,
    At,
    Json,
    Prompt,
    Request,
    Response,
    Session,
    Status,
    Steps,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    Totals,
    folder,
    folder_of,
    is_failure,
    json_lines,
    mapping,
    name,
    read_duration,
    read_time,
    source,
    stem_of,
    text,
    tokens,
)
from sessionlog.sources.places import PLACES

_PROVIDER = "github-copilot"


class Row(Struct, rename="camel"):
    """One event."""

    type: Any = None
    data: Any = None
    timestamp: Any = None
    agent_id: Any = None


class State(Struct):
    """What is known of a log from row to row.

    Attributes:
        thread: Whose rows came last: "" for the session's own agent, else a sub-agent's id.
        has_records: There was a usage record.
        used: Model → what the processes that have ended used, in a log without usage records.
        asked: Model → their requests.
    """

    thread: str = ""
    has_records: bool = False
    used: dict[str, TokenUsage] = {}
    asked: dict[str, int] = {}


def steps(row: Row, state: State) -> Steps:
    """What an event means."""
    time, data, thread = read_time(row.timestamp), mapping(row.data), name(row.agent_id)
    if thread != state.thread:
        state.thread = thread
        yield Session(thread=thread)
    match row.type:
        case "session.start" | "session.resume":
            yield Session(
                time=time, project=folder(data, "context", "cwd"), branch=name(data, "context", "branch"),
                version=name(data, "copilotVersion"), model=name(data, "selectedModel"), provider=_PROVIDER,
            )  # fmt: skip
        case "session.model_change" if not thread:
            yield Session(time=time, model=name(data, "newModel"))
        case "subagent.started":
            yield Session(time=time, agent=name(data, "agentName") or SUB_AGENT)
        case "system.message":
            yield Session(time=time, system_prompt=text(data, "content"))
        case "user.message":
            yield Prompt(time, text(data, "content"), role="system" if thread else "user")
        case "assistant.turn_start":
            yield Request(time)
        case "session.usage_record":
            state.has_records = True
            yield _response(time, mapping(data, "usage"))
        case "assistant.message":
            answer, thoughts, key = (text(data, field) for field in ("content", "reasoningText", "apiCallId"))
            yield Response(time=time, key=key, text=answer, reasoning=thoughts) if key else Text(time, answer, thoughts)
            yield Status(time, None if data.get("toolRequests") else "success")
        case "tool.execution_start":
            tool = name(data, "mcpToolName") or name(data, "toolName")
            yield ToolCall(time, name(data, "toolCallId"), tool, data.get("arguments"), name(data, "mcpServerName"))
        case "tool.execution_complete":
            output = text(data, "result", "content") or text(data, "error", "message")
            failed = data.get("success") is False or is_failure(data, "shellExecution", "exitCode")
            yield ToolResult(time, name(data, "toolCallId"), output, failed=failed)
        case "session.error":
            yield Response(time=time, failed=True, error=text(data, "message") or "failed")
        case "session.shutdown" if not state.has_records:
            yield At(time)
            yield from _totals(time, mapping(data, "modelMetrics"), state)
        case "abort":
            yield Status(time, "cancelled")
        case _:
            yield At(time)


def _totals(time: int | None, metrics: Json, state: State) -> Iterator[Totals]:
    """What all processes up to now have used; each logs its own sums."""
    for model, sums in metrics.items():
        counts = _tokens(mapping(sums).get("usage"))
        if counts is None:
            continue
        requests, _ = read_count(mapping(sums, "requests").get("count"))
        used = state.used[model] = state.used.get(model, TokenUsage()) + counts.usage
        asked = state.asked[model] = state.asked.get(model, 0) + requests
        yield Totals(time=time, tokens=Tokens(used, counts.issues), model=model, requests=asked, scope=model)


def _tokens(usage: Any) -> Tokens | None:
    return tokens(
        usage, input="inputTokens", output="outputTokens", cache_read="cacheReadTokens",
        cache_write="cacheWriteTokens", reasoning="reasoningTokens", is_inclusive=True,
    )  # fmt: skip


def _response(time: int | None, usage: Json) -> Response:
    provider = name(usage, "modelProvider")
    return Response(
        time=time,
        key=name(usage, "apiCallId") or name(usage, "accounting", "usageId"),
        tokens=_tokens(usage),
        provider=provider if provider not in {"", "other"} else name(usage, "providerType"),
        model=name(usage, "model"),
        latency_ms=read_duration(usage.get("duration")),
        finish=name(usage, "finishReason"),
    )  # fmt: skip


def _session_of(path: str) -> str:
    """The session's folder bears its id; a file that was copied elsewhere is named by itself."""
    is_in_place = os.path.basename(os.path.dirname(folder_of(path))) == "session-state"
    return os.path.basename(folder_of(path)) if is_in_place else stem_of(path)


def _is_row(row: Json) -> bool:
    data = mapping(row, "data")
    return row.get("type") == "session.start" and ("copilotVersion" in data or data.get("producer") == "copilot-agent")


SOURCE = source(
    id="copilot",
    title="Copilot CLI",
    places=PLACES["copilot"],
    logs=("events.jsonl",),
    rows=json_lines(Row),
    steps=steps,
    state_type=State,
    is_row=_is_row,
    has_totals=True,
    parser_version=4,
    session_of=_session_of,
)
