"""Quarter hours: totals of records per session, label and quarter hour, so that reports need not sum single records.

A total has exactly the records that count; days and hours of every time zone consist of whole quarter hours. Where a
time window cuts a quarter hour, `parts` selects single records instead, with the same columns.
"""

from __future__ import annotations

from sessionlog.ledger.schema import LETTER, QUARTER_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sessionlog.ledger.columns import Column

_MOST = (2**63 - 1) // QUARTER_NS * QUARTER_NS - QUARTER_NS

UNKNOWN = "(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)"
"""A condition on responses: the cost is unknown."""
_TIME = f"MAX(r.time_ns, -{_MOST})"  # rounding down a hostile time must not overflow 64 bits
_QUARTER = f"{_TIME} - (({_TIME} % {QUARTER_NS}) + {QUARTER_NS}) % {QUARTER_NS}"

_PLACE = ("session_id", "label_id", "time_ns")
_GENERATED = "CASE WHEN r.latency_bucket IS NOT NULL THEN {} {}END"
_DERIVED = {
    "first_ns": ("INTEGER", "MIN(r.time_ns)"),
    "last_ns": ("INTEGER", "MAX(r.time_ns)"),
    "unknown": ("INTEGER NOT NULL", f"MAX({UNKNOWN})"),
    "unpriced": ("INTEGER NOT NULL", f"SUM(CASE WHEN {UNKNOWN} THEN r.requests ELSE 0 END)"),
    "generated": ("INTEGER NOT NULL", f"SUM({_GENERATED.format('r.output', 'ELSE 0 ')})"),
    "generation_us": (
        "INTEGER NOT NULL", f"SUM({_GENERATED.format('CAST(ROUND(r.latency_ms * 1000) AS INTEGER)', 'ELSE 0 ')})",
    ),
    "latencies": ("TEXT", f"group_concat({_GENERATED.format(f'char(r.latency_bucket + {LETTER})', '')}, '')"),
}  # fmt: skip
"""Column of a total → its type, and its expression on responses: what is no plain sum of one column."""


def names_of_totals() -> tuple[str, ...]:
    """Return the columns of a total: its place, derived ones, and sums of the columns of responses that have one."""
    return (*_PLACE, *_names_of_sums())


def _names_of_sums() -> tuple[str, ...]:
    return (*_DERIVED, *(column.name for column in _sums()))


def define_totals() -> str:
    """Return the statement that creates the table of totals."""
    places = ("session_id INTEGER NOT NULL", "label_id INTEGER NOT NULL", "time_ns INTEGER")
    return f"CREATE TABLE quarter_hours ({', '.join((*places, *define_sums()))}) STRICT"


def define_sums() -> list[str]:
    """Return the definitions of the columns of a total but its place."""
    derived = [f"{name} {kind}" for name, (kind, _) in _DERIVED.items()]
    return [*derived, *(column.sql for column in _sums())]


def _sums() -> tuple[Column, ...]:
    from sessionlog.ledger.columns import Response, columns_of

    return tuple(column for column in columns_of(Response) if "sum" in column.words)


def _select(session: str, label: str, time: str, names: Sequence[str]) -> str:
    """Return the place of a total and the columns with these names, as expressions on responses `r`."""
    places = (f"{session} AS session_id", f"{label} AS label_id", f"{time} AS time_ns")
    sums = (f"{_expression(name)} AS {name}" for name in names)
    return f"SELECT {', '.join((*places, *sums))}"


_RESPONSES = "responses r LEFT JOIN all_sessions w ON w.id = r.session_id AND w.home IS NOT NULL"
_HOME = "COALESCE(w.home, r.session_id)"
"""The session in which a response counts: that of an agent for what only the wire has of it (see `wire`)."""


def _expression(name: str) -> str:
    """Return the expression of a sum; what only the wire has of a session took no time beside what its log has."""
    if name in _DERIVED:
        return _DERIVED[name][1]
    return "SUM(CASE WHEN w.home IS NULL THEN r.active_ms ELSE 0 END)" if name == "active_ms" else f"SUM(r.{name})"


_WITH_HOMES = (
    """INSERT OR REPLACE INTO temp.summed SELECT DISTINCT home, NULL FROM all_sessions WHERE on_wire_of IS NOT NULL
    AND home IS NOT NULL AND (id IN (SELECT id FROM temp.summed) OR home IN (SELECT id FROM temp.summed))""",
    """INSERT OR REPLACE INTO temp.summed SELECT id, NULL FROM all_sessions WHERE on_wire_of IS NOT NULL
    AND home IN (SELECT id FROM temp.summed)""",
)
"""A session and what is only on the wire of it are summed together."""

_OF_SESSIONS = """(SELECT DISTINCT file_id, session_id, since_ns
          FROM log_sessions JOIN temp.summed ON id = session_id) t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id
    LEFT JOIN all_sessions w ON w.id = r.session_id AND w.home IS NOT NULL
    WHERE r.counts AND COALESCE(r.time_ns >= t.since_ns, TRUE)"""
_DELETE = """DELETE FROM quarter_hours WHERE session_id IN (SELECT id FROM temp.summed)
    AND COALESCE(time_ns >= (SELECT since_ns FROM temp.summed WHERE id = session_id), TRUE)"""

