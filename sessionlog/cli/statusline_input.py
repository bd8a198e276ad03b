"""The JSON that an agent writes to the stdin of a status line: read if it is there, and never waited for.

A terminal, a closed stream and an open pipe without data give None.
"""

from __future__ import annotations

import os
import sys

from sessionlog.analytics.status.statusline_input import parse_statusline_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.analytics.status.statusline_input import StatuslineInput

_FIRST_SECONDS, _MORE_SECONDS = 0.01, 0.1
"""How long to wait for the first and each further piece: an agent writes before Python has started."""

_MAX_BYTES = 1 << 20


def read_statusline_input() -> StatuslineInput | None:
    """Return the parsed input; None if there is none."""
    return parse_statusline_input(_stdin_text())


def _stdin_text() -> str:
    from select import select

    stream, pieces, size, wait = sys.stdin, [], 0, _FIRST_SECONDS
    try:
        if stream is None or stream.isatty():
            return ""
        descriptor = stream.fileno()
        while size <= _MAX_BYTES and select([descriptor], [], [], wait)[0]:
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                break
            pieces.append(piece)
            size, wait = size + len(piece), _MORE_SECONDS
    except (OSError, ValueError):  # closed, or a stream without a file descriptor
        return ""
    return b"".join(pieces).decode("utf-8", "replace") if size <= _MAX_BYTES else ""
