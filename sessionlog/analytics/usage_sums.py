"""Usage sums: the SQL statements behind a usage report, and their results as plain values.

Records are summed per group and session first, so that a session counts once in each row it has a record in, and once
in the totals, with its whole duration. The module imports little, because both `cli.cached_path` and `usage` use it.
"""

from __future__ import annotations

from sessionlog.analytics.conditions import STATUS
from sessionlog.analytics.usage_columns import PROVENANCE
from sessionlog.ledger.histogram import counts_of, percentile
from sessionlog.ledger.quarter_hours import OF_PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.conditions import Query

_SUMS = (
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "running_sessions", "requests",
    "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "duration_ms", "known_nano", "estimated_nano", "unknown_cost_sessions", "unpriced_requests", "generation_tokens",
    "generation_ms", "ended_nano", "priced_successes", "saved_nano",
)  # fmt: skip
_NULLABLE = frozenset({"known_nano", "estimated_nano", "ended_nano", "saved_nano"})

_SHARES = """
CREATE TEMP TABLE shares AS
SELECT r.session_id, MAX({status}) AS status, MAX(s.duration_ms) AS whole_ms, MAX(s.archived) AS archived,
    SUM(r.requests) AS requests, SUM(r.failed) AS failed, SUM(r.input) AS input, SUM(r.output) AS output,
    SUM(r.cache_read) AS cache_read, SUM(r.cache_write) AS cache_write, SUM(r.reasoning) AS reasoning,
    SUM(r.cost_nano) AS known, SUM(r.estimate_nano) AS estimated, MAX(r.unknown) AS unknown,
    SUM(r.unpriced) AS unpriced, SUM(r.saved_nano) AS saved, SUM(r.generated) AS generated,
    SUM(r.generation_us) AS generation_us, group_concat(r.latencies, '') AS latencies, {provenance} {keys}
FROM {tables} WHERE {where} GROUP BY r.session_id {names}
"""
"""One pass over the records: sums per session and group. All other statements use these few rows."""

_SPANS = """
INSERT INTO spans SELECT r.session_id, SUM(r.active_ms)
FROM {parts} r WHERE r.session_id IN (SELECT session_id FROM shares WHERE whole_ms IS NULL) GROUP BY r.session_id
"""
"""The active time of each session in the window, regardless of filters; for sessions whose log has no duration."""

_ENDED_COST = """CASE WHEN shares.status NOT IN ('running', 'unfinished') AND NOT shares.unknown
    AND (known IS NOT NULL OR estimated IS NOT NULL) THEN COALESCE(known, 0) + COALESCE(estimated, 0) END"""
"""The cost of ended sessions whose whole cost is known."""

_ROWS = """
SELECT COUNT(*), SUM(status = 'success'), SUM(status NOT IN ('success', 'running', 'unfinished')),
    SUM(status IN ('running', 'unfinished')), SUM(status = 'running'), SUM(requests), SUM(failed), SUM(input),
    SUM(output), SUM(cache_read), SUM(cache_write), SUM(reasoning),
    SUM(COALESCE(whole_ms, spans.active_ms)), SUM(known), SUM(estimated), SUM(unknown), SUM(unpriced), SUM(generated),
    SUM(generation_us) / 1000.0, SUM({ended_cost}), SUM(status = 'success' AND NOT unknown), SUM(saved),
    group_concat(latencies, '') {names}
FROM shares LEFT JOIN spans USING (session_id) GROUP BY {grouping}
"""

