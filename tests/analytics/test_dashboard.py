"""The dashboard's figures are those of the reports."""

from datetime import UTC, datetime, timedelta

import pytest

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.dashboard import read_dashboard
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock
from tests.analytics.week import DATA, NOW, usage
from tests.ledger.entries import PRICES

WEEK = DATA / "week"


def seen(paths=WEEK, **options):
    """The dashboard of the week's logs at noon on its Saturday."""
    return read_dashboard(paths=paths, **({"prices": PRICES, "now": NOW} | options))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_figures_are_those_of_usage(zone):
    """All time, today and this week, in any zone."""
    found = seen(tz=zone)
    for part, window in ((found.whole, None), (found.today, "today"), (found.week, "this-week")):
        totals = usage(WEEK, window=window, tz=zone).totals
        for name in ("sessions", "requests", "total_tokens", "cost_nano", "estimated_nano", "cost_is_partial"):
            assert getattr(part, name) == getattr(totals, name), (window, name)
    assert found.whole.sessions > found.today.sessions > 0
    assert found.sources == len(usage(WEEK, by=["source"]).rows)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_days_are_those_of_usage(zone):
    """The cost of each of the last seven days, 0 where nothing was used."""
    rows = {row.keys["day"]: row.cost_nano for row in usage(WEEK, by=["day"], tz=zone).rows}
    today = datetime(2026, 11, 21, tzinfo=UTC)
    days = [f"{today - timedelta(days=back):%Y-%m-%d}" for back in reversed(range(7))]
    assert list(seen(tz=zone).days) == [rows.get(day) or 0 for day in days]
    assert sum(seen(tz=zone).days) > 0


def test_nothing_is_a_dashboard_too(tmp_path):
    """Without logs all sums are 0 and unknown costs stay unknown."""
    found = seen(tmp_path)
    assert (found.whole.sessions, found.sources, found.running, found.budgets) == (0, 0, (), {})
    assert (found.today.cost_nano, found.week_before, sum(found.days)) == (None, None, 0)


def record(folder, name, start, *, cost, ends=True):
    """Record a session with one response."""
    log = SessionLogger(folder, name, clock=FixedClock(start), provider="anthropic", model="claude-opus-4-5")
    log.llm_request([{"role": "user", "content": "go"}], model="claude-opus-4-5")
    log.llm_response("ok", model="claude-opus-4-5", usage={"input": 100_000, "output": 5}, cost_usd=cost)
    if ends:
        log.end("success")
    EventWriter.close(log)


def test_the_week_before_ends_at_the_same_quarter_hour(tmp_path):
    """What was used later in the last week is not compared."""
    record(tmp_path, "long-ago", "2026-11-02T09:00:00Z", cost=8)
    record(tmp_path, "before", "2026-11-14T11:58:00Z", cost=2)
    record(tmp_path, "later", "2026-11-14T12:20:00Z", cost=4)
    record(tmp_path, "now", "2026-11-21T11:50:00Z", cost=1)
    found = seen(tmp_path, now=datetime(2026, 11, 21, 12, 10, tzinfo=UTC))
    assert (found.week.cost_nano, found.week_before.cost_nano) == (10**9, 2 * 10**9)


def test_running_sessions_and_budgets(tmp_path):
    """Sessions without an end have their context; budgets come fullest first, and unknown ones are left out."""
    record(tmp_path, "old", "2026-11-21T10:00:00Z", cost=2)
    record(tmp_path, "older", "2026-11-21T11:54:00Z", cost=1, ends=False)
    record(tmp_path, "newer", "2026-11-21T11:58:00Z", cost=1, ends=False)
    rules = parse_budgets(
        {"day": {"usd": 10, "period": "day"}, "week": {"usd": 5, "window": "7d"}, "one": {"usd": 1, "per": "session"}}
    )
    found = seen(tmp_path, rules=rules)
    assert [one.session for one in found.running] == ["newer", "older"]
    assert found.running[0].context_percent == 50.0
    assert [(name, one["percent"]) for name, one in found.budgets.items()] == [("week", 80.0), ("day", 40.0)]
