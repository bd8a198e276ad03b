"""Status sums: the SQL statements behind a status, and their results as plain values.

A session's usage is the sum over its requests; the fill of its context is the prompt of its last request. The module
imports little, because `cli.cached_path` uses it too.
"""

from __future__ import annotations

from sessionlog.analytics.conditions import STATUS, within_64_bits
from sessionlog.ledger.quarter_hours import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.analytics.conditions import Query

NANO = 1_000_000_000  # `events.money` costs 15 ms

_SUMS = """SUM(r.requests), SUM(r.input), SUM(r.output), SUM(r.cache_read), SUM(r.cache_write), SUM(r.cost_nano),
    SUM(r.estimate_nano), """
_READ = ("requests", "input", "output", "cache_read", "cache_write", "cost_nano", "estimate_nano", "unknown")
_OF_QUARTER_HOURS = f"{_SUMS} MAX(r.unknown)"
_OF_RECORDS = f"{_SUMS} MAX(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)"

_RECORDS = (
    """(SELECT DISTINCT file_id FROM log_sessions WHERE session_id = :id) t JOIN records r ON r.file_id = t.file_id"""
)
"""The records of a session, found by its logs: there may be millions of other records."""

_SESSION = f"""
SELECT s.id, s.source, s.session, s.path, COALESCE(NULLIF({STATUS}, ''), 'unknown'), s.project, s.start_ns, s.last_ns,
    s.archived, s.metadata, s.turns, s.last_turn_ns
FROM sessions s WHERE {{which}}
"""  # noqa: S608 - names of the schema
_NEWEST = "ORDER BY s.last_ns IS NULL, s.last_ns > :now_ns, s.last_ns DESC, s.id DESC"
"""Sessions with a time in the future come after all others."""

_LAST = f"""
SELECT r.input + r.cache_read + r.cache_write, r.time_ns, l.provider, l.model, l.response_model,
    (SELECT json_extract(metadata, '$.context_window') FROM sessions WHERE id = :id)
FROM {_RECORDS} JOIN labels l ON l.id = r.label_id
WHERE r.session_id = :id AND r.requests AND l.granularity = 'request' AND {{which}}
ORDER BY r.time_ns DESC, r.file_id DESC, r.n DESC LIMIT 1
"""  # noqa: S608 - names of the schema
_OF_MAIN = "l.agent = 'main' AND r.input + r.cache_read + r.cache_write > 0"


NAMED = (
    "s.session = :name",
    "substr(s.session, 1, length(:name)) = :name",
    "length(:name) >= 4 AND substr(s.session, -length(:name)) = :name",
)
"""How a text may name a session: its id, the beginning of it, the end of it."""


class SessionRow:
    """A session as the ledger knows it; times are nanoseconds since 1970."""

    __slots__ = (
        "archived", "id", "last_ns", "last_turn_ns", "metadata", "path", "project", "session", "source", "start_ns",
        "status", "turns",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...]) -> None:
        (
            self.id, self.source, self.session, self.path, self.status, self.project, self.start_ns, self.last_ns,
            self.archived, self.metadata, self.turns, self.last_turn_ns,
        ) = row  # fmt: skip


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
    return list(map(SessionRow, query(_SESSION.format(which=which), {**parameters, "now_ns": within_64_bits(now_ns)})))


def sums_of_session(query: Query, session_id: int) -> dict[str, Any]:
    """Return a session's usage."""
    [row] = query(f"SELECT {_OF_QUARTER_HOURS} FROM quarter_hours r WHERE r.session_id = :id", {"id": session_id})  # noqa: S608 - names of the schema
    return _used(row)


def sums_since(query: Query, session_id: int, since_ns: int) -> dict[str, Any]:
    """Return a session's usage since an instant."""
    sql = f"SELECT {_OF_RECORDS} FROM {_RECORDS} WHERE r.session_id = :id AND r.time_ns >= :since_ns"  # noqa: S608 - names of the schema
    [row] = query(sql, {"id": session_id, "since_ns": since_ns})
    return _used(row)


def sums_of_time(query: Query, start_ns: int | None, end_ns: int | None) -> dict[str, Any]:
    """Return the usage of all sessions in a window; None is an open end."""
    tables, bounds = parts(start_ns, end_ns, _READ)
    sql = f"SELECT {_OF_QUARTER_HOURS} FROM {tables} r JOIN sessions s ON s.id = r.session_id WHERE s.counted"  # noqa: S608 - names of the schema
    [row] = query(sql, dict(bounds))
    return _used(row)


def turns_of_all(query: Query) -> tuple[int | None, bool]:
    """Return the sum of turns over the sessions that have them, and whether some do not."""
    [(turns, others)] = query("SELECT SUM(s.turns), SUM(s.turns IS NULL) FROM sessions s WHERE s.counted", {})
    return turns, bool(others)


def last_request(query: Query, session_id: int) -> tuple[int, int, str, int | None] | None:
    """Return the last (prompt tokens, time, model, context window) of the main agent; the window may be unknown."""
    rows = query(_LAST.format(which=_OF_MAIN), {"id": session_id})
    if not rows:
        return None
    from sessionlog.context.windows import window_for

    used, time_ns, provider, model, answered, logged = rows[0]
    logged = logged if type(logged) is int else None
    window = window_for(used, logged, models=(model, answered), provider=provider)
    return int(used), time_ns, str(model), window


def last_model(query: Query, session_id: int) -> str | None:
    """Return the model of the last request of any agent; None without a request."""
    rows = query(_LAST.format(which="1"), {"id": session_id})
    if not rows:
        sql = "SELECT 0, 0, 0, l.model FROM quarter_hours r JOIN labels l ON l.id = r.label_id WHERE r.session_id = :id"
        rows = query(f"{sql} ORDER BY r.last_ns DESC LIMIT 1", {"id": session_id})
    return str(rows[0][3]) if rows else None


def problems_of(query: Query, session_id: int | None) -> tuple[int, list[str]]:
    """Return the number of problems in a session's logs, or in all, and the first of them as JSON texts."""
    which = "" if session_id is None else "AND id IN (SELECT file_id FROM log_sessions WHERE session_id = :id)"
    sql = f"SELECT problems, named FROM files WHERE problems AND NOT missing {which} ORDER BY path"  # noqa: S608 - as above
    rows = query(sql, {} if session_id is None else {"id": session_id})
    return sum(row[0] for row in rows), [row[1] for row in rows]


def _used(row: tuple[Any, ...]) -> dict[str, Any]:
    """The usage object: tokens in disjoint classes, their total, and the cost with its source."""
    requests, fresh, output, cache_read, cache_write, known, estimated, partial = row
    counts = [int(value or 0) for value in (requests, fresh, output, cache_read, cache_write)]
    source = "recorded" if estimated is None else "estimated" if known is None else "mixed"
    nothing = known is None and estimated is None
    return {
        **dict(zip(("requests", "input", "output", "cacheRead", "cacheWrite"), counts, strict=True)),
        "totalTokens": sum(counts[1:]),
        "cost": None if nothing else ((known or 0) + (estimated or 0)) / NANO,
        "costIsPartial": bool(partial) and not nothing,
        "costSource": None if nothing else source,
    }
