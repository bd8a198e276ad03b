"""Draw numbers as bars: a rate, the parts of a sum, a series."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

BAR_CELLS = 20
STACKED = "█▓▒░"
"""Fillings of the parts of a stacked bar, distinct without colours."""
_PARTIAL = "░▏▎▍▌▋▊▉"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(rate: float | None, cells: int = BAR_CELLS) -> str:
    """Draw a rate in eighths of a cell: only 0 is empty, only 1 is full, and no rate is blank."""
    if rate is None:
        return " " * cells
    eighths = round(rate * cells * 8)
    if 0 < rate < 1:
        eighths = min(max(eighths, 1), cells * 8 - 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_PARTIAL[part] if part else "")).ljust(cells, "░")


def stacked(parts: Sequence[float], highest: float, cells: int) -> list[int]:
    """Return the whole cells of each part of a bar; a bar whose parts add up to `highest` takes all `cells`.

    A sum above 0 takes at least one cell. Cells left over go to the parts with the greatest remainder.
    """
    total = sum(parts)
    if total <= 0 or highest <= 0:
        return [0] * len(parts)
    room = max(1, round(total / highest * cells))
    exact = [part / total * room for part in parts]
    taken = [int(one) for one in exact]
    for index in sorted(range(len(parts)), key=lambda i: taken[i] - exact[i])[: room - sum(taken)]:
        taken[index] += 1
    return taken


def spark(values: Sequence[int], cells: int) -> str:
    """Draw values of at least 0 in at most `cells` cells, each the highest of its share; only the highest is full."""
    if not values or cells < 1:
        return ""
    count = min(len(values), cells)
    ends = [(place + 1) * len(values) // count for place in range(count)]
    tops = [max(values[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    highest = max(*tops, 1)
    return "".join(_HEIGHTS[max(0, min(7, (top * 8 - 1) // highest))] for top in tops)
