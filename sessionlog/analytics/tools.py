"""Tools: the tool calls of agents, with errors, durations, and the bytes that they returned into the context.

A call counts by its own time, not by its session's. A call without a result in the log is open: it has its own count,
and is neither a success nor an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from sessionlog.analytics import conditions
from sessionlog.analytics.question import Question, answer_sorted
from sessionlog.analytics.report import findings_of
from sessionlog.analytics.row_order import by_keys, period_order
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tool_row import ToolReport, ToolRow
from sessionlog.errors import InvalidQuery
from sessionlog.fast_dataclasses import dataclass, replace
from sessionlog.ledger.book import Book
from sessionlog.ledger.histogram import percentile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Unpack

    from sessionlog.analytics.question import Options, Paths

DEFAULT_BY = ("server", "tool")

BUILT_IN = "built-in"
"""The server name of the agent's own tools, which come from no MCP server."""

KEYS: Mapping[str, str] = {
    "server": f"COALESCE(NULLIF(r.server, ''), '{BUILT_IN}')",
    "tool": "COALESCE(NULLIF(r.tool, ''), 'unknown')",
    "agent": "r.agent",
    "project": "project_key(r.project)",
    "machine": "machine_key(r.name_id)",
    **{name: conditions.KEYS[name] for name in ("source", "session", "hour", "day", "week", "month", "status")},
}
"""Group key → expression. Time keys use the time of the call."""

FILTERS = ("tool", "server", "project", "status", "source")

_FROM = "tools r JOIN sessions s ON s.id = r.session_id"
"""Calls have the alias `r` of records in a `Selection`, so that its conditions on time and session apply."""

_SUMS = """
SELECT COUNT(*), SUM(NOT r.finished), SUM(r.finished AND r.failed),
    SUM(CASE WHEN r.finished AND r.duration_bucket IS NOT NULL THEN CAST(ROUND(r.duration_ms * 1000) AS INTEGER) END),
    SUM(r.output_bytes) {listed}
FROM {tables} WHERE {where} {grouping}
"""

_DURATIONS = """
SELECT r.duration_bucket, COUNT(*) {listed}
FROM {tables} WHERE r.finished AND r.duration_bucket IS NOT NULL AND {where} GROUP BY 1 {positions}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSelection(Selection):
    """The tool calls and group keys of a report; calls count in every session."""

    expressions: ClassVar[Mapping[str, str]] = KEYS
    known_filters: ClassVar[Sequence[str]] = FILTERS

    def expression(self, key: str) -> str:
        """Return the SQL of a group key.

        Raises:
            InvalidQuery: The key is unknown.
        """
        if key not in KEYS:
            raise InvalidQuery(f"cannot group tool calls by {key!r}; group by {', '.join(KEYS)}")
        return KEYS[key]


def aggregate_tools(paths: Paths = None, **options: Unpack[Options]) -> ToolReport:
    """Report the tool calls recorded in logs, most calls first, time keys oldest first.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        options: See `Question`; group keys are those of `KEYS`, filters those of `FILTERS`. A call is in the window by
            its own time. The server of an agent's own tools is `built-in`.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A group key, filter, source or sort column is unknown.
    """
    question = Question(paths=paths, **options)
    selection = question.selection(CallSelection, DEFAULT_BY)
    empty = ToolReport(group_by=selection.by)
    return answer_sorted(question, empty, lambda book: fold_tools(book, selection), cuts=())


def fold_tools(book: Book, selection: CallSelection) -> ToolReport:
    """Query a book for a report, with rows in their default order."""
    selection.prepare(book)
    [totals] = _rows(book, selection, ())
    whole = totals.output_bytes
    rows = [replace(row, selected_bytes=whole) for row in _rows(book, selection, selection.by)] if totals.calls else []
    return ToolReport(
        window=selection.window,
        group_by=selection.by,
        rows=tuple(sorted(rows, key=partial(_default_order, selection.by))),
        totals=replace(totals, selected_bytes=whole),
        **findings_of(book),
        archived_sessions=_archived(book, selection),
    )


def _default_order(by: Sequence[str], row: ToolRow) -> tuple[Any, ...]:
    """Time keys oldest first, then the most calls."""
    keys = by_keys(row)
    return [period_order(key)(row.keys[key]) for key in by if key in conditions.TIME_KEYS], -row.calls, keys


def _archived(book: Book, selection: CallSelection) -> int:
    where, parameters = selection.where(listed_only=True)
    sql = f"SELECT COUNT(DISTINCT s.id) FROM {_FROM} WHERE s.archived AND {where}"  # noqa: S608 - expressions of a closed list; values are bound
    [(count,)] = book.query(sql, parameters)
    return int(count)


def _rows(book: Book, selection: CallSelection, by: tuple[str, ...]) -> list[ToolRow]:
    where, parameters = selection.where(listed_only=True)
    columns = [f"k{index}" for index in range(len(by))]
    grouping = f"GROUP BY {', '.join(columns)}" if columns else ""
    listed = "".join(f", {KEYS[key]} AS {column}" for key, column in zip(by, columns, strict=True))
    durations = _durations(book, selection, by)
    rows = []
    for calls, open_calls, errors, duration_us, output_bytes, *values in book.query(
        _SUMS.format(listed=listed, tables=_FROM, where=where, grouping=grouping), parameters
    ):
        group = tuple(str(value) for value in values)
        counts = durations.get(group, {})
        row = ToolRow(
            keys=dict(zip(by, group, strict=True)),
            calls=calls,
            open_calls=open_calls or 0,
            errors=errors or 0,
            duration_p50_ms=percentile(counts, 0.5),
            duration_p95_ms=percentile(counts, 0.95),
            duration_us=duration_us,
            output_bytes=output_bytes or 0,
        )
        rows.append(row)
    return rows


def _durations(
    book: Book, selection: CallSelection, by: tuple[str, ...]
) -> Mapping[tuple[str, ...], Mapping[int, int]]:
    """Group → bucket of the histogram → calls."""
    where, parameters = selection.where(listed_only=True)
    listed = "".join(f", {KEYS[key]}" for key in by)
    positions = "".join(f", {index + 3}" for index in range(len(by)))
    found: dict[tuple[str, ...], dict[int, int]] = defaultdict(dict)
    sql = _DURATIONS.format(listed=listed, tables=_FROM, where=where, positions=positions)
    for bucket, count, *group in book.query(sql, parameters):
        found[tuple(str(value) for value in group)][bucket] = count
    return found
