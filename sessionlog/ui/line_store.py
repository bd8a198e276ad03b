"""Laid-out lines, compressed: the lines of a session of any size, of which only those on the screen are unpacked.

One thread adds lines while another reads them.
"""

from __future__ import annotations

import marshal
import zlib
from collections import OrderedDict
from collections.abc import Sequence

Parts = list[tuple[str, str]]
"""A line: pairs of text and style."""

PAGE = 256
"""Lines that are compressed together."""

_UNPACKED = 16  # pages that are kept unpacked


class LineStore:
    """An append-only list of lines, with the block that each belongs to."""

    def __init__(self) -> None:
        self._pages: list[bytes] = []
        self._last: list[Parts] = []
        self._unpacked: OrderedDict[int, list[Parts]] = OrderedDict()
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._pages) * PAGE + len(self._last)

    @property
    def starts(self) -> Sequence[int]:
        """The first line of each block."""
        return self._starts

    @property
    def packed_bytes(self) -> int:
        """The size of the compressed pages."""
        return sum(map(len, self._pages))

    def add_block(self, lines: Sequence[Parts]) -> None:
        """Append the lines of one block."""
        self._starts.append(len(self))
        for line in lines:
            self._last.append(line)
            if len(self._last) == PAGE:
                self._pages.append(zlib.compress(marshal.dumps(self._last), 1))
                self._last = []

    def line(self, number: int) -> Parts:
        """Return a line by its number from 0; a line beyond the end is empty."""
        page, place = divmod(number, PAGE)
        if page >= len(self._pages):
            last = self._last
            return last[place] if page == len(self._pages) and place < len(last) else []
        lines = self._unpacked.get(page)
        if lines is None:
            lines = marshal.loads(zlib.decompress(self._pages[page]))  # noqa: S302 - of this process
            self._unpacked[page] = lines
            if len(self._unpacked) > _UNPACKED:
                self._unpacked.popitem(last=False)
        return lines[place]
