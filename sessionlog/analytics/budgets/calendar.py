"""Budget periods that need a calendar: the current hour, day, week or month in a zone, and rolling months."""

from __future__ import annotations

from datetime import tzinfo

from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import local_time, resolve_zone

_HOUR_NS = 3600 * 1_000_000_000
_SECOND_NS = 1_000_000_000
_WORDS = {"day": "today", "week": "this-week", "month": "this-month"}


def calendar_time(rule: BudgetRule, now_ns: int, zone: str | tzinfo) -> tuple[int | None, int | None]:
    """Return the start and end of a budget's period; rolling months have no end.

    Raises:
        InvalidWindow: The time zone is unknown.
    """
    tz = resolve_zone(zone)
    now = local_time(now_ns, tz)
    if rule.period == "hour":
        offset = now.utcoffset()
        ahead_ns = 0 if offset is None else round(offset.total_seconds()) * 1_000_000_000
        start_ns = (now_ns + ahead_ns) // _HOUR_NS * _HOUR_NS - ahead_ns
        return start_ns, start_ns + _HOUR_NS
    text = f"{rule.months}mo" if rule.months is not None else _WORDS[str(rule.period)]
    window = parse_usage_window(text, now=now, tz=tz) or UsageWindow()
    return window.start_ns, None if rule.months is not None else window.end_ns


def months_later(rule: BudgetRule, first_ns: int, now_ns: int, zone: str | tzinfo) -> int:
    """Return when the use at `first_ns` leaves a budget's rolling months, to a second; it is inside at `now_ns`."""
    low, high = now_ns // _SECOND_NS, first_ns // _SECOND_NS + (31 * (rule.months or 1) + 3) * 86_400
    while high - low > 1:
        middle = (low + high) // 2
        start_ns, _ = calendar_time(rule, middle * _SECOND_NS, zone)
        low, high = (low, middle) if start_ns is not None and start_ns > first_ns else (middle, high)
    return high * _SECOND_NS
