"""Windows: one closed grammar, half-open intervals that tile, and days that belong to a zone."""

import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.window import UsageWindow, describe_window
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import day_key, local_time
from sessionlog.errors import InvalidWindow
from tests.profiles import examples

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)  # a Saturday; 10:00 in Berlin
HOUR = 3600 * 10**9
LAW = examples(150)

instants = st.integers(min_value=-(10**18), max_value=4 * 10**18)  # 1938 to 2096
zones = st.sampled_from([UTC, BERLIN, NEW_YORK, ZoneInfo("Asia/Kolkata"), ZoneInfo("Australia/Lord_Howe")])
moments = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2060, 1, 1), timezones=st.just(UTC))


def span(spec, *, until=None, tz="UTC", now=NOW):
    window = parse_usage_window(spec, until=until, now=now, tz=tz)
    assert window is not None
    return window.start, window.end


def ns(text):
    delta = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def cells(table):
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split("|")]


# What the original refuses and this grammar has: a rule, its reason, and the cases it covers.
ACCEPTED_HERE = {"relative windows and words the origin refuses": {"1d", "90d", "yesterday"}}


def conformance_cases():
    folder = os.environ.get("SESSIONLOG_CONFORMANCE")
    if not folder:
        reason = "SESSIONLOG_CONFORMANCE is not set: 0 window cases compared"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    cases = json.loads((Path(folder) / "cases.json").read_text(encoding="utf-8"))["window"]
    return [pytest.param(case, id=case["spec"]) for case in cases]


@pytest.mark.parametrize("case", conformance_cases())
def test_agrees_with_the_original(case):
    """Each window of the conformance data is read as the original reads it, or differs by a named rule."""
    now = datetime.fromisoformat(case["now"])
    if case["exit"] == 0:
        expected = {key: None if value.startswith("0001-01-01") else value for key, value in case["window"].items()}
        assert parse_usage_window(case["spec"], now=now).to_dict() == expected
    elif any(case["spec"] in covered for covered in ACCEPTED_HERE.values()):
        assert parse_usage_window(case["spec"], now=now) is not None
    else:
        with pytest.raises(InvalidWindow):
            parse_usage_window(case["spec"], now=now)


@pytest.mark.parametrize("spec", [None, "", "  ", "\t\n"])
def test_nothing_given_is_no_window(spec):
    """Without a start and an end there is no window, which means all sessions."""
    assert parse_usage_window(spec, until=spec, now=NOW) is None


