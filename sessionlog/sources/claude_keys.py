"""Keys of Claude Code's responses: which rows are one response, in one log and in the logs that repeat it.

A row with a request id is known by that and its message id. Without one the message id may still be unique (Bedrock,
Vertex), or a gateway gives one id to every answer. Then the key has what copies keep of the response's first row: its
time and its input. Up to 2.0.14 copies get new times, so there it is the input alone.

Two rows with one message id are two responses if a prompt stands between them, or a tool's result, or if their inputs
differ. Two exceptions: while an answer is streamed, a gateway may log no input, or less of it, and a tool may be done
before the answer is. Both show in rows that have no stop reason yet.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from sessionlog.events.tokens import TokenUsage

_LAST_WITH_NEW_TIMES = (2, 0, 14)
_MOST_THREADS = 64

Input = tuple[int, int, int]
"""The input of a request: outside the cache, read from it, written to it."""


class Unnamed(Struct):
    """The last response of a thread whose rows have no request id.

    Attributes:
        id: Its message id.
        key: Its key.
        given: Its input, as far as it is known.
        is_whole: It has a stop reason.
        is_answered: A tool's result came after it, or text that the agent program inserted.
        is_over: A prompt came after it.
    """

    id: str
    key: str
    given: Input
    is_whole: bool
    is_answered: bool = False
    is_over: bool = False

    def goes_on(self, message_id: str, given: Input) -> bool:
        """Whether a row is one of this response's."""
        if message_id != self.id or self.is_over:
            return False
        if given == self.given and not self.is_answered:
            return True
        return not self.is_whole and any((*given, *self.given)) and _may_be_one(given, self.given)


def key_of(
    message_id: str, usage: TokenUsage, time: int | None, version: str, last: dict[str, Unnamed], thread: str,
    *, is_whole: bool,
) -> str:  # fmt: skip
    """Return the key of a row without a request id, and keep its response as the last one of its thread."""
    given = (usage.input, usage.cache_read, usage.cache_write)
    known = last.get(thread)
    if known is not None and known.goes_on(message_id, given):
        known.given = max(given, known.given, key=sum)
        known.is_whole |= is_whole
        return known.key
    stamp = "" if time is None or copies_have_new_times(version) else f"{time}."
    key = f"{message_id}:@{stamp}{'.'.join(map(str, given))}"
    last.pop(thread, None)
    last[thread] = Unnamed(message_id, key, given, is_whole)
    if len(last) > _MOST_THREADS:
        del last[next(iter(last))]
    return key


def _may_be_one(given: Input, other: Input) -> bool:
    """Whether two inputs differ only in what one of them leaves out."""
    few, many = sorted((given, other), key=sum)
    return all(count in (0, whole) for count, whole in zip(few, many, strict=True))


@lru_cache(16)
def copies_have_new_times(version: str) -> bool:
    """Whether a version of Claude Code gives new times, and no request ids, to the rows that it copies."""
    numbers = version.split(".")
    return all(map(str.isdigit, numbers)) and tuple(map(int, numbers)) <= _LAST_WITH_NEW_TIMES