_EDGES = f"""{{single}} FROM {_RESPONSES}
    WHERE r.file_id IN (SELECT t.file_id FROM quarter_hours c CROSS JOIN log_sessions t ON t.session_id = c.session_id
        WHERE c.time_ns IN (:first_quarter, :last_quarter)
        UNION ALL SELECT t.file_id FROM all_sessions s CROSS JOIN log_sessions t ON t.session_id = s.id
        WHERE s.on_wire_of IS NOT NULL AND s.home IN (SELECT c.session_id FROM quarter_hours c
            WHERE c.time_ns IN (:first_quarter, :last_quarter)))
    AND r.counts AND ({{edges}}) GROUP BY r.file_id, r.n"""  # noqa: S608 - names of the schema
"""Records of the quarter hours that a window cuts. Only logs with a session in them are read: without `CROSS JOIN`
SQLite may read all records."""


OF_PARTS = "{} r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
"""The FROM clause of reports on sums, to be filled with what `parts` returns."""


def fill_totals(connection: sqlite3.Connection, sessions: Mapping[int, int | None] | None) -> None:
    """Sum the records of these sessions from a time on (None: of any time), or the records of all sessions."""
    if sessions is None:
        connection.execute("DELETE FROM quarter_hours")
        _fill(connection, f"{_RESPONSES} WHERE r.counts")
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS summed (id INTEGER PRIMARY KEY, since_ns INTEGER)")
    connection.execute("DELETE FROM temp.summed")
    rows = sorted((session, _begin_of_quarter(since_ns)) for session, since_ns in sessions.items())
    connection.executemany("INSERT INTO temp.summed VALUES (?, ?)", rows)
    for statement in _WITH_HOMES:
        connection.execute(statement)
    connection.execute(_DELETE)
    _fill(connection, _OF_SESSIONS)


def _begin_of_quarter(time_ns: int | None) -> int | None:
    """Round a time down; None for one before 1970, of which `_QUARTER` may be later."""
    return None if time_ns is None or time_ns < 0 else min(time_ns // QUARTER_NS * QUARTER_NS, _MOST)


def add_totals(connection: sqlite3.Connection, totals: Sequence[tuple[Any, ...]]) -> None:
    """Insert totals of records that are not in the ledger itself, with the columns `names_of_totals`.

    Several may be of one session, label and quarter hour: reports sum them.
    """
    from sessionlog.ledger.columns import insert
    from sessionlog.ledger.statements import write

    write(connection, insert("quarter_hours", names_of_totals()), totals)


def _fill(connection: sqlite3.Connection, records: str) -> None:
    from sessionlog.ledger.storable import rows_of

    names, select = ", ".join(names_of_totals()), _select(_HOME, "r.label_id", _QUARTER, _names_of_sums())
    rows_of(connection, f"INSERT INTO quarter_hours ({names}) {select} FROM {records} GROUP BY 1, 2, 3")


def parts(start_ns: int | None, end_ns: int | None, names: Sequence[str] = ()) -> tuple[str, dict[str, int]]:
    """Return a table expression of what counts from `start_ns` (inclusive) to `end_ns` (exclusive), and its parameters.

    Its rows are totals, and single records in the quarter hours that the window cuts. They have at least the columns of
    these names beside the place of a total; without names all.
    """
    start_ns, end_ns = _within(start_ns), _within(end_ns)
    parameters: dict[str, int] = {}
    conditions, edges = [], []
    first = last = None
    if start_ns is not None:
        first = start_ns // QUARTER_NS * QUARTER_NS
        parameters["inner_start"] = first if first == start_ns else first + QUARTER_NS
        conditions.append("time_ns >= :inner_start")
    if end_ns is not None:
        last = end_ns // QUARTER_NS * QUARTER_NS
        parameters["inner_end"] = last
        conditions.append("time_ns < :inner_end")
    if not conditions:
        return "quarter_hours", {}
    inside = f"FROM quarter_hours WHERE {' AND '.join(conditions)}"
    if first is not None and first != start_ns:
        edges.append("(r.time_ns >= :edge_start AND r.time_ns < :edge_start_end)")
        parameters |= {"edge_start": start_ns or 0, "edge_start_end": min(first + QUARTER_NS, _or(end_ns))}
    if last is not None and last != end_ns and not (edges and last == first):
        edges.append("(r.time_ns >= :edge_end AND r.time_ns < :edge_end_end)")
        parameters |= {"edge_end": last if start_ns is None else max(last, start_ns), "edge_end_end": end_ns or 0}
    if not edges:
        return f"(SELECT * {inside})", parameters
    parameters |= {"first_quarter": _or(first), "last_quarter": _or(last)}
    names = names or _names_of_sums()
    single = _select(f"MIN({_HOME})", "MIN(r.label_id)", "MIN(r.time_ns)", names)
    whole = f"SELECT {', '.join((*_PLACE, *names))} {inside}"
    return f"({whole} UNION ALL {_EDGES.format(single=single, edges=' OR '.join(edges))})", parameters


def _or(time_ns: int | None) -> int:
    return _MOST if time_ns is None else time_ns


def _within(time_ns: int | None) -> int | None:
    """Clamp an instant to 64 bits; the calendar is wider."""
    return None if time_ns is None else max(-_MOST, min(_MOST, time_ns))
