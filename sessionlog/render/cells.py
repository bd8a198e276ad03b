"""Measure and cut text in terminal cells: East Asian characters take two, combining accents none.

Rich measures; text made only of characters known to take one cell is measured without loading rich.
"""

from __future__ import annotations

_ONE_CELL = frozenset(
    chr(code)
    for first, last in ((0x20, 0x7E), (0xA0, 0xAC), (0xAE, 0x2FF), (0x370, 0x482), (0x2500, 0x25FC))
    for code in range(first, last + 1)
).union("–—‘’“”…→⊘⏎✔✘")
"""Western letters, box lines and blocks, and the signs that our own texts use."""


def cell_len(text: str) -> int:
    """Return the width of a text in cells."""
    if text.isascii() or _ONE_CELL.issuperset(text):
        return len(text)
    from rich.cells import cell_len as measure

    return measure(text)


def cut_to(text: str, width: int) -> str:
    """Return the first `width` cells of a wider text; a character cut in half becomes a blank."""
    if text.isascii() or _ONE_CELL.issuperset(text):
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def shorten(text: str, width: int, *, keeps_end: bool = False) -> str:
    """Return a text of at most `width` cells, with `…` where it is cut: at its end, or at its beginning."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    return f"…{end_of(text, room)}" if keeps_end else f"{cut_to(text, room)}…"


def end_of(text: str, width: int) -> str:
    """Return the last characters of a wider text that fit into `width` cells."""
    start = max(0, len(text) - width)
    while cell_len(text[start:]) > width:
        start += 1
    return text[start:]


def chop(text: str, width: int) -> list[str]:
    """Return a text in pieces of at most `width` cells; a width below 1 counts as 1."""
    width = max(1, width)
    if text.isascii() or _ONE_CELL.issuperset(text):
        return [text[start : start + width] for start in range(0, len(text), width)]
    from rich.cells import chop_cells

    return chop_cells(text, width)