_TOTALS = """
WITH each AS (SELECT session_id, MAX(status) AS status, MAX(whole_ms) AS whole_ms, MAX(unknown) AS unknown
        FROM shares GROUP BY session_id),
    once AS (SELECT COUNT(*) AS sessions, SUM(status = 'success') AS success,
        SUM(status NOT IN ('success', 'running', 'unfinished')) AS failed,
        SUM(status IN ('running', 'unfinished')) AS unfinished, SUM(status = 'running') AS running,
        SUM(COALESCE(whole_ms, spans.active_ms)) AS duration, SUM(unknown) AS unknown,
        SUM(status = 'success' AND NOT unknown) AS priced
        FROM each LEFT JOIN spans USING (session_id))
SELECT MAX(once.sessions), MAX(once.success), MAX(once.failed), MAX(once.unfinished), MAX(once.running),
    SUM(requests), SUM(shares.failed), SUM(input), SUM(output), SUM(cache_read), SUM(cache_write), SUM(reasoning),
    MAX(once.duration), SUM(known), SUM(estimated), MAX(once.unknown), SUM(unpriced), SUM(generated),
    SUM(generation_us) / 1000.0,
    SUM(CASE WHEN shares.session_id IN (SELECT session_id FROM each WHERE NOT unknown) THEN {ended_cost} END),
    MAX(once.priced), SUM(saved), group_concat(latencies, '')
FROM once LEFT JOIN shares ON true
"""
"""Additive values are summed over all shares; values of a whole session are counted once per session."""

_OF_KIND = """SUM(CASE WHEN CASE l.granularity WHEN 'session' THEN 'session' ELSE l.quality END = '{kind}'
    THEN r.requests ELSE 0 END) AS in_{kind}"""

PROVENANCE_SUMS = ", ".join(_OF_KIND.format(kind=kind) for kind in PROVENANCE)
"""Requests by provenance, in the order of `PROVENANCE`."""


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
    sql = _SHARES.format(
        status=STATUS,
        provenance=PROVENANCE_SUMS,
        keys="".join(f", {key} AS k{index}" for index, key in enumerate(keys)),
        tables=OF_PARTS.format(tables),
        where=where,
        names=_columns(keys),
    )
    query("DROP TABLE IF EXISTS temp.shares", {})
    query("DROP TABLE IF EXISTS temp.spans", {})
    query(sql, {**parameters, **bounds})
    query("CREATE TEMP TABLE spans (session_id INTEGER PRIMARY KEY, active_ms INTEGER)", {})
    query(_SPANS.format(parts=tables), dict(bounds))


def sums_of(query: Query, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the sums of each group, with its `keys`; without names the totals."""
    columns = _columns(names)
    sql = _ROWS.format(names=columns, grouping=columns.removeprefix(", "), ended_cost=_ENDED_COST)
    sql = sql if names else _TOTALS.format(ended_cost=_ENDED_COST)
    found = query(sql, {})[::-1]
    while found:  # so that many rows are not in memory twice
        yield _row(found.pop(), names)


def _row(values: tuple[Any, ...], names: Sequence[str]) -> dict[str, Any]:
    count = len(_SUMS)
    counts = counts_of(values[count])
    return {
        "keys": dict(zip(names, map(str, values[count + 1 :]), strict=True)),
        **{name: values[i] if name in _NULLABLE else values[i] or 0 for i, name in enumerate(_SUMS)},
        **{f"latency_p{n}_ms": percentile(counts, n / 100) for n in (50, 95, 99)},
    }


def _columns(names: Sequence[str]) -> str:
    return "".join(f", k{index}" for index in range(len(names)))


def provenance(query: Query) -> dict[str, int]:
    """Return the number of requests by provenance."""
    sums = ", ".join(f"SUM(in_{kind})" for kind in PROVENANCE)
    [counts] = query(f"SELECT {sums} FROM shares", {})  # noqa: S608 - a closed list
    return {kind: count or 0 for kind, count in zip(PROVENANCE, counts, strict=True)}


def count_provenance(query: Query, *, tables: str, where: str, parameters: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of requests by provenance without `fill_shares`, whose arguments these are."""
    [counts] = query(f"SELECT {PROVENANCE_SUMS} FROM {tables} WHERE {where}", dict(parameters))  # noqa: S608 - closed lists; values are bound
    return {kind: count or 0 for kind, count in zip(PROVENANCE, counts, strict=True)}


def archived_sessions(query: Query) -> int:
    """Return the number of sessions that only the ledger has."""
    [(count,)] = query("SELECT COUNT(DISTINCT session_id) FROM shares WHERE archived", {})
    return int(count)
