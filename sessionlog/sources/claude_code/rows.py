"""The lines of a transcript, and the rows in them: what is glued to a torn row is whole, and found again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from sessionlog.errors import Problem
from sessionlog.reader.rows import Row, Rows

_HEADS = re.compile(rb'(?<!\\)\{"parentUuid"')


class TranscriptRows(Rows):
    """Rows of a transcript: behind a torn row others may be glued to it, and they are whole.

    Attributes:
        text: The bytes of the row that was decoded last.
    """

    text: bytes = b""

    def decode(self, line: bytes) -> Iterator[Row | Problem]:
        """Yield the rows of a line."""
        self.text = line
        for item in super().decode(line):
            yield item
            if isinstance(item, Problem) and item.kind == "not_json":
                places = [*(match.start() for match in _HEADS.finditer(line, 1)), len(line)]
                for start, end in pairwise(places):
                    self.text = line[start:end]
                    yield from (row for row in super().decode(self.text) if not isinstance(row, Problem))

    def others(self, take: Callable[[bytes], bool]) -> Iterator[bytes | Problem]:
        """Yield what `lines` gives, but for the whole lines that are taken."""
        readline, limit = self._file.readline, self._max_line + 1
        number, offset = self.line, self.offset
        while line := readline(limit):
            if take(line):
                number += 1
                offset += len(line)
                continue
            self.line, self.offset = number, offset
            if line.endswith(b"\n"):
                self._advance(len(line))
                yield line
            elif len(line) < limit:
                self._tail = line
                return
            else:
                skipped = self._skip(len(line))
                if not skipped:
                    return
                yield self._too_long(skipped)
            number, offset = self.line, self.offset
        self.line, self.offset = number, offset
