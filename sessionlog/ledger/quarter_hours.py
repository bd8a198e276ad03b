"""Quarter hours: totals of records per session, label and quarter hour, so that reports need not sum single records.

A total has exactly the records that count; days and hours of every time zone consist of whole quarter hours. Where a
time window cuts a quarter hour, `parts` selects single records instead, with the same columns.
"""

from __future__ import annotations

from sessionlog.ledger.schema import LETTER, QUARTER_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence
    from typing import Any

_MOST = (2**63 - 1) // QUARTER_NS * QUARTER_NS - QUARTER_NS

UNKNOWN = "(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)"
"""A condition on responses: the cost is unknown."""
_TIME = f"MAX(r.time_ns, -{_MOST})"  # rounding down a hostile time must not overflow 64 bits
_QUARTER = f"{_TIME} - (({_TIME} % {QUARTER_NS}) + {QUARTER_NS}) % {QUARTER_NS}"

_SUMS = f"""{{names}}, {{time}} AS time_ns, MIN(r.time_ns) AS first_ns, MAX(r.time_ns) AS last_ns,
    SUM(r.requests) AS requests, SUM(r.failed) AS failed, SUM(r.input) AS input, SUM(r.output) AS output,
    SUM(r.cache_read) AS cache_read, SUM(r.cache_write) AS cache_write, SUM(r.reasoning) AS reasoning,
    SUM(r.cost_nano) AS cost_nano, SUM(r.estimate_nano) AS estimate_nano, MAX({UNKNOWN}) AS unknown,
    SUM(CASE WHEN {UNKNOWN} THEN r.requests ELSE 0 END) AS unpriced,
    SUM(CASE WHEN r.latency_bucket IS NOT NULL THEN r.output ELSE 0 END) AS generated,
    SUM(CASE WHEN r.latency_bucket IS NOT NULL THEN CAST(ROUND(r.latency_ms * 1000) AS INTEGER) ELSE 0 END)
        AS generation_us,
    SUM(r.active_ms) AS active_ms,
    group_concat(CASE WHEN r.latency_bucket IS NOT NULL THEN char(r.latency_bucket + {LETTER}) END, '') AS latencies,
    SUM(r.saved_nano) AS saved_nano"""

TOTAL = (
    "session_id", "label_id", "time_ns", "first_ns", "last_ns", "requests", "failed", "input", "output", "cache_read",
    "cache_write", "reasoning", "cost_nano", "estimate_nano", "unknown", "unpriced", "generated", "generation_us",
    "active_ms", "latencies", "saved_nano",
)  # fmt: skip
"""The columns of a total."""

_GROUPS = _SUMS.format(names="r.session_id, r.label_id", time=_QUARTER)
_FILL = f"INSERT INTO quarter_hours SELECT {_GROUPS} FROM {{records}} GROUP BY 1, 2, 3"  # noqa: S608 - names of the schema

_OF_SESSIONS = """(SELECT DISTINCT file_id, session_id FROM log_sessions
          WHERE session_id IN (SELECT id FROM temp.summed)) t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id WHERE r.counts"""

_SINGLE = _SUMS.format(names="MIN(r.session_id) AS session_id, MIN(r.label_id) AS label_id", time="MIN(r.time_ns)")
_EDGES = f"""SELECT {_SINGLE} FROM responses r
    WHERE r.file_id IN (SELECT t.file_id FROM quarter_hours c CROSS JOIN log_sessions t ON t.session_id = c.session_id
        WHERE c.time_ns IN (:first_quarter, :last_quarter))
    AND r.counts AND ({{edges}}) GROUP BY r.file_id, r.n"""  # noqa: S608 - names of the schema
"""Records of the quarter hours that a window cuts. Only logs with a session in them are read: without `CROSS JOIN`
SQLite may read all records."""


OF_PARTS = "{} r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
"""The FROM clause of reports on sums, to be filled with what `parts` returns."""


def fill_totals(connection: sqlite3.Connection, sessions: Collection[int] | None) -> None:
    """Sum the records of these sessions, or of all of them."""
    if sessions is None:
        connection.execute("DELETE FROM quarter_hours")
        _fill(connection, "responses r WHERE r.counts")
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS summed (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.summed")
    connection.executemany("INSERT INTO temp.summed VALUES (?)", ((number,) for number in sorted(sessions)))
    connection.execute("DELETE FROM quarter_hours WHERE session_id IN (SELECT id FROM temp.summed)")
    _fill(connection, _OF_SESSIONS)


def add_totals(connection: sqlite3.Connection, totals: Sequence[tuple[Any, ...]]) -> None:
    """Insert totals of records that are not in the ledger itself, with the columns `TOTAL`.

    Several may be of one session, label and quarter hour: reports sum them.
    """
    from sessionlog.ledger.statements import insert_rows

    insert_rows(connection, "quarter_hours", TOTAL, totals)


def _fill(connection: sqlite3.Connection, records: str) -> None:
    from sessionlog.ledger.storable import rows_of

    rows_of(connection, _FILL.format(records=records))


def parts(start_ns: int | None, end_ns: int | None) -> tuple[str, dict[str, int]]:
    """Return a table expression of what counts from `start_ns` (inclusive) to `end_ns` (exclusive), and its parameters.

    Its rows are totals, and single records in the quarter hours that the window cuts.
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
    whole = f"SELECT * FROM quarter_hours WHERE {' AND '.join(conditions)}"  # noqa: S608 - names of the schema
    if first is not None and first != start_ns:
        edges.append("(r.time_ns >= :edge_start AND r.time_ns < :edge_start_end)")
        parameters |= {"edge_start": start_ns or 0, "edge_start_end": min(first + QUARTER_NS, _or(end_ns))}
    if last is not None and last != end_ns and not (edges and last == first):
        edges.append("(r.time_ns >= :edge_end AND r.time_ns < :edge_end_end)")
        parameters |= {"edge_end": last if start_ns is None else max(last, start_ns), "edge_end_end": end_ns or 0}
    if not edges:
        return f"({whole})", parameters
    parameters |= {"first_quarter": _or(first), "last_quarter": _or(last)}
    return f"({whole} UNION ALL {_EDGES.format(edges=' OR '.join(edges))})", parameters


def _or(time_ns: int | None) -> int:
    return _MOST if time_ns is None else time_ns


def _within(time_ns: int | None) -> int | None:
    """Clamp an instant to 64 bits; the calendar is wider."""
    return None if time_ns is None else max(-_MOST, min(_MOST, time_ns))
