"""Usage sums: the SQL statements behind a usage report, and their results as plain values.

Records are summed per group and session first, so that a session counts once in each row it has a record in, and once
in the totals, with its whole duration.
"""

from __future__ import annotations

from dataclasses import fields

from sessionlog.analytics.conditions import STATUS
from sessionlog.analytics.sums import (
    IN_PROVENANCE,
    added,
    by_provenance,
    measures,
    read_rows,
    reader,
    select,
    sums,
)
from sessionlog.analytics.usage_row import UsageRow
from sessionlog.ledger.histogram import counts_of, percentile
from sessionlog.ledger.quarter_hours import OF_PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from sessionlog.analytics.conditions import Query

    T = TypeVar("T")

_OF_SESSIONS = {
    "sessions": "COUNT(*)",
    "success_sessions": "COALESCE(SUM(status = 'success'), 0)",
    "failed_sessions": "COALESCE(SUM(status NOT IN ('success', 'running', 'unfinished')), 0)",
    "unfinished_sessions": "COALESCE(SUM(status IN ('running', 'unfinished')), 0)",
    "running_sessions": "COALESCE(SUM(status = 'running'), 0)",
    "duration_ms": "COALESCE(SUM(COALESCE(whole_ms, spans.active_ms)), 0)",
    "unknown_cost_sessions": "COALESCE(SUM(cost_is_partial), 0)",
    "priced_successes": "COALESCE(SUM(status = 'success' AND NOT cost_is_partial), 0)",
}
"""What counts once for each session in a row, and once in the totals."""

ADDED = tuple(
    one.name for one in fields(UsageRow)
    if one.name not in _OF_SESSIONS and not one.name.startswith(("keys", "latency_", "generation_ms", "ended_"))
)  # fmt: skip
"""What adds up over the parts of a session: the other sums of a row."""

_SHARE = {
    "status": f"MAX({STATUS})",
    "whole_ms": "MAX(s.duration_ms)",
    "archived": "MAX(s.archived OR s.rewritten)",
    **measures((*ADDED, "generation_us", "cost_is_partial", "latencies", *IN_PROVENANCE)),
}
"""One pass over the records: sums per session and group. All other statements use these few rows."""

_SPANS = """
INSERT INTO spans SELECT r.session_id, SUM(r.active_ms)
FROM {parts} r WHERE r.session_id IN (SELECT session_id FROM shares WHERE whole_ms IS NULL) GROUP BY r.session_id
"""
"""The active time of each session in the window, regardless of filters; for sessions whose log has no duration."""

_ENDED_NANO = """SUM(CASE WHEN r.status NOT IN ('running', 'unfinished') AND {is_known}
    AND (r.known_nano IS NOT NULL OR r.estimated_nano IS NOT NULL)
    THEN COALESCE(r.known_nano, 0) + COALESCE(r.estimated_nano, 0) END)"""
"""The cost of ended sessions whose whole cost is known."""

_EACH = """SELECT session_id, MAX(status) AS status, MAX(whole_ms) AS whole_ms, MAX(cost_is_partial) AS cost_is_partial
    FROM shares GROUP BY session_id"""


def _of_shares(is_known: str) -> dict[str, str]:
    """What is added up over shares `r`; `is_known` is the condition that the cost of a share's session is."""
    return {
        **{name: added(name, name) for name in (*ADDED, "generation_us")},
        "ended_nano": _ENDED_NANO.format(is_known=is_known),
        "latencies": "group_concat(r.latencies, '')",
    }


_ROW = {**_OF_SESSIONS, **_of_shares("NOT r.cost_is_partial")}
_OF_ROW = "FROM shares r LEFT JOIN spans USING (session_id)"
_ONCE = select(_OF_SESSIONS, f"FROM ({_EACH}) AS e LEFT JOIN spans USING (session_id)")
_ADDED_UP = select(
    _of_shares("r.session_id NOT IN (SELECT session_id FROM shares WHERE cost_is_partial)"), "FROM shares r"
)
_OF_TOTALS = f"FROM ({_ONCE}) AS once, ({_ADDED_UP}) AS added_up"


def fill_shares(
    query: Query,
    *,
    keys: Sequence[str],
    tables: str,
    bounds: Mapping[str, Any],
    where: str,
    parameters: Mapping[str, Any],
) -> None:
    """Fill the temporary tables `shares` and `spans`, on which the other functions depend.

    Args:
        query: Runs a statement.
        keys: The expressions of the group keys.
        tables: The sums in the window (see `ledger.quarter_hours.parts`).
        bounds: The parameters of `tables`.
        where: The condition on them.
        parameters: The parameters of `where` and of the status.
    """
    by = {"session_id": "r.session_id", **{f"k{index}": key for index, key in enumerate(keys)}}
    share = select(_SHARE, f"FROM {OF_PARTS.format(tables)} WHERE {where}", by=by)
    query("DROP TABLE IF EXISTS temp.shares", {})
    query("DROP TABLE IF EXISTS temp.spans", {})
    query(f"CREATE TEMP TABLE shares AS {share}", {**parameters, **bounds})
    query("CREATE TEMP TABLE spans (session_id INTEGER PRIMARY KEY, active_ms INTEGER)", {})
    query(_SPANS.format(parts=tables), dict(bounds))


def sums_of(query: Query, make: Callable[..., T], names: Sequence[str] = ()) -> list[T]:
    """Return what `make` makes of the sums of each group, with its `keys`; without names of the totals."""
    by = {name: name for name in map("k{}".format, range(len(names)))}
    columns, source = (_ROW, _OF_ROW) if names else ({name: name for name in _ROW}, _OF_TOTALS)
    read = reader(columns, by=by)

    def row(values: dict[str, Any]) -> T:
        counts = counts_of(values.pop("latencies"))
        values["keys"] = dict(zip(names, map(str, values.get("keys", {}).values()), strict=True))
        values["generation_ms"] = values.pop("generation_us") / 1000
        return make(**values, **{f"latency_p{n}_ms": percentile(counts, n / 100) for n in (50, 95, 99)})

    return [row(read(found)) for found in query(select(columns, source, by=by), {})]


def provenance(query: Query) -> dict[str, int]:
    """Return the number of requests by provenance."""
    [counts] = read_rows(query, dict[str, int], {name: f"SUM({name})" for name in IN_PROVENANCE}, "FROM shares", {})
    return by_provenance(counts)


def count_provenance(query: Query, *, tables: str, where: str, parameters: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of requests by provenance without `fill_shares`, whose arguments these are."""
    [counts] = sums(query, dict[str, int], IN_PROVENANCE, tables, where, parameters)
    return by_provenance(counts)


def archived_sessions(query: Query) -> int:
    """Return the number of sessions of which something is in the ledger only."""
    [(count,)] = query("SELECT COUNT(DISTINCT session_id) FROM shares WHERE archived", {})
    return int(count)
