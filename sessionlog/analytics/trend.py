"""Trend: what a time used against the equal time before it, and what the month will have cost at this pace."""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage_columns import Sums
from sessionlog.analytics.window import UsageWindow, month_of, previous_window
from sessionlog.errors import InvalidWindow
from sessionlog.ledger.quarter_hours import OF_PARTS
from sessionlog.ledger.reading import ReadBook

_DAY_NS = 86_400 * 1_000_000_000
_LEAST_DAYS = 2
"""A pace of less says nothing about a month."""

_SUMS = """SELECT SUM(r.requests), SUM(r.input), SUM(r.output), SUM(r.cache_read), SUM(r.cache_write), SUM(r.cost_nano),
    SUM(r.estimate_nano), MAX(r.unknown), MIN(r.first_ns) FROM {tables} WHERE {where}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used(Sums):
    """What a time used.

    Attributes:
        window: The time.
        requests: LLM calls.
        input_tokens: Tokens that touched no cache.
        output_tokens: Generated tokens.
        cache_read_tokens: Tokens served from a cache.
        cache_write_tokens: Tokens written to a cache.
        known_nano: Recorded cost; None when none is recorded.
        estimated_nano: Estimated cost of the rest; None when there is none.
        cost_is_partial: Whether a part has neither.
        first_ns: Its first request; None without any.
    """

    window: UsageWindow
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    known_nano: int | None = None
    estimated_nano: int | None = None
    cost_is_partial: bool = False
    first_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What this month will have cost if it goes on like in the window.

    Attributes:
        month: The month.
        cost_usd: In US dollars, what it has cost until now included.
        cost_usd_per_day: The pace.
        is_estimated: Whether a part of it is estimated.
        is_partial: Whether a part of it has no price.
    """

    month: UsageWindow
    cost_usd: float
    cost_usd_per_day: float
    is_estimated: bool
    is_partial: bool


def used_before(book: ReadBook, selection: Selection) -> Used | None:
    """Return what the equal time before the window used; None where there is none, or logs do not go back so far."""
    try:
        before = selection.window and previous_window(selection.window, selection.zone, now_ns=selection.now_ns)
    except (InvalidWindow, OverflowError):  # it leaves the calendar
        return None
    if before is None or not _has_earlier(book, selection, before.start_ns or 0):
        return None
    used = _used(book, selection, before)
    return used if used.requests else None


def project_month(book: ReadBook, selection: Selection) -> Projection | None:
    """Return what this month will have cost; None where the window is too short for a pace, or ends before now."""
    window, now_ns = selection.window, selection.now_ns
    if window is None or window.start_ns is None or (window.end_ns is not None and window.end_ns < now_ns):
        return None
    month = month_of(now_ns, selection.zone)
    used, until_now = (
        _used(book, selection, UsageWindow(start_ns=start, end_ns=max(now_ns, start + 1)))
        for start in (window.start_ns, month.start_ns or 0)
    )
    start = window.start_ns if _has_earlier(book, selection, window.start_ns) else used.first_ns
    if used.cost_usd is None or start is None or now_ns - start < _LEAST_DAYS * _DAY_NS:
        return None
    pace = used.cost_usd / ((now_ns - start) / _DAY_NS)
    return Projection(
        month=month,
        cost_usd=(until_now.cost_usd or 0) + pace * ((month.end_ns or now_ns) - now_ns) / _DAY_NS,
        cost_usd_per_day=pace,
        is_estimated=bool(used.estimated_nano or until_now.estimated_nano),
        is_partial=used.cost_is_partial or until_now.cost_is_partial,
    )


def _used(book: ReadBook, selection: Selection, window: UsageWindow) -> Used:
    where, parameters = selection.where(timed=False)
    tables, bounds = selection.parts(window)
    sql = _SUMS.format(tables=OF_PARTS.format(tables), where=where)
    [(requests, *tokens, known, estimated, unknown, first_ns)] = book.query(sql, parameters | bounds)
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return Used(
        window=window, requests=requests or 0, known_nano=known, estimated_nano=estimated,
        cost_is_partial=bool(unknown), first_ns=first_ns,
        **{name: count or 0 for name, count in zip(names, tokens, strict=True)},
    )  # fmt: skip


def _has_earlier(book: ReadBook, selection: Selection, time_ns: int) -> bool:
    """Whether anything of the selection is from before a moment."""
    where, parameters = selection.where(timed=False)
    tables, bounds = selection.parts(UsageWindow(end_ns=time_ns))
    sql = f"SELECT 1 FROM {OF_PARTS.format(tables)} WHERE {where} LIMIT 1"  # noqa: S608 - expressions of a closed list; values are bound
    return bool(book.query(sql, parameters | bounds))
