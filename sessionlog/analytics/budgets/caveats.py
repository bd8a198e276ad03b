"""Caveats: the reasons why a budget's known use may be incomplete, one sentence each.

With a caveat, the amount used is a lower bound and the amount left is unknown. This module queries the ledger alone and
imports little, because the status line uses it.
"""

from __future__ import annotations

from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.sums import UnknownUse, unknown_use, unreadable_logs, untimed_requests
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.schema import UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.analytics.conditions import Query
    from sessionlog.ledger.book import Book

_FEW = 3
_NOT_READ = ("unreadable", "source_failed")


def budget_caveats(
    query: Query, states: Iterable[BudgetState], *, ledger: str, env: Mapping[str, str], now: ClockReading
) -> dict[str, list[str]]:
    """Return budget name → caveats; budgets without one are left out.

    Args:
        query: Runs a statement on a ledger whose connection has `states.FUNCTIONS`.
        states: The states of the budgets in that ledger.
        ledger: The ledger's file; empty if the data is not from a ledger.
        env: The environment, by which the ledger's marker is found.
        now: The present by both clocks.

    Raises:
        LogNotReadable: The marker is there and cannot be read.
    """
    warnings = tamper_check.warnings(query, ledger, env, now)
    caveats = {}
    for state in states:
        rule = state.rule
        used = round(state.used * rule.in_one)
        sentences = [*warnings, *use_caveats(query, rule, state.start_ns, used, session_id=state.session)]
        if sentences:
            caveats[state.name] = sentences
    return caveats


def unreadable_places(book: Book) -> list[str]:
    """Return a sentence on unreadable paths that the ledger has no row for: their source and usage are unknown.

    `sums.unreadable_logs` reports the unreadable logs that have a row.
    """
    if not book.problem_count:
        return []
    rows = book.query(f"SELECT path FROM files WHERE missing = {UNREADABLE}", {})  # noqa: S608 - a number
    known = {path_of(path) for (path,) in rows}
    found = {one.path: one.detail for one in book.problems if one.kind in _NOT_READ and one.path not in known}
    more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
    return [f"{path} cannot be read ({detail}){more}" for path, detail in list(found.items())[:1]]


def use_caveats(
    query: Query,
    rule: BudgetRule,
    start_ns: int | None,
    used: int,
    *,
    session: str | None = None,
    session_id: int | None = None,
) -> list[str]:
    """Return the caveats that come from the logs, on a budget's use since its start.

    Args:
        query: Runs a statement.
        rule: The budget.
        start_ns: When its period began; None for all time.
        used: The known use, in the budget's inner unit.
        session: Count only the session with this id; None for all.
        session_id: The same by the ledger's number.
    """
    found = []
    logs = unreadable_logs(query, rule)
    if logs:
        more = f" and {len(logs) - 1:,} more" if len(logs) > 1 else ""
        found.append(f"{logs[0]}{more} cannot be read")
    if start_ns is not None and (untimed := untimed_requests(query, rule, start_ns)):
        found.append(f"{untimed:,} {'response has' if untimed == 1 else 'responses have'} no time in the log")
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
        f"{amount_words(rule, used)} was used; `sessionlog pricing {_shell_word(models[0])}` shows how to set one"
    )


def _shell_word(model: str) -> str:
    if model.isascii() and model.replace("-", "").replace(".", "").replace("/", "").isalnum():
        return model  # as most are: importing `shlex` takes 7 ms
    from shlex import quote

    return quote(model)


def amount_words(rule: BudgetRule, amount: int) -> str:
    """An amount in a sentence, exact: `$0.031`, `1,200 tokens`."""
    if rule.unit != "usd":
        return f"{amount:,} {rule.unit}"
    whole, _, cents = f"{rule.in_unit(amount):,.9f}".partition(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"
