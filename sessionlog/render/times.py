"""Format times in a zone, and paths with `~` for the home folder.

Times are UTC nanoseconds; the year is omitted if it is that of `now`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from sessionlog.analytics.zones import WEEKDAYS, date_words, local_time


def clock(time_ns: int, zone: tzinfo, *, with_seconds: bool = False) -> str:
    """Return the time of day: `09:58`, or `09:58:03`."""
    return f"{local_time(time_ns, zone):{'%H:%M:%S' if with_seconds else '%H:%M'}}"


def stamp(time_ns: int, zone: tzinfo, *, now: datetime, with_seconds: bool = False) -> str:
    """Return date and time of day: `21 Nov 09:58`, in another year `21 Nov 2025 09:58`."""
    return f"{_date(time_ns, zone, now)} {clock(time_ns, zone, with_seconds=with_seconds)}"


def day_title(time_ns: int, zone: tzinfo, *, now: datetime) -> str:
    """Return the heading of a day: `TODAY 21 Nov`, `YESTERDAY 20 Nov`, `THU 19 Nov`."""
    day, today = local_time(time_ns, zone).date(), now.astimezone(zone).date()
    name = {today: "TODAY", today - timedelta(days=1): "YESTERDAY"}.get(day, WEEKDAYS[day.weekday()].upper())
    return f"{name} {_date(time_ns, zone, now)}"


def home_path(path: str, home: str) -> str:
    """Shorten the home folder at the start of a path to `~`; for tables only, never for JSON or CSV."""
    folder = home.rstrip("/\\")
    if not folder or not path.startswith(folder):
        return path
    rest = path[len(folder) :]
    return f"~{rest}" if not rest or rest[0] in "/\\" else path


def _date(time_ns: int, zone: tzinfo, now: datetime) -> str:
    return date_words(local_time(time_ns, zone).date(), this_year=now.astimezone(zone).year)
