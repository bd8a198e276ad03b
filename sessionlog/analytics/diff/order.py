"""Order: the places of messages in a session, which do not depend on how fast its tools were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sessionlog.analytics.diff.said import Said


def in_order_of_calls(said: Sequence[Said]) -> list[Said]:
    """Results in the order of their calls: tools that run side by side end in any order."""
    ordered: list[Said] = []
    order: dict[str, int] = {}
    group: list[Said] = []
    for one in said:
        if one.role == "tool":
            group.append(one)
            continue
        ordered += sorted(group, key=lambda result: order.get(result.call_id, len(order)))
        group = []
        ordered.append(one)
        if one.calls:
            order = {call.call_id: index for index, call in enumerate(one.calls)}
    return [*ordered, *sorted(group, key=lambda result: order.get(result.call_id, len(order)))]


def numbered(said: Sequence[Said]) -> tuple[Said, ...]:
    """The same with places and turns; prompts without an answer between them are one turn."""
    turn, is_answered, placed = 0, True, []
    for number, one in enumerate(said, 1):
        if one.role == "user" and is_answered:
            turn, is_answered = turn + 1, False
        elif one.role == "assistant":
            is_answered = True
        placed.append(replace(one, number=number, turn=turn))
    return tuple(placed)
