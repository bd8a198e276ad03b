"""hermes: Nous Research's Hermes Agent, a database for each profile.

Where: `state.db` in `$HERMES_HOME`, else in `~/.hermes`, and in each folder of `profiles` there. Shape: `sessions` (id,
source, model, model_config, billing_provider, parent_session_id, started_at, ended_at, end_reason, title, cwd,
git_branch, *_tokens, api_call_count, actual_cost_usd), `messages` (session_id, role, content, tool_calls, tool_call_id,
tool_name, timestamp, finish_reason, reasoning, active, compacted) and `session_model_usage` (session_id, model,
billing_provider, task, api_call_count, *_tokens, actual_cost_usd, last_seen).

Traps:

- There are only sums: of a session, and of its parts by model and task. Parts with a task are calls beside the
  conversation (titles, compression), which the session's own sum does not contain, but for `voice_chat`. Parts may be
  fewer than the sum, which is the greater truth.
- Classes are disjoint, output contains the reasoning. Costs are estimates unless they are `actual`.
- `parent_session_id` is a sub-agent's parent only where `model_config` has `_delegate_from`, or the source is
  `subagent`; else a session goes on another one. No sum contains a child's.
- A branch copies its parent's messages with their times. A compaction leaves copies of messages that are not `active`.
- Columns come and go with versions. Times are seconds with fractions. A content that is a list begins with a NUL and
  `json:`.

Known from the agent's public sources and its readers (schema until 30, 2026.8); not seen on a real machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from sessionlog.sources.databases import Database, TableRow, has_columns, name_roots, read_sessions
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    Content,
    Json,
    Problem,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    ToolCall,
    ToolResult,
    Totals,
    cost,
    folder,
    is_failure,
    mapping,
    name,
    objects,
    read_json,
    read_time,
    source,
    text,
    tokens,
    whole_log,
)
from sessionlog.sources.places import PLACES

_CLASSES: dict[str, Any] = {
    kind: f"{kind}_tokens" for kind in ("input", "output", "cache_read", "cache_write", "reasoning")
}
_SESSION = (
    "id", "source", "model", "model_config", "billing_provider", "parent_session_id", "started_at", "ended_at",
    "end_reason", "title", "cwd", "git_branch", "last_activity_at", "api_call_count", "actual_cost_usd",
    *_CLASSES.values(),
)  # fmt: skip
_MESSAGE = (
    "role", "content", "tool_calls", "tool_call_id", "tool_name", "timestamp", "finish_reason", "reasoning", "active",
    "compacted",
)  # fmt: skip
_PART = ("model", "billing_provider", "task", "api_call_count", "actual_cost_usd", "last_seen", *_CLASSES.values())
_IN_THE_SUM = ("", "voice_chat")
_KNOWN_BY = {"sessions": ("started_at", "model", "input_tokens"), "messages": ("session_id", "tool_calls")}
_JSON = ("\x00json:", "\x01json:")
_SYNTHETIC = "[CONTEXT COMPACTION"
_ERRORS = ("error", "agent_error", "content_filter")


class State(Struct):
    """Of the session whose rows came last: when it began and ended, and which session it goes on."""

    began: int | None = None
    ended: int | None = None
    parent: str = ""


def _read(path: str) -> Iterator[TableRow | Problem]:
    """Yield the sessions of a profile, each with its messages and sums."""
    with Database(path) as database:
        for session in _sessions(database):
            yield session
            order = "WHERE session_id = ? ORDER BY timestamp, id"
            for message in database.records("messages", _MESSAGE, order, session.session):
                yield session.row("messages", message)
            parts = list(database.records("session_model_usage", _PART, "WHERE session_id = ?", session.session))
            yield from (session.row("part", part) for part in parts if text(part, "task") in _IN_THE_SUM)
            yield session.row("end", session.values)
            yield from (session.row("part", part) for part in parts if text(part, "task") not in _IN_THE_SUM)
        yield from database.problems()


def _sessions(database: Database) -> list[TableRow]:
    return read_sessions(database, _SESSION, "ORDER BY started_at, id", _parent)


def _parent(session: Json) -> str:
    """The session that a sub-agent works for; "" for others, which may go on another one."""
    is_delegate = "_delegate_from" in mapping(read_json(text(session, "model_config")))
    return name(session, "parent_session_id") if is_delegate or session["source"] == "subagent" else ""


def steps(row: TableRow, state: State) -> Steps:
    """What a row means."""
    values = row.values
    if row.table == "sessions":
        yield _session(row, state)
    elif row.table == "messages":
        yield from _message(values, state)
    elif row.table == "part":
        time = read_time(values, "last_seen") or state.ended
        yield _totals(values, time, scope=f"{values['model']}/{values['billing_provider']}/{values['task']}")
    else:
        yield _totals(values, state.ended, scope="")


def _session(row: TableRow, state: State) -> Session:
    values, is_subagent = row.values, bool(row.thread)
    state.began = read_time(values, "started_at")
    state.ended = read_time(values, "ended_at") or read_time(values, "last_activity_at") or state.began
    state.parent = "" if is_subagent else name(values, "parent_session_id")
    return Session(
        id=row.root,
        thread=row.thread,
        agent=SUB_AGENT if is_subagent or values["source"] == "subagent" else "main",
        parent=state.parent,
        project="" if is_subagent else folder(values, "cwd"),
        branch="" if is_subagent else name(values, "git_branch"),
        provider=name(values, "billing_provider"),
        model=name(values, "model"),
        title="" if is_subagent else text(values, "title"),
        time=state.began,
    )


def _message(values: Json, state: State) -> Steps:
    time, role = read_time(values, "timestamp"), values["role"]
    if values["active"] == 0 and not values["compacted"]:
        return  # taken back
    content = _content(values["content"])
    if state.parent and time is not None and state.began is not None and time < state.began:
        if role in ("user", "assistant"):
            yield Prompt(time, content, "user" if role == "user" else "assistant", inherited=True)
    elif role == "tool":
        result = mapping(read_json(content) if isinstance(content, str) else None)
        failed = bool(result.get("error")) or is_failure(result, "exit_code")
        yield ToolResult(time, name(values, "tool_call_id"), content, failed=failed, tool=name(values, "tool_name"))
    elif role == "assistant":
        yield from _answer(values, time, content)
    else:
        is_typed = role == "user" and not (isinstance(content, str) and content.startswith(_SYNTHETIC))
        yield Prompt(time, content, "user" if is_typed else "system")


def _answer(values: Json, time: int | None, content: Content) -> Steps:
    finish = text(values, "finish_reason")
    yield Response(time=time, text=content, reasoning=text(values, "reasoning"), finish=finish)
    for call in objects(read_json(text(values, "tool_calls"))):
        function = mapping(call, "function")
        yield ToolCall(time, name(call, "id"), name(function, "name") or UNKNOWN, function.get("arguments"))
    if finish == "stop":
        yield Status(time, "success")
    elif finish in _ERRORS:
        yield Status(time, "error", finish)


def _content(value: Any) -> Content:
    given = text(value)
    if given.startswith(_JSON):
        parts = read_json(given.partition(":")[2])
        return parts if isinstance(parts, list) else ""
    return given


def _totals(values: Json, time: int | None, *, scope: str) -> Totals:
    cost_nano, _ = cost(values["actual_cost_usd"])
    calls = values["api_call_count"]
    return Totals(
        time=time,
        tokens=tokens(values, **_CLASSES, where=f"{scope or 'session'}: "),
        provider=name(values, "billing_provider"),
        model=name(values, "model"),
        cost_nano=cost_nano or None,
        requests=calls if type(calls) is int and 0 <= calls < 1 << 31 else 1,
        scope=scope,
    )


SOURCE = source(
    id="hermes",
    title="Hermes",
    places=PLACES["hermes"],
    logs="state.db",
    rows=whole_log(_read),
    steps=steps,
    state_type=State,
    recognises=lambda path, head: has_columns(path, head, _KNOWN_BY),
    name_sessions=lambda path: name_roots(path, _sessions),
    is_apart=True,
    has_totals=True,
    parser_version=4,
)
