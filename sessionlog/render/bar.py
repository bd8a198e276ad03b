"""A rate as a bar."""

from __future__ import annotations

BAR_CELLS = 20
_PARTIAL = "░▏▎▍▌▋▊▉"


def bar(rate: float | None, cells: int = BAR_CELLS) -> str:
    """Draw a rate in eighths of a cell: only 0 is empty, only 1 is full, and no rate is blank."""
    if rate is None:
        return " " * cells
    eighths = round(rate * cells * 8)
    if 0 < rate < 1:
        eighths = min(max(eighths, 1), cells * 8 - 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_PARTIAL[part] if part else "")).ljust(cells, "░")
