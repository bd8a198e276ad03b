"""Doubts: why what the ledger says of a budget may not be all of it, a sentence each.

A number with a doubt is a lower bound of what was used, and what is left is not known. Only the ledger is asked, and
nothing is imported for it but what a seal needs: the status line asks this, too.
"""

from __future__ import annotations

from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.sums import UnknownUse, unknown_use, unreadable_logs, untimed_requests

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.analytics.conditions import Query

_FEW = 3


def doubts_of(
    query: Query, states: Iterable[BudgetState], *, ledger: str, env: Mapping[str, str], now: ClockReading
) -> dict[str, list[str]]:
    """Return what speaks against the numbers of budgets, by their names; those without a doubt are left out.

    Args:
        query: Runs a statement on a ledger whose connection knows `states.FUNCTIONS`.
        states: The budgets as they are in that ledger.
        ledger: Its file.
        env: Where its marker is.
        now: The present by both clocks.

    Raises:
        LogNotReadable: The marker is there and cannot be read.
    """
    every = tamper_check.warnings(query, ledger, env, now)
    found = {}
    for state in states:
        rule = state.rule
        used = round(state.used * rule.in_one)
        sentences = [*every, *use_doubts(query, rule, state.start_ns, used, session_id=state.session)]
        if sentences:
            found[state.name] = sentences
    return found


def use_doubts(
    query: Query,
    rule: BudgetRule,
    start_ns: int | None,
    used: int,
    *,
    session: str | None = None,
    session_id: int | None = None,
) -> list[str]:
    """Return what the logs leave open of a budget's use since its start.

    Args:
        query: Runs a statement.
        rule: The budget.
        start_ns: Where its time began.
        used: What is known to be used, in its inner unit.
        session: The id of the session that was asked for alone; None for all.
        session_id: The same by the ledger's number.
    """
    found = []
    logs = unreadable_logs(query, rule)
    if logs:
        more = f" and {len(logs) - 1:,} more" if len(logs) > 1 else ""
        found.append(f"{logs[0]}{more} cannot be read")
    if start_ns is not None and (untimed := untimed_requests(query, rule, start_ns)):
        found.append(f"the log says of {untimed:,} {'response' if untimed == 1 else 'responses'} no time")
    if rule.unit == "requests":
        return found
    unknown = unknown_use(query, rule, start_ns, session=session, session_id=session_id)
    if unknown.without_usage:
        found.append(_no_usage(unknown))
    if rule.unit == "usd" and unknown.models:
        found.append(_no_price(rule, unknown.models, unknown.unpriced, used))
    return found


def _no_usage(unknown: UnknownUse) -> str:
    more = f" and {len(unknown.sessions) - _FEW:,} more" if len(unknown.sessions) > _FEW else ""
    sessions = f"{'session' if len(unknown.sessions) == 1 else 'sessions'} {', '.join(unknown.sessions[:_FEW])}{more}"
    responses = f"{unknown.without_usage:,} {'response has' if unknown.without_usage == 1 else 'responses have'}"
    return f"{responses} no usage in the log ({sessions}; `exclude` in the budget leaves sessions out)"


def _no_price(rule: BudgetRule, models: list[str], requests: int, used: int) -> str:
    more = f" and {len(models) - _FEW:,} more" if len(models) > _FEW else ""
    return (
        f"there is no price for {', '.join(models[:_FEW])}{more} (requests: {requests:,}), so at least "
        f"{amount_words(rule, used)} was used; `sessionlog pricing {_word(models[0])}` says how to set one"
    )


def _word(model: str) -> str:
    """A name as a shell takes it."""
    from shlex import quote  # noqa: PLC0415 - for what is said seldom

    return quote(model)


def amount_words(rule: BudgetRule, amount: int) -> str:
    """An amount in a sentence, exact: `$0.031`, `1,200 tokens`."""
    if rule.unit != "usd":
        return f"{amount:,} {rule.unit}"
    whole, _, cents = f"{rule.in_unit(amount):,.9f}".partition(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"
