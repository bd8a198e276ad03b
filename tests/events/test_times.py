"""RFC 3339 text ↔ integer nanoseconds."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.times import SECOND, format_time, parse_time
from tests.profiles import examples

FAST = examples(200)
NOON = 1_795_262_400 * SECOND  # 2026-11-21T12:00:00Z
INSTANTS = st.datetimes(datetime(1700, 1, 1), datetime(2261, 12, 31, 23, 59, 59, 999_999))
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59)


def nanoseconds(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize(
    ("text", "beyond_noon"),
    [
        ("2026-11-21T12:00:00Z", 0),
        ("2026-11-21t12:00:00z", 0),
        ("2026-11-21 12:00:00Z", 0),
        ("2026-11-21 12:00:00 +00:00", 0),
        ("2026-11-21T12:00:00-00:00", 0),
        ("2026-11-21T13:30:00+01:30", 0),
        ("2026-11-21T13:30:00+0130", 0),
        ("2026-11-20T13:00:00-23:00", 0),
        ("2026-11-21T12:00:00.1Z", 100_000_000),
        ("2026-11-21T12:00:00,1Z", 100_000_000),
        ("2026-11-21T12:00:00.000000001Z", 1),
        ("2026-11-21T12:00:00.123456789Z", 123_456_789),
        ("2026-11-21T12:00:00.1234567899999Z", 123_456_789),
    ],
)
def test_spellings_of_an_instant(text, beyond_noon):
    """Offsets, either case, a space or a T, and up to nine digits are read exactly; further digits are cut."""
    assert parse_time(text) == NOON + beyond_noon


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21",
        "2026-11-21T12:00Z",
        "2026-11-21T12:00:00",
        "2026-11-21T24:00:00Z",
        "2026-11-21T12:60:00Z",
        "2026-11-21T12:00:61Z",
        "2026-13-21T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "2026-11-21T12:00:00+24:00",
        "2026-11-21T12:00:00+01:60",
        "2026-11-21T12:00:00.Z",
        "2026-11-21T12:00:00Z\n",
        " 2026-11-21T12:00:00Z",
        "٢٠٢٦-11-21T12:00:00Z",
        "0001-01-01T00:00:00Z",
        "1699-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        1_795_262_400,
        None,
        b"2026-11-21T12:00:00Z",
    ],
)
def test_what_is_not_an_instant(text):
    """Anything else is no time at all: Go's zero time, impossible dates, numbers, and a time without a zone."""
    assert parse_time(text) is None


def test_a_leap_second_is_the_second_before_it():
    """A leap second stays inside its minute, so that order is kept as well as it can be."""
    assert parse_time("2016-12-31T23:59:60.5Z") == parse_time("2016-12-31T23:59:59.5Z")


@FAST
@given(moment=INSTANTS)
def test_what_we_write_we_read(moment):
    """format_time and parse_time agree with datetime and with each other, to the microsecond."""
    time_ns = nanoseconds(moment.replace(tzinfo=UTC))
    text = format_time(time_ns)
    assert parse_time(text) == time_ns
    assert datetime.fromisoformat(text) == moment.replace(tzinfo=UTC)


@FAST
@given(moment=st.datetimes(datetime(1700, 1, 2), datetime(2261, 12, 30)), minutes=OFFSETS)
def test_offsets_agree_with_datetime(moment, minutes):
    """An instant with any offset is the instant that datetime reads."""
    zoned = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert parse_time(zoned.isoformat()) == nanoseconds(zoned)


@FAST
@given(time_ns=st.integers(-(2**62), 2**62))
def test_what_is_finer_than_a_microsecond_is_cut_downwards(time_ns):
    """Writing never moves an instant forward, before 1970 neither."""
    written = parse_time(format_time(time_ns))
    assert 0 <= time_ns - written < 1000


@FAST
@given(rest=st.text("0123456789١²_.Z", max_size=12) | st.from_regex(r"[0-9]{1,12}Z", fullmatch=True))
def test_a_fraction_of_a_second_that_was_read_before(rest):
    """Up to nine digits count, further ones are cut, and nothing else is a fraction."""
    assert parse_time("2026-11-21T12:00:00.5Z") == NOON + SECOND // 2
    match = re.fullmatch(r"([0-9]+)Z", rest)
    expected = None if match is None else NOON + int(match[1][:9].ljust(9, "0"))
    assert parse_time(f"2026-11-21T12:00:00.{rest}") == expected


@FAST
@given(text=st.text(max_size=40) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"))
def test_reading_a_time_never_raises(text):
    """Any text gives a 64-bit instant or None."""
    instant = parse_time(text)
    assert instant is None or -(2**63) <= instant < 2**63
