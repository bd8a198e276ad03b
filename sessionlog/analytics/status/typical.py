"""Typical: the median usage of finished sessions by task, and how many more of them the budgets allow.

The medians are of the newest finished sessions, by the `task` of their metadata; sessions without a task are one group.
A median, because a single runaway session must not raise the figure. A budget counts only what such sessions use in its
scope: a budget for other models does not limit them. The module imports little (see `status.sums`).
"""

from __future__ import annotations

import json

from sessionlog.analytics.sums import USED, Row, measures, read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.own import OwnBudget

NEWEST = 200
"""Sessions considered: older ones are no guide to present usage."""

_LONGEST = 200
_SAME = 1e-9  # tolerance of the division: 0.1 fits ten times into 1

_FINISHED = f"""SELECT id, metadata FROM sessions WHERE counted AND end_status IS NOT NULL AND end_status != 'running'
    ORDER BY last_ns DESC, id DESC LIMIT {NEWEST}"""  # noqa: S608 - a number of ours
_SESSIONS = f"FROM ({_FINISHED}) s JOIN quarter_hours r ON r.session_id = s.id WHERE {{scope}}"
_BY = {"id": "s.id", "metadata": "s.metadata"}


def typical_sessions(query: Query, budgets: Sequence[OwnBudget] = ()) -> list[dict[str, Any]]:
    """Return medians by task, the most frequent task first.

    Each is an object of `task`, `sessions`, `requests`, `totalTokens`, `cost` (USD), `costSource`, `fits` and
    `limitedBy`. Cost is the median of those whose whole cost is known, None where there are none; `fits` is how many
    such sessions fit in what is left of the budgets, None where that is unknown or no budget limits them.
    """
    taken: dict[int, Row] = {}
    groups: dict[str | None, list[int]] = {}
    known: dict[str, str | None] = {}
    for row in _taken(query, "1", {}):
        session_id, metadata = row.keys["id"], row.keys["metadata"]
        if metadata not in known:
            known[metadata] = task_of(metadata)
        taken[session_id] = row
        groups.setdefault(known[metadata], []).append(session_id)
    limits = [(one, _of_scope(query, one, taken)) for one in budgets if not one.rule.is_per_session] if groups else []
    return [
        {"task": task, "sessions": len(group), **_medians([taken[one] for one in group]), **_room(group, limits)}
        for task, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] is None, item[0] or ""))
    ]


def _taken(query: Query, scope: str, parameters: Mapping[str, Any]) -> list[Row]:
    return read_rows(query, Row, measures(USED), _SESSIONS.format(scope=scope), parameters, by=_BY)


def _of_scope(query: Query, budget: OwnBudget, taken: Mapping[int, Row]) -> Mapping[int, Row]:
    """Session → its usage in a budget's scope; sessions without any are left out."""
    if budget.rule.is_of_all:
        return taken
    from sessionlog.analytics.budgets.sums import scope_of

    scope, parameters = scope_of(budget.rule)
    return {row.keys["id"]: row for row in _taken(query, scope, parameters)}


def _cost(used: Row) -> float | None:
    """What a session cost if all of it is known."""
    return None if used.cost_is_partial else used.cost_usd


def _amount(used: Row | None, unit: str) -> float | None:
    """What a session used in a budget's unit; None for nothing in its scope is 0."""
    if used is None:
        return 0
    return _cost(used) if unit == "usd" else used.total_tokens if unit == "tokens" else used.requests


def _medians(group: Sequence[Row]) -> dict[str, Any]:
    priced = [(cost, one.estimated) for one in group if (cost := _cost(one)) is not None]
    kinds = {estimated for _, estimated in priced}
    source = None if not kinds else "mixed" if len(kinds) > 1 else "estimated" if True in kinds else "recorded"
    return {
        "requests": median([one.requests for one in group]),
        "totalTokens": median([one.total_tokens for one in group]),
        "cost": median([cost for cost, _ in priced]),
        "costSource": source,
    }


def _room(group: Sequence[int], limits: Iterable[tuple[OwnBudget, Mapping[int, Row]]]) -> dict[str, Any]:
    """How many more such sessions fit in what is left, and the budget that limits them.

    Unknown if a budget's rest or the sessions' use of it is unknown, unless another budget has no room for one.
    """
    room: list[tuple[int, str]] = []
    unknown = False
    for budget, taken in limits:
        values = [_amount(taken.get(one), budget.rule.unit) for one in group]
        each = median([value for value in values if value is not None])
        if each == 0:
            continue
        if budget.left == 0:
            room.append((0, budget.name))
        elif budget.left is None or each is None:
            unknown = True
        else:
            room.append((int(budget.left / each + _SAME), budget.name))
    fits, by = min(room, default=(None, None))
    return {"fits": None, "limitedBy": None} if unknown and fits else {"fits": fits, "limitedBy": by}


def task_of(metadata: str) -> str | None:
    """Return the `task` that a session's metadata names."""
    if '"task"' not in metadata:
        return None
    found = json.loads(metadata)
    value = found.get("task") if isinstance(found, dict) else None
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value[:_LONGEST]
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:_LONGEST]


def median(values: list[Any]) -> Any:
    """Return the middle value, or the mean of the two in the middle; None of nothing."""
    if not values:
        return None
    ordered, half = sorted(values), len(values) // 2
    if len(values) % 2:
        return ordered[half]
    low, high = ordered[half - 1], ordered[half]
    middle = (low + high) / 2
    return int(middle) if isinstance(low, int) and isinstance(high, int) and (low + high) % 2 == 0 else middle
