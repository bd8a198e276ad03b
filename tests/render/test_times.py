"""Instants in the wall clock of their zone, and paths under home."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sessionlog.render.times import clock, day_title, home_path, stamp

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)  # 23:30 in Berlin


def ns(text):
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


def test_clock():
    """The time of day is that of the zone, without seconds."""
    assert clock(ns("2026-11-21T08:58:59Z"), BERLIN) == "09:58"
    assert clock(ns("2026-11-21T08:58:59Z"), UTC) == "08:58"


def test_stamp_shows_another_year():
    """A stamp has its year only where it is not this one, by the calendar of the zone."""
    assert stamp(ns("2026-11-21T08:58:00Z"), BERLIN, now=NOW) == "21 Nov 09:58"
    assert stamp(ns("2025-12-31T22:30:00Z"), BERLIN, now=NOW) == "31 Dec 2025 23:30"
    assert stamp(ns("2025-12-31T23:30:00Z"), BERLIN, now=NOW) == "1 Jan 00:30"


@pytest.mark.parametrize(
    ("instant", "title"),
    [
        ("2026-11-21T12:00:00Z", "TODAY 21 Nov"),
        ("2026-11-20T23:30:00Z", "TODAY 21 Nov"),
        ("2026-11-20T12:00:00Z", "YESTERDAY 20 Nov"),
        ("2026-11-19T12:00:00Z", "THU 19 Nov"),
        ("2026-11-22T12:00:00Z", "SUN 22 Nov"),
        ("2025-11-21T12:00:00Z", "FRI 21 Nov 2025"),
    ],
)
def test_day_title(instant, title):
    """The heading of a day is today, yesterday or its weekday, in the zone."""
    assert day_title(ns(instant), BERLIN, now=NOW) == title


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [
        ("/home/ann/src/api", "/home/ann", "~/src/api"),
        ("/home/ann/src/api", "/home/ann/", "~/src/api"),
        ("/home/ann", "/home/ann", "~"),
        ("/home/anna/src", "/home/ann", "/home/anna/src"),
        ("/srv/home/ann", "/home/ann", "/srv/home/ann"),
        ("C:\\Users\\ann\\src", "C:\\Users\\ann", "~\\src"),
        ("/srv", "/", "/srv"),
        ("/srv", "", "/srv"),
        ("unknown", "/home/ann", "unknown"),
    ],
)
def test_home_path(path, home, shown):
    """Only a whole home folder at the start becomes `~`."""
    assert home_path(path, home) == shown
