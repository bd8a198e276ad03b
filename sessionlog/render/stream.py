"""Where a report goes: to a terminal, which has an edge and colours, or elsewhere, which has neither."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from typing import IO

PLAIN_WIDTH = 160
"""Columns where there is no edge to fit: tables stay whole, and notes can still be read."""

_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")


def plain_width(stream: IO[str]) -> int | None:
    """Return the columns of a stream that takes plain text: `$COLUMNS`, else 160.

    None where the stream is a terminal, or is said to be one: its console knows more.
    """
    if any(name in os.environ for name in _FORCED) or _is_terminal(stream):
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else PLAIN_WIDTH


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False
