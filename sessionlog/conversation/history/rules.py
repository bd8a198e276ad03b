"""The rules that a history keeps: no tool result without its call, no call unanswered once the history goes on.

An assistant's message with calls and the tool messages right behind it are a group. A history is valid when every
result of a group answers, with its id, a call of that group that is not answered yet, and every call is answered;
calls of a group at the very end may be open. An id may be used again by a later call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message, ToolRequest


def is_summary(message: Message) -> bool:
    """Whether a truncation has put it there."""
    return message.extra.get("summary") is True


def check_history(messages: Sequence[Message]) -> None:
    """Demand a call for every tool result. Calls without a result are fine: their turn was interrupted.

    Raises:
        InvalidHistory: A tool result answers no call before it that is unanswered; the message names it.
    """
    unanswered: Counter[str] = Counter()
    for n, message in enumerate(messages):
        if message.role == "assistant":
            unanswered.update(call.id for call in message.tool_calls)
        elif message.role == "tool":
            if not message.tool_call_id:
                raise InvalidHistory(f"messages[{n}]: a tool result without a tool_call_id, so its call is unknown")
            if not unanswered[message.tool_call_id]:
                raise InvalidHistory(
                    f"messages[{n}]: a tool result for {message.tool_call_id!r:.80}, which no call before it waits for"
                )
            unanswered[message.tool_call_id] -= 1


def is_valid(messages: Sequence[Message]) -> bool:
    """Whether every result has its call, and every call its result; only at the very end calls may be open."""
    return all(kept is message for kept, message in zip(repair(messages), messages, strict=True))


def open_calls(messages: Sequence[Message]) -> tuple[ToolRequest, ...]:
    """Return the calls at the end of a history that nothing has answered yet, in the order they were asked for."""
    start = len(messages) - 1
    while start >= 0 and messages[start].role == "tool":
        start -= 1
    if start < 0:
        return ()
    unanswered, _ = _matched(messages, start, len(messages))
    return tuple(messages[start].tool_calls[n] for n in unanswered)


def repaired(messages: Sequence[Message]) -> list[Message]:
    """Return the nearest valid history.

    Results without a call go. Unanswered calls that are not at the end are taken out of their message, which goes if
    nothing is left of it. A valid history comes back as it is, with the same messages.
    """
    return [message for message in repair(messages) if message is not None]


def repair(messages: Sequence[Message]) -> list[Message | None]:
    """Return what `repaired` makes of each message, in its place: the message, one with fewer calls, or None."""
    made: list[Message | None] = list(messages)
    for start, end in groups(messages):
        if messages[start].role == "tool":
            made[start] = None
            continue
        if end == start + 1 and not messages[start].tool_calls:
            continue
        unanswered, orphans = _matched(messages, start, end)
        for n in orphans:
            made[n] = None
        if unanswered and end < len(messages):
            made[start] = _without(messages[start], unanswered)
    return made


def groups(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Cut a history into half-open ranges: each message that is no tool's, with the tool messages right behind it."""
    start = 0
    for n in range(1, len(messages) + 1):
        if n == len(messages) or messages[n].role != "tool" or messages[start].role == "tool":
            yield start, n
            start = n


def last_turn(messages: Sequence[Message]) -> int:
    """Return the index of the newest message of a person, or the length where there is none; a summary is none."""
    for n in range(len(messages) - 1, -1, -1):
        if messages[n].role == "user" and not is_summary(messages[n]):
            return n
    return len(messages)


def _matched(messages: Sequence[Message], start: int, end: int) -> tuple[list[int], list[int]]:
    """Join a group's calls with its results: which calls are unanswered, and which messages answer none."""
    waiting: dict[str, list[int]] = {}
    for n, call in enumerate(messages[start].tool_calls):
        waiting.setdefault(call.id, []).append(n)
    orphans = []
    for n in range(start + 1, end):
        answered = messages[n].tool_call_id
        if answered and waiting.get(answered):
            waiting[answered].pop(0)
        else:
            orphans.append(n)
    return sorted(n for same in waiting.values() for n in same), orphans


def _without(message: Message, gone: list[int]) -> Message | None:
    left = replace(message, tool_calls=tuple(call for n, call in enumerate(message.tool_calls) if n not in gone))
    return None if left.is_empty else left
