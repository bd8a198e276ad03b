"""read_events: a log as a stream of `Event | Problem`, in bounded memory, whatever the bytes are.

Damage never ends the reading: it is yielded as a `Problem` (file, line, byte offset, kind) and the next line is read. A
line longer than the limit is skipped in pieces. An unfinished last line is information while the file is young, because
a writer may be in the middle of it, and damage later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from sessionlog import files
from sessionlog.errors import Problem, Severity
from sessionlog.events.damaged import LineProblem
from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.events.limits import MAX_LINE
from sessionlog.reader.unpack import open_unpacked

_SKIPPED_PIECE = 1 << 20

YOUNG_NS = 2_000_000_000

_BEFORE = b" \t\r\n\xef\xbb\xbf"  # before the first object: white space, a byte order mark


def read_events(path: str | os.PathLike[str], *, max_line: int = MAX_LINE) -> Iterator[Event | Problem]:
    """Yield the events and problems of a `.jsonl`, `.jsonl.gz` or `.jsonl.zst` log in file order.

    Tolerates CRLF, byte order marks, NULs, torn lines, several documents on a line and pretty-printed objects.

    Raises:
        LogNotReadable: There is no such file, it is not a regular file, or it may not be read.
    """
    path = os.fspath(path)
    file, unpacked = open_unpacked(path)
    with file:
        stream = EventStream(path, max_line=max_line)
        yield from stream.feed(file)
        yield from stream.finish(young=is_young(path))
        if unpacked is not None and unpacked.failure is not None:
            detail = unpacked.failure
            yield Problem(path=path, line=stream.line, offset=stream.offset, kind="bad_compression", detail=detail)


def is_young(path: str) -> bool:
    """Whether a writer may still be in the middle of the last line: the file changed less than 2 s ago.

    Each version of an object in a bucket is complete.
    """
    status = files.stat_path(path)
    if status is not None and status.st_dev == files.VERSIONED:
        return False
    return status is not None and abs(time.time_ns() - status.st_mtime_ns) < YOUNG_NS


@dataclass(slots=True)
class _Pretty:
    """An object spread over several lines (pretty-printed) whose end has not been read yet.

    Attributes:
        line: The number of its first line.
        offset: The offset of its first byte.
        pieces: Its lines so far.
        size: Their bytes.
    """

    line: int
    offset: int
    pieces: list[bytes]
    size: int


class EventStream:
    """The state between two reads of one file: the position, and what is unfinished.

    `offset` is never inside a line, nor inside an unfinished object that is spread over lines.
    """

    def __init__(self, path: str, *, max_line: int = MAX_LINE, line: int = 0, offset: int = 0) -> None:
        self._path = path
        self._max_line = max_line
        self._line = line
        self._offset = offset
        self._tail = b""  # an unfinished last line
        self._pretty: _Pretty | None = None
        self._skipping = 0  # bytes skipped of an over-long line

    @property
    def line(self) -> int:
        """Lines finished so far."""
        return self._line if self._pretty is None else self._pretty.line - 1

    @property
    def at_line_start(self) -> bool:
        """Whether nothing is unfinished: the next byte begins a new line and no object is open."""
        return self._pretty is None and not self._tail and not self._skipping

    @property
    def offset(self) -> int:
        """Byte offset after the last finished line: a reader may resume there."""
        return self._offset if self._pretty is None else self._pretty.offset

    def feed(self, file: BinaryIO) -> Iterator[Event | Problem]:
        """Read `file` to its present end. An unfinished line waits for the next call or for `finish`."""
        limit = self._max_line + 1
        while piece := file.readline(min(limit, _SKIPPED_PIECE) if self._skipping else limit):
            if piece.endswith(b"}\n") and self.at_line_start:  # nearly all lines; `feed_bytes` would do the same
                self._line += 1
                start = self._offset
                self._offset += len(piece)
                piece = piece[:-1]  # a long line is in memory once, not with and without its end
                events, problems = decode_line(piece)
                piece = b""
                yield from events
                for problem in problems:
                    yield self._problem(problem, self._line, start)
            else:
                yield from self.feed_bytes(piece)
            piece = b""  # free a long piece before the next one is read

    def feed_bytes(self, piece: bytes) -> Iterator[Event | Problem]:
        """Read the next bytes of the file: a line, or a piece of one."""
        if self._tail:
            piece, self._tail = self._tail + piece, b""
        if piece.endswith(b"\n"):
            yield from self._line_done(piece)
        elif self._skipping or len(piece) > self._max_line:
            self._skipping += len(piece)
        else:
            self._tail = piece

    def skip_decoded(self, lines: int, size: int) -> None:
        """Advance past whole lines that the caller has decoded; the stream must be `at_line_start`."""
        self._line += lines
        self._offset += size

    def _line_done(self, piece: bytes) -> Iterator[Event | Problem]:
        self._line += 1
        start = self._offset
        self._offset += len(piece) + self._skipping
        if self._skipping or len(piece) > self._max_line + 1:
            length, self._skipping = len(piece) + self._skipping, 0
            if self._pretty is not None:
                yield from self._give_up_pretty(self._pretty)
            yield self._problem(self._too_long(length), self._line, start)
            return
        yield from self._decode(piece, self._line, start)

    def finish(self, *, young: bool = False) -> Iterator[Event | Problem]:
        """Yield what the file ends with: the event of a whole line without a newline, or a problem for a torn line."""
        tail, self._tail = self._tail, b""
        if self._pretty is not None:
            if tail and (yield from self._continue_pretty(self._pretty, tail)):
                tail = b""
            if self._pretty is not None:
                yield from self._give_up_pretty(self._pretty, torn="info" if young else "damage")
        if self._skipping:
            length, self._skipping = self._skipping + len(tail), 0
            yield self._problem(self._too_long(length), self._line + 1, self._offset)
            return
        if not tail:
            return
        events, problems = decode_line(tail)
        yield from events
        severity: Severity = "info" if young else "damage"
        for problem in problems:
            torn = problem.kind == "not_json" and problem.start + problem.length == len(tail.rstrip(b"\r\n"))
            detail = f"unfinished line, {problem.length} bytes"
            named = replace(problem, kind="torn_tail", detail=detail, severity=severity) if torn else problem
            yield self._problem(named, self._line + 1, self._offset)

    def _too_long(self, length: int) -> LineProblem:
        detail = f"a line of {length} bytes is over the limit of {self._max_line}"
        return LineProblem(kind="too_long", detail=detail, length=length)

    def _decode(self, piece: bytes, line: int, start: int) -> Iterator[Event | Problem]:
        if self._pretty is not None and (yield from self._continue_pretty(self._pretty, piece)):
            return
        if _opens_pretty(piece):
            self._pretty = _Pretty(line, start, [piece], len(piece))
            return
        events, problems = decode_line(piece)
        yield from events
        for problem in problems:
            yield self._problem(problem, line, start)

    def _continue_pretty(self, pretty: _Pretty, piece: bytes) -> Generator[Event | Problem, None, bool]:
        """Add a line to a spread-out object; return True when the line belonged to it."""
        if piece.startswith(b"{"):
            yield from self._give_up_pretty(pretty)  # a new object begins: the open one is torn
            return False
        pretty.pieces.append(piece)
        pretty.size += len(piece)
        if piece.startswith(b"}"):
            events, problems = decode_line(b"".join(pretty.pieces))
            if not events:
                yield from self._give_up_pretty(pretty)
                return True
            self._pretty = None
            yield from events
            for problem in problems:
                yield self._problem(problem, pretty.line, pretty.offset)
        elif pretty.size > self._max_line:
            yield from self._give_up_pretty(pretty)
        return True

    def _give_up_pretty(self, pretty: _Pretty, *, torn: Severity | None = None) -> Iterator[Event | Problem]:
        """Yield a problem for an object without an end; `torn` is its severity if the object ends the file.

        An object that is whole after all is read: its `}` did not begin a line, or all of it is on one line.
        """
        self._pretty = None
        lines = len(pretty.pieces)
        where = f" (lines {pretty.line} to {pretty.line + lines - 1})" if lines > 1 else ""
        problem = LineProblem(kind="not_json", detail=f"{pretty.size} bytes are not JSON{where}", length=pretty.size)
        if torn is not None:
            detail = f"unfinished object, {pretty.size} bytes{where}"
            problem = replace(problem, kind="torn_tail", detail=detail, severity=torn)
        events, problems = (
            decode_line(b"".join(pretty.pieces)) if lines == 1 or pretty.size <= self._max_line else ([], [])
        )
        if lines > 1 and problems:  # objects inside the torn one are no events
            events = []
        yield from events
        for item in problems if events else [problem]:
            yield self._problem(item, pretty.line, pretty.offset)

    def _problem(self, problem: LineProblem, line: int, start: int) -> Problem:
        return Problem(
            path=self._path,
            line=line,
            offset=start + problem.start,
            kind=problem.kind,
            detail=problem.detail,
            length=problem.length,
            severity=problem.severity,
        )


def _opens_pretty(piece: bytes) -> bool:
    """Whether a line begins an object and ends where pretty printers break lines, as no whole object does."""
    return piece[-8:].rstrip()[-1:] in (b"{", b"[", b",") and piece.lstrip(_BEFORE)[:1] == b"{"
