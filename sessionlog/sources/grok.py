"""grok: xAI's Grok Build, an `updates.jsonl` for each session.

Where: `$GROK_HOME`, else `~/.grok`: `sessions/<folder, URL-encoded>/<session>/updates.jsonl`, with `summary.json`
beside it. (The `grok-cli` of another maker keeps a database in the same home: it is not read.) Shape: `{"timestamp": s,
"method", "params": {"sessionId", "update": {"sessionUpdate": KIND, …}, "_meta"?: {"agentTimestampMs", "promptId"}}}`;
kinds `user_message_chunk`, `agent_thought_chunk`, `agent_message_chunk`, `tool_call`, `tool_call_update`,
`compaction_checkpoint` and `turn_completed` with `usage` and its `modelUsage` by model.

Traps:

- `turn_completed` is the sum of a prompt's requests (`modelCalls`), not of the session; it contains its sub-agents'.
  Sub-agents have sessions of their own (`session_kind` in `summary.json`) with the same tokens: these are not counted.
- Input contains what was read from and written to a cache, output the reasoning. 1e10 `costUsdTicks` are one USD.
- A fork's file begins with its parent's rows under its own session id and `timestamp`: `prompt_id` and
  `agentTimestampMs` are as they were, so they name and date a turn. It may be completed twice: the last one counts.
- A command that failed is `completed`; its exit code is in `rawOutput.exit_code`.
- Older versions wrote no usage; a prompt that was killed has none.

Known from the agent's public sources (a fork of them), its issues and its readers (0.2 to 1.0); not seen on a real
machine, but for one row of usage.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    At,
    Compaction,
    Json,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    Text,
    ToolCall,
    ToolResult,
    folder,
    folder_of,
    is_failure,
    json_lines,
    mapping,
    name,
    objects,
    read_duration,
    read_object,
    read_time,
    source,
    text,
    text_of,
    tokens,
)
from sessionlog.sources.places import PLACES

_NANO_PER_TICK = 10
_STATUS = {"end_turn": "success", "cancelled": "cancelled", "error": "error", "refusal": "error"}


class Params(Struct, rename={"meta": "_meta"}):
    """What an update is about."""

    update: Any = None
    meta: Any = None


class Row(Struct):
    """One update."""

    timestamp: Any = None
    params: Params | None = None


class State(Struct):
    """What is known of the log.

    Attributes:
        session: Its session.
        summary: The file beside it.
        forked_ns: What is older was copied from the parent.
        is_begun: The session has been described.
        prompt: The last prompt's words so far.
    """

    session: str
    summary: dict[str, Any]
    forked_ns: int = 0
    is_subagent: bool = False
    is_begun: bool = False
    prompt: str = ""
    prompt_ns: int | None = None


def _begin(path: str) -> State:
    directory = folder_of(path)
    summary = dict(read_object(os.path.join(directory, "summary.json")))
    is_subagent = text(summary, "session_kind").startswith("subagent")
    return State(os.path.basename(directory), summary, read_time(summary, "forked_at") or 0, is_subagent)


def steps(row: Row, state: State) -> Steps:
    """What an update means."""
    if not state.is_begun:
        state.is_begun = True
        yield _session(state)
    if row.params is None:
        return
    update, meta = mapping(row.params.update), mapping(row.params.meta)
    time = read_time(meta, "agentTimestampMs") or read_time(row.timestamp)
    kind = update.get("sessionUpdate")
    if kind == "user_message_chunk":
        state.prompt += text_of([mapping(update, "content")])
        state.prompt_ns = state.prompt_ns or time
        return
    yield from _prompt(state)
    if time is not None and time < state.forked_ns:
        if kind == "agent_message_chunk":
            yield Prompt(time, [mapping(update, "content")], "assistant", inherited=True)
    else:
        yield from _update(time, kind, update, state)


def _session(state: State) -> Session:
    summary = state.summary
    parent = name(summary, "parent_session_id")
    return Session(
        id=parent if state.is_subagent and parent else "",
        is_subagent_log=state.is_subagent,
        agent=name(summary, "agent_name") or SUB_AGENT if state.is_subagent else "",
        parent="" if state.is_subagent else parent,
        project=folder(summary, "source_workspace_dir") or folder(summary, "info", "cwd"),
        branch=name(summary, "head_branch"),
        provider="xai",
        model=name(summary, "current_model_id"),
        title=text(summary, "generated_title") or text(summary, "session_summary"),
        time=read_time(summary, "created_at"),
    )


def _prompt(state: State) -> Steps:
    """The prompt whose pieces have come to their end."""
    words, time = state.prompt, state.prompt_ns
    state.prompt, state.prompt_ns = "", None
    if words:
        yield Prompt(time, words, inherited=time is not None and time < state.forked_ns)


def _update(time: int | None, kind: Any, update: Json, state: State) -> Steps:
    match kind:
        case "agent_message_chunk":
            yield Text(time, [mapping(update, "content")], is_piece=True)
        case "agent_thought_chunk":
            yield Text(time, reasoning=text_of([mapping(update, "content")]), is_piece=True)
        case "tool_call":
            yield ToolCall(time, name(update, "toolCallId"), name(update, "title") or UNKNOWN, update.get("rawInput"))
        case "tool_call_update" if update.get("status") in ("completed", "failed"):
            content = [mapping(part, "content") for part in objects(update, "content")]
            failed = update.get("status") == "failed" or is_failure(update, "rawOutput", "exit_code")
            yield ToolResult(time, name(update, "toolCallId"), text_of(content), failed=failed)
        case "compaction_checkpoint":
            yield Compaction(time)
        case "turn_completed":
            yield from _completed(time, update, state)
        case _:
            yield At(time)


def _completed(time: int | None, update: Json, state: State) -> Steps:
    """A prompt's end, with what it used, by model."""
    usage = mapping(update, "usage")
    by_model = mapping(usage, "modelUsage") or {"": usage}
    prompt = name(update, "prompt_id")
    for model, counts in by_model.items() if usage and not state.is_subagent else ():
        counts = mapping(counts)  # noqa: PLW2901 - the same, of a known type
        ticks = counts.get("costUsdTicks")
        yield Response(
            time=time,
            key=f"{prompt or (state.session, time)}:{model}",
            tokens=tokens(
                counts, input="inputTokens", output="outputTokens", cache_read="cachedReadTokens",
                cache_write="cacheCreationTokens", cache_write_1h="cacheWrite1hInputTokens",
                reasoning="reasoningTokens", is_inclusive=True,
            ),
            model=name(model),
            cost_nano=ticks // _NANO_PER_TICK if type(ticks) is int and ticks >= 0 else None,
            latency_ms=read_duration(counts.get("apiDurationMs")),
            finish=name(update, "stop_reason"),
            quality="partial" if usage.get("usageIsIncomplete") is True else "exact",
            final=True,
        )  # fmt: skip
    status = _STATUS.get(text(update, "stop_reason"))
    if status:
        yield Status(time, status, text(update, "agent_result") if status == "error" else "")


def _is_row(row: Json) -> bool:
    is_method = row.get("method") in ("session/update", "_x.ai/session/update")
    return is_method and "sessionUpdate" in mapping(row, "params", "update")


SOURCE = source(
    id="grok",
    title="Grok Build",
    places=PLACES["grok"],
    logs=("updates.jsonl",),
    rows=json_lines(Row),
    steps=steps,
    state=_begin,
    state_type=State,
    finish=_prompt,
    is_row=_is_row,
    session_of=lambda path: os.path.basename(folder_of(path)),
    parser_version=3,
    sidecars=lambda path: (os.path.join(folder_of(path), "summary.json"),),
)
