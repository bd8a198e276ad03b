"""The lines of a rollout, and the plain way to account for them, each decoded; the fast one is in lane.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import orjson

from sessionlog.errors import Problem
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.codex.scan import Rollout

_ROW = b'{"timestamp"'
_TRIES = 64


class RolloutRows(Rows):
    """Rows of a rollout: a row that was glued to a torn one is found again.

    Attributes:
        text: The line that was decoded last.
    """

    text: bytes = b""

    def decode(self, line: bytes) -> Iterator[Row | Problem]:
        """Yield the objects of one line, and the last row of a line that is none."""
        self.text = line
        for item in super().decode(line):
            yield item
            if isinstance(item, Problem) and item.kind == "not_json":
                yield from _glued(line)

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines as they come, without accounting for them; what is no whole line ends early, or is empty."""
        return map(self._file.readline, repeat(self._max_line + 1))

    def whole(self, piece: bytes) -> bytes | Problem | None:
        """Return what `lines` yields for a piece that begins at `offset`, and go past it; None at the end."""
        if piece.endswith(b"\n"):
            self._advance(len(piece))
            return piece
        if len(piece) <= self._max_line:
            self._tail = piece
            return None
        skipped = self._skip(len(piece))
        return self._too_long(skipped) if skipped else None


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
