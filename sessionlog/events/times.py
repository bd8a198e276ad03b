"""RFC 3339 text ↔ integer nanoseconds since 1970, UTC.

Text written by others keeps its spelling in `Event.ts`; everything that compares or sums uses the integer. Instants
outside 1700–2261 (Go's zero time among them) do not fit a 64-bit nanosecond and count as no time at all.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000_000
_EPOCH_DAYS = 719_163  # date(1970, 1, 1).toordinal()
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?\s*(?:[Zz]|([+-])(\d\d):?(\d\d))\Z", re.ASCII
)


def parse_time(text: object) -> int | None:
    """Return nanoseconds since 1970 for an RFC 3339 instant with any offset, or None if it is not one.

    Up to nine fractional digits count, further ones are cut. A leap second reads as the second before it.
    """
    if not isinstance(text, str):
        return None
    match = _RFC3339.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, off_h, off_m = match.groups()
    if not "1700" <= year <= "2261":
        return None
    try:
        days = datetime(int(year), int(month), int(day), tzinfo=UTC).toordinal() - _EPOCH_DAYS
    except ValueError:
        return None
    if hour > "23" or minute > "59" or second > "60":
        return None
    seconds = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + min(int(second), 59)
    if sign:
        if off_h > "23" or off_m > "59":
            return None
        offset = int(off_h) * 3600 + int(off_m) * 60
        seconds += -offset if sign == "+" else offset
    return seconds * SECOND + (int(fraction.ljust(9, "0")) if fraction else 0)


def format_time(time_ns: int) -> str:
    """Write an instant as our logger does: UTC, six fractional digits, `Z`."""
    seconds, nanos = divmod(time_ns, SECOND)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanos // 1000:06d}Z"
