"""droid: Factory's Droid, a `<session>.jsonl` with the conversation and a `<session>.settings.json` with its tokens.

Where: `$DROID_SESSIONS_DIR`, else `sessions` in `$FACTORY_DIR` or `~/.factory`: `<slug of the folder>/<session>.jsonl`.
Shape: `{"type": "session_start", "id", "title", "cwd", "parent"?, "forkedAtMessageId"?}`, then `{"type": "message",
"id", "timestamp", "message": {"role", "content", "modelId"?}}` in Anthropic's words, `{"type": "agent_turn_outcome",
"reason"}`. Beside it `<session>.settings.json`: `{"model", "providerLock", "tokenUsage": {"inputTokens",
"outputTokens", "cacheCreationTokens", "cacheReadTokens", "thinkingTokens"}}`.

Traps:

- No message has tokens: `tokenUsage` is the sum of the session, in disjoint classes but for the thinking, which is a
  part of the output. `inclusiveTokenUsage` adds sub-agents, which have sessions of their own; `factoryCredits` is no
  money.
- A fork copies its parent's messages up to `forkedAtMessageId`; its tokens start from 0.
- The model is an alias of the user's (`custom:NAME-0`); `providerLock` is the protocol.
- A refused request is an assistant's or user's message that begins with `BYOK Error:`.
- `.settings.json.bak` is an older copy.

Seen: session version 2 (November 2026).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from sessionlog.sources.kit import (
    At,
    Json,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    ToolResult,
    Totals,
    folder,
    json_lines,
    name,
    parts_of,
    read_object,
    read_time,
    source,
    text,
    text_of,
    tokens,
    tool_uses,
)
from sessionlog.sources.places import PLACES

_REFUSED = "BYOK Error:"


class Message(Struct, rename="camel"):
    """A message as it is sent."""

    role: Any = None
    content: Raw = Raw()
    model_id: Any = None


class Row(Struct, rename="camel"):
    """A line of the conversation."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    title: Any = None
    cwd: Any = None
    parent: Any = None
    forked_at_message_id: Any = None
    message: Message | None = None
    reason: Any = None


class State(Struct):
    """What is known of the log.

    Attributes:
        settings: The file beside it.
        copied_until: The message with which the parent's part of a fork ends; "" behind it.
        last_ns: The last time in it.
    """

    settings: dict[str, Any]
    copied_until: str = ""
    last_ns: int | None = None


def steps(row: Row, state: State) -> Steps:
    """What a line means."""
    time = read_time(row.timestamp)
    if row.type == "session_start":
        state.copied_until = name(row.forked_at_message_id)
        yield Session(
            time=time, project=folder(row.cwd), parent=name(row.parent), title=text(row.title),
            model=name(state.settings, "model").removeprefix("custom:"),
            provider=name(state.settings, "providerLock"),
        )  # fmt: skip
    elif row.type == "message" and row.message is not None:
        is_copied = bool(state.copied_until)
        if name(row.id) == state.copied_until:
            state.copied_until = ""
        if is_copied:
            yield from _copied(time, row.message)
        else:
            state.last_ns = time or state.last_ns
            yield from _message(time, row.message)
    elif row.type == "agent_turn_outcome" and not state.copied_until:
        reason = text(row.reason)
        has_failed = "error" in reason or "rejected" in reason or "failed" in reason
        yield Status(state.last_ns, "success" if reason == "completed" else "error" if has_failed else "cancelled")


def _copied(time: int | None, message: Message) -> Steps:
    words = text_of(message.content)
    if message.role == "assistant":
        yield Prompt(time, words, "assistant", inherited=True)
    else:
        yield Prompt(time, words, "user" if _is_typed(words) else "system", inherited=True)


def _is_typed(words: str) -> bool:
    return bool(words.strip()) and not words.startswith(("<system-reminder>", _REFUSED))


def _message(time: int | None, message: Message) -> Steps:
    words = text_of(message.content)
    if words.startswith(_REFUSED):
        yield Response(time=time, failed=True, error=words.removeprefix(_REFUSED).strip())
        return
    if message.role == "assistant":
        yield Response(
            time=time,
            text=message.content,
            reasoning=message.content,
            model=name(message.model_id).removeprefix("custom:"),
        )
        yield from tool_uses(time, message.content)
        return
    for part in parts_of(message.content, "tool_result"):
        failed = part.get("is_error") is True
        yield ToolResult(time, name(part, "tool_use_id"), part.get("content"), failed=failed)
    if words:
        yield Prompt(time, words, "user" if _is_typed(words) else "system")
    yield At(time)


def _finish(state: State) -> Steps:
    counts = tokens(
        state.settings.get("tokenUsage"), input="inputTokens", output="outputTokens", cache_read="cacheReadTokens",
        cache_write="cacheCreationTokens", reasoning="thinkingTokens",
    )  # fmt: skip
    if counts is not None and (counts.usage or counts.issues):
        yield Totals(time=state.last_ns, tokens=counts)


def _settings_file(path: str) -> str:
    return path.partition(".jsonl")[0] + ".settings.json"


def _is_row(row: Json) -> bool:
    return row.get("type") == "session_start" and "id" in row and ("owner" in row or "hostId" in row)


SOURCE = source(
    id="droid",
    title="Droid",
    places=PLACES["droid"],
    logs="*.jsonl",
    rows=json_lines(Row, can_resume=False),  # the sums are in another file
    steps=steps,
    state=lambda path: State(dict(read_object(_settings_file(path)))),
    state_type=State,
    finish=_finish,
    is_row=_is_row,
    has_totals=True,
    parser_version=3,
    sidecars=lambda path: (_settings_file(path),),
)
