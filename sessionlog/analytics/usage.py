"""Usage: what was used and what it cost, asked of the book in SQL (see `usage_sums`)."""

from __future__ import annotations

import os
from dataclasses import replace

from sessionlog.analytics.log_report import findings_of
from sessionlog.analytics.row_order import by_column, by_keys
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage_columns import COLUMNS
from sessionlog.analytics.usage_row import UsageReport, UsageRow
from sessionlog.analytics.usage_sums import archived_sessions, fill_shares, provenance, sums_of
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.cached import ask_current
from sessionlog.ledger.quarter_hours import OF_PARTS, UNKNOWN
from sessionlog.ledger.reading import ReadBook

TYPE_CHECKING = False  # what scans and prices costs 80 ms, which a report without news saves
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import datetime, tzinfo

    from sessionlog.analytics.window import UsageWindow
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.seed_table import PricingTable

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

DEFAULT_BY = ("provider", "model")


def aggregate_usage(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    window: UsageWindow | str | None = None,
    since: str | None = None,
    until: str | None = None,
    by: Sequence[str] = DEFAULT_BY,
    tz: str | tzinfo = "UTC",
    now: datetime | None = None,
    prices: PriceBook | PricingTable | None = None,
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
        since: Same as `window`, under the name of the command's option; give one of them.
        until: The window's end, as in the command's `--until`.
        by: Group keys, see `selection.KEYS`.
        tz: Whose days: an IANA name, `local`, or a tzinfo.
        now: The present moment, for relative windows and for telling running from unfinished sessions.
        prices: Prices for what has no recorded cost, a table's above the list prices; the list prices when None.
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
        InvalidQuery: A group key, filter, source or sort column does not exist, or `since` and `window` are given.
    """
    if since is not None and window is not None:
        raise InvalidQuery("since and window say the same: give one of them")
    window = window if since is None else since
    selection = Selection.of(
        window, until=until, by=by, filters=filters, tz=tz, now=now, merge_worktrees=merge_worktrees
    )
    order = by_column(sort, selection.by, COLUMNS) if sort else None
    wanted, path, report = log_paths(paths), ledger_path(ledger), None
    if path is not None and wanted is None and prices is None and not live:
        surroundings = os.environ if env is None else env
        report = ask_current(
            path, surroundings, lambda book: fold_usage(book, selection) if _knows(book, filters) else None
        )
    if report is None:
        check_source_names(filters)
        from sessionlog.engine.scanner import scanner  # noqa: PLC0415 - see above
        from sessionlog.ledger.ask import Where, ask  # noqa: PLC0415 - see above
        from sessionlog.pricing.book import PriceBook  # noqa: PLC0415 - see above

        where = Where(
            paths=wanted, ledger=path, env=env, live=live, scanner=scanner(executor, jobs), progress=progress
        )  # fmt: skip
        from sessionlog.pricing.seed_table import PricingTable  # noqa: PLC0415 - see above

        own = prices.to_own() if isinstance(prices, PricingTable) else None
        book = prices if isinstance(prices, PriceBook) else PriceBook.load(own)
        report = ask(where, book, lambda book: fold_usage(book, selection))
    rows = report.rows if order is None else tuple(sorted(report.rows, key=order[0], reverse=order[1]))
    kept = rows if limit is None else rows[: max(0, limit)]
    return replace(report, rows=kept, hidden_rows=len(rows) - len(kept))


def check_source_names(filters: Mapping[str, Sequence[str]] | None) -> None:
    """Refuse a `source` filter that fits no agent: nothing found would look like nothing used.

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    wanted = _sources(filters)
    if wanted:
        from sessionlog.sources.registry import OURS, choose_sources  # noqa: PLC0415 - see above

        if not all(name in OURS for name in wanted):  # others, and patterns, need every source to be loaded
            choose_sources(wanted)


def _sources(filters: Mapping[str, Sequence[str]] | None) -> Sequence[str]:
    wanted = (filters or {}).get("source", ())
    return [wanted] if isinstance(wanted, str) else wanted


def _knows(book: ReadBook, filters: Mapping[str, Sequence[str]] | None) -> bool:
    """Whether all agents that are wanted are in the book under these very names: then there are such agents."""
    known = {source for (source,) in book.query("SELECT DISTINCT source FROM sessions", {})} if filters else ()
    return all(name in known for name in _sources(filters))


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


def fold_usage(book: ReadBook, selection: Selection) -> UsageReport:
    """Ask one book for one report, rows in the order of their keys."""
    selection.prepare(book)
    where, parameters = selection.where(timed=False)
    tables, bounds = selection.parts()
    fill_shares(book.query, keys=selection.keys(), tables=tables, bounds=bounds, where=where, parameters=parameters)
    rows = [UsageRow(**sums) for sums in sums_of(book.query, selection.by)]
    [totals] = (UsageRow(**sums) for sums in sums_of(book.query, ()))
    unpriced, without_usage = _without_cost(book, selection) if totals.unknown_cost_sessions else ((), ())
    return UsageReport(
        window=selection.window,
        group_by=selection.by,
        rows=tuple(sorted(rows, key=by_keys)),
        totals=totals,
        provenance=provenance(book.query),
        **findings_of(book),
        priced_from=book.priced_from,
        unpriced=unpriced,
        without_usage=without_usage,
        archived_sessions=archived_sessions(book.query),
    )


def _without_cost(book: ReadBook, selection: Selection) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The providers and models without a cost, most sessions first: those without a price, and those without tokens."""
    where, parameters = selection.where()
    sql = f"""SELECT l.provider, l.model, r.input + r.output + r.cache_read + r.cache_write > 0
              FROM {OF_PARTS.format("responses")} WHERE r.counts AND {UNKNOWN} AND {where}
              AND r.session_id IN (SELECT session_id FROM quarter_hours WHERE unknown)
              GROUP BY 1, 2, 3 ORDER BY COUNT(DISTINCT s.id) DESC, 1, 2"""  # noqa: S608 - expressions of a closed list; values are bound
    found = list(book.query(sql, parameters))
    return tuple(tuple((provider, model) for provider, model, has in found if bool(has) == wanted) for wanted in (1, 0))
