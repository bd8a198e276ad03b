"""How wide text is on a terminal, in cells: East Asian characters take two, accents on their letter none.

The answer is rich's; for text of which every character is known to take one cell it is given without loading rich.
"""

from __future__ import annotations

_ONE_CELL = frozenset(
    chr(code)
    for first, last in ((0x20, 0x7E), (0xA0, 0xAC), (0xAE, 0x2FF), (0x370, 0x482), (0x2500, 0x25FC))
    for code in range(first, last + 1)
).union("–—‘’“”…→⊘⏎✔✘")
"""Western letters, lines and blocks, and the signs of our own."""


def cell_len(text: str) -> int:
    """Return how many cells a text takes."""
    if text.isascii() or _ONE_CELL.issuperset(text):
        return len(text)
    from rich.cells import cell_len as measure  # noqa: PLC0415 - most reports never need it

    return measure(text)


def cut_to(text: str, width: int) -> str:
    """Return what fits of a text that is wider than `width` cells: a blank stands for a character cut in half."""
    if text.isascii() or _ONE_CELL.issuperset(text):
        return text[:width]
    from rich.cells import set_cell_size  # noqa: PLC0415 - as above

    return set_cell_size(text, width)


def chop(text: str, width: int) -> list[str]:
    """Return a text in pieces of at most `width` cells, one where that is less."""
    width = max(1, width)
    if text.isascii() or _ONE_CELL.issuperset(text):
        return [text[start : start + width] for start in range(0, len(text), width)]
    from rich.cells import chop_cells  # noqa: PLC0415 - as above

    return chop_cells(text, width)
