"""Trend: the usage of the equally long window before, and the projected cost of the current month."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sessionlog.analytics.report import SummedRows
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import USED, sums
from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.window_grammar import month_of, previous_window
from sessionlog.errors import InvalidWindow
from sessionlog.ledger.book import Book

_DAY_NS = 86_400 * 1_000_000_000
_LEAST_DAYS = 2
"""The shortest window from which to project a month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodUsage(SummedRows):
    """The usage in a window.

    Attributes:
        window: The window.
        sessions: Distinct sessions with a record in it.
        first_ns: The time of its first request; None without any.
    """

    window: UsageWindow
    sessions: int = 0
    first_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The projected cost of the current month, at the window's cost per day.

    Attributes:
        month: The month.
        cost_usd: The projected cost, including the cost until now.
        cost_usd_per_day: The window's cost per day.
        is_estimated: Whether a part is estimated.
        is_partial: Whether a part has no price.
    """

    month: UsageWindow
    cost_usd: float
    cost_usd_per_day: float
    is_estimated: bool
    is_partial: bool


def usage_before(book: Book, selection: Selection) -> PeriodUsage | None:
    """Return the usage of the equally long window before; None without any, or if the logs do not go back so far."""
    try:
        before = selection.window and previous_window(selection.window, selection.zone, now_ns=selection.now_ns)
    except (InvalidWindow, OverflowError):  # before the year 1
        return None
    if before is None or not _has_earlier(book, selection, before.start_ns or 0):
        return None
    used = usage_in(book, selection, before)
    return used if used.requests else None


def project_month(book: Book, selection: Selection) -> Projection | None:
    """Return the projected cost of the current month; None if the window is too short, or ends before now."""
    window, now_ns = selection.window, selection.now_ns
    if window is None or window.start_ns is None or (window.end_ns is not None and window.end_ns < now_ns):
        return None
    month = month_of(now_ns, selection.zone)
    used, until_now = (
        usage_in(book, selection, UsageWindow(start_ns=start, end_ns=max(now_ns, start + 1)))
        for start in (window.start_ns, month.start_ns or 0)
    )
    start = window.start_ns if _has_earlier(book, selection, window.start_ns) else used.first_ns
    if (
        not (used.cost_nano or until_now.cost_nano)
        or used.cost_usd is None
        or start is None
        or now_ns - start < _LEAST_DAYS * _DAY_NS
    ):
        return None
    per_day = used.cost_usd / ((now_ns - start) / _DAY_NS)
    return Projection(
        month=month,
        cost_usd=(until_now.cost_usd or 0) + per_day * ((month.end_ns or now_ns) - now_ns) / _DAY_NS,
        cost_usd_per_day=per_day,
        is_estimated=bool(used.estimated_nano or until_now.estimated_nano),
        is_partial=used.cost_is_partial or until_now.cost_is_partial,
    )


def cuts_of(selection: Selection) -> set[int]:
    """Return the instants at which the windows of `usage_before` and `project_month` begin or end."""
    window, now_ns = selection.window, selection.now_ns
    if window is None:
        return set()
    with suppress(InvalidWindow, OverflowError):  # before the year 1
        before = previous_window(window, selection.zone, now_ns=now_ns) or window
        month = month_of(now_ns, selection.zone)
        starts = {one.start_ns for one in (window, before, month) if one.start_ns is not None}
        ends = {one.end_ns for one in (window, before) if one.end_ns is not None}
        return {*starts, *(start + 1 for start in starts), *ends, now_ns}
    return selection.cuts() | {now_ns}


def usage_in(book: Book, selection: Selection, window: UsageWindow) -> PeriodUsage:
    """Return the usage of a selection's filters in a window."""
    names = (*USED, "sessions", "first_ns")
    [used] = sums(book.query, partial(PeriodUsage, window=window), names, *selection.sums(window))
    return used


def _has_earlier(book: Book, selection: Selection, time_ns: int) -> bool:
    """Whether the selection has usage before an instant."""
    tables, where, parameters = selection.sums(UsageWindow(end_ns=time_ns))
    sql = f"SELECT 1 FROM {tables} WHERE {where} LIMIT 1"  # noqa: S608 - expressions of a closed list; values are bound
    return bool(book.query(sql, parameters))
