"""Stamps: the times of rows whose timestamp Codex wrote, from bytes at known places.

Codex writes milliseconds and `Z`, so a stamp is a prefix up to the second, which many rows share, and four bytes. What
is written in any other way has no time here.
"""

from __future__ import annotations

import re

from sessionlog.events.times import SECOND, parse_time

MINUTE_END = 31
"""Where the seconds begin in a row: behind `{"timestamp":"2026-11-10T10:00:`."""

SECOND_END = 34
"""Where the milliseconds begin, behind the point."""

SECONDS = {b"%02d." % second: second * SECOND for second in range(60)}
"""The second of a timestamp → nanoseconds."""

MILLIS = {b"%03dZ" % milli: milli * 1_000_000 for milli in range(1000)}
"""The end of a timestamp → nanoseconds."""

_DAY_END = 25
_DAY = re.compile(rb'\{"timestamp":"\d{4}-\d\d-\d\dT\Z')
_MINUTES = {b"%02d:%02d:" % divmod(minute, 60): minute * 60 * SECOND for minute in range(24 * 60)}


class Stamps:
    """The minutes of one log."""

    def __init__(self) -> None:
        self._days: dict[bytes, int] = {}

    def minute_ns(self, minute: bytes) -> int:
        """The time of the minute with which a row begins.

        Raises:
            KeyError: The row begins in another way.
        """
        day = minute[:_DAY_END]
        day_ns = self._days.get(day)
        if day_ns is None:
            day_ns = parse_time(day[14:].decode() + "00:00:00.000Z") if _DAY.match(day) else None
            if day_ns is None:
                raise KeyError(day)
            self._days[day] = day_ns
        return day_ns + _MINUTES[minute[_DAY_END:]]
