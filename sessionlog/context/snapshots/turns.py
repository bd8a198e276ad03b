"""Turns: a user prompt and everything until the next prompt. A turn may hold several runs and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sessionlog.context.steps import RequestUsageSnapshot
from sessionlog.context.usage import TurnUsage, read_counts, tokens_of
from sessionlog.events.times import SECOND, parse_time
from sessionlog.messages.entry import Entry


def number_turns(messages: Iterable[Entry]) -> list[int]:
    """Return the turn number of each message, from 1; 0 for messages before the first prompt.

    Prompts without an answer between them are one. A user message that a tool adds to its result, in the run that
    called it, is not a prompt.
    """
    turn, open_for_prompt, numbers = 0, True, []
    run: str | None = None
    for message in messages:
        is_of_tool = message.has_results and message.run is not None and message.run == run
        if message.is_prompt and open_for_prompt and not is_of_tool:
            turn += 1
            open_for_prompt = False
        elif message.is_response:
            open_for_prompt = True
            run = message.run
        numbers.append(turn)
    return numbers


def steps_of(messages: Sequence[Entry]) -> tuple[RequestUsageSnapshot, ...]:
    """Return a step for every response with usage; its duration begins at the request before it."""
    steps: list[RequestUsageSnapshot] = []
    sent: str | None = None
    for message, turn in zip(messages, number_turns(messages), strict=True):
        if not message.is_response:
            sent = message.timestamp
            continue
        if message.usage is not None:
            steps.append(
                RequestUsageSnapshot(
                    request_num=len(steps) + 1,
                    tool_names=message.tool_names,
                    timestamp=message.timestamp,
                    turn_id=max(turn, 1),
                    duration_ms=between_ms(sent, message.timestamp),
                    **tokens_of(read_counts(message.usage)),
                )
            )
        sent = None
    return tuple(steps)


def turn_seconds(messages: Sequence[Entry]) -> dict[int, float]:
    """Return the duration of each turn, from its first message to its last, where the times of both are known."""
    times: dict[int, list[int]] = {}
    for message, turn in zip(messages, number_turns(messages), strict=True):
        time_ns = parse_time(message.timestamp)
        if time_ns is not None:
            times.setdefault(max(turn, 1), []).append(time_ns)
    return {turn: max(0, seen[-1] - seen[0]) / SECOND for turn, seen in times.items() if len(seen) > 1}


def fold_turns(
    steps: Iterable[RequestUsageSnapshot], seconds: Mapping[int, float], *, last: int = 0
) -> dict[int, TurnUsage]:
    """Sum the steps of each turn.

    Args:
        steps: The steps.
        seconds: Turn number → duration; without one, the known durations of its steps are summed.
        last: The number of the last turn; turns without an answer are included.
    """
    turns: dict[int, list[RequestUsageSnapshot]] = {}
    for step in steps:
        turns.setdefault(step.turn_id or 1, []).append(step)
    made = {}
    for turn in sorted({*turns, *range(1, last + 1)}):
        mine = turns.get(turn, [])
        names = tuple(name for step in mine for name in step.tool_names)
        spent = sum(step.duration_ms or 0 for step in mine) / 1000
        made[turn] = TurnUsage(
            requests=len(mine), tool_calls=len(names), tool_names=names, duration_seconds=seconds.get(turn, spent),
            **tokens_of(*mine),
        )  # fmt: skip
    return made


def between_ms(start: str | None, end: str | None) -> float | None:
    """Return the milliseconds between two RFC 3339 times; None if one is missing, or the end is before the start."""
    start_ns, end_ns = parse_time(start), parse_time(end)
    if start_ns is None or end_ns is None or end_ns < start_ns:
        return None
    return (end_ns - start_ns) / 1_000_000
