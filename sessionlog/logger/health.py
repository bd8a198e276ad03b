"""What a logger knows about itself: nothing is lost in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

Notify = Callable[[str], None]

_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A snapshot; `written + dropped + deferred = emitted`.

    Attributes:
        path: The log file.
        emitted: Events handed to the logger.
        written: Events acknowledged.
        dropped: Events that did not reach the file.
        deferred: Events waiting for the emit that they interrupted.
        dropped_by: Cause (`ENOSPC`, `closed`, `encode`, …) → events.
        last_error: The newest cause in words, None while all is well.
        unlocked: Appending without the file's lock, because its holder does not answer.
    """

    path: str
    emitted: int
    written: int
    dropped: int
    deferred: int
    dropped_by: Mapping[str, int]
    last_error: str | None
    unlocked: bool

    @property
    def ok(self) -> bool:
        """Nothing has been dropped."""
        return self.dropped == 0


class Notices:
    """One line per cause per minute, to stderr unless the caller gives another place."""

    __slots__ = ("_notify", "_said")

    def __init__(self, notify: Notify | None = None) -> None:
        self._notify = notify or _to_stderr
        self._said: dict[str, float] = {}

    def say(self, cause: str, text: str) -> None:
        """Pass `text` on unless the same cause was named in the last minute; never raises."""
        now = monotonic()
        if now - self._said.get(cause, -_EVERY_SECONDS) < _EVERY_SECONDS:
            return
        self._said[cause] = now
        try:
            self._notify(text.encode("ascii", "backslashreplace").decode("ascii").replace("\x1b", "\\x1b"))
        except Exception:  # noqa: BLE001 - a closed stderr must not stop the agent
            return


def _to_stderr(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "\n")
