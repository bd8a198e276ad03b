"""goose: Goose, one database for all sessions of a user.

Where: `$GOOSE_PATH_ROOT/data/sessions/sessions.db`, else `sessions/sessions.db` in `$XDG_DATA_HOME/goose`, formerly in
`Block/goose` there, or in `~/Library/Application Support/goose` or `…/Block/goose`. Shape: `sessions` (id, name,
session_type, working_dir, created_at, updated_at, provider_name, model_config_json, parent_session_id, accumulated_*),
`messages` (message_id, session_id, role, content_json, created_timestamp, metadata_json) and, since schema 15,
`usage_ledger` with a row for each call (created_timestamp, model, *_tokens, cost, cost_source, is_compaction).

Traps:

- `input_tokens` and the like of a session are those of its last call; only `accumulated_*` are sums. What they hold
  beyond the ledger is what was used before there was one: a `carried_forward` row repeats it, and is left out.
- Since schema 14 the input contains what was read from and written to a cache; before that nothing is known of caches.
- Sub-agents have sessions of their own (`sub_agent`), which their parents' sums do not contain.
- A copied session has its parent's messages, under their ids and times, but not its usage.
- Times are seconds, in `created_at` texts without a zone, in UTC. The ids of sessions restart every day.
- Costs are USD; before schema 15 they are estimates that do not know of caches.

Known from the agent's public sources and from those of its readers (schema 1 to 17, until 1.46); not seen on a real
machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from sessionlog.sources.databases import Database, TableRow, has_columns, name_roots, read_sessions
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Json,
    Problem,
    Prompt,
    Response,
    Role,
    Session,
    Steps,
    Text,
    ToolCall,
    ToolResult,
    Totals,
    cost,
    folder,
    mapping,
    name,
    objects,
    parts_of,
    read_json,
    read_time,
    source,
    text,
    text_of,
    tokens,
    whole_log,
)
from sessionlog.sources.places import PLACES

_KNOWN_BY = {"sessions": ("working_dir", "accumulated_total_tokens"), "messages": ("content_json",)}
_SESSION = (
    "id", "parent_session_id", "session_type", "name", "description", "working_dir", "created_at", "updated_at",
    "provider_name", "model_config_json", "accumulated_input_tokens", "accumulated_output_tokens",
    "accumulated_cache_read_tokens", "accumulated_cache_write_tokens",
)  # fmt: skip
_MESSAGE = ("role", "content_json", "created_timestamp", "metadata_json")
_CLASSES: dict[str, Any] = {kind: f"{kind}_tokens" for kind in ("input", "output", "cache_read", "cache_write")}
_CALL = ("id", "created_timestamp", "model", *_CLASSES.values(), "cost", "cost_source", "is_compaction")


class State(Struct):
    """When the session began whose rows came last."""

    began: int | None = None


def _read(path: str) -> Iterator[TableRow | Problem]:
    """Yield the sessions of a database, each with its messages and calls in order."""
    with Database(path) as database:
        for session in _sessions(database):
            yield session
            messages = _rows(database, "messages", _MESSAGE, session)
            calls = _rows(database, "usage_ledger", _CALL, session)
            yield from _in_order(messages, calls)
            yield session.row("totals", session.values)
        yield from database.problems()


def _sessions(database: Database) -> list[TableRow]:
    return read_sessions(database, _SESSION, "ORDER BY created_at, id")


def _rows(database: Database, table: str, names: tuple[str, ...], session: TableRow) -> Iterator[TableRow]:
    order = "WHERE session_id = ? ORDER BY created_timestamp, id"
    for values in database.records(table, names, order, session.session):
        yield session.row(table, values)


def _in_order(messages: Iterable[TableRow], calls: Iterable[TableRow]) -> Iterator[TableRow]:
    """Messages and calls by time; within a second the counts of a call come behind its answer."""
    waiting = deque((_time(call.values["created_timestamp"]) or 0, call) for call in calls)
    is_answered, before = False, ""
    for message in messages:
        role = text(message.values["role"])
        is_next = is_answered and role == "assistant" != before
        now = _time(message.values["created_timestamp"]) or 0
        while waiting and (waiting[0][0] < now or (is_next and waiting[0][0] == now)):
            yield waiting.popleft()[1]
            is_next = is_answered = False
        is_answered, before = is_answered or role == "assistant", role
        yield message
    yield from (call for _, call in waiting)


def steps(row: TableRow, state: State) -> Steps:
    """What a row means."""
    values = row.values
    if row.table == "sessions":
        state.began = _time(values["created_at"])
        yield _session(row, state)
    elif row.table == "messages":
        yield from _message(values, state)
    elif row.table == "totals":
        yield from _totals(values)
    elif values["cost_source"] != "carried_forward":
        yield from _call(values, row.session)


def _session(row: TableRow, state: State) -> Session:
    session, is_subagent = row.values, bool(row.thread)
    return Session(
        id=row.root,
        thread=row.thread,
        agent=SUB_AGENT if is_subagent or session["session_type"] == "sub_agent" else "main",
        project="" if is_subagent else folder(session, "working_dir"),
        provider=name(session, "provider_name"),
        model=name(_json(session["model_config_json"]).get("model_name")),
        title="" if is_subagent else text(session, "name") or text(session, "description"),
        time=state.began,
    )


def _message(values: Json, state: State) -> Steps:
    time, role = _time(values["created_timestamp"]), values["role"]
    parts = objects(read_json(text(values, "content_json")))
    is_copied = time is not None and state.began is not None and time < state.began
    if role == "assistant" and not is_copied:
        yield Text(time, parts, parts)
        for part in parts_of(parts, "toolRequest", "frontendToolRequest"):
            call = mapping(part, "toolCall", "value")
            server, _, tool = name(call, "name").rpartition("__")
            yield ToolCall(time, name(part, "id"), tool or UNKNOWN, call.get("arguments"), server)
        return
    if text_of(parts):
        is_typed = _json(values["metadata_json"]).get("userVisible") is not False
        speaker: Role = "assistant" if role == "assistant" else "user"
        yield Prompt(time, parts, speaker if is_typed else "system", is_copied)
    if not is_copied:
        yield from (_result(time, part) for part in parts_of(parts, "toolResponse"))


def _json(value: Any) -> Json:
    return mapping(read_json(text(value)))


def _result(time: int | None, part: Json) -> ToolResult:
    result = mapping(part, "toolResult")
    value = result.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    failed = result.get("status") == "error" or mapping(value).get("isError") is True
    return ToolResult(time, name(part, "id"), text_of(content) or text(result, "error"), failed=failed)


def _call(values: Json, session_id: str) -> Steps:
    time = _time(values["created_timestamp"])
    cost_nano, issues = cost(values["cost"])
    yield from map(BadNumber, issues)
    counts = [values[field] for field in _CLASSES.values()]
    yield Response(
        time=time,
        key=f"{session_id}:{values['id']}:{time}:{counts}",
        tokens=tokens(values, **_CLASSES, is_inclusive=True, where=f"usage_ledger {values['id']}: "),
        model=name(values, "model"),
        cost_nano=cost_nano if values["cost_source"] == "provider_reported" else None,
        quality="estimated" if values["cost_source"] == "estimated" and counts == [None] * 4 else "exact",
        kind="compaction" if values["is_compaction"] == 1 else "",
        final=True,
    )


def _totals(values: Json) -> Steps:
    time = _time(values["updated_at"])
    names: dict[str, Any] = {kind: f"accumulated_{field}" for kind, field in _CLASSES.items()}
    counts = tokens(values, **names, is_inclusive=True, where=f"session {values['id']}: ")
    yield At(time)
    if counts is not None and (counts.usage or counts.issues):
        yield Totals(time=time, tokens=counts)


def _time(value: Any) -> int | None:
    """An instant: seconds or milliseconds, or SQLite's text in UTC."""
    if isinstance(value, str) and len(value) == len("2026-11-10 10:00:00"):
        value = f"{value}Z"
    return read_time(value)


SOURCE = source(
    id="goose",
    title="Goose",
    places=PLACES["goose"],
    logs="sessions.db",
    rows=whole_log(_read),
    steps=steps,
    state_type=State,
    recognises=lambda path, head: has_columns(path, head, _KNOWN_BY),
    name_sessions=lambda path: name_roots(path, _sessions),
    is_apart=True,
    has_totals=True,
    parser_version=3,
)
