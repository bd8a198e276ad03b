"""MessageList: the messages of a session in order; those of a long session are in a temporary file.

Messages are appended in batches to a file without a name and decoded on access. In memory are their digests, places and
turns, some 90 bytes for each, and the last batch. Without room for such a file the encoded batches are in memory, too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, overload

from sessionlog.analytics.diff.message import DiffCall, DiffMessage
from sessionlog.fast_dataclasses import replace
from sessionlog.ledger.row_spool import RowSpool

_BATCH = 1_000  # messages
_BATCH_TEXT = 1_000_000  # characters


class MessageList(Sequence[DiffMessage]):
    """Messages in order. Append all of them, then call `finish`.

    Attributes:
        digests: The digest of each message, in order.
    """

    def __init__(self, messages: Iterable[DiffMessage] = ()) -> None:
        """Begin with these messages."""
        self.digests: list[bytes] = []
        self._stored = array("q")  # for each message, how many were appended before it
        self._turns = array("q")
        self._spool: RowSpool | None = None
        self._starts: list[int] = []  # of each batch in the file: its first message,
        self._places: list[int] = []  # and its place there
        self._next = 0
        self._last: list[DiffMessage] = []  # the batch that is not in the file
        self._text = 0  # characters in it
        self._decoded: tuple[int, list[DiffMessage]] = (-1, [])  # a batch of the file, by its number
        for message in messages:
            self.append(message)

    def append(self, message: DiffMessage) -> None:
        """Append a message; its number and turn are not kept."""
        self.digests.append(message.digest)
        self._stored.append(self._next)
        self._last.append(message)
        self._next += 1
        self._text += len(message.text) + sum(len(call.arguments) for call in message.calls)
        if len(self._last) >= _BATCH or self._text >= _BATCH_TEXT:
            self._spool = self._spool or RowSpool()
            self._starts.append(self._next - len(self._last))
            self._places.append(self._spool.add([_encode(one) for one in self._last]))
            self._last, self._text = [], 0

    def remove_last(self, digest: bytes) -> bool:
        """Remove the last message with a digest; return whether there is one."""
        for index in range(len(self) - 1, -1, -1):
            if self.digests[index] == digest:
                del self.digests[index], self._stored[index]
                return True
        return False

    def finish(self) -> MessageList:
        """Put results in the order of their calls, and number the turns: each prompt begins one."""
        order = array("q", in_order_of_calls(self))
        self.digests = [self.digests[index] for index in order]
        self._stored = array("q", (self._stored[index] for index in order))
        turn, turns = 0, array("q")
        for message in self:
            turn += message.role == "user"
            turns.append(turn)
        self._turns = turns
        return self

    def __len__(self) -> int:
        return len(self._stored)

    def __iter__(self) -> Iterator[DiffMessage]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> DiffMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DiffMessage]: ...
    def __getitem__(self, index: int | slice) -> DiffMessage | Sequence[DiffMessage]:
        places = range(len(self))[index]
        if not isinstance(places, int):
            return tuple(self[place] for place in places)
        message = self._read(self._stored[places])
        return replace(message, number=places + 1, turn=self._turns[places]) if self._turns else message

    def _read(self, number: int) -> DiffMessage:
        first = self._next - len(self._last)
        if self._spool is None or number >= first:
            return self._last[number - first]
        batch = bisect_right(self._starts, number) - 1
        if self._decoded[0] != batch:
            self._decoded = batch, [_decode(row) for row in self._spool.read(self._places[batch])]
        return self._decoded[1][number - self._starts[batch]]


def in_order_of_calls(messages: Sequence[DiffMessage]) -> Iterator[int]:
    """Yield the places of messages, those of results in the order of their calls: parallel tools end in any order."""
    order: dict[str, int] = {}
    for is_result, group in groupby(range(len(messages)), lambda place: messages[place].role == "tool"):
        if is_result:
            calls = [(place, messages[place].call_id) for place in group]
            yield from (place for place, _ in sorted(calls, key=lambda one: order.get(one[1], len(order))))
            continue
        for place in group:
            yield place
            if called := messages[place].calls:
                order = {call.call_id: index for index, call in enumerate(called)}


def _encode(message: DiffMessage) -> tuple[Any, ...]:
    calls = tuple((call.tool, call.arguments, call.call_id) for call in message.calls)
    return (
        message.role, message.text, message.digest, message.left_out, calls, message.tool, message.call_id,
        message.failed, message.partial, message.seq,
    )  # fmt: skip


def _decode(row: tuple[Any, ...]) -> DiffMessage:
    role, text, digest, left_out, calls, tool, call_id, failed, partial, seq = row
    return DiffMessage(
        role=role, text=text, digest=digest, left_out=left_out, tool=tool, call_id=call_id, failed=failed,
        partial=partial, seq=seq,
        calls=tuple(DiffCall(tool=name, arguments=given, call_id=one) for name, given, one in calls),
    )  # fmt: skip
