"""Status sums: the SQL statements behind a status, and their results as plain values.

A session's usage is the sum over its requests; the fill of its context is the prompt of its last request. The module
imports little, because a status line is made after every step of an agent.
"""

from __future__ import annotations

from sessionlog.analytics.conditions import STATUS, within_64_bits
from sessionlog.analytics.sums import OF_RECORDS, USED, Row, column_of, measures, read_rows
from sessionlog.ledger.quarter_hours import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.analytics.conditions import Query

_MEASURES = measures(USED)
_RECORDS = (
    """(SELECT DISTINCT file_id FROM log_sessions WHERE session_id = :id) t JOIN records r ON r.file_id = t.file_id"""
)
"""The records of a session, found by its logs: there may be millions of other records."""

_NEWEST = "ORDER BY s.last_ns IS NULL, s.last_ns > :now_ns, s.last_ns DESC, s.id DESC"
"""Sessions with a time in the future come after all others."""

_LAST = {
    "used": "r.input + r.cache_read + r.cache_write",
    "time_ns": "r.time_ns",
    **{name: f"l.{name}" for name in ("provider", "model", "response_model")},
    "context_window": "(SELECT json_extract(metadata, '$.context_window') FROM sessions WHERE id = :id)",
}
_OF_REQUESTS = f"""FROM {_RECORDS} JOIN labels l ON l.id = r.label_id
    WHERE r.session_id = :id AND r.requests AND l.granularity = 'request' AND l.kind = ''"""
"""Not those inside others: an advisor's prompt, or a compaction's, is not what fills the session's context."""

_LATEST = "ORDER BY r.time_ns DESC, r.file_id DESC, r.n DESC LIMIT 1"

NAMED = (
    "s.session = :name",
    "substr(s.session, 1, length(:name)) = :name",
    "length(:name) >= 4 AND substr(s.session, -length(:name)) = :name",
)
"""How a text may name a session: its id, the beginning of it, the end of it."""


class SessionRow:
    """A session as the ledger knows it; times are nanoseconds since 1970."""

    id: int
    source: str
    session: str
    path: str
    status: str
    project: str
    start_ns: int | None
    last_ns: int | None
    archived: int
    metadata: str
    turns: int | None
    last_turn_ns: int | None

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


_SESSION = {
    **{name: f"s.{name}" for name in SessionRow.__annotations__},
    "status": f"COALESCE(NULLIF({STATUS}, ''), 'unknown')",
}


def find_newest(query: Query, now_ns: int) -> list[SessionRow]:
    """Return the session with the newest event, if any; sessions that count in usage come first."""
    order = _NEWEST.replace("ORDER BY ", "ORDER BY s.counted DESC, ")
    return _found(query, f"1 {order} LIMIT 1", {}, now_ns)


def find_named(query: Query, name: str, now_ns: int) -> list[SessionRow]:
    """Return the sessions with this id; else those whose id begins with the text; else those whose id ends with it."""
    for which in NAMED:
        found = _found(query, f"{which} ORDER BY s.session, s.source, s.path", {"name": name}, now_ns) if name else []
        if found:
            return found
    return []


def find_in_log(query: Query, paths: tuple[str | bytes, ...], now_ns: int, name: str = "") -> list[SessionRow]:
    """Return the session of a log: of several the one with this id, else the newest.

    `paths` are forms of the log's path.
    """
    names: dict[str, Any] = {f"path_{number}": path for number, path in enumerate(paths)}
    marks = ", ".join(f":{name}" for name in names)
    of_log = f"SELECT t.session_id FROM files f JOIN log_sessions t ON t.file_id = f.id WHERE f.path IN ({marks})"  # noqa: S608 - marks
    order = _NEWEST.replace("ORDER BY ", "ORDER BY s.session <> :name, ")
    return _found(query, f"s.id IN ({of_log}) {order} LIMIT 1", {**names, "name": name}, now_ns)


def _found(query: Query, which: str, parameters: Mapping[str, Any], now_ns: int) -> list[SessionRow]:
    of_which = f"FROM sessions s WHERE {which}"
    return read_rows(query, SessionRow, _SESSION, of_which, {**parameters, "now_ns": within_64_bits(now_ns)})


