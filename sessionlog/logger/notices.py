"""Notices: what a logger writes to stderr when events are lost, rate-limited and without ever breaking its host."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import monotonic

from sessionlog.events.redact import redact_text

Notify = Callable[[str], None]

_EVERY_SECONDS = 60.0
_MAX_ONCE = 100


class Notices:
    """One line per cause per minute, or per cause once, to stderr unless the caller gives a function."""

    __slots__ = ("_notify", "_reported_at", "_reported_once")

    def __init__(self, notify: Notify | None = None) -> None:
        self._notify = notify or _to_stderr
        self._reported_at: dict[str, float] = {}
        self._reported_once: set[str] = set()

    def report(self, cause: str, text: str) -> None:
        """Pass `text` on unless the same cause was reported in the last minute; never raises."""
        now = monotonic()
        if now - self._reported_at.get(cause, -_EVERY_SECONDS) < _EVERY_SECONDS:
            return
        self._reported_at[cause] = now
        self._pass_on(text)

    def report_once(self, cause: str, text: str) -> None:
        """Pass `text` on unless the same cause was reported before; never raises."""
        if cause in self._reported_once or len(self._reported_once) == _MAX_ONCE:
            return
        self._reported_once.add(cause)
        self._pass_on(text)

    def _pass_on(self, text: str) -> None:
        try:
            text = redact_text(text)
            self._notify(text.encode("ascii", "backslashreplace").decode("ascii").replace("\x1b", "\\x1b"))
        except Exception:  # noqa: BLE001 - a closed stderr must not stop the agent
            return


def _to_stderr(text: str) -> None:
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "\n"
    if sys.is_finalizing():  # a daemon thread may have been stopped while it held the stream
        os.write(2, line.encode())
    elif sys.stderr is not None:
        sys.stderr.write(line)
