"""A row of numbers as a row of bars."""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"


def spark(values: Sequence[int], cells: int) -> str:
    """Draw values of at least 0 in at most so many cells, each the highest of its share; only the highest is full."""
    if not values or cells < 1:
        return ""
    count = min(len(values), cells)
    ends = [(place + 1) * len(values) // count for place in range(count)]
    tops = [max(values[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    highest = max(*tops, 1)
    return "".join(_LEVELS[max(0, min(7, (top * 8 - 1) // highest))] for top in tops)
