"""The user's own budgets in a status: the state of each, the amount left, and its caveats.

A per-session budget shows the session of the status: the cost that its agent reported, else the use in the ledger, else
null. Where use is a lower bound, `unknown` lists the reasons and `left` is null, as in `Budget.remaining`.
"""

from __future__ import annotations

from sessionlog.analytics.budgets.caveats import budget_caveats
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.states import budget_states, level_of
from sessionlog.analytics.status.budgets import free_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo
    from typing import Any

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.statusline_input import StatuslineInput
    from sessionlog.analytics.status.sums import SessionRow

PER_SESSION = "every session has this much of its own: name the session"

_REPORTED_BY = "claude-code"
_NO_SESSION = -1
"""A session number that does not occur in a ledger."""

_NULLS = {
    "windowSeconds": "it lasts as long as the session",
    "resetsAt": "a session's never does, and a rolling one not before it is used",
    "runsOutAt": "not before it starts anew, at the rate of the last hour",
}
_OF_USE = ("used", "percent", "left", "level", "burnPerHour")


class LedgerLocation:
    """Where a ledger and its marker are, for the tamper check.

    Attributes:
        path: The ledger's file; empty for a book in memory.
        env: The environment, by which the marker is found.
    """

    __slots__ = ("env", "path")

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        self.path = path
        self.env = env


class OwnBudget:
    """One of the user's own budgets.

    Attributes:
        name: Its name in the document.
        rule: The configured rule.
        left: The amount that is neither used nor reserved; None if unknown.
    """

    __slots__ = ("left", "name", "rule")

    def __init__(self, name: str, rule: BudgetRule, left: float | None) -> None:
        self.name = name
        self.rule = rule
        self.left = left


def add_own_budgets(
    query: Query,
    rules: Sequence[BudgetRule],
    budgets: dict[str, dict[str, Any] | None],
    why: dict[str, str],
    *,
    now_ns: int,
    zone: str | tzinfo,
    found: SessionRow | None,
    missing: str,
    statusline_input: StatuslineInput | None = None,
    location: LedgerLocation | None = None,
) -> list[OwnBudget]:
    """Add the user's own budgets to those of the providers, and return them.

    A name that a provider's window has gets the prefix `own:`.

    Args:
        query: Runs a statement on a ledger whose connection has `budgets.states.FUNCTIONS`.
        rules: The budgets.
        budgets: Gets an entry for each budget.
        why: Gets a reason for each null or incomplete value.
        now_ns: The present.
        zone: The time zone of days.
        found: The session of the status; None without one.
        missing: Why `found` is None.
        statusline_input: The agent's input for a status line.
        location: Where the ledger is; None for a book in memory.
    """
    session_id = _NO_SESSION if found is None else found.id
    states = budget_states(query, rules, now_ns=now_ns, zone=zone, session_id=session_id)
    location = location or LedgerLocation("", {})
    caveats_of = budget_caveats(query, states, ledger=location.path, env=location.env, now=read_clock())
    made = []
    for state in states:
        rule, cost = state.rule, _reported_cost(state.rule, statusline_input)
        entry = {**state.to_dict(), "unknown": [], "estimated": False}
        name = free_name(state.name, "own", budgets)
        at = f"usage.budgets.{name}"
        why.pop(at, None)
        reasons = dict.fromkeys(_OF_USE, missing)
        if cost is not None:
            entry |= _used(rule, cost, 0)
        elif rule.is_per_session and found is None:
            entry |= dict.fromkeys(_OF_USE)
        else:
            amount = round(state.used * rule.in_one)
            caveats = caveats_of.get(state.name, [])
            entry |= _used(rule, amount, round(state.reserved * rule.in_one))
            entry |= _null_uncertain(entry, caveats) | {"unknown": caveats}
            entry["estimated"] = state.estimated
            if caveats:
                why[at] = "; ".join(caveats)
                reasons = dict.fromkeys(_OF_USE, why[at])
        budgets[name] = entry
        if entry["level"] == "exceeded":
            reasons["runsOutAt"] = "it is used up"
        nulls = [field for field, value in entry.items() if value is None]
        why |= {f"{at}.{field}": reasons.get(field) or _NULLS.get(field, "not known") for field in nulls}
        made.append(OwnBudget(name, rule, entry["left"]))
    return made


def _reported_cost(rule: BudgetRule, statusline_input: StatuslineInput | None) -> int | None:
    """The agent's reported session cost in nano-dollars, if it is the use of this budget; else None."""
    if statusline_input is None or statusline_input.cost is None or not rule.is_per_session or rule.unit != "usd":
        return None
    if rule.meta or rule.exclude or rule.filters.keys() - {"source"}:
        return None
    if "source" in rule.filters:
        from fnmatch import fnmatchcase

        if not any(fnmatchcase(_REPORTED_BY, pattern) for pattern in rule.filters["source"]):
            return None
    return round(statusline_input.cost * rule.in_one)


def _used(rule: BudgetRule, amount: int, reserved: int) -> dict[str, Any]:
    return {
        "used": rule.in_unit(amount),
        "percent": 100 * amount / rule.limit,
        "level": level_of(rule, amount),
        "left": rule.in_unit(max(0, rule.cap - amount - reserved)),
    }


def _null_uncertain(entry: Mapping[str, Any], caveats: Sequence[str]) -> dict[str, Any]:
    """The values that become null because use is a lower bound: an amount left above 0, and the level `ok`."""
    if not caveats:
        return {}
    nothing = entry["unpricedRequests"] and not entry["used"]
    return {
        "percent": None if nothing else entry["percent"],
        "level": None if entry["level"] == "ok" else entry["level"],
        "left": None if entry["left"] else 0,
    }
