"""Limits: only as logged, nothing of what is over, what holds first."""

import pytest

from sessionlog.analytics.limits import RateLimit
from sessionlog.ledger.reading import LoggedLimit
from sessionlog.sources.record import Limit
from tests.analytics.workday import HOUR, MINUTE, fold_hours
from tests.ledger.entries import NOON, record, session


def word(now_ns=NOON, source="codex", **fields):
    known = {"time_ns": NOON - HOUR, "name": "primary", "used_percent": 40.0}
    return RateLimit(source=source, limit=LoggedLimit(**(known | fields)), now_ns=now_ns)


@pytest.mark.parametrize(
    ("fields", "resets_ns", "used"),
    [
        ({"resets_ns": NOON + 1}, NOON + 1, 40.0),
        ({"resets_ns": NOON}, NOON, None),
        ({"resets_ns": NOON + 1, "window_minutes": 5.0}, NOON + 1, 40.0),
        ({"window_minutes": 61}, NOON + MINUTE, 40.0),
        ({"window_minutes": 60.0}, NOON, None),
        ({}, None, 40.0),
    ],
)
def test_a_limit_that_has_started_anew_is_not_used(fields, resets_ns, used):
    """At the time that was named, else when its window must be over."""
    one = word(**fields)
    assert (one.resets_ns, one.used_percent, one.has_reset) == (resets_ns, used, used is None)
    told = one.to_dict()
    assert (told["used_percent"], told["said_percent"], told["has_reset"]) == (used, 40.0, used is None)


def test_a_limit_says_how_old_its_word_is():
    """Never less than nothing, should the clocks differ."""
    assert word().age_ms == 3_600_000
    assert word(now_ns=NOON - 2 * HOUR).age_ms == 0


def test_a_reset_beyond_the_calendar_is_its_end():
    """A log may name any number."""
    told = word(resets_ns=10**30).to_dict()
    assert (told["resets"], told["has_reset"]) == ("9999-12-31T23:59:59.000000Z", False)


def test_limits_are_of_all_sources_and_stand_in_order():
    """By source, then the shortest first; the latest word counts."""
    limits = [
        ("codex", Limit(time_ns=NOON, name="secondary", used_percent=1, window_minutes=10_080)),
        ("codex", Limit(time_ns=NOON + 1, name="primary", used_percent=2, window_minutes=300)),
        ("codex", Limit(time_ns=NOON, name="primary", used_percent=99, window_minutes=300)),
        ("", Limit(time_ns=NOON, name="x", used_percent=3)),
    ]
    report = fold_hours(session("s", record(), source="claude-code"), limits=limits)
    named = [(one.source, one.limit.name, one.used_percent) for one in report.limits]
    assert named == [("codex", "primary", 2), ("codex", "secondary", 1), ("unknown", "x", 3)]
    assert report.sources == ("claude-code",)


def test_limits_whose_window_is_over_come_last():
    """They say nothing of the present."""
    limits = [
        ("codex", Limit(time_ns=NOON - 9 * HOUR, name="over", used_percent=1, window_minutes=300)),
        ("pi", Limit(time_ns=NOON, name="holds", used_percent=2, window_minutes=10_080)),
    ]
    assert [one.limit.name for one in fold_hours(limits=limits).limits] == ["holds", "over"]
