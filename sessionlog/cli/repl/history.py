"""The input history of earlier chats, a file of mode 0600 with one JSON string per line.

Secrets of well-known formats are redacted. A file that cannot be read or written is ignored.
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

MAX_TEXTS = 1000
"""Texts that are kept."""

_MAX_BYTES = 1 << 20


class InputHistory:
    """The file of the texts that were typed.

    Attributes:
        path: Its path.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.path = os.path.join(state_home(env), "sessionlog", "chat_history.jsonl")

    def texts(self) -> list[str]:
        """Return the newest texts, oldest first."""
        texts: list[str] = []
        with suppress(OSError, SessionLogError):
            for line in (files.read_small(self.path, 2 * _MAX_BYTES) or b"").split(b"\n"):
                with suppress(ValueError):
                    text = json.loads(line)
                    texts += [text] if isinstance(text, str) else []
        return texts[-MAX_TEXTS:]

    def add(self, text: str) -> None:
        """Append a text; a file of more than 1 MiB is first cut to the newest texts."""
        with suppress(OSError, SessionLogError):
            files.make_directories(os.path.dirname(self.path))
            status = files.stat_path(self.path)
            if status is not None and status.st_size > _MAX_BYTES:
                files.replace_file(self.path, map(_line, self.texts()), like=status)
            files.append_private(self.path, [_line(text)])


def _line(text: str) -> bytes:
    return redact_line(json.dumps(text).encode()) + b"\n"
