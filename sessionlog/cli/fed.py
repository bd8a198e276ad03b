"""What an agent writes to the stdin of a status line: read if it is there, and never waited for.

A person's terminal, a closed stream and an open pipe with nothing in it are no news. The short way may read it and then
decline; the whole way finds it here.
"""

from __future__ import annotations

import os
import sys

from sessionlog.analytics.status.fed import read_fed

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from sessionlog.analytics.status.fed import Fed

_FIRST_SECONDS, _MORE_SECONDS = 0.01, 0.1
"""How long the first and each further piece may take: an agent writes before Python has started."""

_MOST = 1 << 20
_left: list[Fed | None] = []


def fed_on_stdin(*, keep: bool = False) -> Fed | None:
    """Return what was told; with `keep` it is there for the next one that asks, too."""
    fed = _left.pop() if _left else read_fed(_text())
    if keep:
        _left.append(fed)
    return fed


def forget() -> None:
    """Nobody will ask again."""
    _left.clear()


def _text() -> str:
    from select import select  # noqa: PLC0415 - for those who are told something

    stream, pieces, size, wait = sys.stdin, [], 0, _FIRST_SECONDS
    try:
        if stream is None or stream.isatty():
            return ""
        descriptor = stream.fileno()
        while size <= _MOST and select([descriptor], [], [], wait)[0]:
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                break
            pieces.append(piece)
            size, wait = size + len(piece), _MORE_SECONDS
    except (OSError, ValueError):  # it is closed, or a kind of stream that cannot be asked
        return ""
    return b"".join(pieces).decode("utf-8", "replace") if size <= _MOST else ""
