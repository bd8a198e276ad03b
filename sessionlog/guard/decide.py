"""Decide: whether the session may go on, by its budgets, its cost per minute and its last calls."""

from __future__ import annotations

from dataclasses import dataclass
from time import time_ns

from sessionlog.analytics.budgets.states import FUNCTIONS
from sessionlog.errors import LedgerUnusable
from sessionlog.guard.loops import find_repeats
from sessionlog.guard.spending import Spending
from sessionlog.guard.unread import find_unread
from sessionlog.guard.warned import not_warned_yet
from sessionlog.ledger.opening import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.guard.hook import Hook
    from sessionlog.guard.limits import GuardLimits
    from sessionlog.ledger.book import Book


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was found for one call of a hook.

    Attributes:
        spent: The budgets at their stop level.
        nearly_spent: The budgets at their warning level, each the first time for this session.
        repeats: How often the call was made in a row with the same results; 0 if that is no loop.
        cost_per_minute: The session's US dollars a minute, if it is above the limit; else None.
        unknown: Why what is left of a budget is not fully known, if that was asked for; empty otherwise.
    """

    spent: Sequence[BudgetState] = ()
    nearly_spent: Sequence[BudgetState] = ()
    repeats: int = 0
    cost_per_minute: float | None = None
    unknown: Sequence[str] = ()

    @property
    def denies(self) -> bool:
        """Whether the session has to stop."""
        return bool(self.spent or self.repeats or self.cost_per_minute is not None or self.unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a session has to keep to, and where its use is known.

    Attributes:
        budgets: The user's budgets.
        limits: The other limits.
        zone: The time zone of days, weeks and months.
        ledger: The ledger's file.
        env: The environment.
        is_strict: Whether an amount that is not fully known stops the session.
    """

    budgets: Sequence[BudgetRule]
    limits: GuardLimits
    zone: str
    ledger: str
    env: Mapping[str, str]
    is_strict: bool = False


def decide_unread(hook: Hook, rules: Rules) -> Decision | None:
    """Return what was found without reading the session's logs into the ledger; None if they have to be read.

    Raises:
        sqlite3.Error: The ledger is damaged.
        OSError: The warnings cannot be remembered.
        LogNotReadable: The session's log cannot be read.
    """
    if not rules.budgets and rules.limits.cost_per_minute is None:
        return Decision(repeats=find_repeats(hook, rules.limits.repeats))
    if rules.is_strict or hook.moment != "call":
        return None
    try:
        book = open_ledger(rules.ledger, write=False)
    except LedgerUnusable:
        return None
    with book:
        spending = _spending(hook, book, rules)
        unread = find_unread(book.query, hook, spending.session)
        if unread is None or spending.is_near(rules.budgets, rules.limits.cost_per_minute, unread):
            return None
        return _decide(hook, spending, rules)


def decide(hook: Hook, book: Book, rules: Rules) -> Decision:
    """Return what was found in the ledger, and at the end of the session's log.

    Raises:
        sqlite3.Error: The ledger is damaged.
        OSError: The warnings cannot be remembered.
        LogNotReadable: The session's log cannot be read.
    """
    return _decide(hook, _spending(hook, book, rules), rules)


def has_spent_budget(hook: Hook, book: Book, rules: Rules) -> bool:
    """Return whether a budget is at its stop level in the ledger: what else there is to read can only add to it.

    Raises:
        sqlite3.Error: The ledger is damaged.
    """
    return any(state.level == "exceeded" for state in _spending(hook, book, rules).reached(rules.budgets))


def _spending(hook: Hook, book: Book, rules: Rules) -> Spending:
    for name, function in FUNCTIONS.items():
        book.define(name, function)
    return Spending(book.query, hook, now_ns=time_ns(), zone=rules.zone)


def _decide(hook: Hook, spending: Spending, rules: Rules) -> Decision:
    limits = rules.limits
    reached = spending.reached(rules.budgets)
    spent = [state for state in reached if state.level == "exceeded"]
    cost = spending.cost_per_minute() if limits.cost_per_minute is not None else 0.0
    decision = Decision(
        spent=spent,
        repeats=0 if spent else find_repeats(hook, limits.repeats),
        cost_per_minute=cost if limits.cost_per_minute is not None and cost > limits.cost_per_minute else None,
        unknown=spending.unknown(rules.budgets, ledger=rules.ledger, env=rules.env) if rules.is_strict else (),
    )
    if decision.denies:
        return decision
    nearly = [state for state in reached if state.level == "warn"]
    return Decision(nearly_spent=not_warned_yet(hook, nearly, rules.env) if nearly else ())
