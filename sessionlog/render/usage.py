"""Lay out usage as a table, bars of periods or a calendar, with its trends below; only what is needed is imported."""

from __future__ import annotations

from sessionlog.analytics.conditions import TIME_KEYS
from sessionlog.analytics.row_order import period_order
from sessionlog.render.report import render_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionlog.analytics.usage_row import UsageReport
    from sessionlog.render.line import Line
    from sessionlog.render.report import View


def render_usage(report: UsageReport, view: View, *, heatmap: bool = False) -> Iterator[Line]:
    """Yield the lines of the terminal view; `heatmap` shows a report by day as a calendar."""
    notes = _trends(report, view)
    if heatmap:
        from sessionlog.render.heatmap import render_heatmap

        yield from render_heatmap(report, view, notes)
    elif report.rows and _is_chronological(report):
        from sessionlog.render.usage_periods import render_periods

        yield from render_periods(report, view, notes)
    else:
        yield from render_table(report, view, notes)


def _trends(report: UsageReport, view: View) -> list[Line]:
    if report.previous is None and report.projection is None:
        return []
    from sessionlog.render.trend import trend_notes

    return list(trend_notes(report, view))


def _is_chronological(report: UsageReport) -> bool:
    """Whether rows are grouped by a period first and sorted by it, and no period lacks any of its rows."""
    if not report.group_by or report.group_by[0] not in TIME_KEYS:
        return False
    if report.hidden_rows and len(report.group_by) > 1:  # a limit may have cut a period
        return False
    order = period_order(report.group_by[0])
    periods = [order(row.keys[report.group_by[0]]) for row in report.rows]
    return periods == sorted(periods)
