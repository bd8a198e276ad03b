"""What a time used against the equal time before it, and where the month leads to."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.trend import project_month, usage_before
from sessionlog.analytics.window_grammar import month_of, parse_usage_window, previous_window
from tests.ledger.entries import NOON, book_of, record, session
from tests.profiles import examples

DAY = 86_400 * 10**9
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def asked(window, *, tz="UTC", now=NOW, filters=None):
    return Selection.of(window, until=None, filters=filters, tz=tz, now=now)


def spent(*days_ago_and_nano):
    """A book with a request so many days before noon of the 20th, and its cost."""
    records = [record(time_ns=NOON - round(days * DAY), cost_nano=nano) for days, nano in days_ago_and_nano]
    book = book_of(session("s", *records))
    asked(None).prepare(book)
    return book


@pytest.mark.parametrize(
    ("window", "before"),
    [
        ("7d", ("2026-11-06T12:00:00Z", "2026-11-13T12:00:00Z")),
        ("today", ("2026-11-19T00:00:00Z", "2026-11-19T12:00:00Z")),
        ("yesterday", ("2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z")),
        ("this-week", ("2026-11-09T00:00:00Z", "2026-11-13T12:00:00Z")),
        ("this-month", ("2026-10-01T00:00:00Z", "2026-10-20T12:00:00Z")),
        ("2026-03", ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")),
        ("2026-10-01..2026-10-03", ("2026-09-28T00:00:00Z", "2026-10-01T00:00:00Z")),
        ("2026-11-10..", ("2026-10-30T12:00:00Z", "2026-11-10T00:00:00Z")),
    ],
)
def test_the_time_before_is_the_calendars(window, before):
    """Months before months, days before days, and only as much of them as has passed of the window."""
    found = previous_window(parse_usage_window(window, now=NOW), "UTC", now_ns=NOON)
    assert (found.start, found.end) == before


def test_an_open_start_has_nothing_before_it():
    """All that there is lies in the window."""
    assert previous_window(parse_usage_window("..2026-11-10", now=NOW), "UTC", now_ns=NOON) is None


def test_days_of_other_lengths_stay_days():
    """The week in which clocks change has an hour more than the one before it."""
    zone = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 10, 27, 12, tzinfo=UTC)
    window = parse_usage_window("last-week", now=now, tz=zone)
    found = previous_window(window, zone, now_ns=int(now.timestamp()) * 10**9)
    assert (window.end_ns - window.start_ns) - (found.end_ns - found.start_ns) == 3600 * 10**9
    assert found.end_ns == window.start_ns


@examples(60)
@given(st.integers(0, 3000), st.sampled_from(["1h", "7d", "2w", "3mo", "today", "this-month", "last-month", "2026-02"]))
def test_the_time_before_ends_where_the_window_begins_or_earlier(days, window):
    """Whenever it is asked."""
    now = datetime(2020, 1, 1, 7, 30, tzinfo=UTC) + timedelta(days=days)
    asked_for = parse_usage_window(window, now=now)
    found = previous_window(asked_for, "UTC", now_ns=int(now.timestamp()) * 10**9)
    if found is None:
        assert asked_for.start_ns >= int(now.timestamp()) * 10**9
    else:
        assert found.start_ns < found.end_ns <= asked_for.start_ns


def test_it_sums_what_the_filters_choose():
    """Cost and tokens of the time before alone."""
    book = spent((20, 1), (9, 300), (8, 400), (1, 50))
    used = usage_before(book, asked("7d"))
    assert (used.requests, used.cost_nano, used.total_tokens) == (2, 700, 30)
    assert usage_before(book, asked("7d", filters={"model": ["other"]})) is None


def test_logs_that_do_not_go_back_so_far_are_not_compared():
    """Who began three days ago did not use less in the week before."""
    assert usage_before(spent((9, 300), (1, 50)), asked("7d")) is None
    assert usage_before(spent((15, 1), (9, 300), (1, 50)), asked("7d")).cost_nano == 300


def test_the_month_goes_on_like_the_window():
    """What it has cost so far, and the window's pace for the rest."""
    book = spent((30, 10**9), (19, 10**9), (4, 5 * 10**9), (1, 2 * 10**9))
    projection = project_month(book, asked("7d"))
    assert projection.cost_usd_per_day == pytest.approx(1.0)
    assert projection.cost_usd == pytest.approx(8.0 + 10.5)
    assert projection.month == month_of(NOON, "UTC")
    assert (projection.is_estimated, projection.is_partial) == (False, False)


