"""What a truncation does to a history, as a value: the messages that go, by index, and those that come, by place.

Invariant: applied to `before` (as `transcript.fold` does), what `cut_of(before, after)` gives is `after`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sessionlog.conversation.history.summary import is_summary
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_to_dict

Span = tuple[int, int]


def cut_of(before: Sequence[Message], after: Sequence[Message]) -> tuple[list[Span], list[tuple[int, Message]]]:
    """Return the half-open spans of indexes that are dropped, and what is added: (index in `after`, message).

    Messages are known again as the very objects, in their order; anything else is dropped and added.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for n in range(len(before) - 1, -1, -1):
        places[id(before[n])].append(n)
    kept: list[int] = []
    added: list[tuple[int, Message]] = []
    for at, message in enumerate(after):
        found = places.get(id(message), [])
        while found and kept and found[-1] <= kept[-1]:
            found.pop()
        if found:
            kept.append(found.pop())
        else:
            added.append((at, message))
    return list(_gaps(kept, len(before))), added


def spell_cut(before: Sequence[Message], after: Sequence[Message], truncation: Truncation) -> dict[str, Any]:
    """Return the payload of the `compaction.end` that tells a truncation; None stands for what is not to be said."""
    dropped, added = cut_of(before, after)
    return {
        "success": True,
        "strategy": truncation.strategy,
        "messages_before": len(before),
        "messages_after": len(after),
        "tokens_before": truncation.tokens_before,
        "tokens_after": truncation.tokens_after,
        "no_compaction": None if dropped or added else True,
        "summary": next((message.text for _, message in added if is_summary(message)), None),
        "dropped": [list(span) for span in dropped],
        "added": [{"at": at, "message": message_to_dict(message)} for at, message in added],
        "warning": "still over budget: nothing more can be dropped" if truncation.is_over_budget else None,
    }


def _gaps(kept: Iterable[int], length: int) -> Iterable[Span]:
    end = 0
    for n in [*kept, length]:
        if n > end:
            yield end, n
        end = n + 1
