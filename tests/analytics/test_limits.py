"""Limits: only as logged, nothing of what is over, what holds first."""

from datetime import UTC, datetime

import pytest

from sessionlog.analytics import dashboard
from sessionlog.analytics.blocks import fold_blocks
from sessionlog.analytics.limits import RateLimit, rate_limits, stamp
from sessionlog.analytics.question import Question
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.status.budgets import provider_windows
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit
from tests.analytics.workday import HOUR, fold_hours
from tests.ledger.entries import NOON, book_of, record, session


def word(now_ns=NOON, source="codex", **fields):
    known = {"time_ns": NOON - HOUR, "name": "primary", "logged_percent": 40.0}
    return RateLimit(source=source, **(known | fields), now_ns=now_ns)


@pytest.mark.parametrize(
    ("fields", "resets_ns", "used"),
    [
        ({"resets_ns": NOON + 1}, NOON + 1, 40.0),
        ({"resets_ns": NOON}, NOON, None),
        ({"resets_ns": NOON + 1, "window_minutes": 5.0}, NOON + 1, 40.0),
        ({"window_minutes": 61}, None, 40.0),
        ({"window_minutes": 60.0}, None, None),
        ({}, None, 40.0),
    ],
)
def test_a_limit_that_has_started_anew_is_not_used(fields, resets_ns, used):
    """At the time that was named, else when its window must be over; a time that was not named is not made up."""
    one = word(**fields)
    assert (one.resets_ns, one.used_percent, one.has_reset) == (resets_ns, used, used is None)
    told = one.to_dict()
    assert told["resets"] == stamp(resets_ns)
    assert (told["used_percent"], told["said_percent"], told["has_reset"]) == (used, 40.0, used is None)


def test_a_limit_says_how_old_its_word_is():
    """As of now."""
    assert word().age_ms == 3_600_000
    assert word().at(NOON + HOUR).age_ms == 7_200_000


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
    named = [(one.source, one.name, one.used_percent) for one in report.limits]
    assert named == [("codex", "primary", 2), ("codex", "secondary", 1), ("unknown", "x", 3)]
    assert report.sources == ("claude-code",)


def test_limits_whose_window_is_over_come_last():
    """They say nothing of the present."""
    limits = [
        ("codex", Limit(time_ns=NOON - 9 * HOUR, name="over", used_percent=1, window_minutes=300)),
        ("pi", Limit(time_ns=NOON, name="holds", used_percent=2, window_minutes=10_080)),
    ]
    assert [one.name for one in fold_hours(limits=limits).limits] == ["holds", "over"]


REPORTS = {"past": (NOON - HOUR, 40.0), "future": (NOON + 2 * HOUR, 99.0)}


def told_everywhere(book, now_ns):
    """The percentage of the five hours in every command that shows it."""
    chosen = Selection.of(None, until=None, filters=None, tz="UTC", now=datetime.fromtimestamp(now_ns / 1e9, UTC))
    blocks = fold_blocks(book, chosen, hours=5, only_active=False)
    budgets = provider_windows(book.query, None, now_ns, {})
    windows = fold_dashboard(book, now_ns)
    return {
        "blocks": [one.used_percent for one in blocks.limits],
        "status": [one["used"] for one in budgets.values() if one],
        "dashboard": [one["used"] for one in windows.values()],
        "limits": [one.used_percent for one in rate_limits(book.query, now_ns, "codex")],
    }


def fold_dashboard(book, now_ns):
    """The budgets of the dashboard."""
    return dashboard._budgets(book, Question(tz="UTC"), (), now_ns)


@pytest.mark.parametrize("turned", [False, True])
def test_a_report_of_the_future_hides_none_of_the_past(turned):
    """A clock that was ahead, or an earlier `--now`: the last report until then holds, in every command."""
    book = book_of()
    for name in sorted(REPORTS, reverse=turned):
        time_ns, used = REPORTS[name]
        limit = Limit(time_ns=time_ns, name="primary", used_percent=used, window_minutes=300)
        book.add_scan(LogScan(sessions=(session(name, record(), source="codex"),), limits=(limit,)))
    assert all(told == [40.0] for told in told_everywhere(book, NOON).values())
    assert all(told == [99.0] for told in told_everywhere(book, NOON + 3 * HOUR).values())
    assert all(told == [] for told in told_everywhere(book, NOON - 2 * HOUR).values())


def test_a_reset_time_that_is_not_logged_is_unknown_in_every_command():
    """Also when the window must be over: it ended then at the latest."""
    book, why = book_of(), {}
    limit = Limit(time_ns=NOON - HOUR, name="primary", used_percent=40.0, window_minutes=300)
    book.add_scan(LogScan(sessions=(session("s", record(), source="codex"),), limits=(limit,)))
    for now_ns, used in ((NOON, 40.0), (NOON + 5 * HOUR, None)):
        [one] = rate_limits(book.query, now_ns)
        entry = provider_windows(book.query, None, now_ns, why)["hourly"]
        assert (one.used_percent, one.to_dict()["resets"]) == (entry["used"], entry["resetsAt"]) == (used, None)
    assert "was over at 2026-11-20T16:00:00.000000Z at the latest" in why["usage.budgets.hourly.used"]