def test_a_pace_begins_with_the_first_request():
    """A window of thirty days is not thirty days of use for who began four days ago."""
    projection = project_month(spent((4, 8 * 10**9)), asked("30d"))
    assert projection.cost_usd_per_day == pytest.approx(2.0)


@pytest.mark.parametrize("window", ["1d", "today", "last-week", "..2026-11-30", "2026-11-01..2026-11-19"])
def test_a_window_that_does_not_tell_leads_nowhere(window):
    """It is too short, or ends before now, or has no beginning."""
    book = spent((30, 10**9), (19, 10**9), (4, 5 * 10**9), (0.1, 2 * 10**9))
    assert project_month(book, asked(window)) is None


@pytest.mark.parametrize("microseconds", [0, 1, 123456, 123457, 999999])
def test_every_fraction_of_a_second_is_now(microseconds):
    """A window up to now ends now, to the nanosecond, and two days are two days."""
    now = NOW.replace(microsecond=microseconds)
    book = spent((30, 10**9), (1.5, 10**9))
    for window in ("7d", "2d"):
        assert project_month(book, asked(window, now=now)) is not None


def test_what_is_free_leads_to_no_cost():
    """Nothing a day is no pace."""
    free = {"model": "gift", "cost_nano": 0}
    book = book_of(session("s", *(record(time_ns=NOON - days * DAY, **free) for days in (30, 4))))
    asked(None).prepare(book)
    assert project_month(book, asked("7d")) is None


@pytest.mark.parametrize(
    ("window", "now", "tz", "end"),
    [
        ("this-month", "2026-11-28T11:00:00+00:00", "Europe/Berlin", "2026-10-28T11:00:00Z"),
        ("this-month", "2026-04-30T10:00:00+00:00", "Europe/Berlin", "2026-03-30T10:00:00Z"),
        ("today", "2026-10-26T11:00:00+00:00", "Europe/Berlin", "2026-10-25T11:00:00Z"),
        ("today", "2026-03-29T10:00:00+00:00", "Europe/Berlin", "2026-03-28T11:00:00Z"),
        ("1mo", "2026-11-23T11:00:00+00:00", "Europe/Berlin", "2026-10-23T10:00:00Z"),
    ],
)
def test_the_same_time_of_day_whatever_clocks_did(window, now, tz, end):
    """Noon is compared with noon."""
    moment = datetime.fromisoformat(now)
    found = previous_window(parse_usage_window(window, now=moment, tz=tz), tz, now_ns=int(moment.timestamp()) * 10**9)
    assert found.end == end


def test_a_month_before_begins_a_month_before():
    """However many days it has."""
    found = previous_window(parse_usage_window("1mo", now=NOW), "UTC", now_ns=NOON)
    assert (found.start, found.end) == ("2026-09-20T12:00:00Z", "2026-10-20T12:00:00Z")


def test_marks_of_the_cost_are_kept():
    """An estimate makes an estimate, and what has no price is missing in it."""
    book = book_of(
        session("s", record(time_ns=NOON - 3 * DAY), record(time_ns=NOON - 3 * DAY, provider="nobody", cost_nano=None))
    )
    asked(None).prepare(book)
    projection = project_month(book, asked("7d"))
    assert (projection.is_estimated, projection.is_partial) == (True, True)
