"""Blocks: usage in stretches of five hours, as the windows of subscriptions run, and what logs say of rate limits.

A block begins at the full hour (UTC) of its first record; the next one with the first record at or after its end. So an
hour is never divided, a pause longer than a block always ends it, and blocks hold every record that has a time exactly
once. All records of the chosen sources say where blocks begin; other filters only choose what is summed in them, and a
window chooses whole blocks: a subscription's window does not move because one project is looked at.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from sessionlog.analytics.block import ActiveBlock, Block, BlockReport
from sessionlog.analytics.limits import fold_limits
from sessionlog.analytics.log_report import findings_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import check_source_names, ledger_path, log_paths
from sessionlog.analytics.window import UsageWindow
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery
from sessionlog.events.times import SECOND
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.schema import FROM
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook

HOURS = 5
MOST_HOURS = 744
USUAL_SOURCE = "claude-code"
"""Whose subscription has such windows: the default where it has logs."""

_HOUR_NS = 3600 * SECOND

_PAST = "(r.time_ns IS NULL OR r.time_ns <= :now_ns)"
"""Seen from the present nothing has happened yet that is later: a log may know more than the moment asked about."""

_BLOCKS = """
SELECT block_hour(r.time_ns), MIN(r.time_ns), MAX(r.time_ns), COUNT(DISTINCT r.session_id), SUM(r.requests),
    SUM(r.failed), SUM(r.input), SUM(r.output), SUM(r.cache_read), SUM(r.cache_write), SUM(r.reasoning),
    SUM(r.cost_nano), SUM(r.estimate_nano), MAX(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)
