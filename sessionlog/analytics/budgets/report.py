"""The report on budgets: the state of each, and what speaks against it. Nothing is a silent pass.

It is asked of the ledger alone, brought up to date first: without it nothing is known of logs that are gone, and of
what is reserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.gaps import find_gaps
from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.states import BudgetState, budget_states
from sessionlog.analytics.budgets.sums import Use
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.book import Book
from sessionlog.ledger.sync import Progress, Scanner, scan_here

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.clock import Clock
    from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.budget/1"
COLUMNS = (
    "name", "used", "limit", "percent", "unit", "windowSeconds", "resetsAt", "source", "reserved", "level",
    "burnPerHour", "runsOutAt", "unpricedRequests", "session", "unknown",
)  # fmt: skip
"""The columns of CSV: a budget's name, and all that the document says of it."""

IDLE = "no session had an event in the last ten minutes"
"""Why nothing is known of a budget that every session has for itself; nobody is about to exceed it then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBudget:
    """One budget.

    Attributes:
        state: How it is.
        session: Of a session's budget the id of the session shown, as its source names it; empty for others.
        gaps: Why what is known may not be all of it.
    """

    state: BudgetState
    session: str
    gaps: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON object, without the name."""
        idle = [IDLE] if self.state.is_idle else []
        return {**self.state.to_dict(), "session": self.session or None, "unknown": [*idle, *self.gaps]}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReport:
    """All budgets that were asked for, in the order in which they are written.

    Attributes:
        budgets: Each of them.
    """

    budgets: tuple[ReportedBudget, ...]

    def names(self, *levels: str) -> list[str]:
        """The names of the budgets at these levels."""
        return [one.state.name for one in self.budgets if one.state.level in levels]

    @property
    def unknown(self) -> list[str]:
        """The names of the budgets of which not all is known."""
        return [one.state.name for one in self.budgets if one.gaps]

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.budget/1`."""
        return {
            "schema": SCHEMA,
            "exceeded": self.names("exceeded"),
            "warned": self.names("warn"),
            "budgets": {one.state.name: one.to_dict() for one in self.budgets},
        }


def report_budgets(
    ledger: str,
    rules: Sequence[BudgetRule],
    prices: PriceBook,
    *,
    env: Mapping[str, str],
    zone: str,
    now: datetime,
    clock: Clock = read_clock,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> BudgetReport:
    """Bring a ledger up to date, and ask it for the state of budgets.

    Args:
        ledger: The ledger's file; a missing one is made.
        rules: The budgets.
        prices: What has no recorded cost is estimated at these.
        env: Where agents write, and where the ledger's marker is.
        zone: Whose days, weeks and months.
        now: The present, for the budgets' times.
        clock: What time it is for reservations, and for the ledger's tamper_check.
        scanner: Who scans.
        progress: Called after every log.

    Raises:
        LedgerUnusable: The ledger cannot be opened.
        OSError: Its marker cannot be read or written.
        sqlite3.Error: It is damaged, or another process has been writing for too long.
        InvalidWindow: There is no such zone.
    """
    place = BudgetBook(ledger, prices, env, clock)
    now_ns, moment = int(now.timestamp()) * 1_000_000_000 + now.microsecond * 1000, clock()
    try:
        with place.asking() as book:
            behind = place.bring_up_to_date(book, scanner=scanner, progress=progress)
            with book.reading():
                states = budget_states(book.query, rules, now_ns=now_ns, zone=resolve_zone(zone), moment=moment)
                return BudgetReport(budgets=tuple(_reported(place, book, state, behind, clock) for state in states))
    finally:
        place.close()


def _reported(place: BudgetBook, book: Book, state: BudgetState, behind: Sequence[str], clock: Clock) -> ReportedBudget:
    found = book.query("SELECT session FROM sessions WHERE id = :session_id", {"session_id": state.session})
    session = str(found[0][0]) if found else ""
    use = Use(amount=round(state.used * state.rule.in_one), unpriced=state.unpriced)
    gaps = find_gaps(place, book, state.rule, clock(), state.start_ns, use, session=session or None)
    return ReportedBudget(state=state, session=session, gaps=(*behind, *gaps))
