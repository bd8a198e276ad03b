"""Dashboard: today, this week, what runs now and what is left, read from the ledger in a few milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.status.budgets import provider_windows
from sessionlog.analytics.sums import USED, Row, sums
from sessionlog.analytics.trend import PeriodUsage, usage_before, usage_in
from sessionlog.analytics.watch.snapshot import Pace, RunningSession, window_minutes, window_start
from sessionlog.analytics.watch.sums import Window, find_running, last_context, paces_of, running_session
from sessionlog.analytics.window import UsageWindow, midnight
from sessionlog.analytics.zones import day_key, local_time, resolve_zone
from sessionlog.ledger.book import Book
from sessionlog.ledger.schema import QUARTER_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.question import Options

DAYS = 7
"""Days whose usage is listed, today included."""

_DAY_NS = 86_400 * 1_000_000_000
_SOURCES = "SELECT COUNT(DISTINCT s.source) FROM sessions s WHERE s.counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The state of all agents on this machine.

    Attributes:
        whole: The usage of all time.
        sources: The number of agents that have usage.
        today: The usage of this day.
        week: The usage since Monday.
        week_before: The usage of the last week up to the same day and quarter hour; None if the logs do not go back so
            far.
        days: Nano-dollars of the last `DAYS` days, today last; tokens if none of them has a known cost.
        running: The running sessions, the newest first.
        budgets: Name → own budget or rate limit of a provider as in `sessionlog.status/1`, the fullest first; only
            those whose use is known.
        priced_from: The price list of the estimates.
        problem_count: Problems in the logs.
        notes: Sentences on what could not be read or done.
    """

    whole: PeriodUsage
    sources: int
    today: PeriodUsage
    week: PeriodUsage
    week_before: PeriodUsage | None
    days: tuple[int, ...]
    running: tuple[RunningSession, ...]
    budgets: Mapping[str, Mapping[str, Any]]
    priced_from: str
    problem_count: int
    notes: tuple[str, ...]


def read_dashboard(*, rules: Sequence[BudgetRule] = (), **options: Unpack[Options]) -> Dashboard:
    """Return the present state.

    Args:
        rules: The user's own budgets.
        options: `env`, `ledger`, `now`, `tz`, `prices`, `jobs` and `progress` of `Question`.
    """
    question = Question(**options)
    return answer(question, lambda book: fold_dashboard(book, question, rules))


def fold_dashboard(book: Book, question: Question, rules: Sequence[BudgetRule] = ()) -> Dashboard:
    """Query a book for the present state."""
    week = replace(question, window="this-week").selection(Selection)
    today = replace(question, window="today").selection(Selection).window
    assert week.window is not None
    assert today is not None
    week.prepare(book)
    [(sources,)] = book.query(_SOURCES, {})
    quarter_ns = week.now_ns // QUARTER_NS * QUARTER_NS  # a window that cuts a quarter hour takes 20 ms more
    return Dashboard(
        whole=usage_in(book, week, UsageWindow()),
        sources=sources,
        today=usage_in(book, week, today),
        week=usage_in(book, week, week.window),
        week_before=usage_before(book, replace(week, now_ns=quarter_ns)),
        days=_days(book, week),
        running=_running(book, week.now_ns),
        budgets=_budgets(book, question, rules, week.now_ns),
        priced_from=book.priced_from,
        problem_count=book.problem_count,
        notes=tuple(book.notes),
    )


def _days(book: Book, selection: Selection) -> tuple[int, ...]:
    zone = resolve_zone(selection.zone)
    noon_ns = midnight(local_time(selection.now_ns, zone).date(), zone) + _DAY_NS // 2
    names = [day_key(noon_ns - back * _DAY_NS, zone) for back in reversed(range(DAYS))]
    window = UsageWindow(start_ns=midnight(local_time(noon_ns - (DAYS - 1) * _DAY_NS, zone).date(), zone))
    costs, tokens = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for used in sums(book.query, Row, USED, *selection.sums(window), by={"time_ns": "r.time_ns"}):
        name = day_key(used.keys["time_ns"], zone)
        if name in costs:
            costs[name] += used.cost_nano or 0
            tokens[name] += used.total_tokens
    return tuple((costs if any(costs.values()) else tokens).values())


def _running(book: Book, now_ns: int) -> tuple[RunningSession, ...]:
    window = Window(start_ns=window_start(now_ns), now_ns=now_ns, filters={})
    running = find_running(book.query, window)
    if not running:
        return ()
    paces, _ = paces_of(book.query, window)
    minutes = window_minutes(now_ns)
    found = [
        running_session(one, last_context(book.query, one.id), replace(paces.get(one.id, Pace()), minutes=minutes))
        for one in running
    ]
    return tuple(sorted(found, key=lambda one: (-(one.start_ns or 0), one.source, one.session)))


def _budgets(book: Book, question: Question, rules: Sequence[BudgetRule], now_ns: int) -> dict[str, Mapping[str, Any]]:
    why: dict[str, str] = {}
    budgets = provider_windows(book.query, None, now_ns, why)
    if rules:
        from sessionlog.analytics.budgets.states import FUNCTIONS
        from sessionlog.analytics.status.own import LedgerLocation, add_own_budgets

        for name, function in FUNCTIONS.items():
            book.define(name, function)
        add_own_budgets(
            book.query, rules, budgets, why, now_ns=now_ns, zone=question.tz, found=None, missing="",
            location=LedgerLocation(str(question.ledger or ""), question.env or {}),
        )  # fmt: skip
    known = {name: one for name, one in budgets.items() if one is not None and one["percent"] is not None}
    return dict(sorted(known.items(), key=lambda item: -item[1]["percent"]))
