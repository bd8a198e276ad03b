"""Tools: the tool calls of agents, with errors, durations, and the bytes that they returned into the context.

A call counts by its own time, not by its session's. A call without a result in the log is open: it has its own count,
and is neither a success nor an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from sessionlog.analytics import conditions
from sessionlog.analytics.question import Question, answer_sorted
from sessionlog.analytics.report import findings_of
from sessionlog.analytics.row_order import by_keys, period_order
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import read_rows
from sessionlog.analytics.tool_row import ToolReport, ToolRow
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.book import Book
from sessionlog.ledger.histogram import counts_of, percentile
from sessionlog.ledger.schema import LETTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

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

_MEASURED = "r.finished AND r.duration_bucket IS NOT NULL"
_CALLS = {
    "calls": "COUNT(*)",
    "open_calls": "COALESCE(SUM(NOT r.finished), 0)",
    "errors": "COALESCE(SUM(r.finished AND r.failed), 0)",
    "duration_us": f"SUM(CASE WHEN {_MEASURED} THEN CAST(ROUND(r.duration_ms * 1000) AS INTEGER) END)",
    "output_bytes": "COALESCE(SUM(r.output_bytes), 0)",
    "durations": f"group_concat(CASE WHEN {_MEASURED} THEN char(r.duration_bucket + {LETTER}) END, '')",
}


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
    def row(durations: str | None, keys: Mapping[str, Any] | None = None, **summed: Any) -> ToolRow:
        counts = counts_of(durations)
        return ToolRow(
            keys=dict(zip(by, map(str, (keys or {}).values()), strict=True)),
            duration_p50_ms=percentile(counts, 0.5),
            duration_p95_ms=percentile(counts, 0.95),
            **summed,
        )

    where, parameters = selection.where(listed_only=True)
    keys = {f"k_{name}": KEYS[name] for name in by}
    return read_rows(book.query, row, _CALLS, f"FROM {_FROM} WHERE {where}", parameters, by=keys)
