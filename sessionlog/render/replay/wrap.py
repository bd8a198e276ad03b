"""Wrapping a line at a terminal's width, in cells: East Asian characters take two.

What is indented stays indented: pieces after the first begin below the text, behind a list's bullet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessionlog.render.cells import cell_len

_INDENT = re.compile(r" *(?:(?:[-*+•]|\d{1,3}[.)]) +)?")
_WORD = re.compile(r" *[^ ]+| +$")


def wrap(line: str, width: int) -> Iterator[str]:
    """Yield the pieces of one line, none wider than `width` cells (at least 8). Only blanks are lost."""
    line, width = line.expandtabs(4), max(width, 8)
    if len(line) * 2 <= width or cell_len(line) <= width:
        yield line
        return
    found = _INDENT.match(line)
    indent = " " * min(len(found[0]) if found else 0, width // 2)
    current, used = "", 0
    for word in _WORD.findall(line):
        size = cell_len(word)
        if current and used + size > width:
            yield current
            word = word.lstrip()  # noqa: PLW2901 - the blanks stay at the end of the line that is full
            current, used = indent, len(indent)
            size = cell_len(word)
        while used + size > width:
            piece = fitting(word, width - used)
            yield current + piece
            word = word[len(piece) :]  # noqa: PLW2901 - what is left of a word wider than the line
            current, used, size = indent, len(indent), cell_len(word)
        current, used = current + word, used + size
    if current.strip():
        yield current


def fitting(text: str, width: int) -> str:
    """The longest beginning of `text` that fits into `width` cells, at least one character."""
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > width and index:
            return text[:index]
    return text
