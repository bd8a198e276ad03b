"""Reading remote objects: in blocks of megabytes, each one request, shared by all that have the object open.

A first block of a quarter of a megabyte shows whose log it is, and is all of most logs. An object that took several
requests is compared with the listing after the last one: two versions of it are never mixed.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple, Protocol

from sessionlog.locks import RLock

FIRST = 256 << 10
BLOCK = 4 << 20
_MOST_BLOCKS = 4


class Entry(NamedTuple):
    """The state of a remote object.

    Attributes:
        size: Its bytes.
        version: A number made from its ETag or version, or from its time of writing where a store has neither.
        mtime_ns: When it was written; 0 where that is unknown.
        is_versioned: The store gave an ETag or a version.
    """

    size: int
    version: int
    mtime_ns: int
    is_versioned: bool


class Store(Protocol):
    """What a place does for those who read its objects."""

    def fetch(self, url: str, start: int, end: int, size: int) -> bytes:
        """Return the bytes of an object from `start` to `end`."""

    def checked(self, url: str) -> None:
        """Check that an object is still the one that was listed."""

    def head(self, url: str) -> bytes | None:
        """Return the first bytes of an object if they are kept."""

    def keep_head(self, url: str, data: bytes) -> None:
        """Keep the first bytes of an object."""


class Content:
    """The blocks of an object that were read last."""

    def __init__(self, place: Store, url: str, entry: Entry) -> None:
        self.url, self.entry = url, entry
        self._place = place
        self._blocks: dict[int, bytes] = {}
        self._lock = RLock()

    def read(self, start: int, count: int, *, exactly: bool) -> bytes:
        """Return at most `count` bytes from `start` on; "" at the end.

        `exactly` asks the store for no more than these, unless they are in the first block.

        Raises:
            LogNotReadable: They cannot be read.
        """
        size = self.entry.size
        if start >= size or count <= 0:
            return b""
        number = 0 if start < FIRST else 1 + (start - FIRST) // BLOCK
        begin = 0 if not number else FIRST + (number - 1) * BLOCK
        with self._lock:
            block = self._blocks.get(number)
            if block is None and exactly and number and count < BLOCK:
                return self._place.fetch(self.url, start, min(start + count, size), size)
            if block is None:
                block = self._fetch(number, begin)
        return block[start - begin : start - begin + count]

    def _fetch(self, number: int, begin: int) -> bytes:
        end = min(begin + (BLOCK if number else FIRST), self.entry.size)
        block = self._place.head(self.url) if not number else None
        if block is None or len(block) != end:
            block = self._place.fetch(self.url, begin, end, self.entry.size)
        if not number:
            self._place.keep_head(self.url, block)
        elif end == self.entry.size:
            self._place.checked(self.url)
        if len(self._blocks) >= _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        self._blocks[number] = block
        return block


class RemoteFile(io.RawIOBase):
    """A remote object, open for reading.

    Attributes:
        name: Its URL.
        content: What was read of it.
        exactly: Ask for no more than what is read: for those who jump.
    """

    def __init__(self, content: Content) -> None:
        self.name, self.content, self.exactly = content.url, content, False
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to another offset."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.content.entry.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`, partly at the end of a block; 0 at the end."""
        data = self.content.read(self._position, len(buffer), exactly=self.exactly)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
