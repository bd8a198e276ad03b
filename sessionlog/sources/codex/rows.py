"""The lines of a rollout, and the plain way to account for them, each decoded; the fast one is in lane.py."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from sessionlog.errors import Problem
from sessionlog.reader.rows import MAX_LINE, Row, Rows
from sessionlog.sources.codex.scan import Rollout

BLOCK = 1 << 19
"""Bytes that are read at once: no more than a processor keeps at hand."""

Block = tuple[bytes, int, int]
"""Bytes, and where the whole lines in them begin and end."""

_ROW = b'{"timestamp"'
_TRIES = 64


class RolloutRows(Rows):
    """Rows of a rollout: a row that was glued to a torn one is found again.

    Attributes:
        text: The line that was decoded last.
    """

    text: bytes = b""

    def __init__(
        self, path: str, *, offset: int = 0, line: int = 0, max_line: int = MAX_LINE, block: int = BLOCK
    ) -> None:
        """Open a log and go to `offset`; `batches` reads it by blocks.

        Raises:
            LogNotReadable: There is no such file, or it may not be read.
            MissingExtra: A .zst file without a decoder.
        """
        super().__init__(path, offset=offset, line=line, max_line=max_line)
        self._block = max(1, min(block, max_line // 2))  # so that the lines of a block are never over the limit

    def decode(self, line: bytes) -> Iterator[Row | Problem]:
        """Yield the objects of one line, and the last row of a line that is none."""
        self.text = line
        for item in super().decode(line):
            yield item
            if isinstance(item, Problem) and item.kind == "not_json":
                yield from _glued(line)

    def blocks(self) -> Iterator[Block | Problem]:
        """Yield the whole lines, a block of them at a time; over-long ones are named.

        `line` and `offset` stand before a block while it is read; `go_to` moves them.
        """
        read, limit = self._file.read, self._max_line
        begun = b""  # a line whose end has not been read
        while data := read(self._block):
            start, end = 0, data.rfind(b"\n") + 1
            if begun and end:
                start = data.find(b"\n") + 1
                line = begun + data[:start]
                yield line, 0, len(line)
            if end:
                if start < end:
                    yield data, start, end
                begun = data[end:]
                continue
            line = begun + data  # longer than a block: its rest is read at once
            line += self._file.readline(limit + 1 - len(line))
            begun = b""
            if line.endswith(b"\n"):
                yield line, 0, len(line)
            elif len(line) > limit:
                skipped = self._skip(len(line))
                if not skipped:
                    return
                yield self._too_long(skipped)
            else:
                begun = line
                break
        self._tail = begun

    def go_to(self, lines: int, length: int) -> None:
        """Go past so many lines, which are so long together."""
        self.line += lines
        self.offset += length

    def take(self, line: bytes) -> None:
        """Go past a line, which is now the last one given."""
        self._advance(len(line))


def _glued(line: bytes) -> Iterator[Row]:
    at = len(line)
    for _ in range(_TRIES):
        at = line.rfind(_ROW, 1, at)
        if at < 0:
            return
        try:
            row = orjson.loads(line[at:])
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
        return


def feed_plainly(rollout: Rollout, rows: RolloutRows) -> None:
    """Account for all whole lines, each decoded: what every other way must equal."""
    for line in rows.lines():
        take_line(rollout, rows, line)


def take_line(rollout: Rollout, rows: RolloutRows, line: bytes | Problem) -> None:
    """Account for one line, decoded."""
    if isinstance(line, Problem):
        rollout.findings.note(line)
        return
    rollout.line = rows.line
    for item in rows.decode(line):
        if isinstance(item, Problem):
            rollout.findings.note(item)
        else:
            rollout.take(item, line)
