"""A calendar of usage: a column per week, a row per day of the week, darker for more usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from sessionlog.analytics.columns import counted
from sessionlog.analytics.usage_row import UsageReport, UsageRow
from sessionlog.analytics.zones import MONTHS, WEEKDAYS, local_time, period_words
from sessionlog.render.line import Line
from sessionlog.render.numbers import human_count
from sessionlog.render.report import View, closing_notes, row_cost, title_line

Amount = Callable[[UsageRow], int]
"""Returns what bars and calendars draw of a row."""

_LEVELS = "░▒▓█"
_NONE = "·"
_LABEL = 4
_WEEK = timedelta(days=7)
_DAY = timedelta(days=1)


def amount_of(rows: Iterable[UsageRow]) -> Amount:
    """Return the amount by which rows are compared: cost if any is known, else tokens."""
    if any(row.cost_nano for row in rows):
        return lambda row: row.cost_nano or 0
    return lambda row: row.total_tokens


def render_heatmap(report: UsageReport, view: View, notes: Iterable[Line] = ()) -> Iterator[Line]:
    """Yield the lines of the terminal view of a report by day; `notes` follow it."""
    yield title_line(report, view, "Usage by day")
    amount = amount_of(report.rows)
    rows = {day: row for row in report.rows if (day := as_date(row.keys["day"])) is not None}
    used = {day: row for day, row in rows.items() if row.requests or row.total_tokens}
    if used:
        yield Line()
        first, last = _span(report, used, view)
        levels = calendar_levels({day: amount(row) for day, row in used.items()})
        weeks = _weeks(first, last)
        cells = 2 if _LABEL + 2 * len(weeks) <= view.width else 1
        cut = max(0, len(weeks) - max(1, (view.width - _LABEL) // cells))
        yield from _calendar(levels, weeks[cut:], cells, first, last)
        yield Line()
        busiest = max(used, key=lambda day: (amount(used[day]), day))
        yield from _facts(report, used, busiest, (last - first).days + 1, view)
        if cut:
            yield Line(f"    the first {counted(cut, 'week')} have no room here", "secondary")
    yield Line()
    yield from notes
    yield from closing_notes(report)


def as_date(name: str) -> date | None:
    """Return the day of a group key; None for rows without a time."""
    try:
        return date.fromisoformat(name)
    except ValueError:  # rows without a time have no date
        return None


def _span(report: UsageReport, used: Mapping[date, UsageRow], view: View) -> tuple[date, date]:
    """Return the first and the last day shown: those of the time window, up to today."""
    zone, window = view.zone, report.window
    today = view.now.astimezone(zone).date()
    first, last = min(used), max(*used, today)
    if window is not None and window.start_ns is not None:
        first = min(first, local_time(window.start_ns, zone).date())
    if window is not None and window.end_ns is not None:
        last = min(last, max(*used, local_time(window.end_ns - 1, zone).date(), date.min))
    return first, last


def calendar_levels(amounts: Mapping[date, int]) -> Mapping[date, int]:
    """Return the level of each day, 0 to 3: the quarter of days with usage to which it belongs."""
    ordered = sorted(amounts.values())
    bounds = [ordered[(len(ordered) - 1) * quarter // 4] for quarter in (1, 2, 3)]
    if ordered[0] == ordered[-1]:
        return dict.fromkeys(amounts, len(_LEVELS) - 1)
    return {day: sum(amount > bound for bound in bounds) for day, amount in amounts.items()}


def _weeks(first: date, last: date) -> list[date]:
    """Return the Monday of each week."""
    monday = first - _DAY * first.weekday()
    return [monday + _WEEK * n for n in range((last - monday).days // 7 + 1)]


def _calendar(levels: Mapping[date, int], weeks: Sequence[date], cells: int, first: date, last: date) -> Iterator[Line]:
    """Yield the months, then a line per weekday; a day takes so many cells."""
    yield Line(" " * _LABEL + _months(weeks, cells), "secondary", no_wrap=True)
    for weekday, name in enumerate(WEEKDAYS):
        line = Line(no_wrap=True)
        line.append(name.ljust(_LABEL) if weekday % 2 == 0 else " " * _LABEL, "secondary")
        for week in weeks:
            day = week + _DAY * weekday
            if not first <= day <= last:
                line.append(" " * cells)
            elif day in levels:
                line.append(_LEVELS[levels[day]] * cells, "heat")
            else:
                line.append(_NONE.ljust(cells), "secondary")
        yield line


def _months(weeks: Sequence[date], cells: int) -> str:
    """Return the names of the months, each above its first week, without those that would touch."""
    text = ""
    for index, week in enumerate(weeks):
        name, place = MONTHS[week.month - 1], index * cells
        begins = index == 0 or week.month != weeks[index - 1].month
        is_cut = index == 0 and any(later.month != week.month for later in weeks[: -(-_LABEL // cells)])
        if begins and not is_cut and place >= len(text) + bool(text):
            text = text.ljust(place) + name
    return text[: len(weeks) * cells]


def _facts(
    report: UsageReport, used: Mapping[date, UsageRow], busiest: date, shown_days: int, view: View
) -> Iterator[Line]:
    """Yield the legend, the busiest day and the runs of days."""
    days = f" more · {len(used)} of {counted(shown_days, 'day')} · total {_amount(report.totals)}"
    yield Line.of(("    less ", "secondary"), (_LEVELS, "heat"), (days, "secondary"))
    today = view.now.astimezone(view.zone).date()
    words = " ".join(period_words("day", busiest.isoformat(), view.zone, this_year=today.year).split())
    runs = list(_runs(sorted(used)))
    longest = counted(max(count for _, count in runs), "day")
    parts = [f"busiest {words} ({_amount(used[busiest])})", f"longest run {longest}"]
    end, count = runs[-1]
    if timedelta() <= today - end <= _DAY:  # a run that ended yesterday can continue today
        parts.append(f"current run {counted(count, 'day')}")
    yield Line("    " + " · ".join(parts), "secondary")


def _runs(days: Sequence[date]) -> Iterator[tuple[date, int]]:
    """Yield the last day and the length of each run of days without a gap."""
    count = 0
    for index, day in enumerate(days):
        count += 1
        if index + 1 == len(days) or days[index + 1] - day > _DAY:
            yield day, count
            count = 0


def _amount(row: UsageRow) -> str:
    if not row.cost_nano:
        return f"{human_count(row.total_tokens)} tokens"
    return row_cost(row).text
