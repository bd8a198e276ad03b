"""The user's own budgets in a status: how each is, what is left of it, and why that may not be all that is known.

A budget that every session has for itself is told of the session that is asked about, and of no other: what an agent
said that its session cost comes first, then what the ledger knows, else nothing is known. Where a number is a lower
bound the entry says so (`unknown`), and what is left is null then, as it is for who asks a `Budget`.
"""

from __future__ import annotations

from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.doubts import doubts_of
from sessionlog.analytics.budgets.states import budget_states, level_of
from sessionlog.analytics.budgets.sums import scope_of
from sessionlog.analytics.status.budgets import free_name
from sessionlog.ledger.quarter_hours import parts

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo
    from typing import Any

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.fed import Fed
    from sessionlog.analytics.status.sums import Found

PER_SESSION = "every session has this much of its own: name the session"

_TOLD_BY = "claude-code"
_NO_SESSION = -1
"""A number that no session has."""

_NULLS = {
    "windowSeconds": "it lasts as long as the session",
    "resetsAt": "a session's never does, and a rolling one not before it is used",
    "runsOutAt": "not before it starts anew, at the rate of the last hour",
}
_OF_USE = ("used", "percent", "left", "level", "burnPerHour")


class Place:
    """Where the ledger is, for what it knows of itself.

    Attributes:
        path: Its file; empty if the answer is not the ledger's.
        env: The environment, which says where its marker is.
    """

    __slots__ = ("env", "path")

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        self.path = path
        self.env = env


class OwnBudget:
    """One of the user's own budgets.

    Attributes:
        name: What it is called in the document.
        rule: As configured.
        left: What is neither used nor reserved; None if that is not known.
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
    found: Found | None,
    missing: str,
    fed: Fed | None = None,
    place: Place | None = None,
) -> list[OwnBudget]:
    """Add the user's own budgets to those of the providers, and return them.

    One that is called as a window of which a provider spoke gets `own:` before its name.

    Args:
        query: Runs a statement on a ledger whose connection knows `budgets.states.FUNCTIONS`.
        rules: The budgets.
        budgets: Get an entry for each.
        why: Gets a reason for whatever is null or not all.
        now_ns: The present.
        zone: Whose days.
        found: The session that is asked about; None if the ledger knows none.
        missing: Why it is None.
        fed: What the session's agent tells.
        place: The ledger; None if the answer is not the ledger's.
    """
    session_id = _NO_SESSION if found is None else found.id
    states = budget_states(query, rules, now_ns=now_ns, zone=zone, session_id=session_id)
    where = place or Place("", {})
    doubts = doubts_of(query, states, ledger=where.path, env=where.env, now=read_clock())
    made = []
    for state in states:
        rule, cost = state.rule, _told(state.rule, fed)
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
            gaps = doubts.get(state.name, [])
            entry |= _used(rule, amount, round(state.reserved * rule.in_one))
            entry |= _bounded(entry, gaps) | {"unknown": gaps}
            entry["estimated"] = rule.unit == "usd" and _is_estimated(query, state, session_id)
            if gaps:
                why[at] = "; ".join(gaps)
                reasons = dict.fromkeys(_OF_USE, why[at])
        budgets[name] = entry
        if entry["level"] == "exceeded":
            reasons["runsOutAt"] = "it is used up"
        nulls = [field for field, value in entry.items() if value is None]
        why |= {f"{at}.{field}": reasons.get(field) or _NULLS.get(field, "not known") for field in nulls}
        made.append(OwnBudget(name, rule, entry["left"]))
    return made


def _told(rule: BudgetRule, fed: Fed | None) -> int | None:
    """What the agent said that its session used of a budget, in nano-dollars; None if that says nothing of it."""
    if fed is None or fed.cost is None or not rule.is_per_session or rule.unit != "usd":
        return None
    if rule.meta or rule.exclude or rule.filters.keys() - {"source"}:
        return None
    if "source" in rule.filters:
        from fnmatch import fnmatchcase  # noqa: PLC0415 - for those who have such a budget

        if not any(fnmatchcase(_TOLD_BY, pattern) for pattern in rule.filters["source"]):
            return None
    return round(fed.cost * rule.in_one)


def _used(rule: BudgetRule, amount: int, reserved: int) -> dict[str, Any]:
    return {
        "used": rule.in_unit(amount),
        "percent": 100 * amount / rule.limit,
        "level": level_of(rule, amount),
        "left": rule.in_unit(max(0, rule.cap - amount - reserved)),
    }


def _bounded(entry: Mapping[str, Any], gaps: Sequence[str]) -> dict[str, Any]:
    """What a number that is a lower bound does not tell: how much is left, and that all is well."""
    if not gaps:
        return {}
    nothing = entry["unpricedRequests"] and not entry["used"]
    return {
        "percent": None if nothing else entry["percent"],
        "level": None if entry["level"] == "ok" else entry["level"],
        "left": None if entry["left"] else 0,
    }


def _is_estimated(query: Query, state: BudgetState, session_id: int) -> bool:
    """Whether a part of what is used has no recorded cost."""
    scope, parameters = scope_of(state.rule, session_id=session_id if state.rule.is_per_session else None)
    tables, bounds = parts(state.start_ns, None)
    sql = f"SELECT EXISTS (SELECT 1 FROM {tables} r WHERE {scope} AND r.estimate_nano > 0)"  # noqa: S608 - names of the schema; values are bound
    [(estimated,)] = query(sql, {**parameters, **bounds})
    return bool(estimated)
