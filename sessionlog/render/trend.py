"""Lay out trends of usage: the change since the equal time before, and the projection to the end of the month."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.analytics.sums import Sums
from sessionlog.analytics.trend import PeriodUsage, Projection
from sessionlog.analytics.usage_row import UsageReport
from sessionlog.analytics.window import UsageWindow, describe_window
from sessionlog.analytics.window_grammar import relative_parts
from sessionlog.analytics.zones import date_words, local_time
from sessionlog.render.line import Line
from sessionlog.render.numbers import human_count, percent
from sessionlog.render.report import View, cost_cell

_UNITS = {"h": "hour", "d": "day", "w": "week", "mo": "month"}
_MANY_TIMES = 3


def trend_notes(report: UsageReport, view: View) -> Iterator[Line]:
    """Yield the lines of the trends that are known."""
    if report.previous is not None and (compared := _compared(report, report.previous, view)):
        yield Line(compared)
    if report.projection is not None:
        yield Line(_projected(report.projection, view))


def _compared(report: UsageReport, before: PeriodUsage, view: View) -> str:
    """Return `▲ cost 22 % above the 7 days before ($121.40)`; tokens where a cost is incomplete."""
    by_cost = _has_cost(report.totals, report.totals.cost_is_partial) and _has_cost(before, before.cost_is_partial)
    now, then = (sums.cost_nano if by_cost else sums.total_tokens for sums in (report.totals, before))
    if not now or not then:
        return ""
    amount = human_count(then)
    if by_cost:
        amount = cost_cell(before.cost_usd, estimated=bool(before.estimated_nano), partial=False).text
    where = f"{_time_words(report, before.window, view)} ({amount})"
    return change_text(now, then, where, "cost" if by_cost else "tokens")


def change_text(now: int, then: int, time: str, thing: str = "") -> str:
    """Return how an amount compares with the one of another time: `▲ cost 22 % above TIME`; both are above 0."""
    named = f"{thing} " if thing else ""
    if now == then:
        return f"{named}as in {time}"
    if now / then >= _MANY_TIMES:
        return f"▲ {named}{now / then:,.1f} times that of {time}"
    sign, side = ("▲", "above") if now > then else ("▼", "below")
    return f"{sign} {named}{percent(abs(now - then) / then)} {side} {time}"


def _time_words(report: UsageReport, before: UsageWindow, view: View) -> str:
    """Return `the 7 days before` for a window such as `7d`, else its dates."""
    count, unit = (0, "") if report.window is None else relative_parts(report.window)
    if not unit:
        return describe_window(before, view.tz, now=view.now).rpartition(" (")[0]
    return f"the {_UNITS[unit]} before" if count == 1 else f"the {counted(count, _UNITS[unit])} before"


def _has_cost(sums: Sums, is_partial: bool) -> bool:
    return bool(sums.cost_nano) and not is_partial


def _projected(projection: Projection, view: View) -> str:
    """Return `$1,099 by 30 Nov at this pace ($36.64 a day)`."""
    cost, pace = (
        cost_cell(amount, estimated=projection.is_estimated, partial=projection.is_partial).text
        for amount in (projection.cost_usd, projection.cost_usd_per_day)
    )
    last = local_time((projection.month.end_ns or 1) - 1, view.zone).date()
    return f"{cost} by {date_words(last, this_year=last.year)} at this pace ({pace} a day)"
