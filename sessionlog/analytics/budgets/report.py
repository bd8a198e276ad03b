"""The report on budgets: the state of each, and what speaks against it. Nothing is a silent pass.

It is asked of the ledger alone, brought up to date first: without it nothing is known of logs that are gone, and of
what is reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.gaps import find_gaps
from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.states import BudgetState, budget_states
from sessionlog.analytics.budgets.sums import Use
from sessionlog.analytics.columns import Column
from sessionlog.analytics.report import Report
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.book import Book
from sessionlog.ledger.sync import Progress, Scanner, scan_here

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.clock import Clock
    from sessionlog.pricing.book import PriceBook

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

    @property
    def unit(self) -> str:
        """What its amounts are: `usd`, `tokens` or `requests`."""
        return self.state.unit

    @property
    def unknown(self) -> list[str]:
        """Why not all of its use may be known, a sentence each."""
        return [*([IDLE] if self.state.is_idle else []), *self.gaps]


def _known(name: str) -> Callable[[ReportedBudget], Any]:
    """What is unknown of a budget that every session has for itself while there is no session."""
    return lambda one: None if one.state.is_idle else getattr(one.state, name)


COLUMNS = (
    Column("name", "text", "BUDGET", get=attrgetter("state.name"), label="budget"),
    Column("used", "amount", "USED", get=_known("used")),
    Column("limit", "amount", "OF", get=attrgetter("state.limit")),
    Column("percent", "percent", "%", get=_known("percent")),
    Column("unit", "text"),
    Column("window_seconds", "seconds", get=attrgetter("state.window_seconds")),
    Column("resets_at", "time", "RESETS", 3, get=attrgetter("state.resets_ns"), label="resets"),
    Column("source", "text", get=attrgetter("state.source")),
    Column("reserved", "amount", "RESERVED", 5, get=attrgetter("state.reserved")),
    Column("level", "text", "LEVEL", get=attrgetter("state.level")),
    Column("burn_per_hour", "amount", "AN HOUR", 4, get=attrgetter("state.burn_per_hour"), label="burn rate"),
    Column("runs_out_at", "time", "RUNS OUT", 2, get=attrgetter("state.runs_out_ns"), label="runs out"),
    Column("unpriced_requests", get=attrgetter("state.unpriced")),
    Column("session", "text", get=lambda one: one.session or None),
    Column("unknown", "sentences"),
)
"""What is said of a budget, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReport(Report):
    """All budgets that were asked for, in the order in which they are written."""

    schema = "sessionlog.budget/2"
    title = "Budgets"
    thing = "budget"
    total_row = False
    columns: ClassVar[Sequence[Column]] = COLUMNS

    rows: tuple[ReportedBudget, ...] = ()

    @property
    def extra(self) -> Mapping[str, Any]:
        """The names of the budgets at or near their end."""
        return {"exceeded": self.names("exceeded"), "warned": self.names("warn")}

    def names(self, *levels: str) -> list[str]:
        """The names of the budgets at these levels."""
        return [one.state.name for one in self.rows if one.state.level in levels]

    @property
    def unknown(self) -> list[str]:
        """The names of the budgets of which not all is known."""
        return [one.state.name for one in self.rows if one.gaps]


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
                return BudgetReport(rows=tuple(_reported(place, book, state, behind, clock) for state in states))
    finally:
        place.close()


def _reported(place: BudgetBook, book: Book, state: BudgetState, behind: Sequence[str], clock: Clock) -> ReportedBudget:
    found = book.query("SELECT session FROM sessions WHERE id = :session_id", {"session_id": state.session})
    session = str(found[0][0]) if found else ""
    use = Use(amount=round(state.used * state.rule.in_one), unpriced=state.unpriced)
    gaps = find_gaps(place, book, state.rule, clock(), state.start_ns, use, session=session or None)
    return ReportedBudget(state=state, session=session, gaps=(*behind, *gaps))