FROM {tables} WHERE r.time_ns IS NOT NULL AND {past} AND {where} GROUP BY 1
"""

_MODELS = """
SELECT block_hour(r.time_ns), l.model FROM {tables} WHERE r.time_ns IS NOT NULL AND {past} AND {where}
GROUP BY 1, 2 ORDER BY SUM(r.output) DESC, l.model
"""

_DISTINCT = "SELECT DISTINCT {what} FROM {tables} WHERE {past} AND {where}"
_UNTIMED = "SELECT SUM(r.requests) FROM {tables} WHERE r.time_ns IS NULL AND {where}"


def list_blocks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    window: UsageWindow | str | None = None,
    until: str | None = None,
    hours: int = HOURS,
    tz: str | tzinfo = "UTC",
    now: datetime | None = None,
    prices: PriceBook | None = None,
    filters: Mapping[str, Sequence[str]] | None = None,
    only_active: bool = False,
    limit: int | None = None,
    env: Mapping[str, str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    live: bool = False,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> BlockReport:
    """List blocks of usage, newest first; what is not said here is as for `aggregate_usage`.

    Args:
        paths: Files or folders; our own sessions and every agent found when None.
        window: Which blocks: those with a record in it.
        until: The window's end.
        hours: The length of a block, 1 to 744.
        tz: Whose days the window means; blocks begin at full hours of UTC.
        now: The present moment, which makes a block the active one; what is later is left out.
        prices: Prices for what has no recorded cost; the list prices when None.
        filters: `provider`, `model`, `project`, `status`, `source` → glob patterns. Without a source the blocks are
            those of `claude-code` where it has any that are asked for, else of all sources together.
        only_active: Leave out all blocks but the active one.
        limit: How many blocks to keep, the newest.
        env: Where agents write, if it is not the process's environment that says so.
        ledger: The file that remembers what was read.
        live: Leave out what it remembers of logs that are gone.
        executor: Where logs are scanned.
        jobs: How many processes.
        progress: Called with (files done, files in all).

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A filter or source does not exist, or `hours` is out of range.
    """
    if not 1 <= hours <= MOST_HOURS:
        raise InvalidQuery(f"a block of {hours} hours: give 1 to {MOST_HOURS}")
    selection = Selection.of(window, until=until, filters=filters, tz=tz, now=now)
    check_source_names(filters)
    where = Where(
        paths=log_paths(paths), ledger=ledger_path(ledger), env=env, live=live, scanner=scanner(executor, jobs),
        progress=progress,
    )  # fmt: skip
    report = ask(
        where,
        prices or PriceBook.load(),
        lambda book: fold_blocks(book, selection, hours=hours, only_active=only_active),
    )
    kept = report.blocks if limit is None else report.blocks[: max(0, limit)]
    return replace(report, blocks=kept, hidden_blocks=len(report.blocks) - len(kept))


def fold_blocks(book: Book, selection: Selection, *, hours: int = HOURS, only_active: bool = False) -> BlockReport:
    """Ask one book for all blocks that a selection touches, or only for the active one of them.

    Without a wish the blocks are those of the agent whose subscription has them, unless only others have some to show.
    """
    selection.prepare(book)
    if selection.filters.get("source"):
        return _fold(book, selection, hours, only_active=only_active)
    usual = replace(selection, filters={**selection.filters, "source": (USUAL_SOURCE,)})
    of_usual = _fold(book, usual, hours, only_active=only_active)
    if of_usual.blocks:
        return of_usual
    of_all = _fold(book, selection, hours, only_active=only_active)
    return of_usual if of_usual.sources and not of_all.blocks else of_all


def _fold(book: Book, chosen: Selection, hours: int, *, only_active: bool) -> BlockReport:
    of_sources = {key: value for key, value in chosen.filters.items() if key == "source"}
    _teach_blocks(book, _starts(book, replace(chosen, filters=of_sources, window=None), hours))
    blocks = _blocks(book, replace(chosen, window=None), hours)
    if chosen.window is not None:
        touched = {hour for (hour,) in _distinct(book, "block_hour(r.time_ns)", chosen)}
        blocks = {hour: block for hour, block in blocks.items() if hour in touched}
    newest_first = tuple(block for _, block in sorted(blocks.items(), reverse=True))
    active = next((block for block in newest_first if block.is_active), None)
    return BlockReport(
        window=chosen.window,
        hours=hours,
        sources=_sources(book, chosen, blocks),
        blocks=tuple(block for block in newest_first if block.is_active or not only_active),
        active=None if active is None else ActiveBlock(block=active, now_ns=chosen.now_ns),
        limits=fold_limits(book, chosen.now_ns),
        untimed_requests=_untimed(book, chosen),
        **findings_of(book),
        archived_sessions=len(_distinct(book, "s.id", chosen, " AND s.archived")),
        found_blocks=len(newest_first),
        priced_from=book.prices.version,
    )


def _sources(book: Book, selection: Selection, blocks: Container[int]) -> tuple[str, ...]:
    """Whose records are in the blocks or in none for want of a time; else whose they would be."""
    known = _distinct(book, "block_hour(r.time_ns), s.source", replace(selection, window=None))
    shown = {source for hour, source in known if hour is None or hour in blocks}
    return tuple(sorted(shown or {source for _, source in known}))


def block_starts(hours: Iterable[int], length: int) -> list[int]:
    """Return where blocks of `length` hours begin, given the hours (since 1970) in which anything happened."""
    starts: list[int] = []
    for hour in sorted(hours):
        if not starts or hour >= starts[-1] + length:
            starts.append(hour)
    return starts


def _distinct(book: Book, what: str, selection: Selection, more: str = "") -> list[tuple[Any, ...]]:
    where, parameters = selection.where()
    return book.query(_DISTINCT.format(what=what, tables=FROM, past=_PAST, where=where + more), parameters)


def _starts(book: Book, selection: Selection, length: int) -> list[int]:
    book.define("utc_hour", lambda time_ns: None if time_ns is None else time_ns // _HOUR_NS)
    found = _distinct(book, "utc_hour(r.time_ns)", selection)
    return block_starts((hour for (hour,) in found if hour is not None), length)


def _teach_blocks(book: Book, starts: Sequence[int]) -> None:
    """Make the start of a record's block callable in queries, in hours since 1970."""

    def block_hour(time_ns: int | None) -> int | None:
        if time_ns is None:
            return None
        return starts[bisect_right(starts, time_ns // _HOUR_NS) - 1]

    book.define("block_hour", block_hour)


def _blocks(book: Book, selection: Selection, length: int) -> dict[int, Block]:
    """Hour in which a block starts → the block."""
    where, parameters = selection.where()
    models: dict[int, list[str]] = {}
    for hour, model in book.query(_MODELS.format(tables=FROM, past=_PAST, where=where), parameters):
        models.setdefault(hour, []).append(model)
    names = (
        "first_ns", "last_ns", "sessions", "requests", "failed_requests", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "known_nano", "estimated_nano",
    )  # fmt: skip
    blocks = {}
    for hour, *values, partial in book.query(_BLOCKS.format(tables=FROM, past=_PAST, where=where), parameters):
        start_ns, end_ns = hour * _HOUR_NS, (hour + length) * _HOUR_NS
        blocks[hour] = Block(
            start_ns=start_ns,
            end_ns=end_ns,
            is_active=start_ns <= selection.now_ns < end_ns,
            models=tuple(models[hour]),
            cost_is_partial=bool(partial),
            **dict(zip(names, values, strict=True)),
        )
    return blocks


def _untimed(book: Book, selection: Selection) -> int:
    where, parameters = replace(selection, window=None).where()
    [(requests,)] = book.query(_UNTIMED.format(tables=FROM, where=where), parameters)
    return requests or 0
