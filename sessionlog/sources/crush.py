"""crush: Charm's Crush, a database in each project's folder.

Where: `projects.json` in `$CRUSH_GLOBAL_DATA`, else in `$XDG_DATA_HOME/crush`, lists the projects and their `data_dir`,
usually `<project>/.crush`; there: `crush.db`. Shape: `sessions` (id, parent_session_id, title, prompt_tokens,
completion_tokens, cost, created_at, updated_at) and `messages` (id, session_id, role, parts, model, provider,
created_at, finished_at); `parts` is a list of `{"type", "data"}`: text, reasoning, tool_call, tool_result, finish.

Traps:

- There are no sums of tokens: `prompt_tokens` and `completion_tokens` are overwritten with those of the last request.
  `cost` is the session's, in USD, and of its sub-agents, whose own costs are added to their parents'. So a session
  gives one record with its cost and without tokens, marked `partial`.
- A cost of 0 is unknown: subscriptions and models without a price have it.
- Times are seconds. A sub-agent's session id is `<message id>$$<tool call id>`.
- `data_dir` may be relative to the project, and several projects may share one.

Known from the agent's public sources and from readers (until 0.66); not seen on a real machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

from sessionlog.sources.databases import Database, TableRow, has_columns, name_roots, read_sessions
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
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
    folder_of,
    mapping,
    name,
    objects,
    parts_of,
    read_json,
    read_object,
    read_time,
    source,
    stem_of,
    text,
    text_of,
    walk_files,
    whole_log,
)
from sessionlog.sources.places import PLACES

_REGISTRY = "projects.json"
_SESSION = ("id", "parent_session_id", "title", "cost", "created_at", "updated_at")
_MESSAGE = ("role", "parts", "model", "provider", "created_at", "finished_at", "is_summary_message")
_KNOWN_BY = {"sessions": ("prompt_tokens", "completion_tokens", "cost"), "messages": ("parts",)}
_STATUS = {"end_turn": "success", "stop": "success", "canceled": "cancelled", "error": "error"}


class State(Struct):
    """The project, and who answered last."""

    project: str
    model: str = ""
    provider: str = ""


def _list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the list of projects, so that a new one is noticed, and their databases; below a folder, the databases."""
    registry = os.path.join(place, _REGISTRY)
    if not os.path.isfile(registry):
        yield from walk_files([place], lambda name: name == "crush.db")
        return
    yield registry
    databases: dict[str, str] = {}
    for project in objects(read_object(registry).get("projects")):
        path = os.path.join(text(project, "path"), text(project, "data_dir") or ".crush", "crush.db")
        if os.path.isabs(path) and os.path.isfile(path):
            databases.setdefault(os.path.realpath(path), path)
    yield from databases.values()


def _read(path: str) -> Iterator[TableRow | Problem]:
    """Yield the sessions of a database, each with its messages; the list of projects has none."""
    if path.endswith(".json"):
        return
    with Database(path) as database:
        for session in _sessions(database):
            yield session
            order = "WHERE session_id = ? ORDER BY created_at, rowid"
            for message in database.records("messages", _MESSAGE, order, session.session):
                yield session.row("messages", message)
            if not session.thread:
                yield session.row("cost", session.values)
        yield from database.problems()


def _sessions(database: Database) -> list[TableRow]:
    return read_sessions(database, _SESSION, "ORDER BY created_at, rowid")


def _begin(path: str) -> State:
    data = folder_of(path)
    return State(os.path.dirname(data) if os.path.basename(data).startswith(".") else data)


def steps(row: TableRow, state: State) -> Steps:
    """What a row means."""
    values = row.values
    if row.table == "sessions":
        yield Session(
            id=row.root, thread=row.thread, agent=SUB_AGENT if row.thread else "",
            project=folder(state.project), title="" if row.thread else text(values, "title"),
            time=read_time(values, "created_at"),
        )  # fmt: skip
    elif row.table == "messages":
        yield from _message(values, state)
    else:
        cost_nano, _ = cost(values["cost"])
        yield Session(id=row.root, model=state.model, provider=state.provider)
        yield Totals(time=read_time(values, "updated_at"), tokens=None, cost_nano=cost_nano or None, quality="partial")


def _message(values: Json, state: State) -> Steps:
    time, role = read_time(values, "created_at"), values["role"]
    stored = objects(read_json(text(values, "parts")))
    parts = [{**mapping(part, "data"), "type": part.get("type")} for part in stored]
    words = text_of([part for part in parts if part.get("hidden") is not True])
    if role == "tool":
        for part in parts_of(parts, "tool_result"):
            failed = part.get("is_error") is True
            yield ToolResult(time, name(part, "tool_call_id"), text(part, "content"), failed=failed)
    elif role != "assistant" or values["is_summary_message"]:
        if words:
            yield Prompt(time, words, "user" if role == "user" else "system")
    else:
        state.model = name(values, "model") or state.model
        state.provider = name(values, "provider") or state.provider
        end = next(parts_of(parts, "finish"), {})
        ended, finish = read_time(values, "finished_at") or time, text(end, "reason")
        yield Response(time=ended, text=words, reasoning=parts, model=state.model, finish=finish)
        for part in parts_of(parts, "tool_call"):
            yield ToolCall(ended, name(part, "id"), name(part, "name") or UNKNOWN, text(part, "input"))
        if finish in _STATUS:
            yield Status(ended, _STATUS[finish], text(end, "details") or text(end, "message"))


def _recognises(path: str, head: bytes) -> bool:
    if os.path.basename(path) == _REGISTRY:
        return b'"projects"' in head and b'"data_dir"' in head
    return has_columns(path, head, _KNOWN_BY)


SOURCE = source(
    id="crush",
    title="Crush",
    places=PLACES["crush"],
    logs="crush.db",
    list_logs=_list_logs,
    rows=whole_log(_read),
    steps=steps,
    state=_begin,
    state_type=State,
    recognises=_recognises,
    session_of=stem_of,
    name_sessions=lambda path: () if path.endswith(".json") else name_roots(path, _sessions),
    is_apart=True,
    has_totals=True,
    parser_version=3,
    caveat="the costs of sessions are kept, but of their tokens only the last request's",
)
