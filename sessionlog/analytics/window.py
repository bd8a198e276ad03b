"""UsageWindow: a half-open interval `[start, end)` of UTC nanoseconds; `window_grammar` has the texts that name one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from sessionlog.analytics.zones import EPOCH, FIRST, LAST, date_words, local_time, quoted, resolve_zone, zone_name
from sessionlog.errors import InvalidWindow

_SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageWindow:
    """A half-open, non-empty interval of time.

    Attributes:
        start_ns: First nanosecond since 1970 UTC that is inside; None is open.
        end_ns: First nanosecond after it; None is open.
        label: The text it was parsed from, such as `7d` or `2026-11-01..`.
        zone: Name of the time zone of its days.

    Raises:
        InvalidWindow: The end is not after the start, or an end lies outside the years 1 to 9999.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    label: str = ""
    zone: str = "UTC"

    def __post_init__(self) -> None:
        for edge in (self.start_ns, self.end_ns):
            if edge is not None and not _FIRST_NS <= edge <= _LAST_NS:
                raise InvalidWindow(f"window {quoted(self.label)} leaves the years 1 to 9999; give a nearer time")
        if self.start_ns is not None and self.end_ns is not None and self.start_ns >= self.end_ns:
            raise InvalidWindow(
                f"window {quoted(self.label)} is empty: it starts {self.start} and ends {self.end}; "
                "give an end after the start"
            )

    @property
    def start(self) -> str | None:
        """The start as RFC 3339 in UTC, None when open."""
        return None if self.start_ns is None else _rfc3339(self.start_ns)

    @property
    def end(self) -> str | None:
        """The end, which is outside, as RFC 3339 in UTC; None when open."""
        return None if self.end_ns is None else _rfc3339(self.end_ns)

    def contains(self, time_ns: int) -> bool:
        """Return whether an instant is inside: at or after the start and before the end."""
        return (self.start_ns is None or self.start_ns <= time_ns) and (self.end_ns is None or time_ns < self.end_ns)

    def to_dict(self) -> dict[str, str | None]:
        """The JSON object in every report: `start` and `end`, null where open."""
        return {"start": self.start, "end": self.end}


def describe_window(window: UsageWindow | None, tz: str | tzinfo, *, now: datetime | None = None) -> str:
    """Return a window as local text: `14 Nov 10:00 \N{EN DASH} 21 Nov 10:00 (Europe/Berlin)`, or `all time`.

    Whole days show their last day, not the midnight after it. The year of `now` is left out.
    """
    start_ns, end_ns = (window.start_ns, window.end_ns) if window else (None, None)
    zone = resolve_zone(tz)
    this_year = (now or datetime.now(UTC)).astimezone(zone).year
    whole_days = all(edge is None or is_day_start(edge, zone) for edge in (start_ns, end_ns))
    short = start_ns is not None and end_ns is not None and end_ns - start_ns < 120 * _SECOND

    def words(edge: int, *, last: bool) -> str:
        if whole_days:
            return date_words(local_time(edge - last, zone).date(), this_year=this_year)
        moment = local_time(edge, zone)
        clock = moment.replace(tzinfo=None).isoformat(timespec="seconds" if short else "minutes")[11:]
        if last and start_ns is not None and local_time(start_ns, zone).date() == moment.date():
            return clock
        return f"{date_words(moment.date(), this_year=this_year)} {clock}"

    first = "" if start_ns is None else words(start_ns, last=False)
    last = "" if end_ns is None else words(end_ns, last=True)
    if not first and not last:
        return "all time"
    if not first or not last:
        span = f"since {first}" if first else f"until {last}"
    else:
        span = first if first == last else f"{first} \N{EN DASH} {last}"
    return f"{span} ({zone_name(zone)})"


def present_time(now: datetime | None) -> datetime:
    """Return the present that a caller gave, or the clock's.

    Raises:
        InvalidWindow: It has no time zone.
    """
    if now is not None and now.utcoffset() is None:
        raise InvalidWindow("now has no time zone; pass an aware datetime such as datetime.now(UTC)")
    return now or datetime.now(UTC)


def midnight(day: date, zone: tzinfo) -> int:
    """Return the first instant of a day; where clocks skip midnight, the instant of the jump."""
    return utc_nanoseconds(datetime(day.year, day.month, day.day, tzinfo=zone))


def is_day_start(time_ns: int, zone: tzinfo) -> bool:
    """Return whether a day of the zone begins at an instant."""
    return time_ns == midnight(local_time(time_ns, zone).date(), zone)


def utc_nanoseconds(moment: datetime) -> int:
    """Return an instant in nanoseconds since 1970 UTC, exactly: a float of seconds is off by up to 250 of them."""
    since = moment - EPOCH  # exact, and without a conversion to UTC that could leave the years 1 to 9999
    return (since.days * 86400 + since.seconds) * _SECOND + since.microseconds * 1000


def _rfc3339(time_ns: int) -> str:
    seconds, fraction = divmod(time_ns, _SECOND)
    digits = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{(EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}{digits}Z"


_FIRST_NS = utc_nanoseconds(FIRST)
_LAST_NS = utc_nanoseconds(LAST) + 999
