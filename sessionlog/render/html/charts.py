"""Charts: bars and a calendar as SVG, drawn on the server. Colours come from the page's classes.

Every mark has its value as a tooltip, and each chart stands above the table with its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from sessionlog.analytics.zones import MONTHS
from sessionlog.render.html.page import Html, tag

SERIES = 6
"""Colours for the largest series; all others share one more."""

_WIDTH, _HEIGHT, _LABELS, _GAP = 960, 220, 22, 0.15
_MOST_LABELS = 10
_DAY = 13
_PIXELS = 1.07
"""Of a unit of the calendar, which keeps its size however few weeks it has."""
_WEEK = timedelta(days=7)


def stacked_bars(
    labels: Sequence[str],
    amounts: Sequence[Sequence[float]],
    tooltips: Sequence[Sequence[str]],
    *,
    title: str,
    scale: str,
) -> Html:
    """Return vertical bars, one per label, each stacked of its amounts.

    Args:
        labels: The name of each bar.
        amounts: Bar → the amount of each series, all of the same number, `SERIES + 1` at most.
        tooltips: Bar → the text of each series.
        title: What the chart shows, for those who do not see it.
        scale: The text of the highest bar's sum.
    """
    highest = max((sum(bar) for bar in amounts), default=0) or 1
    step = _WIDTH / max(1, len(labels))
    room, head = _HEIGHT - 2 * _LABELS, _LABELS
    shown = max(1, -(-len(labels) // _MOST_LABELS))
    parts: list[Html] = []
    for number, (label, bar, texts) in enumerate(zip(labels, amounts, tooltips, strict=True)):
        top = float(head + room)
        x, width = number * step + step * _GAP / 2, max(0.5, step * (1 - _GAP))
        for series, (amount, text) in enumerate(zip(bar, texts, strict=True), 1):
            if amount > 0:
                height = room * amount / highest
                top -= height
                parts.append(_rectangle(x, top, width, height, f"fill{series}", text))
        if number % shown == 0:
            parts.append(tag("text", label, x=_short(x), y=_HEIGHT - 6))
    parts += [_line(head), _line(head + room), tag("text", scale, x=0, y=head - 6)]
    return _drawing(_WIDTH, _HEIGHT, title, parts)


def share_bar(share: float) -> Html:
    """Return a horizontal bar of a share, 0 to 1; the number stands beside it."""
    width = _short(100 * min(1.0, max(0.0, share)))
    bar = tag("rect", x=0, y=0, width=width, height=8, class_="fill1")
    return tag("svg", bar, class_="share", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")


def calendar(levels: Mapping[date, int], tooltips: Mapping[date, str], first: date, last: date, *, title: str) -> Html:
    """Return a calendar: a column per week, Monday first, and a square per day.

    Args:
        levels: Day → 1 to 4; other days are empty.
        tooltips: Day → its text.
        first: The first day.
        last: The last day.
        title: What the calendar shows.
    """
    monday = first - timedelta(days=first.weekday())
    parts: list[Html] = []
    week, month = 0, 0
    while monday + week * _WEEK <= last:
        begin = monday + week * _WEEK
        if begin.month != month and (begin + 3 * _WEEK).month == begin.month:
            parts.append(tag("text", MONTHS[begin.month - 1], x=week * _DAY, y=10))
        month = begin.month
        for weekday in range(7):
            day = begin + timedelta(days=weekday)
            if first <= day <= last:
                place = (week * _DAY, 16 + weekday * _DAY)
                parts.append(_rectangle(*place, 11, 11, f"heat{levels.get(day, 0)}", tooltips.get(day)))
        week += 1
    return _drawing(week * _DAY, 16 + 7 * _DAY, title, parts, "calendar")


def _drawing(width: float, height: float, title: str, parts: Sequence[Html], kind: str = "bars") -> Html:
    own = _short(width * _PIXELS) if kind == "calendar" else None
    return tag("svg", *parts, class_=f"chart {kind}", viewBox=f"0 0 {_short(width)} {_short(height)}", role="img",
               width=own, aria_label=title)  # fmt: skip


def _rectangle(x: float, y: float, width: float, height: float, kind: str, text: str | None) -> Html:
    place = {"x": _short(x), "y": _short(y), "width": _short(width), "height": _short(height)}
    return tag("rect", None if text is None else tag("title", text), class_=kind, **place)


def _line(y: float) -> Html:
    return tag("line", x1=0, x2=_WIDTH, y1=_short(y), y2=_short(y))


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
