"""Time zones, and the keys of hours, days, weeks and months in them."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from sessionlog.errors import InvalidWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date_words(day: date, *, this_year: int) -> str:
    """A date as `21 Nov`, with its year unless it is this one; English whatever the locale."""
    year = "" if day.year == this_year else f" {day.year}"
    return f"{day.day} {MONTHS[day.month - 1]}{year}"


def day_key(time_ns: int, zone: tzinfo) -> str:
    """The day of an instant in the zone: `2026-11-21`."""
    return local_time(time_ns, zone).isoformat()[:10]


def week_key(time_ns: int, zone: tzinfo) -> str:
    """The ISO week of an instant in the zone: `2026-W47`."""
    week = local_time(time_ns, zone).isocalendar()
    return f"{week.year:04}-W{week.week:02}"


def month_key(time_ns: int, zone: tzinfo) -> str:
    """The month of an instant in the zone: `2026-11`."""
    return local_time(time_ns, zone).isoformat()[:7]


def hour_key(time_ns: int, zone: tzinfo) -> str:
    """The hour of an instant in the zone: `2026-11-21T09:00+01:00`; the offset keeps the repeated hour apart."""
    text = local_time(time_ns, zone).isoformat(timespec="minutes")
    return f"{text[:14]}00{text[16:]}"


def local_time(time_ns: int, zone: tzinfo) -> datetime:
    """The local time of an instant in the zone, to the microsecond; clamped to the years 1 to 9999."""
    try:
        return (EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(zone)
    except OverflowError:
        return (FIRST if time_ns < 0 else LAST).replace(tzinfo=zone)


PERIOD_KEYS: Mapping[str, Callable[[int, tzinfo], str]] = {
    "hour": hour_key, "day": day_key, "week": week_key, "month": month_key,
}  # fmt: skip
"""Group key → the function that names an instant's period."""


def period_words(key: str, name: str, zone: tzinfo, *, this_year: int) -> str:
    """Format a period's name for people: `Sat 21 Nov`, `Sat 21 Nov 09:00`, `W47 16 – 22 Nov`, `Nov 2026`.

    The year is left out if it is this one; an hour has its offset if the clock shows that hour twice. A text that is
    not the name of a period is returned as it is.
    """
    try:
        return _WORDS[key](name, zone, this_year)
    except ValueError:
        return name


def _day_words(day: date, this_year: int) -> str:
    return f"{WEEKDAYS[day.weekday()]} {date_words(day, this_year=this_year):>{6 if day.year == this_year else 11}}"


def _hour_words(name: str, zone: tzinfo, this_year: int) -> str:
    moment = datetime.fromisoformat(name)
    clock = moment.replace(tzinfo=zone)
    is_twice = clock.utcoffset() != clock.replace(fold=1).utcoffset()
    return f"{_day_words(moment.date(), this_year)} {name[11:16]}{name[16:] if is_twice else ''}"


def _week_words(name: str, zone: tzinfo, this_year: int) -> str:  # noqa: ARG001 - one signature for all periods
    year, _, week = name.partition("-W")
    monday = date.fromisocalendar(int(year), int(week), 1)
    sunday = monday + timedelta(days=6)
    first = str(monday.day) if monday.month == sunday.month else date_words(monday, this_year=monday.year)
    return f"W{week} {first:>2} \N{EN DASH} {date_words(sunday, this_year=this_year)}"


_WORDS: Mapping[str, Callable[[str, tzinfo, int], str]] = {
    "hour": _hour_words,
    "day": lambda name, _, this_year: _day_words(date.fromisoformat(name), this_year),
    "week": _week_words,
    "month": lambda name, _, __: f"{MONTHS[date.fromisoformat(f'{name}-01').month - 1]} {name[:4]}",
}


NAMELESS = "local time"
"""The name of the machine's zone where it has none."""


def resolve_zone(tz: str | tzinfo) -> tzinfo:
    """Return the zone of an IANA name, `UTC`, or `local` for the machine's own.

    Raises:
        InvalidWindow: The time zone is unknown.
    """
    if isinstance(tz, tzinfo):
        return tz
    if tz == "UTC":
        return UTC
    if tz == "local":
        return _machine_zone()
    zone = _iana_zone(tz)
    if zone is None:
        from zoneinfo import available_timezones

        wanted = tz.lower().replace(" ", "_")
        near = [key for key in sorted(available_timezones()) if wanted in {key.lower(), key.lower().split("/")[-1]}]
        hint = f"did you mean {near[0]!r}?" if near else "give an IANA name such as Europe/Berlin, UTC, or local"
        raise InvalidWindow(f"unknown time zone {quoted(tz)}; {hint}")
    return zone


def _iana_zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # unknown; not a relative path; a folder such as Europe
        return None


def zone_name(tz: str | tzinfo) -> str:
    """The name of a zone for display: `Europe/Berlin`, `UTC`, or `local time` where it has none."""
    zone = resolve_zone(tz)
    return str(zone) if isinstance(zone, timezone) or hasattr(zone, "key") else NAMELESS


def _machine_zone() -> tzinfo:
    """The machine's zone by name where the name is found and agrees with the C library, else the C library's rules."""
    path = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime")
    name = path.rpartition("zoneinfo/")[2]
    zone = UTC if name in ("UTC", "Etc/UTC") else _iana_zone(name)  # importing zoneinfo takes 3 ms
    # Naive times on purpose: astimezone() converts them by the machine's own rules.
    probes = [datetime(2024, month, 15, 12) for month in (1, 4, 7, 10)]  # noqa: DTZ001
    if zone and all(probe.replace(tzinfo=zone).utcoffset() == probe.astimezone().utcoffset() for probe in probes):
        return zone
    from dateutil.tz import tzlocal

    return tzlocal()


def quoted(text: str) -> str:
    """Quote an untrusted text for a message: shortened, and without control characters."""
    return repr(text if len(text) <= 80 else text[:80] + "…")
