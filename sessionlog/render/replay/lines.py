"""Lines of spans: the forms in which blocks are laid out, and the settings of the layout (`View`).

The invariant: the text of a `Span` is escaped. Logged text becomes spans only by `words` and `body`, which escape it; a
`Span` made directly holds text of this program. A style is a name of the theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sessionlog.render.cells import cell_len
from sessionlog.render.escape import cut, one_line, strip_line_ends, terminal

if TYPE_CHECKING:
    from rich.style import Style

PAGE = 120  # columns; beyond them a right-aligned figure is too far from its line's text
PROSE_WIDTH = 110
_LABEL = 32  # columns; the text of a longer label stands below it
WORDS = 400  # the most characters of a name, a reason or an id within a line
_INDENT = re.compile(r" *(?:(?:[-*+•]|\d{1,3}[.)]) +)?")
_WORD = re.compile(r" *[^ ]+| +$")

SHOWN = 4000
"""Characters of one text that are shown by default."""


class Limit(Struct, frozen=True, kw_only=True):
    """How much of a text is shown; None is all."""

    chars: int | None = None
    lines: int | None = None


class Limits(Struct, frozen=True, kw_only=True):
    """How much is shown of each kind of text; `Limits()` shows all.

    Attributes:
        prose: Texts of people and models, and errors.
        system: System prompts.
        output: A tool's result.
        thought: A model's reasoning.
        arguments: A tool's arguments.
    """

    prose: Limit = Limit()
    system: Limit = Limit()
    output: Limit = Limit()
    thought: Limit = Limit()
    arguments: Limit = Limit()


def limits_to(chars: int) -> Limits:
    """Return limits of at most `chars` characters; texts other than prose are cut shorter."""
    return Limits(
        prose=Limit(chars=chars),
        system=Limit(chars=min(chars, 400), lines=4),
        output=Limit(chars=min(chars, 1200), lines=12),
        thought=Limit(chars=min(chars, 600), lines=6),
        arguments=Limit(chars=min(chars, 1200), lines=6),
    )


class View(Struct, frozen=True, kw_only=True):
    """Settings of the layout.

    Attributes:
        width: Columns of the terminal; None never wraps and never aligns, for pipes and diffs.
        exact: Whether numbers have all digits (`14100 in · 4200 ms · $0.0010272`).
        limits: How much of long texts is shown.
        zone: The time zone of times.
        now: The current time; times of this year are shown without the year.
        home: The folder shown as `~`; empty shows paths as logged.
        markdown: Whether prose is rendered as Markdown, which needs colours.
    """

    width: int | None = None
    exact: bool = True
    limits: Limits = limits_to(SHOWN)
    zone: tzinfo = UTC
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    home: str = ""
    markdown: bool = False


class Span(Struct, frozen=True, gc=False):
    """A piece of a line: escaped text and its style, a name of the theme or a style of rich ("" is plain)."""

    text: str
    style: str | Style = ""


Line = tuple[Span, ...]

NOTHING = Span("")
_BLANK, _GAP = Span(" "), Span("  ")
_DOT = Span(" · ", "note")


def words(text: str, style: str = "", *, limit: int = WORDS) -> Span:
    """Return a span of logged text within a line: escaped, line ends as `⏎`, cut to `limit` characters."""
    return Span(one_line(text, limit), style)


def cells(line: Iterable[Span]) -> int:
    """Return the columns that a line takes on a terminal."""
    return sum([cell_len(part.text) for part in line])


def joined(parts: Iterable[Span], by: Span = _DOT) -> Line:
    """Join the parts that are not empty."""
    line: list[Span] = []
    for part in parts:
        if part.text:
            if line:
                line.append(by)
            line.append(part)
    return tuple(line)


def head(view: View, left: Line, right: Sequence[Span]) -> list[Line]:
    """Return a line with its figures at the right edge, or on lines below if they do not fit."""
    figures = joined(right)
    if view.width is None:
        return [(*left, _GAP, *figures) if figures else left]
    if not figures:
        return [clipped(left, view.width)]
    width = min(view.width, PAGE)
    room = width - cells(left) - cells(figures)
    if room >= 2:
        return [(*left, Span(" " * room), *figures)]
    below = packed(right, width - 4)
    return [clipped(left, width), *((Span(" " * max(4, width - cells(line))), *line) for line in below)]


def packed(parts: Sequence[Span], width: int | None) -> Iterator[Line]:
    """Join the parts with dots into as few lines as fit the width."""
    line: list[Span] = []
    for part in (clipped((part,), width)[0] for part in parts if part.text):
        if line and width is not None and cells(joined([*line, part])) > width:
            yield joined(line)
            line = []
        line.append(part)
    if line:
        yield joined(line)


def clipped(line: Line, width: int | None) -> Line:
    """Cut a line to `width`, with `…` at the cut."""
    if width is None or cells(line) <= width:
        return line
    kept: list[Span] = []
    room = width - 1
    for part in line:
        size = cells((part,))
        if size > room:
            begun = prefix_of_width(part.text, room)
            return (*kept, Span(f"{begun if cell_len(begun) <= room else ''}…", part.style))
        kept.append(part)
        room -= size
    return tuple(kept)


def rule(view: View, parts: Sequence[Span]) -> Iterator[Line]:
    """Yield a heavy rule around parts, as wide as the page; parts that do not fit go on lines below."""
    if view.width is None:
        yield (Span("━━ ", "note"), *joined(parts), Span(" ━━", "note"))
        return
    width = min(view.width, PAGE)
    for index, line in enumerate(packed(parts, width - 6)):
        mark = Span("   " if index else "━━ ", "note")
        rest = width - cells(line) - 4
        yield (mark, *line, Span("" if index else f" {'━' * max(2, rest)}", "note"))


def row(view: View, label: str, parts: Sequence[Span]) -> Iterator[Line]:
    """Yield a labelled line of facts below a head."""
    indent = 13
    room = None if view.width is None else max(20, min(view.width, PAGE) - indent)
    if room is not None:
        parts = [Span(piece, part.style) for part in parts for piece in wrap(part.text, room)]
    for index, line in enumerate(packed(parts, room)):
        yield (Span(f"{'' if index else label:<{indent}}", "note"), *line)


def labelled_text(view: View, label: Line, text: str, limit: Limit, style: str = "") -> list[Line]:
    """Return a label and a logged text beside it; further lines of the text are aligned with its first."""
    indent = cells(label) + 1
    if indent > _LABEL:
        return [clipped(label, view.width), *body(view, text, limit, indent=2, style=style)]
    return labelled(label, body(view, text, limit, indent=indent, style=style))


def labelled(label: Line, lines: list[Line]) -> list[Line]:
    """Replace the indentation of the first line by a label."""
    if not lines:
        return [label]
    lines[0] = (*label, _BLANK, *lines[0][1:])
    return lines


def failure(view: View, text: str, limit: Limit, *, indent: int) -> list[Line]:
    """Return an error's text, with a mark on its first line."""
    return labelled_text(view, (Span(f"{' ' * indent}✘", "failed"),), text, limit, "failed") if text.strip() else []


