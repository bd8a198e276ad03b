"""Blocks: usage in blocks of five hours, like the rate-limit windows of subscriptions, and the logged rate limits.

A block begins at the full hour (UTC) of its first record; the next one with the first record at or after its end. So an
hour is never divided, a pause longer than a block always ends it, and each record with a time is in exactly one block.
All records of the chosen sources determine where blocks begin. Other filters only choose what is summed in them, and a
window chooses whole blocks: a subscription's window does not depend on the project that a report is about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from sessionlog.analytics.block import ActiveBlock, Block, BlockReport
from sessionlog.analytics.limits import rate_limits
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import SummedRows, add_up, findings_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import IN_PROVENANCE, PROVENANCE, USED, Row, by_provenance, models_by, sums
from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import InvalidQuery
from sessionlog.events.times import SECOND
from sessionlog.ledger.book import Book
from sessionlog.ledger.quarter_hours import OF_PARTS, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from sessionlog.analytics.question import Options, Paths

HOURS = 5
MOST_HOURS = 744
USUAL_SOURCE = "claude-code"
"""The source whose subscription has such windows: the default where it has logs."""

_HOUR_NS = 3600 * SECOND

_HOUR = "block_hour(r.time_ns)"
_DISTINCT = "SELECT DISTINCT {what} FROM {tables} WHERE {where}"


def list_blocks(
    paths: Paths = None, *, hours: int = HOURS, only_active: bool = False, **options: Unpack[Options]
) -> BlockReport:
    """List blocks of usage, newest first.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        hours: The length of a block, 1 to 744; blocks begin at full hours of UTC.
        only_active: Leave out all blocks but the active one.
        options: See `Question`. The window chooses blocks with a record in it; `now` determines the active block, and
            later records are left out. Without a source filter the blocks are those of `claude-code` if any match,
            else those of all sources together.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A filter or source is unknown, or `hours` is out of range.
    """
    if not 1 <= hours <= MOST_HOURS:
        raise InvalidQuery(f"a block of {hours} hours: give 1 to {MOST_HOURS}")
    question = Question(paths=paths, **options)
    selection = question.selection(Selection)
    report = answer(
        question,
        lambda book: fold_blocks(book, selection, hours=hours, only_active=only_active),
        with_calls=False,
        by_time=True,
    )
    return report.limited(question.limit)


def fold_blocks(book: Book, selection: Selection, *, hours: int = HOURS, only_active: bool = False) -> BlockReport:
    """Query a book for the blocks of a selection, or only for the active one.

    Without a source filter the blocks are those of `USUAL_SOURCE`, unless only other sources have any.
    """
    selection.prepare(book)
    if selection.filters.get("source"):
        return _fold(book, selection, hours, only_active=only_active)
    usual = replace(selection, filters={**selection.filters, "source": (USUAL_SOURCE,)})
    of_usual = _fold(book, usual, hours, only_active=only_active)
    if of_usual.rows:
        return of_usual
    of_all = _fold(book, selection, hours, only_active=only_active)
    return of_usual if of_usual.sources and not of_all.rows else of_all


def _fold(book: Book, chosen: Selection, hours: int, *, only_active: bool) -> BlockReport:
    of_sources = {key: value for key, value in chosen.filters.items() if key == "source"}
    _define_block_hour(book, _starts(book, replace(chosen, filters=of_sources, window=None), hours))
    blocks, known = _blocks(book, replace(chosen, window=None), hours)
    if chosen.window is not None:
        touched = {hour for (hour,) in _distinct(book, _HOUR, chosen)}
        blocks = {hour: block for hour, block in blocks.items() if hour in touched}
    newest_first = tuple(block for _, block in sorted(blocks.items(), reverse=True))
    active = next((block for block in newest_first if block.is_active), None)
    rows = tuple(block for block in newest_first if block.is_active or not only_active)
    counts = [known[block.start_ns // _HOUR_NS] for block in rows]
    return BlockReport(
        window=chosen.window,
        hours=hours,
        sources=_sources(book, chosen, blocks),
        rows=rows,
        totals=add_up(SummedRows, rows),
        provenance={kind: sum(count[kind] for count in counts) for kind in PROVENANCE},
        active=None if active is None else ActiveBlock(block=active, now_ns=chosen.now_ns),
        limits=rate_limits(book.query, chosen.now_ns),
        untimed_requests=_untimed(book, chosen),
        **findings_of(book),
        archived_sessions=len(_distinct(book, "s.id", chosen, " AND (s.archived OR s.rewritten)")),
        found_blocks=len(newest_first),
    )


def _sources(book: Book, selection: Selection, blocks: Container[int]) -> tuple[str, ...]:
    """The sources with records in the blocks or without a time; if there are none, all sources of the selection."""
    known = _distinct(book, f"{_HOUR}, s.source", replace(selection, window=None))
    shown = {source for hour, source in known if hour is None or hour in blocks}
    return tuple(sorted(shown or {source for _, source in known}))


def block_starts(hours: Iterable[int], length: int) -> list[int]:
    """Return the start hours of blocks of `length` hours, given the hours (since 1970) that have records."""
    starts: list[int] = []
    for hour in sorted(hours):
        if not starts or hour >= starts[-1] + length:
            starts.append(hour)
    return starts


def _until_now(selection: Selection) -> tuple[str, str, dict[str, Any]]:
    """Return tables, condition and parameters for the sums of a selection, whose hours are those of its records.

    Later records do not count: `now` may be in the past, and the log may go on after it.
    """
    window = selection.window or UsageWindow(start_ns=None, end_ns=None)
    end_ns = selection.now_ns + 1 if window.end_ns is None else min(window.end_ns, selection.now_ns + 1)
    summed, bounds = parts(window.start_ns, end_ns)
    if selection.window is None:
        summed = f"(SELECT * FROM quarter_hours WHERE time_ns IS NULL UNION ALL SELECT * FROM {summed})"  # noqa: S608 - names of the schema
    where, parameters = replace(selection, window=None).where()
    return OF_PARTS.format(summed), where, parameters | bounds


def _distinct(book: Book, what: str, selection: Selection, more: str = "") -> list[tuple[Any, ...]]:
    tables, where, parameters = _until_now(selection)
    return book.query(_DISTINCT.format(what=what, tables=tables, where=where + more), parameters)


def _starts(book: Book, selection: Selection, length: int) -> list[int]:
    book.define("utc_hour", lambda time_ns: None if time_ns is None else time_ns // _HOUR_NS)
    found = _distinct(book, "utc_hour(r.time_ns)", selection)
    return block_starts((hour for (hour,) in found if hour is not None), length)


def _define_block_hour(book: Book, starts: Sequence[int]) -> None:
    """Define the SQL function `block_hour(time_ns)`: the start of a record's block, in hours since 1970."""

    def block_hour(time_ns: int | None) -> int | None:
        number = 0 if time_ns is None else bisect_right(starts, time_ns // _HOUR_NS)
        return starts[number - 1] if number else None  # also called for rows that the query leaves out

    book.define("block_hour", block_hour)


def _blocks(book: Book, selection: Selection, length: int) -> tuple[dict[int, Block], dict[int, Mapping[str, int]]]:
    """Start hour → block, and start hour → its requests by provenance."""
    tables, where, parameters = _until_now(selection)
    where = f"r.time_ns IS NOT NULL AND {where}"
    models = models_by(book, _HOUR, tables, where, parameters)
    blocks: dict[int, Block] = {}
    known: dict[int, Mapping[str, int]] = {}

    def add_block(keys: Mapping[str, int], **values: Any) -> None:
        hour = keys["hour"]
        start_ns, end_ns = hour * _HOUR_NS, (hour + length) * _HOUR_NS
        known[hour] = by_provenance({name: values.pop(name) for name in IN_PROVENANCE})
        blocks[hour] = Block(
            start_ns=start_ns, end_ns=end_ns, is_active=start_ns <= selection.now_ns < end_ns,
            models=models[hour], **values,
        )  # fmt: skip

    names = (*USED, "first_ns", "last_ns", "sessions", *IN_PROVENANCE)
    sums(book.query, add_block, names, tables, where, parameters, by={"hour": _HOUR})
    return blocks, known


def _untimed(book: Book, selection: Selection) -> int:
    tables, where, parameters = _until_now(replace(selection, window=None))
    [untimed] = sums(book.query, Row, ("requests",), tables, f"r.time_ns IS NULL AND {where}", parameters)
    return untimed.requests
