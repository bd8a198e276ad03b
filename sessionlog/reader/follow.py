"""follow: a log as it grows, like `tail -F`; it continues when the file is renamed, truncated, deleted or missing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.limits import MAX_LINE
from sessionlog.reader.stream import EventStream


def follow(
    path: str | os.PathLike[str],
    *,
    from_start: bool = True,
    poll_seconds: float = 0.1,
    max_line: int = MAX_LINE,
    stop: Callable[[], bool] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event | Problem]:
    """Yield the events of an uncompressed log as they are written, until `stop()` is true.

    The path may not exist yet. After a rename the old file is read to its end and the new one from its beginning;
    after a truncation reading begins again. An unfinished line is not yielded before its end; `stop` is called whenever
    there is nothing to read, and a line that is unfinished then is a problem.

    Raises:
        LogNotReadable: The path is not a regular file or may not be read.
    """
    reader = _Follower(os.fspath(path), max_line, skip=not from_start)
    try:
        while True:
            yield from reader.read()
            if stop is not None and stop():
                yield from reader.finish()
                return
            sleep(poll_seconds)
    finally:
        reader.close()


class _Follower:
    """The open file behind a path, whichever file that is now."""

    def __init__(self, path: str, max_line: int, *, skip: bool) -> None:
        self._path = path
        self._max_line = max_line
        self._skip = skip
        self._file: BinaryIO | None = None
        self._stream = EventStream(path, max_line=max_line)

    def read(self) -> Iterator[Event | Problem]:
        if self._file is None and not self._open():
            return
        assert self._file is not None
        named = files.stat_path(self._path)
        here = files.stat_open(self._file)
        if here.st_size < self._file.tell():
            yield from self.finish()
            yield self._note("the file was truncated: reading begins again")
            self._restart()
        yield from self._stream.feed(self._file)
        if named is None or (named.st_dev, named.st_ino) != (here.st_dev, here.st_ino):
            yield from self._stream.feed(self._file)  # what came between the last read and the rename
            yield from self.finish()
            self.close()
            if named is not None and self._open():
                yield self._note("the file was replaced: reading the new one")
                yield from self.read()

    def _open(self) -> bool:
        if files.stat_path(self._path) is None:
            self._skip = False  # whatever is written from now on is new
            return False
        try:
            self._file = files.open_log(self._path)
        except LogNotReadable:
            if files.stat_path(self._path) is None:  # deleted after the first stat
                return False
            raise
        self._stream = EventStream(self._path, max_line=self._max_line)
        if self._skip:
            offset = _last_line(self._file, self._max_line)
            self._stream = EventStream(self._path, max_line=self._max_line, offset=offset)
        self._skip = False
        return True

    def _restart(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._stream = EventStream(self._path, max_line=self._max_line)

    def _note(self, detail: str) -> Problem:
        return Problem(path=self._path, line=0, offset=0, kind="replaced", detail=detail, severity="info")

    def finish(self) -> Iterator[Event | Problem]:
        yield from self._stream.finish(young=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _last_line(file: BinaryIO, max_line: int) -> int:
    """Seek to the end of a file, or to the start of its unfinished last line; return the offset."""
    size = file.seek(0, 2)
    start = file.seek(max(0, size - max_line - 1))
    tail = file.read(size - start)
    newline = tail.rfind(b"\n")
    return file.seek(start + newline + 1 if newline >= 0 or start == 0 else size)
