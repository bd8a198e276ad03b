"""The budget report: the state of each budget, and its caveats.

It needs the ledger, which it brings up to date first: only the ledger has the usage of deleted logs and the
reservations.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.caveats import use_caveats
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.ledger import bring_up_to_date, keep_open
from sessionlog.analytics.budgets.states import BudgetState, budget_states
from sessionlog.analytics.columns import Column
from sessionlog.analytics.report import Report
from sessionlog.analytics.window import utc_nanoseconds
from sessionlog.analytics.zones import resolve_zone
from sessionlog.engine import scan_in_parallel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook

IDLE = "no session had an event in the last ten minutes"
"""Why the use of a per-session budget is unknown: without an active session, none is about to exceed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBudget:
    """One budget.

    Attributes:
        state: Its use, limit and level.
        session: For a per-session budget the source's id of the session shown; empty for others.
        caveats: Why its known use may be incomplete.
    """

    state: BudgetState
    session: str
    caveats: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The unit of its amounts: `usd`, `tokens` or `requests`."""
        return self.state.unit

    @property
    def unknown(self) -> list[str]:
        """Why its use may not be fully known, a sentence each."""
        return [*([IDLE] if self.state.is_idle else []), *self.caveats]


def _known(name: str) -> Callable[[ReportedBudget], Any]:
    """A getter of a state's value; None for a per-session budget without a session."""
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
"""The columns of a budget, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReport(Report):
    """The requested budgets, in the order of the config file."""

    schema = "sessionlog.budget/2"
    title = "Budgets"
    thing = "budget"
    total_row = False
    columns = COLUMNS

    rows: tuple[ReportedBudget, ...] = ()

    @property
    def extra(self) -> Mapping[str, Any]:
        """The names of the budgets that are exceeded or at their warning level."""
        return {"exceeded": self.names("exceeded"), "warned": self.names("warn")}

    def names(self, *levels: str) -> list[str]:
        """The names of the budgets at these levels."""
        return [one.state.name for one in self.rows if one.state.level in levels]

    @property
    def unknown(self) -> list[str]:
        """The names of the budgets that have caveats."""
        return [one.state.name for one in self.rows if one.caveats]


def report_budgets(
    ledger: str,
    rules: Sequence[BudgetRule],
    prices: PriceBook | None,
    *,
    env: Mapping[str, str],
    zone: str,
    now: datetime,
    jobs: int | None = 1,
    progress: Progress | None = None,
) -> BudgetReport:
    """Bring a ledger up to date and return the report on budgets.

    Args:
        ledger: The ledger's file; created if missing.
        rules: The budgets.
        prices: The prices of responses without a recorded cost; None for the list prices.
        env: The environment, by which the agents' logs and the ledger's marker are found.
        zone: The time zone of days, weeks and months.
        now: The present, for the budgets' periods.
        jobs: Processes that scan; None to choose by the amount of work.
        progress: Called after every log.

    Raises:
        LedgerUnusable: The ledger cannot be opened.
        OSError: Its marker cannot be read or written.
        sqlite3.Error: It is damaged, or another process has been writing for too long.
        InvalidWindow: The time zone is unknown.
    """
    now_ns, moment = utc_nanoseconds(now), read_clock()

    def fold(book: Book, notes: Sequence[str]) -> BudgetReport:
        states = budget_states(book.query, rules, now_ns=now_ns, zone=resolve_zone(zone), moment=moment)
        warnings = tamper_check.warnings(book.query, ledger, env, read_clock())
        return BudgetReport(rows=tuple(_reported(book, state, [*notes, *warnings]) for state in states))

    kept = keep_open(ledger, prices, env, read_clock)
    try:
        with kept.locked() as book:
            notes = bring_up_to_date(book, env, scanner=scan_in_parallel(jobs=jobs), progress=progress)
            with book.reading():
                return fold(book, notes)
    finally:
        kept.close()


def _reported(book: Book, state: BudgetState, notes: Sequence[str]) -> ReportedBudget:
    found = book.query("SELECT session FROM sessions WHERE id = :session_id", {"session_id": state.session})
    session = str(found[0][0]) if found else ""
    used = round(state.used * state.rule.in_one)
    caveats = use_caveats(book.query, state.rule, state.start_ns, used, session=session or None)
    return ReportedBudget(state=state, session=session, caveats=(*notes, *caveats))