def body(
    view: View, text: str, limit: Limit, *, indent: int, style: str = "", gutter: str = "", prose: bool = True
) -> list[Line]:
    """Return a logged text: escaped, indented, wrapped, cut to `limit`, with the size of what was cut."""
    if not text:
        return []
    shown, left_out = shorten(strip_line_ends(text.lstrip("\r\n")), limit)
    prefix = Span(f"{' ' * indent}{gutter}", "note" if gutter else "")
    shown = shown.rstrip()
    pieces: Iterable[str] = terminal(shown, newline=True, tab=True).split("\n") if shown else ()
    if view.width is not None:
        taken = indent + cell_len(gutter)
        pieces = [piece for line in pieces for piece in wrap(line, _room(view.width, line, prose) - taken)]
    lines: list[Line] = [(prefix, Span(piece, style)) for piece in pieces]
    if left_out:
        lines.append(cut_line(prefix, left_out))
    return lines


def cut_line(prefix: Span, left_out: str) -> Line:
    """Return the line that stands for the cut part of a text."""
    return (prefix, Span(f"… {left_out} (--full)", "note"))


def _room(width: int, line: str, prose: bool) -> int:
    """Return the columns for a line: prose is kept narrow, tables and code get the full width."""
    narrow = prose and not line.lstrip(" ").startswith("|") and not line.startswith(("    ", "\t"))
    return max(24, min(width, PROSE_WIDTH) if narrow else width)


def shorten(text: str, limit: Limit) -> tuple[str, str]:
    """Return the beginning of a text, and the size of what was cut in words ("" for nothing)."""
    shown = text
    if limit.lines is not None and text.count("\n") > limit.lines:  # one line more than allowed is no reason to cut
        shown = "\n".join(text.split("\n", limit.lines)[:-1])
    if limit.chars is not None and len(shown) > limit.chars + limit.chars // 8:  # a cut that saves little annoys
        shown, _ = cut(shown, limit.chars)
    left = len(text) - len(shown)
    if not left:
        return text, ""
    lines = text.count("\n", len(shown))
    characters = f"{left:,} character{'s' if left != 1 else ''}"
    return shown, f"+{lines:,} line{'s' if lines != 1 else ''}, {characters}" if lines else f"+{characters}"


def wrap(line: str, width: int) -> Iterator[str]:
    """Yield the pieces of a line, none wider than `width` cells (at least 8); only blanks are dropped.

    Pieces after the first are indented like the text of the first, behind a list's bullet.
    """
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
            piece = prefix_of_width(word, width - used)
            yield current + piece
            word = word[len(piece) :]  # noqa: PLW2901 - what is left of a word wider than the line
            current, used, size = indent, len(indent), cell_len(word)
        current, used = current + word, used + size
    if current.strip():
        yield current


def prefix_of_width(text: str, width: int) -> str:
    """Return the longest beginning of `text` that fits into `width` cells, at least one character."""
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > width and index:
            return text[:index]
    return text
