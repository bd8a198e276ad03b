"""What was typed in earlier chats: one JSON text a line, so that a text of several lines stays one, in a 0600 file.

It is a convenience: secrets of well-known shapes are taken out, and a file that cannot be read or written is none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from sessionlog import files
from sessionlog.errors import SessionLogError
from sessionlog.events.redact import redact_line
from sessionlog.settings import state_home

KEPT = 1000
"""Texts that are remembered."""

_FULL = 1 << 20


class TypedBefore:
    """The file of what was typed.

    Attributes:
        path: Where it is.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.path = os.path.join(state_home(env), "sessionlog", "chat_history.jsonl")

    def texts(self) -> list[str]:
        """Return the newest texts, oldest first."""
        texts: list[str] = []
        with suppress(OSError, SessionLogError):
            for line in (files.read_small(self.path, 2 * _FULL) or b"").split(b"\n"):
                with suppress(ValueError):
                    text = json.loads(line)
                    texts += [text] if isinstance(text, str) else []
        return texts[-KEPT:]

    def add(self, text: str) -> None:
        """Remember a text; a file that has grown long is cut to the newest."""
        with suppress(OSError, SessionLogError):
            files.make_directories(os.path.dirname(self.path))
            status = files.stat_path(self.path)
            if status is not None and status.st_size > _FULL:
                files.replace_file(self.path, map(_line, self.texts()), like=status)
            files.append_private(self.path, [_line(text)])


def _line(text: str) -> bytes:
    return redact_line(json.dumps(text).encode()) + b"\n"
