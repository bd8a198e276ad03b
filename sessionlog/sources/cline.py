"""cline: the Cline CLI, a JSON document of messages for each session and for each of its sub-agents.

Where: `$CLINE_DIR`, else `~/.cline`: `data/sessions/<session>/<session>.messages.json`, its sub-agents beside it in
`agent_<id>.messages.json`, and `<session>.json` with the session's facts (cwd, status, model, provider, prompt, title).
Shape: `{"version", "sessionId", "agent", "origin": {"version", "parentThreadId"?}, "messages": […]}`, a message `{"id",
"role", "content", "ts": ms, "modelInfo"?: {"id", "provider"}, "metrics"?: {"inputTokens", "outputTokens",
"cacheReadTokens", "cacheWriteTokens"}}`; contents in Anthropic's words.

Traps:

- `inputTokens` contains what was read from and written to a cache. Reasoning is not counted apart.
- The document is written whole again and again: it is read whole.
- Prompts are wrapped in `<user_input mode="…">`; results of tools are lists of `{"query", "result", "success"}`.
- A failed request is an assistant's message without metrics, at the end of a session whose status is `failed`.
- A sub-agent's `sessionId` is not its parent's: `origin.parentThreadId` is.

Seen: 3.0.65 (November 2026).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.sources.kit import (
    SUB_AGENT,
    At,
    Json,
    Problem,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    ToolResult,
    folder,
    folder_of,
    mapping,
    name,
    objects,
    parts_of,
    read_document,
    read_object,
    read_time,
    source,
    text,
    text_of,
    tokens,
    tool_uses,
    whole_log,
)
from sessionlog.sources.places import PLACES

_WRAPPED = re.compile(r"\s*<user_input\b[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)
_STATUS = {"completed": "success", "failed": "error", "cancelled": "cancelled", "aborted": "cancelled"}


class Row(Struct):
    """The document's own fields (`origin` and so on) in its first row, then a message in each."""

    message: Json
    is_document: bool = False


class State(Struct):
    """What is known of the log."""

    session: str
    facts: dict[str, Any] = {}
    last_ns: int | None = None


def _read(path: str) -> Iterator[Row | Problem]:
    """Yield a document and its messages.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    document = read_document(path)
    if isinstance(document, Problem):
        yield document
        return
    yield Row(document, is_document=True)
    for message in objects(document, "messages"):
        yield Row(message)


def _begin(path: str) -> State:
    return State(_session_of(path), dict(read_object(_facts_file(path))))


def _session_of(path: str) -> str:
    return os.path.basename(folder_of(path))


def _facts_file(path: str) -> str:
    return os.path.join(folder_of(path), f"{_session_of(path)}.json")


def steps(row: Row, state: State) -> Steps:
    """What a row means."""
    if row.is_document:
        yield _session(row.message, state)
        return
    message, time = row.message, read_time(row.message, "ts")
    state.last_ns = time or state.last_ns
    if message.get("role") == "assistant":
        yield from _answer(message, time, state)
        return
    for part in parts_of(message.get("content"), "tool_result"):
        yield _result(time, part)
    words = text_of(message.get("content"))
    if words:
        wrapped = _WRAPPED.match(words)
        yield Prompt(time, wrapped[1] if wrapped else words, role="user" if wrapped else "system")
    yield At(time)


def _session(document: Json, state: State) -> Session:
    origin, facts = mapping(document, "origin"), state.facts
    parent = name(origin, "parentThreadId")
    return Session(
        id=parent or name(document, "sessionId") or state.session,
        is_subagent_log=bool(parent),
        agent=SUB_AGENT if parent else "",
        version=name(origin, "version"),
        project=folder(facts, "cwd"),
        provider=name(facts, "provider"),
        model=name(facts, "model"),
        title=text(facts, "metadata", "title"),
        system_prompt=text(document, "system_prompt"),
        time=read_time(facts, "started_at"),
    )


def _answer(message: Json, time: int | None, state: State) -> Steps:
    model, content = mapping(message, "modelInfo"), message.get("content")
    counts = tokens(
        message.get("metrics"), input="inputTokens", output="outputTokens", cache_read="cacheReadTokens",
        cache_write="cacheWriteTokens", is_inclusive=True,
    )  # fmt: skip
    has_failed = counts is None and state.facts.get("status") == "failed"
    yield Response(
        time=time,
        key=f"{state.session}:{name(message, 'id')}" if message.get("id") else "",
        tokens=counts,
        failed=has_failed,
        error=text_of(content) if has_failed else "",
        model=name(model, "id"),
        provider=name(model, "provider"),
        text="" if has_failed else content,
        reasoning=content if isinstance(content, list) else "",
        final=counts is None,
    )
    yield from tool_uses(time, content)


def _result(time: int | None, part: Json) -> ToolResult:
    outputs, failed = [], part.get("is_error") is True
    for one in parts_of(part.get("content")):
        outputs.append(text(one, "result") or text(one, "text") or text(one, "error"))
        failed = failed or one.get("success") is False
    return ToolResult(time, name(part, "tool_use_id"), "\n".join(filter(None, outputs)), failed=failed)


def _finish(state: State) -> Steps:
    status = _STATUS.get(text(state.facts, "status"))
    if status:
        yield Status(read_time(state.facts, "ended_at") or state.last_ns, status)


def _subagent_logs(path: str) -> list[str]:
    """The documents of a session's sub-agents."""
    return files.find_paths(folder_of(path), "agent_*.messages.json")


def _recognises(path: str, head: bytes) -> bool:
    return path.endswith(".json") and b'"messages"' in head and b'"sessionId"' in head and b'"origin"' in head


def _subagent_of(path: str) -> str:
    own = os.path.basename(path).removesuffix(".messages.json")
    return "" if own == _session_of(path) else own


SOURCE = source(
    id="cline",
    title="Cline CLI",
    places=PLACES["cline"],
    logs="*.messages.json",
    rows=whole_log(_read),
    steps=steps,
    state=_begin,
    state_type=State,
    parser_version=2,
    finish=_finish,
    recognises=_recognises,
    session_of=_session_of,
    subagent_of=_subagent_of,
    sidecars=lambda path: (_facts_file(path),),
    subagent_logs=_subagent_logs,
)
