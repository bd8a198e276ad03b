"""The rules for a valid history: every tool result has its call, and every call its result, except at the end.

An assistant message with calls and the tool messages right after it are a group. A history is valid when every result
of a group answers, by id, a call of that group that has no result yet, and every call has a result; calls of the last
group may be open. A later call may reuse an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message, ToolRequest


def is_summary(message: Message) -> bool:
    """Whether a truncation inserted the message."""
    return message.extra.get("summary") is True


def check_history(messages: Sequence[Message]) -> None:
    """Check that every tool result has a call. Calls without a result are allowed: their turn was interrupted.

    Raises:
        InvalidHistory: A tool result answers no open call before it; the message names it.
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
    """Whether every result has its call, and every call its result; calls at the end may be open."""
    return all(kept is message for kept, message in zip(repair_each(messages), messages, strict=True))


def open_calls(messages: Sequence[Message]) -> tuple[ToolRequest, ...]:
    """Return the calls at the end of a history that have no result yet, in their order."""
    start = len(messages) - 1
    while start >= 0 and messages[start].role == "tool":
        start -= 1
    if start < 0:
        return ()
    unanswered, _ = _match_results(messages, start, len(messages))
    return tuple(messages[start].tool_calls[n] for n in unanswered)


def repair_history(messages: Sequence[Message]) -> list[Message]:
    """Return the nearest valid history.

    Results without a call are dropped. Calls without a result that are not at the end are removed from their message,
    which is dropped if it is empty then. A valid history is returned with the same message objects.
    """
    return [message for message in repair_each(messages) if message is not None]


def repair_each(messages: Sequence[Message]) -> list[Message | None]:
    """Repair a history; return for each message itself, a copy with fewer calls, or None where it is dropped."""
    made: list[Message | None] = list(messages)
    for start, end in groups(messages):
        if messages[start].role == "tool":
            made[start] = None
            continue
        if end == start + 1 and not messages[start].tool_calls:
            continue
        unanswered, orphans = _match_results(messages, start, end)
        for n in orphans:
            made[n] = None
        if unanswered and end < len(messages):
            made[start] = _without_calls(messages[start], unanswered)
    return made


def groups(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Split a history into half-open ranges: a message that is not a tool's, with the tool messages right after it."""
    start = 0
    for n in range(1, len(messages) + 1):
        if n == len(messages) or messages[n].role != "tool" or messages[start].role == "tool":
            yield start, n
            start = n


def last_turn(messages: Sequence[Message]) -> int:
    """Return the index of the newest user message that is not a summary; the length where there is none."""
    for n in range(len(messages) - 1, -1, -1):
        if messages[n].role == "user" and not is_summary(messages[n]):
            return n
    return len(messages)


def _match_results(messages: Sequence[Message], start: int, end: int) -> tuple[list[int], list[int]]:
    """Match a group's calls with its results: indexes of calls without a result, and of results without a call."""
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


def _without_calls(message: Message, gone: list[int]) -> Message | None:
    left = replace(message, tool_calls=tuple(call for n, call in enumerate(message.tool_calls) if n not in gone))
    return None if left.is_empty else left
