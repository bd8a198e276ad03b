"""Usage: what was used and what it cost, asked of the book in SQL.

One aggregation for every grouping: records are summed per group and session first, so that a session is counted once
in each row it touches and once in the totals, with its whole duration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from sessionlog.analytics.row_order import by_column, by_keys
from sessionlog.analytics.selection import STATUS, Selection
from sessionlog.analytics.usage_row import COLUMNS, PROVENANCE, UsageReport, UsageRow
from sessionlog.analytics.window import UsageWindow, parse_usage_window
from sessionlog.analytics.zones import resolve_zone
from sessionlog.engine.scanner import scanner
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.cells import OF_PARTS
from sessionlog.ledger.histogram import counts_of, percentile
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.registry import choose_sources

DEFAULT_BY = ("provider", "model")
_SUMS = (
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "running_sessions", "requests",
    "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "duration_ms", "known_nano", "estimated_nano", "unknown_cost_sessions", "unpriced_requests", "generation_tokens",
    "generation_ms",
)  # fmt: skip
_NULLABLE = frozenset({"known_nano", "estimated_nano"})

_SHARES = """
CREATE TEMP TABLE shares AS
SELECT r.session_id, MAX({status}) AS status, MAX(s.duration_ms) AS whole_ms, MAX(s.archived) AS archived,
    SUM(r.requests) AS requests, SUM(r.failed) AS failed, SUM(r.input) AS input, SUM(r.output) AS output,
    SUM(r.cache_read) AS cache_read, SUM(r.cache_write) AS cache_write, SUM(r.reasoning) AS reasoning,
    SUM(r.cost_nano) AS known, SUM(r.estimate_nano) AS estimated, MAX(r.unknown) AS unknown,
    SUM(r.unpriced) AS unpriced, SUM(r.generated) AS generated, TOTAL(r.generation_ms) AS generation_ms,
    group_concat(r.latencies, '') AS latencies, {provenance} {keys}
FROM {tables} WHERE {where} GROUP BY r.session_id {names}
"""
"""One pass over what counts: sums per session and group. Everything else is asked of these few rows."""

_SPANS = """
CREATE TEMP TABLE spans AS SELECT r.session_id, SUM(r.active_ms) AS active_ms
FROM {parts} r WHERE r.session_id IN (SELECT session_id FROM shares) GROUP BY r.session_id
"""
"""How long each session was active in the window, whatever part of it the filters chose."""

_ROWS = """
SELECT COUNT(*), SUM(status = 'success'), SUM(status NOT IN ('success', 'running', 'unfinished')),
    SUM(status IN ('running', 'unfinished')), SUM(status = 'running'), SUM(requests), SUM(failed), SUM(input),
    SUM(output), SUM(cache_read), SUM(cache_write), SUM(reasoning),
    SUM(COALESCE(whole_ms, spans.active_ms)), SUM(known), SUM(estimated), SUM(unknown), SUM(unpriced), SUM(generated),
    TOTAL(generation_ms), group_concat(latencies, '') {names}
FROM {shares} JOIN spans USING (session_id) {grouping}
"""

_WHOLE = """(SELECT session_id, MAX(status) AS status, MAX(whole_ms) AS whole_ms, SUM(requests) AS requests,
    SUM(failed) AS failed, SUM(input) AS input, SUM(output) AS output, SUM(cache_read) AS cache_read,
    SUM(cache_write) AS cache_write, SUM(reasoning) AS reasoning, SUM(known) AS known, SUM(estimated) AS estimated,
    MAX(unknown) AS unknown, SUM(unpriced) AS unpriced, SUM(generated) AS generated,
    TOTAL(generation_ms) AS generation_ms, group_concat(latencies, '') AS latencies FROM shares GROUP BY session_id)"""
"""The shares of each session together, for the totals: a session counts once."""

_OF_KIND = """SUM(CASE WHEN CASE l.granularity WHEN 'session' THEN 'session' ELSE l.quality END = '{kind}'
    THEN r.requests ELSE 0 END) AS in_{kind}"""


def aggregate_usage(
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
) -> UsageReport:
    """Report the usage recorded in logs.

    Args:
        paths: Files or folders; our own sessions and every agent found when None. What does not exist is empty.
        window: A `UsageWindow` or its text (`7d`, `today`, `2026-11-01..`); all time when None.
        until: The window's end, as in the command's `--until`.
        by: Group keys, see `selection.KEYS`.
        tz: Whose days: an IANA name, `local`, or a tzinfo.
        now: The present moment, for relative windows and for telling running from unfinished sessions.
        prices: Prices for what has no recorded cost; the list prices when None.
        filters: `provider`, `model`, `project`, `status`, `source` → glob patterns.
        sort: A column to sort by, largest first; a group key, smallest first. `-NAME` turns the order round.
        limit: How many rows to keep; totals are over all.
        merge_worktrees: Count a git worktree as the project it belongs to.
        env: Where agents write, if it is not the process's environment that says so.
        ledger: The file that remembers what was read; without paths only what changed is read, and logs that were
            deleted still count. None scans everything anew, in memory.
        live: Leave out what the ledger remembers of logs that are gone.
        executor: Where logs are scanned: any executor of `concurrent.futures`; new processes when it pays if None.
        jobs: How many processes; 1 scans in this one.
        progress: Called with (files done, files in all).

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A group key, filter, source or sort column does not exist.
    """
    moment = now or datetime.now(UTC)
    span = parse_usage_window(window, until=until, now=moment, tz=tz)
    selection = Selection(
        window=span,
        by=tuple(by),
        filters=filters or {},
        zone=resolve_zone(tz),
        now_ns=int(moment.timestamp() * 1_000_000_000),
        merge_worktrees=merge_worktrees,
    )
    order = by_column(sort, selection.by, COLUMNS) if sort else None
    check_source_names(filters)
    where = Where(
        paths=log_paths(paths), ledger=ledger_path(ledger), env=env, live=live, scanner=scanner(executor, jobs),
        progress=progress,
    )  # fmt: skip
    report = ask(where, prices or PriceBook.load(), lambda book: fold_usage(book, selection))
    rows = report.rows if order is None else tuple(sorted(report.rows, key=order[0], reverse=order[1]))
    kept = rows if limit is None else rows[: max(0, limit)]
    return replace(report, rows=kept, hidden_rows=len(rows) - len(kept))


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def check_source_names(filters: Mapping[str, Sequence[str]] | None) -> None:
    """Refuse a `source` filter that fits no agent: nothing found would look like nothing used.

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    wanted = (filters or {}).get("source", ())
    if wanted:
        choose_sources([wanted] if isinstance(wanted, str) else wanted)