def sums_of_session(query: Query, session_id: int) -> dict[str, Any]:
    """Return a session's usage."""
    return _used(query, _MEASURES, "FROM quarter_hours r WHERE r.session_id = :id", {"id": session_id})


def sums_since(query: Query, session_id: int, since_ns: int) -> dict[str, Any]:
    """Return a session's usage since an instant."""
    since = f"FROM {_RECORDS} WHERE r.session_id = :id AND r.time_ns >= :since_ns"
    return _used(query, measures(USED, OF_RECORDS), since, {"id": session_id, "since_ns": since_ns})


def sums_of_time(query: Query, start_ns: int | None, end_ns: int | None) -> dict[str, Any]:
    """Return the usage of all sessions in a window; None is an open end."""
    tables, bounds = parts(start_ns, end_ns, tuple(map(column_of, USED)))
    counted = f"FROM {tables} r JOIN sessions s ON s.id = r.session_id WHERE s.counted"
    return _used(query, _MEASURES, counted, bounds)


def turns_of_all(query: Query) -> tuple[int | None, bool]:
    """Return the sum of turns over the sessions that have them, and whether some do not."""
    [(turns, others)] = query("SELECT SUM(s.turns), SUM(s.turns IS NULL) FROM sessions s WHERE s.counted", {})
    return turns, bool(others)


def last_request(query: Query, session_id: int) -> tuple[int, int, str, int | None] | None:
    """Return the last (prompt tokens, time, model, context window) of the main agent; the window may be unknown."""
    rows = _last_requests(query, session_id, f"AND l.agent = 'main' AND {_LAST['used']} > 0")
    if not rows:
        return None
    from sessionlog.context.windows import window_for

    [last] = rows
    logged = last.context_window if type(last.context_window) is int else None
    window = window_for(last.used, logged, models=(last.model, last.response_model), provider=last.provider)
    return int(last.used), last.time_ns, str(last.model), window


def last_model(query: Query, session_id: int) -> str | None:
    """Return the model of the last request of any agent; None without a request."""
    rows = _last_requests(query, session_id)
    if not rows:
        of_session = "FROM quarter_hours r JOIN labels l ON l.id = r.label_id WHERE r.session_id = :id"
        newest = f"{of_session} ORDER BY r.last_ns DESC LIMIT 1"
        rows = read_rows(query, Row, {"model": "l.model"}, newest, {"id": session_id})
    return str(rows[0].model) if rows else None


def _last_requests(query: Query, session_id: int, which: str = "") -> list[Row]:
    return read_rows(query, Row, _LAST, f"{_OF_REQUESTS} {which} {_LATEST}", {"id": session_id})


def problems_of(query: Query, session_id: int | None) -> tuple[int, list[str]]:
    """Return the number of problems in a session's logs, or in all, and the first of them as JSON texts."""
    which = "" if session_id is None else "AND id IN (SELECT file_id FROM log_sessions WHERE session_id = :id)"
    sql = f"SELECT problems, named FROM files WHERE problems AND NOT missing {which} ORDER BY path"  # noqa: S608 - as above
    rows = query(sql, {} if session_id is None else {"id": session_id})
    return sum(row[0] for row in rows), [row[1] for row in rows]


def _used(query: Query, columns: Mapping[str, str], source: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage object: tokens in disjoint classes, their total, and the cost with its source."""
    [used] = read_rows(query, Row, columns, source, parameters)
    kind = "recorded" if used.estimated_nano is None else "estimated" if used.known_nano is None else "mixed"
    is_known = used.cost_nano is not None
    return {
        "requests": used.requests,
        "input": used.input_tokens,
        "output": used.output_tokens,
        "cacheRead": used.cache_read_tokens,
        "cacheWrite": used.cache_write_tokens,
        "totalTokens": used.total_tokens,
        "cost": used.cost_usd,
        "costIsPartial": used.cost_is_partial and is_known,
        "costSource": kind if is_known else None,
    }
