r"""Rows: the JSON objects of another agent's JSONL file, line by line, whatever the bytes are.

Lines end with `\n` only (U+2028 and `\r` occur in text). Byte order marks, CRLF, NULs, invalid UTF-8, lone surrogates,
spaced JSON and several objects on a line are read; what cannot be read is a `Problem` with its line and offset. The
last line is read separately: while it has no newline it may be unfinished, and `offset` stays before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import orjson

from sessionlog.errors import Problem, Severity
from sessionlog.events.damaged import LineProblem, find_objects
from sessionlog.events.decoded_size import LARGE, too_large
from sessionlog.events.limits import MAX_LINE
from sessionlog.files import BUFFER
from sessionlog.reader.stream import is_young
from sessionlog.reader.unpack import open_unpacked

Row = dict[str, Any]


class Rows:
    """One open JSONL file.

    Attributes:
        line: Number of the line last yielded, from 1.
        start: Offset at which that line begins.
        offset: Offset at which it ends: the next scan may start there.
    """

    def __init__(
        self, path: str, *, offset: int = 0, line: int = 0, max_line: int = MAX_LINE, buffer: int = BUFFER
    ) -> None:
        """Open a `.jsonl` file, or one packed as `.gz` or `.zst`, and seek to `offset`.

        Raises:
            LogNotReadable: There is no such file, or it may not be read.
            MissingExtra: A .zst file without a decoder.
        """
        self._path = path
        self._name = os.path.basename(path)
        self._max_line = max_line
        self._tail = b""
        self._endless = 0
        self._file, self._unpacked = open_unpacked(path, buffer=buffer)
        self.line, self.start, self.offset = line, offset, offset
        if offset and self._unpacked is None:
            self._file.seek(offset)
        else:
            self._skip_bytes(offset)

    def _skip_bytes(self, count: int) -> None:
        """Read past `count` bytes of a packed file, which cannot seek."""
        while count > 0:
            piece = self._file.read(min(count, 1 << 20))
            if not piece:
                return
            count -= len(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def tail(self) -> bytes:
        """The last line if it has no newline: what `last` decodes."""
        return self._tail

    @property
    def line_key(self) -> str:
        """A unique key of the line last yielded, for records without an id of their own."""
        return f"{self._name}@{self.start}"

    def lines(self) -> Iterator[bytes | Problem]:
        """Yield the whole lines, newline included; a line over the limit is skipped in pieces and is a problem."""
        readline, limit = self._file.readline, self._max_line + 1
        while piece := readline(limit):
            if piece.endswith(b"\n"):
                self.line += 1
                self.start = self.offset
                self.offset += len(piece)
                if len(piece) > LARGE:
                    detail = too_large(piece)
                    yield self._problem("too_large", detail, len(piece)) if detail else piece
                    piece = b""  # frees it before the next one is read
                    continue
                yield piece
                continue
            if len(piece) < limit:
                self._tail = piece
                return
            length, piece = len(piece), b""  # as above
            skipped = self._skip(length)
            if not skipped:
                return
            yield self._too_long(skipped)

    def _skip(self, length: int) -> int:
        """Read past the rest of an over-long line; return the line's length, 0 when it has no end yet."""
        while piece := self._file.readline(1 << 20):
            length += len(piece)
            if piece.endswith(b"\n"):
                self.line += 1
                self.start = self.offset
                self.offset += length
                return length
        self._endless = length
        return 0

    def read(self, wants: Callable[[bytes], bool] | None = None) -> Iterator[Row | Problem]:
        """Yield the objects of the whole lines for which `wants` is true, and their problems."""
        for line in self.lines():
            if isinstance(line, Problem):
                yield line
            elif wants is None or wants(line):
                yield from self.decode(line)

    def last(self, wants: Callable[[bytes], bool] | None = None) -> Iterator[Row | Problem]:
        """Yield the object of a last line without a newline if it is whole, else a problem; and one for torn packing.

        Sets `line` and `start`; `offset` stays before the line.
        """
        if self._endless:
            length, self._endless = self._endless, 0
            self.line, self.start = self.line + 1, self.offset
            yield self._too_long(length)
        if self._tail.strip(b"\x00\r "):
            tail, self._tail = self._tail, b""
            self.line, self.start = self.line + 1, self.offset
            if len(tail) > LARGE and (detail := too_large(tail)):
                yield self._problem("too_large", detail, len(tail))
            elif wants is None or wants(tail) or not tail.rstrip(b"\x00\r ").endswith(b"}"):
                for item in self.decode(tail):
                    torn = isinstance(item, Problem) and item.kind == "not_json"
                    yield self._torn(len(tail)) if torn else item
        if self._unpacked is not None and self._unpacked.failure is not None:
            yield self._problem("bad_compression", self._unpacked.failure)

    def _torn(self, length: int) -> Problem:
        severity: Severity = "info" if is_young(self._path) else "damage"
        return self._problem("torn_tail", f"unfinished line, {length} bytes", length, severity=severity)

    def _too_long(self, length: int) -> Problem:
        return self._problem("too_long", f"a line of {length} bytes is over the limit of {self._max_line}", length)

    def all(self, wants: Callable[[bytes], bool] | None = None) -> Iterator[Row | Problem]:
        """Yield what `read` and `last` yield, for readers that read a file once."""
        yield from self.read(wants)
        yield from self.last(wants)

    def decode(self, line: bytes) -> Iterator[Row | Problem]:
        """Yield the objects of one line, or of several that belong together, and their problems."""
        if len(line) > LARGE and (detail := too_large(line, copies=3)):
            yield self._problem("too_large", detail, len(line))
            return
        try:
            value = orjson.loads(line)
        except ValueError:
            yield from self._decode_damaged(line.rstrip(b"\r\n"))
            return
        if isinstance(value, dict):
            yield value
        else:
            yield self._problem("not_object", f"a JSON {type(value).__name__} is no row", len(line))

    def _decode_damaged(self, line: bytes) -> Iterator[Row | Problem]:
        for item in find_objects(line):
            if not isinstance(item, LineProblem):
                yield item[0]
            elif item.kind != "nul_bytes" or item.start + item.length < len(line):  # a padded end loses nothing
                yield self._problem(item.kind, item.detail, item.length, item.start, severity=item.severity)

    def _problem(
        self, kind: str, detail: str, length: int = 0, at: int = 0, *, severity: Severity = "damage"
    ) -> Problem:
        return Problem(
            path=self._path,
            line=self.line,
            offset=self.start + at,
            kind=kind,
            detail=detail,
            length=length,
            severity=severity,
        )
