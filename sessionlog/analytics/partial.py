"""A footnote on the first hour, day, week or month of a report if its window begins within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.zones import NAMELESS, PERIOD_KEYS, date_words, local_time, period_words, resolve_zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def partial_period(window: UsageWindow | None, rows: Iterable[Any]) -> Iterator[str]:
    """Yield a sentence for each time key whose first period is incomplete, because the window begins within it.

    Args:
        window: The window; its zone determines the periods.
        rows: The rows, with their `keys`.
    """
    if window is None or window.start_ns is None:
        return
    zone = resolve_zone("local" if window.zone == NAMELESS else window.zone)
    for key, name_of in PERIOD_KEYS.items():
        first = name_of(window.start_ns, zone)
        if name_of(window.start_ns - 1, zone) == first and any(row.keys.get(key) == first for row in rows):
            begin = local_time(window.start_ns, zone)
            day = date_words(begin.date(), this_year=begin.year)
            words = " ".join(period_words(key, first, zone, this_year=begin.year).split())
            yield f"{words} is only a part of the {key}: the window begins on {day} at {begin:%H:%M}"
