r"""Wrap streamed text between words while it arrives.

Each piece is shown at once: the begun part of a word that does not fit is erased and written again on the next row. The
only controls in the output are `\b` and line ends. Joiners (U+200C, U+200D) are kept behind a letter or an emoji:
Persian and Hindi words need them, and a single one hides nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sessionlog.render.cells import cell_len
from sessionlog.render.escape import terminal

INDENT = 2
_PROSE = 110
_LEAST = 24
_TAB = 4
_BEGUN = 24
"""Characters of a line's beginning that are kept, to find the indent of a list item."""

_PIECE = re.compile(r"\n| +|\t|[^\n\t ]+")
_JOINERS = re.compile("([\u200c\u200d])")
_HANGING = re.compile(r" *(?:(?:[-*+•]|\d{1,3}[.)]) +)?")


class Flow:
    """Escapes, indents and wraps streamed text; without a width it only escapes.

    Attributes:
        column: Cells used in the current row; 0 at its start.
    """

    __slots__ = ("_before", "_begun", "_ends", "_line", "_return", "_width", "_word", "column")

    def __init__(self, width: int | None) -> None:
        self._width = None if width is None else max(width - 1, _LEAST)  # terminals wrap when the last column is filled
        self._ends = 0
        self._begun = self._return = False
        self._before = self._line = self._word = ""
        self.column = 0

    def feed(self, text: str) -> str:
        """Return the output for the next piece of text."""
        if self._return:
            text, self._return = f"\r{text}", False
        if text.endswith("\r"):  # the line end may be cut in two
            text, self._return = text[:-1], True
        safe = self._safe(text.replace("\r\n", "\n"))
        if self._width is None:
            self.column = 0 if safe.endswith("\n") else self.column + len(safe)
            return safe
        return "".join([part for piece in _PIECE.findall(safe) for part in self._written(piece)])

    def end(self) -> str:
        """Return the line end that closes the row, if any, and reset."""
        ended = "\n" if self.column else ""
        self._ends = self.column = 0
        self._begun = self._return = False
        self._before = self._line = self._word = ""
        return ended

    def _safe(self, text: str) -> str:
        """Return the text with everything escaped that acts or hides."""
        parts = []
        for part in _JOINERS.split(text) if not text.isascii() else (text,):
            is_joiner = part in ("\u200c", "\u200d") and _takes_joiner(self._before)
            parts.append(part if is_joiner else terminal(part, newline=True, tab=True))
            self._before = part[-1:] or self._before
        return "".join(parts)

    def _written(self, piece: str) -> Iterator[str]:
        if piece == "\n":
            self._ends += 1
            return
        if self._ends:  # line ends before and after the text are dropped
            if self._begun:
                yield "\n" * self._ends
            self._ends = self.column = 0
            self._line = self._word = ""
        self._begun = True
        if self.column == 0:
            yield " " * INDENT
            self.column = INDENT
        blank = piece[0] in " \t"
        yield from self._blanks(piece) if blank else self._letters(piece)
        if len(self._line) < _BEGUN:
            self._line += piece

    def _blanks(self, piece: str) -> Iterator[str]:
        size = _TAB - (self.column - INDENT) % _TAB if piece == "\t" else len(piece)
        size = max(0, min(size, self._room - self.column))  # blanks at the end of a row are dropped
        self.column, self._word = self.column + size, ""
        yield " " * size

    def _letters(self, piece: str) -> Iterator[str]:
        for unit in (piece,) if piece.isascii() else _units(piece):
            wide = cell_len(unit[0]) > 1
            if wide:
                self._word = ""
            yield from self._unit(unit)
            if wide:
                self._word = ""

    def _unit(self, unit: str) -> Iterator[str]:
        size, back, whole = cell_len(unit), cell_len(self._word), self._word + unit
        if self.column + size <= self._room:
            self.column, self._word = self.column + size, whole
            yield unit
            return
        start, hang = self.column - back, self._hang
        if start > hang and cell_len(whole) <= self._room - hang:
            self.column, self._word = hang + cell_len(whole), whole
            yield "\b" * back + " " * back + "\n" + " " * hang + whole
            return
        for char in unit:
            if self.column + cell_len(char) > self._room:
                yield f"\n{' ' * hang}"
                self.column, self._word = hang, ""
            self.column, self._word = self.column + cell_len(char), self._word + char
            yield char

    @property
    def _room(self) -> int:
        """The last usable column: prose is kept narrow, tables and code get the full width."""
        assert self._width is not None
        return self._width if self._line.startswith(("|", "    ", "\t")) else min(self._width, _PROSE)

    @property
    def _hang(self) -> int:
        found = _HANGING.match(self._line.replace("\t", " " * _TAB))
        return INDENT + min(len(found[0]) if found else 0, self._room // 2)


def _units(word: str) -> Iterator[str]:
    """Split a word where a row may end: before and after each wide character."""
    unit = ""
    for char in word:
        size = cell_len(char)
        if unit and size and (size > 1 or cell_len(unit[0]) > 1) and not unit.endswith("\u200d"):
            yield unit
            unit = ""
        unit += char
    yield unit


def _takes_joiner(char: str) -> bool:
    """Whether a joiner may follow a character: a letter, a combining mark or an emoji."""
    return not char.isascii() and unicodedata.category(char)[0] in "LMS"
