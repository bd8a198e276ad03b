"""The closed grammar of time windows, and windows of the calendar.

The grammar is the same wherever a time window can be given:

    N + h|d|w|mo                      the time up to now; d is 24 hours, mo a calendar month
    today yesterday this-week …       whole periods; a week begins on Monday
    YYYY-MM                           that month in the zone
    YYYY-MM-DD                        that day in the zone, to the next local midnight (23 to 25 hours)
    2026-11-21T09:00:00Z              RFC 3339 with seconds and zone: the 24 hours from that instant
    A..B                              months, dates or instants, either end open; a date as the end is that whole day

Any other text is an error. Days, weeks and months depend on a time zone; the interval itself does not, and it has
nanosecond precision. The end of one window is the start of the next, so neighbouring windows neither overlap nor leave
a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from sessionlog.analytics.window import UsageWindow, is_day_start, midnight, present_time, utc_nanoseconds
from sessionlog.analytics.zones import local_time, quoted, resolve_zone, zone_name
from sessionlog.errors import InvalidWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HOUR = 3600 * 10**9
_DAY = 24 * _HOUR
_ONE_DAY = timedelta(days=1)
_ONE_WEEK = timedelta(days=7)

_FORMS = (
    "A window is N + h, d, w or mo (24h, 7d, 2w, 3mo); today, yesterday, this-week, last-week, this-month, last-month; "
    "YYYY-MM; YYYY-MM-DD; RFC 3339 with seconds and zone (2026-11-21T09:00:00Z); "
    "or A..B of two such months, dates or instants, either end open"
)
_MAX_DIGITS = 18
_MONTH = r"[0-9]{4}-[0-9]{2}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
# 24:00:00 and second 60 are errors, as in the grammar's origin; newer Python versions would accept the first.
_INSTANT = (
    rf"({_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r"(?:[.,]([0-9]+))?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_ALMOST_RELATIVE = r"-?\s*([1-9][0-9]{0,5})\s*([A-Za-z]+)(?:\s+ago)?"
_ALMOST_TIME = (
    r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?([.,][0-9]+)?\s*([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def parse_usage_window(
    spec: UsageWindow | str | None, *, until: str | None = None, now: datetime | None = None, tz: str | tzinfo = "UTC"
) -> UsageWindow | None:
    """Parse a time window.

    Args:
        spec: Any form of the grammar; None or blank is an open start; a `UsageWindow` is returned as it is.
        until: The end: a date (that day is inside), an instant, a word (its end), or a relative form (that long ago).
        now: The present, for relative forms and words; the clock when None.
        tz: The time zone of days: an IANA name, `local` for the machine's zone, or a tzinfo.

    Returns:
        The window, or None without either end.

    Raises:
        InvalidWindow: A text outside the grammar, an empty window, two ends, an unknown zone, a `now` without zone.
    """
    if isinstance(spec, UsageWindow):
        if until:
            raise InvalidWindow(f"a window has both ends; leave out the second end, {quoted(until)}")
        return spec
    since, until = (spec or "").strip(), (until or "").strip()
    zone = resolve_zone(tz)
    present = present_time(now)
    if not since and not until:
        return None
    label = f"{since} until {until}".strip() if until else since
    try:
        start, end = _bounds(since, until, present.astimezone(zone), zone)
    except OverflowError:
        raise InvalidWindow(f"window {quoted(label)} leaves the years 1 to 9999; give a nearer time") from None
    return UsageWindow(start_ns=start, end_ns=end, label=label, zone=zone_name(zone))


@dataclass(frozen=True, slots=True)
class _Span:
    """The interval of one form alone (`start`, `end`), and its instant as the end of a longer window (`until`)."""

    start: int
    end: int
    until: int


def _bounds(since: str, until: str, now: datetime, zone: tzinfo) -> tuple[int | None, int | None]:
    if ".." in since:
        if until:
            raise InvalidWindow(f"{quoted(since)} has both ends; leave out the second end, {quoted(until)}")
        first, last = (part.strip() for part in since.split("..", 1))
        if not first and not last:
            raise InvalidWindow(f"{quoted(since)} has neither start nor end. {_FORMS}")
        return (_absolute(first, zone).start if first else None), (_absolute(last, zone).until if last else None)
    if until:
        return (_span(since, now, zone).start if since else None), _span(until, now, zone).until
    alone = _span(since, now, zone)
    return alone.start, alone.end


def _span(text: str, now: datetime, zone: tzinfo) -> _Span:
    if relative := _relative(text):
        start = _before(now, *relative)
        return _Span(start, utc_nanoseconds(now), until=start)
    if text in _PERIODS:
        first, after = _PERIODS[text](now.date())
        end = midnight(after, zone)
        return _Span(midnight(first, zone), end, until=end)
    return _absolute(text, zone)


def _relative(text: str) -> tuple[int, str] | None:
    """Return the number and the unit of a text such as `7d`; None for any other."""
    unit = next((unit for unit in ("mo", "h", "d", "w") if text.endswith(unit)), "")
    digits = text.removesuffix(unit)
    fits = unit and digits.isascii() and digits.isdigit() and digits[0] != "0" and len(digits) <= _MAX_DIGITS
    return (int(digits), unit) if fits else None


def _absolute(text: str, zone: tzinfo) -> _Span:
    from re import fullmatch  # with the patterns it takes 6 ms, which `7d` and `today` do not need

    try:
        if fullmatch(_MONTH, text):
            first = date.fromisoformat(f"{text}-01")
            end = midnight(_next_month(first), zone)
            return _Span(midnight(first, zone), end, until=end)
        if fullmatch(_DATE, text):
            day = date.fromisoformat(text)
            end = midnight(day + _ONE_DAY, zone)
            return _Span(midnight(day, zone), end, until=end)
        if match := fullmatch(_INSTANT, text):
            fraction = int((match[2] or "").ljust(9, "0")[:9])
            instant = utc_nanoseconds(datetime.fromisoformat(match[1] + match[3])) + fraction
            return _Span(instant, instant + _DAY, until=instant)
    except ValueError:
        raise InvalidWindow(f"{quoted(text)} is not in the calendar. {_FORMS}") from None
    raise InvalidWindow(f"{quoted(text)} is not a time window{_hint(text)} {_FORMS}")


def _before(now: datetime, count: int, unit: str) -> int:
    if unit != "mo":
        return utc_nanoseconds(now) - count * {"h": _HOUR, "d": _DAY, "w": 7 * _DAY}[unit]
    year, month = divmod(now.year * 12 + now.month - 1 - count, 12)
    if year < 1:
        raise OverflowError
    first = date(year, month + 1, 1)
    last = (_next_month(first) - _ONE_DAY).day if (year, month) < (9999, 11) else 31
    return utc_nanoseconds(now.replace(year=year, month=month + 1, day=min(now.day, last)))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _next_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1)


_PERIODS: dict[str, Callable[[date], tuple[date, date]]] = {
    "today": lambda day: (day, day + _ONE_DAY),
    "yesterday": lambda day: (day - _ONE_DAY, day),
    "this-week": lambda day: (_monday(day), _monday(day) + _ONE_WEEK),
    "last-week": lambda day: (_monday(day) - _ONE_WEEK, _monday(day)),
    "this-month": lambda day: (day.replace(day=1), _next_month(day)),
    "last-month": lambda day: ((day.replace(day=1) - _ONE_DAY).replace(day=1), day.replace(day=1)),
}


def _hint(text: str) -> str:
    """A suggestion for an invalid text, if one is obvious; it is always valid."""
    if text in _PERIODS or _relative(text):
        return " here: the ends of A..B are dates or instants, so give it alone or with an end of its own."
    if text == "now":
        return "; leave that end open."
    meant = _meant(text)
    return f"; did you mean {meant!r}?" if meant else "."


def _meant(text: str) -> str | None:
    import re

    word = re.sub(r"[\s_-]+", "-", text.lower())
    word = {"day": "today", "week": "this-week", "month": "this-month"}.get(word, word)
    if word in _PERIODS or _relative(word):
        return word
    if match := re.fullmatch(_ALMOST_RELATIVE, text):
        count, unit = int(match[1]), match[2].lower()
        if unit == "m" or unit.startswith(("mo", "y")):
            return f"{count * 12 if unit[0] == 'y' else count}mo"
        return f"{count}{unit[0]}" if unit[0] in "hdw" else None
    if re.match(r"[0-9]{8}(?![0-9])", text):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if match := re.fullmatch(_ALMOST_TIME, text):
        meant = f"{match[1]}-{match[2]:0>2}-{match[3]:0>2}"
        if match[4]:
            zone = (match[7] or "Z").upper()
            zone = zone if zone == "Z" or ":" in zone else f"{zone[:3]}:{zone[3:]}"
            meant += f"T{match[4]}{match[5] or ':00'}{match[6] or ''}{zone}"
        try:
            datetime.fromisoformat(meant)
        except ValueError:
            return None
        return meant if re.fullmatch(f"{_DATE}|{_INSTANT}", meant) else None
    return None


def relative_parts(window: UsageWindow) -> tuple[int, str]:
    """Return the number and the unit (h, d, w, mo) of a window such as `7d`; (0, "") for any other."""
    return _relative(window.label) or (0, "")


def previous_window(window: UsageWindow, tz: str | tzinfo, *, now_ns: int) -> UsageWindow | None:
    """Return the equally long window before, up to the point where the present is in the window.

    None for an open start, and for a window that has not begun.

    Whole months have months before them and whole days days, by the calendar of the zone: `this-month` on the 21st at
    noon is compared with the last month up to its 21st at noon.
    """
    start = window.start_ns
    if start is None or now_ns <= start:
        return None
    zone, end = resolve_zone(tz), now_ns if window.end_ns is None else window.end_ns
    first = start - (end - start)
    last = start if end <= now_ns else min(start, first + now_ns - start)
    count, unit = relative_parts(window)
    if unit == "mo":
        first = _before(local_time(start, zone), count, unit)
    elif is_day_start(start, zone) and is_day_start(end, zone):
        day, after = local_time(start, zone).date(), local_time(end, zone).date()
        months = (after.year - day.year) * 12 + after.month - day.month
        if day.day == after.day == 1:
            year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
            earlier = date(year, month + 1, 1)
        else:
            earlier = day - (after - day)
        first = midnight(earlier, zone)
        if end > now_ns:  # the same day and time of day, whatever clocks did meanwhile
            now = local_time(now_ns, zone)
            last = min(start, utc_nanoseconds(datetime.combine(earlier + (now.date() - day), now.time(), zone)))
    return UsageWindow(start_ns=first, end_ns=last, label="the same time before", zone=window.zone)


def month_of(time_ns: int, tz: str | tzinfo) -> UsageWindow:
    """Return the calendar month of an instant."""
    zone = resolve_zone(tz)
    first = local_time(time_ns, zone).date().replace(day=1)
    start, end = midnight(first, zone), midnight(_next_month(first), zone)
    return UsageWindow(start_ns=start, end_ns=end, label=f"{first:%Y-%m}", zone=zone_name(zone))
