"""Usage: what was used and what it cost, asked of the book in SQL.

One aggregation for every grouping: records are summed per group and session first, so that a session is counted once
in each row it touches and once in the totals, with its whole duration.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from sessionlog.analytics.row_order import by_column, by_keys
from sessionlog.analytics.selection import STATUS, Selection
from sessionlog.analytics.usage_row import COLUMNS, PROVENANCE, UsageReport, UsageRow
from sessionlog.analytics.window import UsageWindow, parse_usage_window
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.book import Book
from sessionlog.ledger.histogram import percentile
from sessionlog.ledger.load import Progress, load_book
from sessionlog.ledger.schema import FROM
from sessionlog.pricing.book import PriceBook

DEFAULT_BY = ("provider", "model")
_SUMS = (
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "running_sessions", "requests",
    "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
    "duration_ms", "known_nano", "estimated_nano", "unknown_cost_sessions", "unpriced_requests", "generation_tokens",
    "generation_ms",
)  # fmt: skip
_NULLABLE = frozenset({"known_nano", "estimated_nano"})

_CELLS = """
CREATE TEMP TABLE cells AS
SELECT r.session_id, MAX({status}) AS status, MAX(s.duration_ms) AS whole_ms, SUM(r.active_ms) AS active_ms,
    SUM(r.requests) AS requests, SUM(r.failed) AS failed, SUM(r.input) AS input, SUM(r.output) AS output,
    SUM(r.cache_read) AS cache_read, SUM(r.cache_write) AS cache_write, SUM(r.reasoning) AS reasoning,
    SUM(r.cost_nano) AS known, SUM(r.estimate_nano) AS estimated,
    MAX({unpriced}) AS unknown, SUM(CASE WHEN {unpriced} THEN r.requests ELSE 0 END) AS unpriced,
    SUM(CASE WHEN r.latency_bucket IS NOT NULL THEN r.output ELSE 0 END) AS generated,
    TOTAL(CASE WHEN r.latency_bucket IS NOT NULL THEN r.latency_ms ELSE 0 END) AS generation_ms,
    {provenance} {keys}
FROM {tables} WHERE {where} GROUP BY r.session_id {names}
"""
"""One pass over the records: sums per session and group. Everything else is asked of these few rows."""

_SPANS = """
CREATE TEMP TABLE spans AS SELECT r.session_id, SUM(r.active_ms) AS active_ms
FROM records r WHERE {in_window} AND r.session_id IN (SELECT session_id FROM cells) GROUP BY r.session_id
"""
"""How long each session was active in the window, whatever part of it the filters chose."""

_ROWS = """
SELECT COUNT(*), SUM(status = 'success'), SUM(status NOT IN ('success', 'running', 'unfinished')),
    SUM(status IN ('running', 'unfinished')), SUM(status = 'running'), SUM(requests), SUM(failed), SUM(input),
    SUM(output), SUM(cache_read), SUM(cache_write), SUM(reasoning),
    SUM(COALESCE(whole_ms, spans.active_ms)), SUM(known), SUM(estimated), SUM(unknown), SUM(unpriced), SUM(generated),
    TOTAL(generation_ms) {names}
