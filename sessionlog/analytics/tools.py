"""Tools: what agents called, how often it failed, how long it took, and how much of it came back into the context.

A call belongs to its own time, not to its session's. A call without a result in the log is open: it is counted apart
and is neither a success nor an error.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import ClassVar

from sessionlog.analytics import conditions
from sessionlog.analytics.log_report import findings_of
from sessionlog.analytics.row_order import by_column, by_keys
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tool_row import COLUMNS, ToolReport, ToolRow
from sessionlog.analytics.usage import check_source_names, ledger_path, log_paths
from sessionlog.analytics.window import UsageWindow
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.histogram import percentile
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook

DEFAULT_BY = ("server", "tool")

BUILT_IN = "built-in"
"""The server of the agent's own tools, which come from no MCP server."""

KEYS: Mapping[str, str] = {
    "server": f"COALESCE(NULLIF(r.server, ''), '{BUILT_IN}')",
    "tool": "COALESCE(NULLIF(r.tool, ''), 'unknown')",
    "agent": "r.agent",
    "project": "project_key(r.project)",
    **{name: conditions.KEYS[name] for name in ("source", "session", "hour", "day", "week", "month", "status")},
}
"""Group key → expression. Time keys are those of the call."""

FILTERS = ("tool", "server", "project", "status", "source")

_FROM = "tools r JOIN sessions s ON s.id = r.session_id"
"""Calls under the name that records have in a `Selection`, whose conditions on time and session then hold for them."""

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
    """Which tool calls a report is about, and by what it groups them; a call in any session counts."""

    expressions: ClassVar[Mapping[str, str]] = KEYS
    known_filters: ClassVar[Sequence[str]] = FILTERS

    def expression(self, key: str) -> str:
        """Return the SQL of a group key.

        Raises:
            InvalidQuery: There is no such key.
        """
        if key not in KEYS:
            raise InvalidQuery(f"cannot group tool calls by {key!r}; group by {', '.join(KEYS)}")
        return KEYS[key]


def aggregate_tools(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    window: UsageWindow | str | None = None,
    until: str | None = None,
    by: Sequence[str] = DEFAULT_BY,
    tz: str | tzinfo = "UTC",
    now: datetime | None = None,
    prices: PriceBook | None = None,
    filters: Mapping[str, Sequence[str]] | None = None,
    sort: str | None = None,
    limit: int | None = None,
    merge_worktrees: bool = False,
    env: Mapping[str, str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    live: bool = False,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> ToolReport:
    """Report the tool calls recorded in logs; what is not said here is as for `aggregate_usage`.

    Args:
        paths: Files or folders; our own sessions and every agent found when None.
        window: Which calls, by their own time.
        until: The window's end.
        by: Group keys: server, tool, agent, project, source, session, hour, day, week, month, status. The server of an
            agent's own tools is `built-in`.
        tz: Whose days.
        now: The present moment.
        prices: Only for a book that is shared: calls have no price of their own.
        filters: `tool`, `server`, `project`, `status`, `source` → glob patterns.
        sort: A column to sort by, largest first; a group key, smallest first. `-NAME` turns the order round. Most
            calls first when None.
        limit: How many rows to keep; totals are over all.
        merge_worktrees: Count a git worktree as the project it belongs to.
        env: Where agents write, if it is not the process's environment that says so.
        ledger: The file that remembers what was read.
        live: Leave out what it remembers of logs that are gone.
        executor: Where logs are scanned.
        jobs: How many processes.
        progress: Called with (files done, files in all).

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A group key, filter, source or sort column does not exist.
    """
    selection = CallSelection.of(
        window, until=until, by=by, filters=filters, tz=tz, now=now, merge_worktrees=merge_worktrees
    )
    key, turned = by_column(sort or "calls", selection.by, COLUMNS)
    check_source_names(filters)
    where = Where(
        paths=log_paths(paths), ledger=ledger_path(ledger), env=env, live=live, scanner=scanner(executor, jobs),
        progress=progress,
    )  # fmt: skip
    report = ask(where, prices or PriceBook.load(), lambda book: fold_tools(book, selection))
    rows = sorted(report.rows, key=key, reverse=turned)
    kept = rows if limit is None else rows[: max(0, limit)]
    return replace(report, rows=tuple(kept), hidden_rows=len(rows) - len(kept))


def fold_tools(book: Book, selection: CallSelection) -> ToolReport:
    """Ask one book for one report, rows in the order of their keys."""
    selection.prepare(book)
    [totals] = _rows(book, selection, ())
    whole = totals.output_bytes
    rows = [replace(row, selected_bytes=whole) for row in _rows(book, selection, selection.by)] if totals.calls else []
    return ToolReport(
        window=selection.window,
        group_by=selection.by,
        rows=tuple(sorted(rows, key=by_keys)),
        totals=replace(totals, selected_bytes=whole),
        **findings_of(book),
        archived_sessions=_archived(book, selection),
    )


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
