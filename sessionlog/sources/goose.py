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

from sessionlog.errors import Problem
from sessionlog.sources.databases import Database, has_columns, root_of, roots_of
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Prompt,
    Response,
    Role,
    Session,
    Step,
    Text,
    ToolCall,
    ToolResult,
    Totals,
    Typed,
    cost,
    first_of,
    folder,
    mapping,
    name,
    read_time,
    source,
    text,
    text_of,
    tokens,
    whole_log,
)

_KNOWN_BY = {"sessions": ("working_dir", "accumulated_total_tokens"), "messages": ("content_json",)}
_DATABASE = "sessions/sessions.db"
_SESSION = (
    "id", "parent_session_id", "session_type", "name", "description", "working_dir", "created_at", "updated_at",
    "provider_name", "model_config_json", "accumulated_input_tokens", "accumulated_output_tokens",
    "accumulated_cache_read_tokens", "accumulated_cache_write_tokens", "accumulated_cost",
)  # fmt: skip
_MESSAGE = ("role", "content_json", "created_timestamp", "metadata_json")
_CLASSES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_CALL = ("id", "created_timestamp", "model", *_CLASSES, "cost", "cost_source")


class Cells(Struct):
    """A row of a table, by the names of its columns."""

    table: str
    values: dict[str, Any]
    time: int | None = None


class Row(Struct):
    """A row and the session that it belongs to."""

    session: Cells
    root: str
    cells: Cells


class _Model(Struct):
    model_name: Any = None


class _Visibility(Struct, rename="camel"):
    user_visible: Any = True


_MODEL, _VISIBILITY, _CONTENT = Typed(_Model), Typed(_Visibility), Typed(list[dict[str, Any]])


class State(Struct):
    """The session whose rows came last."""

    session: str = ""


def _read(path: str) -> Iterator[Row | Problem]:
    """Yield the sessions of a database, each with its messages and calls in order."""
    with Database(path) as database:
        sessions = {
            str(values["id"]): Cells("sessions", values, _time(values["created_at"]))
            for values in database.records("sessions", _SESSION, "ORDER BY created_at, id")
        }
        parents = {session_id: name(session.values["parent_session_id"]) for session_id, session in sessions.items()}
        for session_id, session in sessions.items():
            root = root_of(session_id, parents)
            yield Row(session, root, session)
            messages = _cells(database, "messages", _MESSAGE, session_id)
            calls = _cells(database, "usage_ledger", _CALL, session_id)
            for cells in _in_order(messages, calls):
                yield Row(session, root, cells)
            yield Row(session, root, Cells("totals", session.values, _time(session.values["updated_at"])))
        yield from database.problems()


def _cells(database: Database, table: str, names: tuple[str, ...], session_id: str) -> Iterator[Cells]:
    order = "WHERE session_id = ? ORDER BY created_timestamp, id"
    for values in database.records(table, names, order, session_id):
        yield Cells(table, values, _time(values["created_timestamp"]))


def _in_order(messages: Iterable[Cells], calls: Iterable[Cells]) -> Iterator[Cells]:
    """Messages and calls by time; within a second the counts of a call come behind its answer."""
    waiting, is_answered, before = deque(calls), False, ""
    for message in messages:
        role = text(message.values["role"])
        is_next = is_answered and role == "assistant" != before
        now = message.time or 0
        while waiting and ((waiting[0].time or 0) < now or (is_next and (waiting[0].time or 0) == now)):
            yield waiting.popleft()
            is_next = is_answered = False
        is_answered, before = is_answered or role == "assistant", role
        yield message
    yield from waiting


def steps(row: Row, state: State) -> Iterator[Step]:
    """What a row means."""
    session, cells = row.session.values, row.cells
    session_id = str(session["id"])
    if session_id != state.session:
        state.session = session_id
        yield _session(row, session_id)
    if cells.table == "messages":
        yield from _message(row)
    elif cells.table == "usage_ledger" and cells.values["cost_source"] != "carried_forward":
        yield from _call(row, session_id)
    elif cells.table == "totals":
        yield from _totals(cells)


def _session(row: Row, session_id: str) -> Session:
    session, is_subagent = row.session.values, row.root != session_id
    model = _MODEL(text(session["model_config_json"]) or "null")
    return Session(
        id=row.root,
        thread=session_id if is_subagent else "",
        agent=SUB_AGENT if is_subagent or session["session_type"] == "sub_agent" else "main",
        project="" if is_subagent else folder(session["working_dir"]),
        provider=name(session["provider_name"]),
        model=name(model.model_name) if model else "",
        title="" if is_subagent else text(session["name"]) or text(session["description"]),
        time=row.session.time,
    )


