"""Where a report goes: to a terminal, which has an edge and colours, or elsewhere, which has neither."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from typing import IO

PLAIN_WIDTH = 160
"""Columns where there is no edge to fit: tables stay whole, and notes can still be read."""

_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")


def plain_width(stream: IO[str]) -> int | None:
    """Return the columns of a stream that takes plain text: `$COLUMNS`, else 160.

    A pipe may lead to a pager: then it is the width of the terminal that stderr is. None where the stream is a
    terminal, or is said to be one: its console knows more.
    """
    if any(name in os.environ for name in _FORCED) or _is_terminal(stream):
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else _terminal_behind(stream) or PLAIN_WIDTH


def _terminal_behind(stream: IO[str]) -> int | None:
    """The columns of the terminal on stderr where the stream is a pipe; None where one of them is not."""
    try:
        if not stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            return None
        return os.get_terminal_size(2).columns or None
    except (OSError, ValueError):  # no descriptor, or none of a terminal
        return None


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False
