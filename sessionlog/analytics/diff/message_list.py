"""MessageList: the messages of a session in order; those of a long session are in a temporary file.

Messages are appended in batches to a file without a name and decoded on access. In memory are their digests, places and
turns, some 90 bytes for each, and the last batch. Without room for such a file the encoded batches are in memory, too.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, overload

from msgspec import structs

from sessionlog.analytics.diff.message import DiffCall, DiffMessage
from sessionlog.files.batch_file import BatchFile

_BATCH = 1_000  # messages
_BATCH_TEXT = 1_000_000  # characters
_OTHER, _PROMPT, _RESULT, _CALLS = range(4)  # what `finish` asks of each message
_RESULTS = re.compile(b"%c{2,}" % _RESULT)
_KINDS = {"user": _PROMPT, "tool": _RESULT}


class MessageList(Sequence[DiffMessage]):
    """Messages in order. Append all of them, then call `finish`.

    Attributes:
        digests: The digest of each message, in order.
        turns: The turn of each message; empty before `finish`.
    """

    def __init__(self, messages: Iterable[DiffMessage] = ()) -> None:
        """Begin with these messages."""
        self.digests: list[bytes] = []
        self._kinds = bytearray()
        self._stored = array("q")  # for each message, how many were appended before it
        self.turns: Sequence[int] = ()
        self._spool: BatchFile | None = None
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
        self._kinds.append(_CALLS if message.calls and message.role != "tool" else _KINDS.get(message.role, _OTHER))
        self._stored.append(self._next)
        self._last.append(message)
        self._next += 1
        self._text += message.length
        if len(self._last) >= _BATCH or self._text >= _BATCH_TEXT:
            self._spool = self._spool or BatchFile()
            self._starts.append(self._next - len(self._last))
            self._places.append(self._spool.add([_encode(one) for one in self._last]))
            self._last, self._text = [], 0

    def remove_last(self, digest: bytes) -> bool:
        """Remove the last message with a digest; return whether there is one."""
        for index in range(len(self) - 1, -1, -1):
            if self.digests[index] == digest:
                del self.digests[index], self._kinds[index], self._stored[index]
                return True
        return False

    def finish(self) -> MessageList:
        """Put results in the order of their calls, and number the turns: each prompt begins one."""
        for group in _RESULTS.finditer(self._kinds):  # parallel tools end in any order
            start, end = group.span()
            called = self._kinds.rfind(_CALLS, 0, start)
            if called >= 0:
                calls = {call.call_id: number for number, call in enumerate(self[called].calls)}
                numbers = {place: calls.get(self[place].call_id, len(calls)) for place in range(start, end)}
                order = sorted(numbers, key=numbers.__getitem__)
                self.digests[start:end] = [self.digests[place] for place in order]
                self._stored[start:end] = array("q", [self._stored[place] for place in order])
        self.turns = array("q", accumulate(map(_PROMPT.__eq__, self._kinds)))
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
        return structs.replace(message, number=places + 1, turn=self.turns[places]) if self.turns else message

    def _read(self, number: int) -> DiffMessage:
        first = self._next - len(self._last)
        if self._spool is None or number >= first:
            return self._last[number - first]
        batch = bisect_right(self._starts, number) - 1
        if self._decoded[0] != batch:
            self._decoded = batch, [_decode(row) for row in self._spool.read(self._places[batch])]
        return self._decoded[1][number - self._starts[batch]]


def _encode(message: DiffMessage) -> tuple[object, ...]:
    row = structs.astuple(message)
    return (*row[:-1], tuple(map(structs.astuple, message.calls))) if message.calls else row


def _decode(row: tuple[Any, ...]) -> DiffMessage:
    return DiffMessage(*(*row[:-1], tuple([DiffCall(*call) for call in row[-1]])))