@pytest.mark.parametrize(
    ("spec", "start", "end"),
    [
        ("7d", "2026-11-14T09:00:00Z", "2026-11-21T09:00:00Z"),
        ("24h", "2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"),
        ("2w", "2026-11-07T09:00:00Z", "2026-11-21T09:00:00Z"),
        ("1mo", "2026-10-21T09:00:00Z", "2026-11-21T09:00:00Z"),
        ("13mo", "2025-10-21T09:00:00Z", "2026-11-21T09:00:00Z"),
        ("today", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"),
        ("yesterday", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("this-week", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"),
        ("last-week", "2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z"),
        ("this-month", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("last-month", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"),
        ("2026-11-01T10:00:00+02:00", "2026-11-01T08:00:00Z", "2026-11-02T08:00:00Z"),
        ("2026-11-01..", "2026-11-01T00:00:00Z", None),
        ("..2026-11-01T10:00:00Z", None, "2026-11-01T10:00:00Z"),
        ("0001-01-01..9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"),
    ],
)
def test_forms(spec, start, end):
    """Every form of the grammar means exactly one interval."""
    assert span(spec) == (start, end)


def test_calendar_months():
    """A month back is the same local hour, also over the end of summer time, on the nearest day that exists."""
    assert span("3mo", tz="Europe/Berlin")[0] == "2026-08-21T08:00:00Z"
    assert span("1mo", now=datetime(2026, 3, 31, 9, 30, tzinfo=UTC))[0] == "2026-02-28T09:30:00Z"


def test_words_mean_the_days_of_the_zone():
    """Just after midnight in Berlin, today is already Berlin's day."""
    late = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    assert span("today", tz="Europe/Berlin", now=late) == ("2026-11-21T23:00:00Z", "2026-11-22T23:00:00Z")


CHANGES = """
Europe/Berlin 2026-03-29 23 | Europe/Berlin 2026-10-25 25 | Europe/Berlin 2026-07-01 24
America/New_York 2026-03-08 23 | America/New_York 2026-11-01 25 | Australia/Lord_Howe 2026-10-04 23.5
"""


@pytest.mark.parametrize("change", cells(CHANGES))
def test_a_day_reaches_to_the_next_local_midnight(change):
    """On the days when the clocks change, a day has 23 or 25 hours."""
    tz, day, hours = change.split()
    window = parse_usage_window(day, now=NOW, tz=tz)
    assert window.end_ns - window.start_ns == float(hours) * HOUR
    assert local_time(window.start_ns, ZoneInfo(tz)).isoformat()[:19] == f"{day}T00:00:00"


def test_a_day_without_midnight_begins_at_the_jump():
    """Where the clocks skip midnight, the day begins with its first minute."""
    window = parse_usage_window("2026-04-24", now=NOW, tz="Africa/Cairo")
    assert window.start == "2026-04-23T22:00:00Z"
    assert local_time(window.start_ns, ZoneInfo("Africa/Cairo")).hour == 1


def test_a_day_that_a_zone_left_out_is_refused():
    """Samoa had no 30 December 2011, so a window for it would be empty."""
    with pytest.raises(InvalidWindow, match="is empty"):
        parse_usage_window("2011-12-30", now=NOW, tz="Pacific/Apia")


@pytest.mark.parametrize(
    ("spec", "until", "start", "end"),
    [
        (None, "2026-11-20", None, "2026-11-21T00:00:00Z"),
        ("7d", "2d", "2026-11-14T09:00:00Z", "2026-11-19T09:00:00Z"),
        ("2026-11-01", "yesterday", "2026-11-01T00:00:00Z", "2026-11-21T00:00:00Z"),
        ("last-week", "today", "2026-11-09T00:00:00Z", "2026-11-22T00:00:00Z"),
        ("2026-11-01", "2026-11-01", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"),
        ("2026-11-01T00:00:00Z", "2026-11-01T00:00:01Z", "2026-11-01T00:00:00Z", "2026-11-01T00:00:01Z"),
    ],
)
def test_until(spec, until, start, end):
    """`until` ends the window: a date or word with its whole period, an instant and a relative form exactly there."""
    assert span(spec, until=until) == (start, end)


def test_two_ends_are_refused():
    """A range has its end already, and a second one is named instead of silently winning."""
    with pytest.raises(InvalidWindow, match=r"'2026-11-01\.\.' has both ends; leave out the second end, 'today'"):
        parse_usage_window("2026-11-01..", until="today", now=NOW)


def test_nine_digits_are_kept():
    """An instant keeps its nanoseconds, and further digits are cut as the original cuts them."""
    window = parse_usage_window("2026-11-01T10:00:00.000000001Z..2026-11-01T10:00:00,0000000029Z", now=NOW)
    assert (window.start, window.end) == ("2026-11-01T10:00:00.000000001Z", "2026-11-01T10:00:00.000000002Z")
    assert window.end_ns - window.start_ns == 1


NEAR_MISSES = """
7 d > 7d | 7D > 7d | -7d > 7d | 7days > 7d | 3 weeks ago > 3w | 12hours > 12h | 1m > 1mo | 2 months > 2mo | 1y > 12mo
week > this-week | Month > this-month | Today > today | last week > last-week | last_month > last-month
2026-4-1 > 2026-04-01 | 2026/04/01 > 2026-04-01 | 20260401 > 2026-04-01 | 2026-04-01 10:00 > 2026-04-01T10:00:00Z
2026-04-01t10:00:00z > 2026-04-01T10:00:00Z | 2026-04-01T10:00:00.5 > 2026-04-01T10:00:00.5Z
2026-04-01T10:00:00+0200 > 2026-04-01T10:00:00+02:00
"""


@pytest.mark.parametrize("pair", cells(NEAR_MISSES))
def test_near_misses_are_named(pair):
    """A text that is nearly a window is refused with the form that was meant, and that form is in the grammar."""
    given_spec, meant = pair.split(" > ")
    with pytest.raises(InvalidWindow) as caught:
        parse_usage_window(given_spec, now=NOW)
    assert str(caught.value).startswith(
        f"{given_spec!r} is not a time window; did you mean {meant!r}? A window is N + h"
    )
    assert parse_usage_window(meant, now=NOW) is not None


REFUSED = """
soon | now | d | 7 | 0d | 7d7d | 1.5d | ٧d | x..y | 2026-04-01...2026-04-02 | 2026-04-01 2026-04-02 | 2026-04-01T10:00:00
2026-04-01T24:00:00Z | 2026-04-01T10:00:60Z | 2026-04-01T10:00:00+24:00 | 2026-04-01T10:00:00.Z
"""


@pytest.mark.parametrize("spec", cells(REFUSED))
def test_anything_else_is_refused_with_the_forms(spec):
    """A refusal lists the whole grammar, so that the next try succeeds."""
    with pytest.raises(
        InvalidWindow, match=r"A window is N \+ h, d, w or mo .* this-month, last-month; YYYY-MM; YYYY-MM-DD; RFC 3339"
    ):
        parse_usage_window(spec, now=NOW)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("2026-13-01", "'2026-13-01' is not in the calendar. A window is N"),
        ("2026-02-29..", "'2026-02-29' is not in the calendar. A window is N"),
        ("2026-04-31T10:00:00Z", "'2026-04-31T10:00:00Z' is not in the calendar. A window is N"),
        ("0000-01-01", "'0000-01-01' is not in the calendar. A window is N"),
        ("7d..", "'7d' is not a time window here: the ends of A..B are dates or instants, so give it alone or"),
        ("2026-11-01..now", "'now' is not a time window; leave that end open."),
        ("..", "'..' has neither start nor end. A window is N"),
        ("9999-12-31", "window '9999-12-31' leaves the years 1 to 9999; give a nearer time"),
        ("9999-12-31T12:00:00Z", "window '9999-12-31T12:00:00Z' leaves the years 1 to 9999"),
        ("0001-01-01T00:00:00+05:00", "window '0001-01-01T00:00:00+05:00' leaves the years 1 to 9999"),
        ("99999mo", "window '99999mo' leaves the years 1 to 9999"),
        ("999999999999999999mo", "window '999999999999999999mo' leaves the years 1 to 9999"),
        ("20000000h", "window '20000000h' leaves the years 1 to 9999"),
        ("2026-11-02..2026-10-01", "window '2026-11-02..2026-10-01' is empty: it starts 2026-11-02T00:00:00Z and ends"),
        ("2026-11-01..2026-11-01T00:00:00Z", "window '2026-11-01..2026-11-01T00:00:00Z' is empty: it starts"),
    ],
)
def test_refusals_say_what_is_wrong(spec, message):
    """A text of the right shape that means no interval is refused by name, without an overflow."""
    with pytest.raises(InvalidWindow) as caught:
        parse_usage_window(spec, now=NOW)
    assert str(caught.value).startswith(message)


def test_a_now_without_zone_is_refused():
    """A naive present would silently mean another time on another machine."""
    with pytest.raises(InvalidWindow, match="now has no time zone"):
        parse_usage_window("7d", now=datetime(2026, 11, 21))


def test_messages_quote_hostile_text_harmlessly():
    """A refused text is shown bounded and without control characters."""
    with pytest.raises(InvalidWindow) as caught:
        parse_usage_window("\x1b]52;c;" + "A" * 10_000 + "\u202e", now=NOW)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@LAW
@given(
    st.one_of(st.text(), st.from_regex(r"[0-9:.TZ+ dhwmo-]{0,30}", fullmatch=True)),
    st.sampled_from([None, "today", "2d"]),
)
def test_any_text_is_a_window_or_refused(spec, until):
    """No text raises anything but InvalidWindow, and every window that comes out can be shown."""
    try:
        window = parse_usage_window(spec, until=until, now=NOW, tz=BERLIN)
    except InvalidWindow:
        return
    assert describe_window(window, BERLIN, now=NOW)
    assert window is None or window.to_dict() == {"start": window.start, "end": window.end}


@LAW
@given(
    st.one_of(
        st.sampled_from(["today", "yesterday", "this-week", "last-week", "this-month", "last-month"]),
        st.builds("{}{}".format, st.integers(1, 400), st.sampled_from(["h", "d", "w", "mo"])),
    ),
    moments,
    zones,
)
def test_a_window_is_never_empty(spec, now, zone):
    """Every form, at any time in any zone, starts before it ends, and now is not before the start."""
    window = parse_usage_window(spec, now=now, tz=zone)
    assert window.start_ns < window.end_ns
    assert window.start_ns <= ns(now.isoformat())


@LAW
@given(st.dates(date(1990, 1, 1), date(2060, 1, 1)), st.integers(1, 40), zones)
def test_days_tile_their_range(first, count, zone):
    """The days of a range follow each other without gap or overlap, and begin and end where the range does."""
    days = [first + timedelta(days=number) for number in range(count)]
    windows = [parse_usage_window(day.isoformat(), now=NOW, tz=zone) for day in days]
    assert all(left.end_ns == right.start_ns for left, right in pairwise(windows))
    whole = parse_usage_window(f"{days[0]}..{days[-1]}", now=NOW, tz=zone)
    assert (whole.start_ns, whole.end_ns) == (windows[0].start_ns, windows[-1].end_ns)


@LAW
@given(moments, zones)
def test_last_and_this_periods_are_neighbours(now, zone):
    """Yesterday, last week and last month end where today, this week and this month begin."""
    for before, after in (("yesterday", "today"), ("last-week", "this-week"), ("last-month", "this-month")):
        left, right = (parse_usage_window(word, now=now, tz=zone) for word in (before, after))
        assert left.end_ns == right.start_ns


@LAW
@given(instants, instants, instants)
def test_contains_is_half_open(one, two, time_ns):
    """The start is inside, the end is not, and an instant is in exactly one of two neighbouring windows."""
    start, end = sorted((one, two if one != two else two + 1))
    window = UsageWindow(start_ns=start, end_ns=end)
    assert window.contains(start)
    assert window.contains(end - 1)
    assert not window.contains(end)
    assert not window.contains(start - 1)
    before, after = UsageWindow(end_ns=start), UsageWindow(start_ns=end)
    assert [part.contains(time_ns) for part in (before, window, after)].count(True) == 1


@LAW
@given(instants, zones)
def test_the_shown_start_reads_back_to_the_same_nanosecond(time_ns, zone):
    """What to_dict shows is a form of the grammar and means the same instant."""
    text = UsageWindow(start_ns=time_ns).start
    assert parse_usage_window(f"{text}..", now=NOW, tz=zone).start_ns == time_ns


@LAW
@given(instants, zones)
def test_day_keys_are_the_days_of_windows(time_ns, zone):
    """An instant lies in the window of its day key, so grouping by day and asking for a day agree."""
    assert parse_usage_window(day_key(time_ns, zone), now=NOW, tz=zone).contains(time_ns)


def test_the_constructor_refuses_wrong_windows():
    """A window that contains nothing, or that no calendar can show, cannot be made."""
    with pytest.raises(InvalidWindow, match="empty"):
        UsageWindow(start_ns=5, end_ns=5)
    with pytest.raises(InvalidWindow, match="years"):
        UsageWindow(start_ns=10**21)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (None, "all time"),
        ("7d", "14 Nov 10:00 – 21 Nov 10:00 (Europe/Berlin)"),
        ("today", "21 Nov (Europe/Berlin)"),
        ("last-month", "1 Oct – 31 Oct (Europe/Berlin)"),
        ("2025-12-30..2026-01-02", "30 Dec 2025 – 2 Jan (Europe/Berlin)"),
        ("2026-11-14..", "since 14 Nov (Europe/Berlin)"),
        ("2026-11-14T10:00:00+01:00..", "since 14 Nov 10:00 (Europe/Berlin)"),
        ("..2026-11-14", "until 14 Nov (Europe/Berlin)"),
        ("..2026-11-14T10:00:00Z", "until 14 Nov 11:00 (Europe/Berlin)"),
        ("2026-11-21T08:00:00Z..2026-11-21T08:30:00Z", "21 Nov 09:00 – 09:30 (Europe/Berlin)"),
        ("2026-11-21T08:00:00Z..2026-11-21T08:00:30Z", "21 Nov 09:00:00 – 09:00:30 (Europe/Berlin)"),
        ("2026-10-25", "25 Oct (Europe/Berlin)"),
        ("..0001-01-01T00:00:00Z", "until 1 Jan 1 00:53 (Europe/Berlin)"),
    ],
)
def test_describe(spec, words):
    """The header says a window in local words; whole days show the last day inside, not the midnight after it."""
    assert describe_window(parse_usage_window(spec, now=NOW, tz=BERLIN), BERLIN, now=NOW) == words


def test_describe_at_the_edge_of_the_calendar():
    """A window that ends with the first midnight of the calendar is shown without an overflow."""
    window = parse_usage_window("..0001-01-01T00:00:00Z", now=NOW)
    assert describe_window(window, "UTC", now=NOW) == "until 1 Jan 1 (UTC)"
    assert describe_window(window, NEW_YORK, now=NOW).startswith("until 1 Jan 1 ")


def test_no_window_loads_dateutil():
    """Its 50 ms are more than a whole report without news takes."""
    script = (
        "import sys; from sessionlog.analytics.window_grammar import parse_usage_window as p\n"
        "p('7d'); p('last-month'); p('1mo'); print('dateutil' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@LAW
@given(st.datetimes(min_value=datetime(1990, 1, 1), timezones=zones), st.integers(1, 30) | st.integers(1, 20_000))
def test_calendar_months_are_those_of_dateutil(now, count):
    """The same day of an earlier month, or its last one; the wall clock stays."""
    since = now - relativedelta(months=count) - datetime(1970, 1, 1, tzinfo=UTC)
    window = parse_usage_window(f"{count}mo", now=now, tz=now.tzinfo)
    assert window.start_ns == (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000


def test_a_window_is_taken_as_it_is():
    """A `UsageWindow` passes through, and a second end beside it is refused instead of ignored."""
    window = UsageWindow(start_ns=1, end_ns=2)
    assert parse_usage_window(window) is window
    with pytest.raises(InvalidWindow, match="both ends"):
        parse_usage_window(window, until="today")


@pytest.mark.parametrize(
    ("spec", "start", "end"),
    [
        ("2026-11", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-10..", "2026-10-01T00:00:00Z", None),
        ("2026-09..2026-10", "2026-09-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("..2026-12", None, "2027-01-01T00:00:00Z"),
    ],
)
def test_a_month_is_from_its_first_day_to_the_next_ones(spec, start, end):
    """Alone, and as an end, which is inside."""
    window = parse_usage_window(spec)
    assert (window.start, window.end) == (start, end)


@pytest.mark.parametrize("spec", ["2026-13", "2026-00", "0000-01", "2026-1"])
def test_what_is_no_month_is_refused(spec):
    """By name."""
    with pytest.raises(InvalidWindow, match=spec):
        parse_usage_window(spec)
