"""Fit a table to a width: hide the least useful columns first, cut text columns last, and return what was hidden.

Cells are finished text (escaped, formatted); this module only measures, chooses and aligns. Its values are plain
classes: importing dataclasses would cost every short command 10 ms.
"""

from __future__ import annotations

from sessionlog.render.cells import cell_len, shorten
from sessionlog.render.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP = 2


class Column:
    """One column.

    Attributes:
        title: Its heading.
        name: Its name in the note on hidden columns; the heading in lower case, unless it is given.
        rank: The highest ranks are hidden first; 0 is never hidden.
        right: Whether it is aligned to the right.
        least: A text column may be cut down to this width before columns are hidden, and further when none is left
            to hide; None for columns that must not be cut.
        keeps_end: Whether a text is cut at its beginning: paths differ at their end.
    """

    __slots__ = ("keeps_end", "least", "name", "rank", "right", "title")

    def __init__(
        self,
        title: str,
        name: str = "",
        *,
        rank: int = 0,
        right: bool = True,
        least: int | None = None,
        keeps_end: bool = False,
    ) -> None:
        self.title = title
        self.name = name or title.lower()
        self.rank = rank
        self.right = right
        self.least = least
        self.keeps_end = keeps_end


class Cell:
    """Finished text with its style.

    Attributes:
        text: The text.
        style: Its style.
        parts: The same text in pieces of (text, style), for several styles; they are not used where the cell is cut.
    """

    __slots__ = ("parts", "style", "text")

    def __init__(self, text: str = "", *, style: str = "", parts: Sequence[tuple[str, str]] = ()) -> None:
        self.text = text or "".join(piece for piece, _ in parts)
        self.style = style
        self.parts = parts


class FittedTable:
    """The lines of a table, and what did not fit.

    Attributes:
        lines: The heading and the rows.
        width: Columns that the table takes.
        hidden: Names of the hidden columns, in their order.
        shown: Names of the visible columns that are not empty.
    """

    __slots__ = ("hidden", "lines", "shown", "width")

    def __init__(self, *, lines: tuple[Line, ...], width: int, hidden: tuple[str, ...], shown: frozenset[str]) -> None:
        self.lines = lines
        self.width = width
        self.hidden = hidden
        self.shown = shown


def fit_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    width: int,
    total: Sequence[Cell] | None = None,
    wide: bool = False,
) -> FittedTable:
    """Lay out rows within `width` terminal columns; `wide` shows every column and lets lines be long."""
    everything = [*rows, total] if total is not None else list(rows)
    natural = [
        max([cell_len(column.title), *(cell_len(row[index].text) for row in everything)])
        for index, column in enumerate(columns)
    ]
    empty = {i for i in range(len(columns)) if is_empty(row[i].text for row in everything)}
    optional = {i for i in empty if columns[i].rank and everything}
    widths = {i: natural[i] for i in range(len(columns)) if wide or i not in optional}
    hidden: list[int] = []
    while not wide and _needed(columns, widths) > width:
        victims = [i for i in widths if columns[i].rank > 0]
        if not victims:
            break
        victim = max(victims, key=lambda i: (columns[i].rank, i))
        del widths[victim]
        hidden.append(victim)
    if not wide:
        _shrink(columns, widths, width)
    lines = [_line(columns, widths, [Cell(c.title, style="secondary") for c in columns])]
    lines += [_line(columns, widths, row) for row in rows]
    taken = sum(widths.values()) + GAP * (len(widths) - 1)
    if total is not None:
        lines += [
            Line("─" * min(taken, width if not wide else taken), "secondary"),
            _line(columns, widths, total),
        ]
    return FittedTable(
        lines=tuple(lines), width=taken, hidden=tuple(columns[i].name for i in sorted(hidden)),
        shown=frozenset(columns[i].name for i in widths if i not in empty),
    )  # fmt: skip


def is_empty(texts: Iterable[str]) -> bool:
    """Return whether all texts of a column are empty, unknown or 0."""
    return all(text in ("", "–", "0") for text in texts)


def _needed(columns: Sequence[Column], widths: dict[int, int]) -> int:
    least = [min(w, columns[i].least or w) for i, w in widths.items()]
    return sum(least) + GAP * (len(widths) - 1)


def _shrink(columns: Sequence[Column], widths: dict[int, int], width: int) -> None:
    """Cut text columns to `width`, the widest first; below their `least` only when all have reached it."""
    texts = [(i, least) for i in widths if (least := columns[i].least) is not None]
    for floors in (texts, [(i, 1) for i, _ in texts]):
        while sum(widths.values()) + GAP * (len(widths) - 1) > width:
            flexible = [i for i, least in floors if widths[i] > least]
            if not flexible:
                break
            widths[max(flexible, key=lambda i: widths[i])] -= 1


def _line(columns: Sequence[Column], widths: dict[int, int], row: Sequence[Cell]) -> Line:
    """Return the line of a row; a text that would be cut goes on over empty texts to its right."""
    line = Line(no_wrap=True)
    shown = list(widths.items())
    end = 0
    for position, (index, own) in enumerate(shown):
        if position < end:  # a text has gone on over this empty cell
            continue
        cell, width, end = row[index], own, position + 1
        if cell_len(cell.text) > width and not columns[index].right:
            while end < len(shown) and not row[shown[end][0]].text and not columns[shown[end][0]].right:
                width += GAP + shown[end][1]
                end += 1
        text = shorten(cell.text, width, keeps_end=columns[index].keeps_end)
        padding = " " * (width - cell_len(text))
        if position:
            line.append(" " * GAP)
        line.append(padding if columns[index].right else "")
        for piece, style in (text == cell.text and cell.parts) or [(text, cell.style)]:
            line.append(piece, style)
        if not columns[index].right and end < len(widths):
            line.append(padding)
    line.rstrip()
    return line
