r"""Flow: a text that comes in pieces, on its way to a screen.

It is shown piece by piece and is wrapped between words all the same: the part of a word that does not fit is taken back
and written again on the next row. The only controls that it writes are `\b` and line ends. Joiners (U+200C, U+200D)
stay where they stand behind a letter or an emoji: Persian and Hindi words need them, and one of them hides nothing.
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
"""Characters of a line's beginning that are kept: a list's sign and what stands before it."""

_PIECE = re.compile(r"\n| +|\t|[^\n\t ]+")
_JOINERS = re.compile("([\u200c\u200d])")
_HANGING = re.compile(r" *(?:(?:[-*+•]|\d{1,3}[.)]) +)?")


class Flow:
    """A text on its way to a screen: harmless, indented, wrapped; without a width it is only made harmless.

    Attributes:
        column: Cells that are taken in the row at hand; 0 where a row begins.
    """

    __slots__ = ("_before", "_begun", "_ends", "_line", "_return", "_width", "_word", "column")

    def __init__(self, width: int | None) -> None:
        self._width = None if width is None else max(width - 1, _LEAST)  # the last column would wrap by itself
        self._ends = 0
        self._begun = self._return = False
        self._before = self._line = self._word = ""
        self.column = 0

    def feed(self, text: str) -> str:
        """Return what to write for the next piece."""
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
        """Return what ends the row, and begin anew."""
        ended = "\n" if self.column else ""
        self._ends = self.column = 0
        self._begun = self._return = False
        self._before = self._line = self._word = ""
        return ended

    def _safe(self, text: str) -> str:
        """The text, in which nothing acts or hides."""
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
        if self._ends:  # line ends before and behind the text are nobody's
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
        size = max(0, min(size, self._room - self.column))  # blanks at the end of a row are not missed
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
        """Sentences are read in columns; tables and code are looked at in full width."""
        assert self._width is not None
        return self._width if self._line.startswith(("|", "    ", "\t")) else min(self._width, _PROSE)

    @property
    def _hang(self) -> int:
        found = _HANGING.match(self._line.replace("\t", " " * _TAB))
        return INDENT + min(len(found[0]) if found else 0, self._room // 2)


def _units(word: str) -> Iterator[str]:
    """A word in the pieces between which a row may end: before and behind each wide character."""
    unit = ""
    for char in word:
        size = cell_len(char)
        if unit and size and (size > 1 or cell_len(unit[0]) > 1) and not unit.endswith("\u200d"):
            yield unit
            unit = ""
        unit += char
    yield unit


def _takes_joiner(char: str) -> bool:
    """Whether a joiner behind a character belongs to it: to a letter, its signs, an emoji."""
    return not char.isascii() and unicodedata.category(char)[0] in "LMS"
