"""A line of a report: finished text in pieces, each with the name of its style.

Reports are laid out as such lines, without a library. On a terminal `console` turns styles into colours; elsewhere
`plain` is the line.
"""

from __future__ import annotations

from sessionlog.render.cells import cell_len, chop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORD = r"\s*\S+\s*"


class Line:
    """Text on one line.

    Attributes:
        parts: Pairs of text and style; "" is no style.
        no_wrap: Whether it must not be wrapped.
    """

    __slots__ = ("no_wrap", "parts")

    def __init__(self, text: str = "", style: str = "", *, no_wrap: bool = False) -> None:
        self.parts: list[tuple[str, str]] = [(text, style)] if text else []
        self.no_wrap = no_wrap

    @classmethod
    def of(cls, *parts: str | tuple[str, str]) -> Line:
        """Return a line of several pieces, with a style or without."""
        line = cls()
        for part in parts:
            line.append(*([part] if isinstance(part, str) else part))
        return line

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join([text for text, _ in self.parts])

    def __bool__(self) -> bool:
        return bool(self.parts)

    def append(self, text: str, style: str = "") -> None:
        """Add a piece at the end."""
        if text:
            self.parts.append((text, style))

    def rstrip(self) -> None:
        """Remove the blanks at the end."""
        while self.parts:
            text, style = self.parts.pop()
            if kept := text.rstrip():
                self.parts.append((kept, style))
                return

    def wrapped(self, width: int) -> list[Line]:
        """Return the line in lines of at most `width` cells; one with `no_wrap` is returned as it is."""
        if self.no_wrap or cell_len(self.plain) <= width:
            return [self]
        lines = [Line(no_wrap=True)]
        ends = _ends(self.plain, width)
        place, end = 0, next(ends, -1)
        for whole, style in self.parts:
            text = whole
            while 0 <= end - place < len(text):
                lines[-1].append(text[: end - place], style)
                lines.append(Line(no_wrap=True))
                text, place, end = text[end - place :], end, next(ends, -1)
            lines[-1].append(text, style)
            place += len(text)
        return lines


def _ends(text: str, width: int) -> Iterator[int]:
    """Yield the offsets where lines end: between words, or within a word that is longer than a line."""
    from re import finditer

    used = 0
    for match in finditer(_WORD, text):
        word, place = match[0], match.start()
        size = cell_len(word.rstrip())
        if used + size <= width:
            used += cell_len(word)
            continue
        if place:
            yield place
        pieces = chop(word, width) if size > width else [word]
        for piece in pieces[:-1]:
            place += len(piece)
            yield place
        used = cell_len(pieces[-1])


def wrap_lines(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield lines wrapped to `width` cells, without trailing blanks and without blank lines at the end."""
    blank: list[Line] = []
    for line in lines:
        for part in line.wrapped(width):
            part.rstrip()
            blank.append(part)
            if part:
                yield from blank
                blank.clear()
