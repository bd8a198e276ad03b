"""Zones: whose days a report counts, and the keys of hours, days, weeks and months in them."""

from __future__ import annotations

import contextlib
import os
import zoneinfo
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from sessionlog.errors import InvalidWindow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date_words(day: date, *, this_year: int) -> str:
    """A date as `21 Nov`, with its year unless it is this one; English whatever the locale."""
    year = "" if day.year == this_year else f" {day.year}"
    return f"{day.day} {_MONTHS[day.month - 1]}{year}"


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
    """The wall clock of an instant in the zone, to the microsecond; beyond the years 1 to 9999 their nearest end."""
    try:
        return (EPOCH + timedelta(microseconds=time_ns // 1000)).astimezone(zone)
    except OverflowError:
        return (FIRST if time_ns < 0 else LAST).replace(tzinfo=zone)


NAMELESS = "local time"
"""What the machine's zone is called where it has no name."""


def resolve_zone(tz: str | tzinfo) -> tzinfo:
    """Return the zone that a name means: an IANA name, `UTC`, or `local` for the machine's own.

    Raises:
        InvalidWindow: No such zone.
    """
    if isinstance(tz, tzinfo):
        return tz
    if tz == "UTC":
        return UTC
    if tz == "local":
        return _machine_zone()
    try:
        return zoneinfo.ZoneInfo(tz)
    except (LookupError, ValueError, OSError):  # unknown; not a relative path; a folder such as Europe
        wanted = tz.lower().replace(" ", "_")
        near = [
            key for key in sorted(zoneinfo.available_timezones()) if wanted in {key.lower(), key.lower().split("/")[-1]}
        ]
        hint = f"did you mean {near[0]!r}?" if near else "give an IANA name such as Europe/Berlin, UTC, or local"
        raise InvalidWindow(f"unknown time zone {quoted(tz)}; {hint}") from None


def zone_name(tz: str | tzinfo) -> str:
    """The name of a zone for people: `Europe/Berlin`, `UTC`, or `local time` where it has none."""
    zone = resolve_zone(tz)
    return str(zone) if isinstance(zone, zoneinfo.ZoneInfo | timezone) else NAMELESS


def _machine_zone() -> tzinfo:
    """The machine's zone by name where the name is found and agrees with the C library, else the C library's rules."""
    named = os.environ.get("TZ", "").removeprefix(":") or os.path.realpath("/etc/localtime")
    # Naive times on purpose: the question is what the machine itself makes of them.
    probes = [datetime(2024, month, 15, 12) for month in (1, 4, 7, 10)]  # noqa: DTZ001
    with contextlib.suppress(LookupError, ValueError, OSError):
        zone = zoneinfo.ZoneInfo(named.rpartition("zoneinfo/")[2])
        if all(probe.replace(tzinfo=zone).utcoffset() == probe.astimezone().utcoffset() for probe in probes):
            return zone
    from dateutil.tz import tzlocal  # noqa: PLC0415 - only machines without a named zone pay for this import

    return tzlocal()


def quoted(text: str) -> str:
    """A foreign text inside a message: bounded, and without control characters."""
    return repr(text if len(text) <= 80 else text[:80] + "…")
