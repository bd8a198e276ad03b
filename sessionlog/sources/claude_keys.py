"""Keys of Claude Code's responses: which rows are one response, in one log and in the logs that repeat it.

A row with a request id is known by that and its message id. Without one the message id may still be unique (Bedrock,
Vertex), or a gateway gives one id to every answer. Then the key has what copies keep of the response's first row: its
time and its input. Up to 2.0.14 copies get new times, so there it is the input alone.

Two rows with one message id are two responses if a prompt stands between them, or a tool's result, or any text after
the end of an answer, or if their inputs differ. Two exceptions. While an answer is streamed, as rows without a stop
reason show, its input may be logged as none or estimated. And a tool may be done before the next call of its answer is
written: then the rows have equal counts, which the answer to a result never has, and in newer versions the numbers of
their blocks go on.
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
        output: Its output so far.
        stop: Its stop reason; "" while that is unknown.
        block: The number of its last block; -1 where that is not logged.
        is_answered: A tool's result came after it, or text that the agent program inserted.
        is_over: A prompt came after it, or any text after its end.
    """

    id: str
    key: str
    given: Input
    output: int
    stop: str
    block: int
    is_answered: bool = False
    is_over: bool = False

    def goes_on(self, other: Unnamed) -> bool:
        """Whether another row is one of this response's."""
        if other.id != self.id or self.is_over:
            return False
        if not self.is_answered:
            return other.given == self.given or not self.stop
        if not any((*other.given, *self.given)) or not _may_be_one(other.given, self.given):
            return False
        if other.given == self.given and min(self.block, other.block) >= 0:
            return other.block > self.block
        return not self.stop or (self.stop, self.output, self.given) == (other.stop, other.output, other.given)


def key_of(
    message_id: str, usage: TokenUsage, time: int | None, version: str, last: dict[str, Unnamed], thread: str,
    *, stop: str, block: int,
) -> str:  # fmt: skip
    """Return the key of a row without a request id, and keep its response as the last one of its thread.

    Args:
        message_id: Its message id.
        usage: Its tokens.
        time: Its time.
        version: The version of Claude Code.
        last: Thread → its last response.
        thread: The row's thread.
        stop: Its stop reason; "" for none.
        block: The number of its block; -1 where that is not logged.
    """
    given = (usage.input, usage.cache_read, usage.cache_write)
    row = Unnamed(message_id, "", given, usage.output, stop, block)
    known = last.get(thread)
    if known is not None and known.goes_on(row):
        known.given = max(given, known.given, key=sum)
        known.output, known.block = max(usage.output, known.output), max(block, known.block)
        known.stop = stop or known.stop
        return known.key
    stamp = "" if time is None or copies_have_new_times(version) else f"{time}."
    row.key = f"{message_id}:@{stamp}{'.'.join(map(str, given))}"
    last.pop(thread, None)
    last[thread] = row
    if len(last) > _MOST_THREADS:
        del last[next(iter(last))]
    return row.key


def _may_be_one(given: Input, other: Input) -> bool:
    """Whether two inputs differ only in what one of them leaves out."""
    few, many = sorted((given, other), key=sum)
    return all(count in (0, whole) for count, whole in zip(few, many, strict=True))


@lru_cache(16)
def copies_have_new_times(version: str) -> bool:
    """Whether a version of Claude Code gives new times, and no request ids, to the rows that it copies."""
    numbers = version.split(".")
    return all(map(str.isdigit, numbers)) and tuple(map(int, numbers)) <= _LAST_WITH_NEW_TIMES