def _message(row: Row) -> Iterator[Step]:
    values, time = row.cells.values, row.cells.time
    parts = _CONTENT(text(values["content_json"])) or []
    visibility = _VISIBILITY(text(values["metadata_json"]) or "null")
    is_copied = time is not None and row.session.time is not None and time < row.session.time
    words = "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")
    if is_copied or values["role"] != "assistant":
        role: Role = "assistant" if values["role"] == "assistant" else "user"
        is_typed = visibility is None or visibility.user_visible is not False
        if words:
            yield Prompt(time, words, role if is_typed else "system", is_copied)
        yield from (_result(time, part) for part in parts if part.get("type") == "toolResponse" and not is_copied)
        return
    thoughts = "\n".join(text(part.get("thinking")) for part in parts if part.get("type") == "thinking")
    yield Text(time, words, thoughts)
    for part in parts:
        if part.get("type") in ("toolRequest", "frontendToolRequest"):
            call = mapping(mapping(part.get("toolCall")).get("value"))
            server, _, tool = name(call.get("name")).rpartition("__")
            yield ToolCall(time, name(part.get("id")), tool or UNKNOWN, call.get("arguments"), server)


def _result(time: int | None, part: dict[str, Any]) -> ToolResult:
    result = mapping(part.get("toolResult"))
    value = result.get("value")
    content = value.get("content") if isinstance(value, dict) else value
    failed = result.get("status") == "error" or mapping(value).get("isError") is True
    return ToolResult(time, name(part.get("id")), text_of(content) or text(result.get("error")), failed=failed)


def _call(row: Row, session_id: str) -> Iterator[Step]:
    values, time = row.cells.values, row.cells.time
    cost_nano, issues = cost(values["cost"])
    yield from map(BadNumber, issues)
    counts = [values[name] for name in _CLASSES]
    yield Response(
        time=time,
        key=f"{session_id}:{values['id']}:{time}:{counts}",
        tokens=tokens(
            values, input=_CLASSES[0], output=_CLASSES[1], cache_read=_CLASSES[2], cache_write=_CLASSES[3],
            is_inclusive=True, where=f"usage_ledger {values['id']}: ",
        ),
        model=name(values["model"]),
        cost_nano=cost_nano if values["cost_source"] == "provider_reported" else None,
        quality="estimated" if values["cost_source"] == "estimated" and counts == [None] * 4 else "exact",
        final=True,
    )  # fmt: skip


def _totals(cells: Cells) -> Iterator[Step]:
    names = [f"accumulated_{name}" for name in _CLASSES]
    counts = tokens(
        cells.values, input=names[0], output=names[1], cache_read=names[2], cache_write=names[3], is_inclusive=True,
        where=f"session {cells.values['id']}: ",
    )  # fmt: skip
    yield At(cells.time)
    if counts is not None and (counts.usage or counts.issues):
        yield Totals(time=cells.time, tokens=counts)


def _names(path: str) -> list[str]:
    with Database(path) as database:
        rows = database.select("sessions", ("id", "parent_session_id"), "ORDER BY created_at, id")
        parents = {str(session_id): name(parent) for session_id, parent in rows}
    return roots_of(parents)


def _time(value: Any) -> int | None:
    """An instant: seconds or milliseconds, or SQLite's text in UTC."""
    if isinstance(value, str) and len(value) == len("2026-11-10 10:00:00"):
        value = f"{value}Z"
    return read_time(value)


SOURCE = source(
    id="goose",
    title="Goose",
    places=(
        first_of("$GOOSE_PATH_ROOT/data", "$XDG_DATA_HOME/goose", below=(_DATABASE,)),
        first_of("$XDG_DATA_HOME/Block/goose", below=(_DATABASE,)),
        first_of("~/Library/Application Support/goose", below=(_DATABASE,)),
        first_of("~/Library/Application Support/Block/goose", below=(_DATABASE,)),
    ),
    logs="sessions.db",
    rows=whole_log(_read),
    steps=steps,
    state=lambda _: State(),
    state_type=State,
    recognises=lambda path, head: has_columns(path, head, _KNOWN_BY),
    name_sessions=_names,
    is_apart=True,
    has_totals=True,
)
