"""BatchFile: batches of plain values in a temporary file, so that no process holds all of them in memory.

The process that has the values writes them, and another one may read them, in the same order. Between processes of one
machine only the file's name is sent; without a folder for such files the bytes are.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from sessionlog import files

_VERSION = 4  # of marshal, which every supported Python reads


class BatchFile:
    """Batches of plain values: tuples, lists, numbers, texts."""

    def __init__(self, folder: str | None = None) -> None:
        """Create an empty one in a folder from which another process reads it, or in a file without a name."""
        self._folder, self._path = folder, ""
        self._file: BinaryIO | None = None
        self._size = 0
        self._more: list[bytes] = []  # batches that could not be written to the file
        with suppress(OSError):
            self._file, self._path = files.open_temporary(folder)

    def add(self, batch: Any) -> int:
        """Append a batch and return its place, for `read`."""
        data = marshal.dumps(batch, _VERSION)
        if self._file is not None and not self._more:
            with suppress(OSError):
                self._file.seek(self._size)
                self._file.write(len(data).to_bytes(8, "big") + data)
                self._file.flush()
                self._size += 8 + len(data)
                return self._size - 8 - len(data)
        self._more.append(data)
        return -len(self._more)

    def read(self, place: int) -> Any:
        """Return the batch at a place."""
        if place < 0 or self._file is None:
            return marshal.loads(self._more[-place - 1])  # noqa: S302 - written by a process of ours
        self._file.seek(place)
        size = int.from_bytes(self._file.read(8), "big")
        return marshal.loads(self._file.read(size))  # noqa: S302 - as above

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while self._file is not None and at < self._size:
            batch = self.read(at)
            at = self._file.tell()
            yield batch
        for data in self._more:
            yield marshal.loads(data)  # noqa: S302 - as above

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._folder is not None and self._path:
            return _reopen, (self._path, self._size, self._more)
        return _copy, ([marshal.dumps(batch, _VERSION) for batch in self],)


def _reopen(path: str, size: int, more: list[bytes]) -> BatchFile:
    """Open a file of another process and unlink it."""
    spool = BatchFile.__new__(BatchFile)
    spool._folder, spool._path, spool._size, spool._more = None, "", size, more  # noqa: SLF001 - as a constructor
    spool._file = files.reopen_temporary(path)  # noqa: SLF001 - as above
    return spool


def _copy(batches: list[bytes]) -> BatchFile:
    spool = BatchFile()
    for data in batches:
        spool.add(marshal.loads(data))  # noqa: S302 - as above
    return spool
