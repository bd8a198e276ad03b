"""The width of a stream that gets a report as plain text."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

PLAIN_WIDTH = 160
"""Columns of output without a terminal: tables stay whole, and notes stay readable."""

_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")


def plain_width(stream: IO[str]) -> int | None:
    """Return the columns of a stream that gets plain text; None for a terminal, which needs a console.

    They are `$COLUMNS`, else the width of the terminal on stderr if the stream is a pipe (it may lead to a pager), else
    160. FORCE_COLOR and TTY_COMPATIBLE count as a terminal.
    """
    if any(name in os.environ for name in _FORCED) or _is_terminal(stream):
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else _terminal_behind(stream) or PLAIN_WIDTH


def _terminal_behind(stream: IO[str]) -> int | None:
    """Return the columns of the terminal on stderr if the stream is a pipe, else None."""
    try:
        if not stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            return None
        return os.get_terminal_size(2).columns or None
    except (OSError, ValueError):  # no descriptor, or not a terminal
        return None


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
