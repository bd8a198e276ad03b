"""Zones: keys of hours, days, weeks and months, and the machine's own zone."""

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import day_key, hour_key, month_key, resolve_zone, week_key, zone_name
from sessionlog.errors import InvalidWindow

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)  # a Saturday; 10:00 in Berlin
HOUR = 3600 * 10**9


def ns(text):
    delta = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def span(spec, *, until=None, tz="UTC", now=NOW):
    window = parse_usage_window(spec, until=until, now=now, tz=tz)
    assert window is not None
    return window.start, window.end


def cells(table):
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split("|")]


def test_keys():
    """An instant has its day, ISO week, month and hour in each zone."""
    time_ns = ns("2026-12-31T23:30:00+00:00")
    assert [key(time_ns, UTC) for key in (day_key, week_key, month_key)] == ["2026-12-31", "2026-W53", "2026-12"]
    assert [key(time_ns, BERLIN) for key in (day_key, week_key, month_key)] == ["2027-01-01", "2026-W53", "2027-01"]
    assert hour_key(time_ns, UTC) == "2026-12-31T23:00+00:00"
    assert hour_key(time_ns, ZoneInfo("Asia/Kolkata")) == "2027-01-01T05:00+05:30"


def test_the_repeated_hour_has_two_keys():
    """When the clocks go back, the two passes of an hour stay apart."""
    first = ns("2026-10-25T00:30:00+00:00")
    assert [hour_key(first + step * HOUR, BERLIN) for step in (0, 1)] == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
    ]


@pytest.mark.parametrize(
    "time_ns", [-(10**21), 10**21, ns("0001-01-01T00:00:00+00:00"), ns("9999-12-31T23:59:59+00:00")]
)
def test_keys_never_fail(time_ns):
    """A nonsense time in a log gets the nearest key the calendar has."""
    for key in (day_key, week_key, month_key, hour_key):
        assert key(time_ns, NEW_YORK)[:4] in {"0001", "9999"}
        assert key(time_ns, BERLIN)[:4] in {"0001", "9999"}


def test_zones():
    """A zone is an IANA name, UTC, or a tzinfo that is taken as it is."""
    assert resolve_zone("UTC") is UTC
    assert resolve_zone("Europe/Berlin") is BERLIN
    assert resolve_zone(NEW_YORK) is NEW_YORK
    assert [zone_name(zone) for zone in ("UTC", BERLIN)] == ["UTC", "Europe/Berlin"]
    assert zone_name(timezone(timedelta(hours=2))) == "UTC+02:00"


@pytest.mark.parametrize("name", ["Mars/Base", "Europe", "../zone", "/etc/passwd", "a\0b", ""])
def test_unknown_zones_are_named(name):
    """An unknown zone is refused with its name and the next step, whatever the name is."""
    with pytest.raises(InvalidWindow) as caught:
        parse_usage_window("today", now=NOW, tz=name)
    assert str(caught.value) == f"unknown time zone {name!r}; give an IANA name such as Europe/Berlin, UTC, or local"


@pytest.mark.parametrize(
    "pair", cells("Berlin > Europe/Berlin | new york > America/New_York | europe/paris > Europe/Paris")
)
def test_almost_known_zones_are_suggested(pair):
    """A city or another spelling is refused with the zone that was meant."""
    name, meant = pair.split(" > ")
    with pytest.raises(InvalidWindow, match=f"unknown time zone {name!r}; did you mean {meant!r}?"):
        resolve_zone(name)


@pytest.fixture
def machine_zone(monkeypatch):
    """Set the zone of the machine, as the C library sees it, for one test."""

    def choose(value):
        monkeypatch.setenv("TZ", value)
        time.tzset()

    yield choose
    monkeypatch.undo()
    time.tzset()


def test_local_is_the_machines_zone_by_name(machine_zone):
    """`local` finds the name of the machine's zone, with all its rules."""
    machine_zone("America/New_York")
    assert zone_name("local") == "America/New_York"
    assert span("2026-11-01", tz="local") == ("2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z")


def test_local_without_a_name_still_knows_summer_time(machine_zone):
    """A machine zone that is only a rule has no name, and days of 23 and 25 hours all the same."""
    machine_zone("CET-1CEST,M3.5.0,M10.5.0/3")
    assert zone_name("local") == "local time"
    assert span("2026-10-25", tz="local") == ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
    assert hour_key(ns("2026-10-25T01:30:00+00:00"), resolve_zone("local")) == "2026-10-25T02:00+01:00"


def test_a_name_that_the_c_library_does_not_follow_is_not_believed(machine_zone, monkeypatch):
    """When the environment names a zone that the process does not use, the clock wins over the name."""
    machine_zone("Europe/Berlin")
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # without tzset: the C library still says Berlin
    assert zone_name("local") == "local time"
    assert span("2026-07-01", tz="local")[0] == "2026-06-30T22:00:00Z"
