"""Typical: the median usage of finished sessions by task, and how many more of them the budgets allow.

The medians are of the newest finished sessions, by the `task` of their metadata; sessions without a task are one group.
A median, because a single runaway session must not raise the figure. A budget counts only what such sessions use in its
scope: a budget for other models does not limit them. The module imports little (see `status.sums`).
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.own import OwnBudget

    Taken = tuple[int, int, float | None, bool]
    """Requests, tokens, cost in US dollars if all of it is known, and whether a part of that is estimated."""

NEWEST = 200
"""Sessions considered: older ones are no guide to present usage."""

_LONGEST = 200
_NOTHING: Taken = (0, 0, 0.0, False)
_MEASURES = {"requests": 0, "tokens": 1, "usd": 2}
"""Budget unit → index in `Taken`."""

_SAME = 1e-9  # tolerance of the division: 0.1 fits ten times into 1

_SESSIONS = f"""
SELECT s.id, s.metadata, SUM(r.requests), SUM(r.input) + SUM(r.output) + SUM(r.cache_read) + SUM(r.cache_write),
    SUM(r.cost_nano), SUM(r.estimate_nano), MAX(r.unknown)
FROM (SELECT id, metadata FROM sessions WHERE counted AND end_status IS NOT NULL AND end_status != 'running'
      ORDER BY last_ns DESC, id DESC LIMIT {NEWEST}) s JOIN quarter_hours r ON r.session_id = s.id
WHERE {{scope}}
GROUP BY s.id
"""  # noqa: S608 - a number of ours


def typical_sessions(query: Query, budgets: Sequence[OwnBudget] = ()) -> list[dict[str, Any]]:
    """Return medians by task, the most frequent task first.

    Each is an object of `task`, `sessions`, `requests`, `totalTokens`, `cost` (USD), `costSource`, `fits` and
    `limitedBy`. Cost is the median of those whose whole cost is known, None where there are none; `fits` is how many
    such sessions fit in what is left of the budgets, None where that is unknown or no budget limits them.
    """
    taken: dict[int, Taken] = {}
    groups: dict[str | None, list[int]] = {}
    known: dict[str, str | None] = {}
    for session_id, metadata, *sums in query(_SESSIONS.format(scope="1"), {}):
        if metadata not in known:
            known[metadata] = task_of(metadata)
        taken[session_id] = _taken(*sums)
        groups.setdefault(known[metadata], []).append(session_id)
    limits = [(one, _of_scope(query, one, taken)) for one in budgets if not one.rule.is_per_session] if groups else []
    return [
        {"task": task, "sessions": len(group), **_medians([taken[one] for one in group]), **_room(group, limits)}
        for task, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] is None, item[0] or ""))
    ]


def _taken(requests: int, tokens: int, recorded: int | None, estimated: int | None, partial: int) -> Taken:
    free = recorded is None and estimated is None
    cost = None if partial or free else ((recorded or 0) + (estimated or 0)) / 1_000_000_000
    return int(requests), int(tokens), cost, estimated is not None


def _of_scope(query: Query, budget: OwnBudget, taken: Mapping[int, Taken]) -> Mapping[int, Taken]:
    """Session → its usage in a budget's scope; sessions without any are left out."""
    if budget.rule.is_of_all:
        return taken
    from sessionlog.analytics.budgets.sums import scope_of

    scope, parameters = scope_of(budget.rule)
    return {row[0]: _taken(*row[2:]) for row in query(_SESSIONS.format(scope=scope), parameters)}


def _medians(group: Sequence[Taken]) -> dict[str, Any]:
    priced = [(cost, estimated) for _, _, cost, estimated in group if cost is not None]
    kinds = {estimated for _, estimated in priced}
    source = None if not kinds else "mixed" if len(kinds) > 1 else "estimated" if True in kinds else "recorded"
    return {
        "requests": median([one[0] for one in group]),
        "totalTokens": median([one[1] for one in group]),
        "cost": median([cost for cost, _ in priced]),
        "costSource": source,
    }


def _room(group: Sequence[int], limits: Iterable[tuple[OwnBudget, Mapping[int, Taken]]]) -> dict[str, Any]:
    """How many more such sessions fit in what is left, and the budget that limits them.

    Unknown if a budget's rest or the sessions' use of it is unknown, unless another budget has no room for one.
    """
    room: list[tuple[int, str]] = []
    unknown = False
    for budget, taken in limits:
        measure = _MEASURES[budget.rule.unit]
        values = [taken.get(one, _NOTHING)[measure] for one in group]
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
