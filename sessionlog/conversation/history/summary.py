"""A summary: one message that stands where a truncation has dropped others. It never makes a history longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

Count = Callable[[Message], int]
"""Estimates the tokens of a message."""


def is_summary(message: Message) -> bool:
    """Whether a truncation has put it there."""
    return message.extra.get("summary") is True


def summarised(summary: Callable[[Sequence[Message]], str], dropped: Sequence[Message]) -> str:
    """Ask the user's function for the text; what it raises passes through.

    Raises:
        InvalidHistory: It gave no text.
    """
    text = summary(dropped)
    if not isinstance(text, str):
        raise InvalidHistory(f"summary returned {type(text).__name__}; it returns a text")
    return text.strip()


def fitting(text: str, room: int, count: Count) -> tuple[list[Message], str | None]:
    """Return the summary as a message and None, or one that is cut to its room, or none, and a warning that says so.

    Args:
        text: What the summary says.
        room: The tokens that it may take.
        count: Weighs it: once, or as often as it takes to find where to cut.
    """
    whole = _stand_in(text)
    tokens = count(whole)
    if text and tokens <= room:
        return [whole], None
    least, most = 0, len(text)  # the longest beginning that fits is `least` letters long or more, and under `most`
    while most - least > 1:
        middle = (least + most) // 2
        if count(_stand_in(f"{text[:middle]}…")) <= room:
            least = middle
        else:
            most = middle
    if not least:
        reason = f"has {tokens:,} tokens where there is room for {room:,}" if text else "is empty"
        return [], f"the summary {reason}, so it was left out"
    return [
        _stand_in(f"{text[:least]}…")
    ], f"the summary was cut from {tokens:,} tokens to the {room:,} it has room for"


def _stand_in(text: str) -> Message:
    return Message("user", text, extra={"summary": True})