def ledger_path(ledger: str | os.PathLike[str] | None) -> str | None:
    """Return a ledger's path as text."""
    return None if ledger is None else os.fspath(ledger)


def log_paths(paths: Paths) -> list[str] | None:
    """Return the existing ones of the given paths; None means everywhere."""
    if paths is None:
        return None
    if isinstance(paths, str | os.PathLike):
        paths = [paths] if os.fspath(paths) else []
    return [text for text in (os.fspath(path) for path in paths) if os.path.lexists(text)]


def fold_usage(book: Book, selection: Selection) -> UsageReport:
    """Ask one book for one report, rows in the order of their keys."""
    selection.prepare(book)
    _fill_shares(book, selection)
    rows = _rows(book, selection.by)
    [totals] = _rows(book, ())
    return UsageReport(
        window=selection.window,
        group_by=selection.by,
        rows=tuple(sorted(rows, key=by_keys)),
        totals=totals,
        provenance=_provenance(book),
        problem_count=book.problem_count,
        problems=tuple(book.problems),
        unrecognised=book.unrecognised,
        priced_from=book.prices.version,
        unpriced=_unpriced(book, selection) if totals.unknown_cost_sessions else (),
        archived_sessions=_archived(book),
        notes=tuple(book.notes),
    )


def _columns(names: Sequence[str]) -> str:
    return "".join(f", k{index}" for index in range(len(names)))


def _fill_shares(book: Book, selection: Selection) -> None:
    where, parameters = selection.where(timed=False)
    tables, bounds = selection.parts()
    sql = _SHARES.format(
        status=STATUS,
        provenance=", ".join(_OF_KIND.format(kind=kind) for kind in PROVENANCE),
        keys="".join(f", {key} AS k{index}" for index, key in enumerate(selection.keys())),
        tables=OF_PARTS.format(tables),
        where=where,
        names=_columns(selection.by),
    )
    book.query("DROP TABLE IF EXISTS temp.shares", {})
    book.query("DROP TABLE IF EXISTS temp.spans", {})
    book.query(sql, parameters | bounds)
    book.query(_SPANS.format(parts=tables), bounds)


def _rows(book: Book, names: tuple[str, ...]) -> list[UsageRow]:
    columns = _columns(names)
    grouping = f"GROUP BY {columns.removeprefix(', ')}" if names else ""
    rows = []
    sql = _ROWS.format(names=columns, shares="shares" if names else _WHOLE, grouping=grouping)
    for *values, latencies in (_latencies_last(row) for row in book.query(sql, {})):
        numbers = {
            name: value if name in _NULLABLE else value or 0
            for name, value in zip(_SUMS, values[: len(_SUMS)], strict=True)
        }
        group = tuple(str(value) for value in values[len(_SUMS) :])
        counts = counts_of(latencies)
        numbers |= {f"latency_p{n}_ms": percentile(counts, n / 100) for n in (50, 95, 99)}
        rows.append(UsageRow(keys=dict(zip(names, group, strict=True)), **numbers))
    return rows


def _latencies_last(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return *row[: len(_SUMS)], *row[len(_SUMS) + 1 :], row[len(_SUMS)]


def _provenance(book: Book) -> dict[str, int]:
    sums = ", ".join(f"SUM(in_{kind})" for kind in PROVENANCE)
    [counts] = book.query(f"SELECT {sums} FROM shares", {})  # noqa: S608 - a closed list
    return {kind: count or 0 for kind, count in zip(PROVENANCE, counts, strict=True)}


def _archived(book: Book) -> int:
    [(count,)] = book.query("SELECT COUNT(DISTINCT session_id) FROM shares WHERE archived", {})
    return int(count)


def _unpriced(book: Book, selection: Selection) -> tuple[tuple[str, str], ...]:
    where, parameters = selection.where(timed=False)
    tables, bounds = selection.parts()
    sql = f"""SELECT l.provider, l.model FROM {OF_PARTS.format(tables)} WHERE r.unknown AND {where}
              GROUP BY 1, 2 ORDER BY COUNT(DISTINCT s.id) DESC, 1, 2"""  # noqa: S608 - expressions of a closed list; values are bound
    return tuple((provider, model) for provider, model in book.query(sql, parameters | bounds))