FROM {cells} JOIN spans USING (session_id) {grouping}
"""

_WHOLE = """(SELECT session_id, MAX(status) AS status, MAX(whole_ms) AS whole_ms, SUM(requests) AS requests,
    SUM(failed) AS failed, SUM(input) AS input, SUM(output) AS output, SUM(cache_read) AS cache_read,
    SUM(cache_write) AS cache_write, SUM(reasoning) AS reasoning, SUM(known) AS known, SUM(estimated) AS estimated,
    MAX(unknown) AS unknown, SUM(unpriced) AS unpriced, SUM(generated) AS generated,
    TOTAL(generation_ms) AS generation_ms FROM cells GROUP BY session_id)"""
"""The cells of each session together, for the totals: a session counts once."""

_OF_KIND = """SUM(CASE WHEN CASE l.granularity WHEN 'session' THEN 'session' ELSE l.quality END = '{kind}'
    THEN r.requests ELSE 0 END) AS in_{kind}"""
_UNPRICED = "(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)"


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
    book = open_book(paths, prices=prices, filters=filters, env=env, progress=progress)
    try:
        report = fold_usage(book, selection)
    finally:
        book.close()
    rows = report.rows if order is None else tuple(sorted(report.rows, key=order[0], reverse=order[1]))
    kept = rows if limit is None else rows[: max(0, limit)]
    return replace(report, rows=kept, hidden_rows=len(rows) - len(kept))


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def open_book(
    paths: Paths,
    *,
    prices: PriceBook | None,
    filters: Mapping[str, Sequence[str]] | None,
    env: Mapping[str, str] | None,
    progress: Progress | None,
    tools: bool = False,
) -> Book:
    """Scan the logs that a report asks for: those that exist of the given paths, or all that can be found.

    Tool calls are entered only with `tools`.
    """
    wanted = (filters or {}).get("source", ())
    sources = [wanted] if isinstance(wanted, str) else wanted
    return load_book(
        log_paths(paths),
        prices or PriceBook.load(),
        env=env,
        sources=tuple(sources),
        tools=tools,
        progress=progress,
    )


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
    latencies = _latencies(book, selection)
    _fill_cells(book, selection)
    rows = _rows(book, selection.by, latencies)
    [totals] = _rows(book, (), {(): _together(latencies.values())})
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
    )


def _columns(names: Sequence[str]) -> str:
    return "".join(f", k{index}" for index in range(len(names)))


def _fill_cells(book: Book, selection: Selection) -> None:
    where, parameters = selection.where()
    in_window, bounds = selection.in_window()
    sql = _CELLS.format(
        status=STATUS,
        unpriced=_UNPRICED,
        provenance=", ".join(_OF_KIND.format(kind=kind) for kind in PROVENANCE),
        keys="".join(f", {key} AS k{index}" for index, key in enumerate(selection.keys())),
        tables=FROM,
        where=where,
        names=_columns(selection.by),
    )
    book.query("DROP TABLE IF EXISTS cells", {})
    book.query("DROP TABLE IF EXISTS spans", {})
    book.query(sql, parameters)
    book.query(_SPANS.format(in_window=in_window), bounds)


def _rows(book: Book, names: tuple[str, ...], latencies: Mapping[tuple[str, ...], Mapping[int, int]]) -> list[UsageRow]:
    columns = _columns(names)
    grouping = f"GROUP BY {columns.removeprefix(', ')}" if names else ""
    rows = []
    for values in book.query(_ROWS.format(names=columns, cells="cells" if names else _WHOLE, grouping=grouping), {}):
        numbers = {
            name: value if name in _NULLABLE else value or 0
            for name, value in zip(_SUMS, values[: len(_SUMS)], strict=True)
        }
        group = tuple(str(value) for value in values[len(_SUMS) :])
        counts = latencies.get(group, {})
        numbers |= {f"latency_p{n}_ms": percentile(counts, n / 100) for n in (50, 95, 99)}
        rows.append(UsageRow(keys=dict(zip(names, group, strict=True)), **numbers))
    return rows


def _latencies(book: Book, selection: Selection) -> Mapping[tuple[str, ...], Mapping[int, int]]:
    where, parameters = selection.where()
    keys = selection.keys()
    listed = "".join(f", {key}" for key in keys)
    positions = "".join(f", {index + 3}" for index in range(len(keys)))
    sql = f"""SELECT r.latency_bucket, COUNT(*) {listed} FROM {FROM}
              WHERE r.latency_bucket IS NOT NULL AND {where} GROUP BY 1 {positions}"""  # noqa: S608 - expressions of a closed list; values are bound
    found: dict[tuple[str, ...], dict[int, int]] = defaultdict(dict)
    for bucket, count, *group in book.query(sql, parameters):
        found[tuple(str(value) for value in group)][bucket] = count
    return found


def _together(histograms: Iterable[Mapping[int, int]]) -> Counter[int]:
    whole: Counter[int] = Counter()
    for counts in histograms:
        whole.update(counts)
    return whole


def _provenance(book: Book) -> dict[str, int]:
    sums = ", ".join(f"SUM(in_{kind})" for kind in PROVENANCE)
    [counts] = book.query(f"SELECT {sums} FROM cells", {})  # noqa: S608 - a closed list
    return {kind: count or 0 for kind, count in zip(PROVENANCE, counts, strict=True)}


def _unpriced(book: Book, selection: Selection) -> tuple[tuple[str, str], ...]:
    where, parameters = selection.where()
    sql = f"""SELECT l.provider, l.model FROM {FROM} WHERE {_UNPRICED} AND {where}
              GROUP BY 1, 2 ORDER BY COUNT(DISTINCT s.id) DESC, 1, 2"""  # noqa: S608 - see _latencies
    return tuple((provider, model) for provider, model in book.query(sql, parameters))
