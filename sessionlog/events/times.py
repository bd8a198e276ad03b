"""RFC 3339 text ↔ integer nanoseconds since 1970, UTC; and numbers in seconds to nanoseconds, by their size.

`Event.ts` keeps the text as written; comparisons and sums use the integer. Instants outside 1700-2261 (Go's zero time
among them) do not fit 64-bit nanoseconds and count as no time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECOND = 1_000_000_000
_MINUTE = 60 * SECOND
_EPOCH_DAYS = 719_163  # date(1970, 1, 1).toordinal()
_REMEMBERED = 4096
_LIMIT = 2**63
_SCALES = ((1e11, SECOND), (1e14, 1_000_000), (1e17, 1_000))  # below: seconds, milli-, microseconds; else nanoseconds
_hours: dict[str, int] = {}  # a log's lines share their hours, and look-ups cost a tenth of the arithmetic
_seconds: dict[str, int] = {}
_fractions: dict[str, int] = {}  # `123Z` → nanoseconds, for up to three digits
_minutes: dict[int, str] = {}  # minutes since 1970 → `2026-11-20T10:15`
_UNITS: tuple[int, ...] = tuple(10 ** (9 - digits) for digits in range(10))  # by digits: the last one in nanoseconds
_RFC3339 = r"(?a)(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?\s*(?:[Zz]|([+-])(\d\d):?(\d\d))\Z"


def parse_time(text: object) -> int | None:
    """Return nanoseconds since 1970 for an RFC 3339 instant with any offset, or None if it is not one.

    Up to nine fractional digits count, further ones are cut. A leap second reads as the second before it.
    """
    if not isinstance(text, str):
        return None
    try:
        second_ns = _hours[text[:14]] + _seconds[text[14:20]]
        if len(text) <= 24:
            return second_ns + _fractions[text[20:]]
        digits = text[20:-1]
        if text[-1] == "Z" and digits.isdecimal() and digits.isascii() and len(digits) <= 9:
            return second_ns + int(digits) * _UNITS[len(digits)]
    except KeyError:
        pass
    time_ns, hour_ns = _parse(text)
    if time_ns is not None and hour_ns is not None and text[19:20] == ".":
        _remember(_hours, text[:14], hour_ns)
        _remember(_seconds, text[14:20], (time_ns - hour_ns) // SECOND * SECOND)
        if len(text) <= 24:
            _remember(_fractions, text[20:], time_ns % SECOND)
    return time_ns


def _remember(known: dict[str, int], part: str, time_ns: int) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[part] = time_ns


def _parse(text: str) -> tuple[int | None, int | None]:
    """Return the instant, and the instant of its hour if the text is in UTC with a `Z`."""
    import re

    match = re.match(_RFC3339, text)
    if match is None:
        return None, None
    year, month, day, hour, minute, second, fraction, sign, off_h, off_m = match.groups()
    if not "1700" <= year <= "2261":
        return None, None
    try:
        days = datetime(int(year), int(month), int(day), tzinfo=UTC).toordinal() - _EPOCH_DAYS
    except ValueError:
        return None, None
    if hour > "23" or minute > "59" or second > "60":
        return None, None
    hour_ns = (days * 24 + int(hour)) * 3600 * SECOND
    time_ns = hour_ns + (int(minute) * 60 + min(int(second), 59)) * SECOND
    time_ns += int(fraction.ljust(9, "0")) if fraction else 0
    if not sign:
        return time_ns, hour_ns
    if off_h > "23" or off_m > "59":
        return None, None
    offset_ns = (int(off_h) * 60 + int(off_m)) * 60 * SECOND
    return time_ns - offset_ns if sign == "+" else time_ns + offset_ns, None


def epoch_ns(value: object) -> int | None:
    """Return a number of unknown unit as nanoseconds since 1970, between 0 and 2**63; None if it is no such time.

    Numbers below 1e11 (seconds up to the year 5138) count as seconds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LIMIT:  # NaN is not, either
        return None
    scale = next((scale for limit, scale in _SCALES if value < limit), 1)
    whole = int(value)
    time_ns = whole * scale + round((value - whole) * 1_000_000) * scale // 1_000_000
    return time_ns if 0 < time_ns < _LIMIT else None


def format_time(time_ns: int) -> str:
    """Return an instant as text: UTC, six fractional digits, `Z`."""
    minute, nanos = divmod(time_ns, _MINUTE)
    begun = _minutes.get(minute)
    if begun is None:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
        if len(_minutes) >= _REMEMBERED:
            _minutes.clear()
        begun = _minutes[minute] = f"{moment:%Y-%m-%dT%H:%M}"
    digits = str(100_000_000 + nanos // 1000)  # 1, seconds, microseconds: half the time of formats with zeros
    return f"{begun}:{digits[1:3]}.{digits[3:]}Z"


def utc_time(value: object) -> str | None:
    """Return a datetime (without a zone: UTC) or a text as RFC 3339 in UTC.

    A text that is UTC already, or no time, is returned as it is; None for other values.
    """
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return format_time((since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1000)
    if not isinstance(value, str) or not value:
        return None
    time_ns = None if value.endswith("Z") else parse_time(value)
    return value if time_ns is None else format_time(time_ns)
