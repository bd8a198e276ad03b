"""Counters: what one logger was given, what it wrote, what it lost.

An event that was emitted and is neither written, nor dropped, nor waiting was interrupted by an exception that we do
not catch (KeyboardInterrupt), and counts as dropped. So the sum is always true.
"""

from __future__ import annotations

import errno

from sessionlog.events.redact import redact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.logger.health import Health
    from sessionlog.logger.notices import Notices

_HINT = "health() has the counts"
_HINTS = {
    "EMFILE": "this process has too many files open: raise its limit (`ulimit -n`), or close loggers that have ended",
    "ENFILE": "this machine has too many files open: raise its limit (`sysctl fs.file-max`)",
}
"""What to do, for causes that the user can remove."""


class Counters:
    """Counts of one logger's events, and the gap that is not in the log yet.

    Attributes:
        emitted: Events handed to the logger.
        written: Events acknowledged.
        gap: (events, first seq, last seq, newest cause) of the events lost since the last line; None without a loss.
        last_error: The newest cause in words.
        without_stack: Events that hit the recursion limit before they were counted as emitted. Counted without a lock:
            an increment without a call is not interrupted.
    """

    __slots__ = (
        "_dropped",
        "_dropped_by",
        "_notices",
        "_path",
        "_warnings",
        "emitted",
        "gap",
        "last_error",
        "without_stack",
        "written",
    )

    def __init__(self, path: str, notices: Notices) -> None:
        self._path = path
        self._notices = notices
        self.last_error: str | None = None
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero: a forked child counts its own events only."""
        self.emitted = self.written = self.without_stack = self._dropped = 0
        self._dropped_by: dict[str, int] = {}
        self._warnings: dict[str, int] = {}
        self.gap: tuple[int, int, int, str] | None = None

    def drop(self, cause: str, error: Exception | None = None) -> None:
        """Count an event that is not in the file."""
        self._dropped += 1
        self._dropped_by[cause] = self._dropped_by.get(cause, 0) + 1
        self.note(cause, error)

    def widen_gap(self, seq: int, cause: str) -> None:
        """Add a lost event and its number to the gap."""
        events, first = self.gap[:2] if self.gap else (0, seq)
        self.gap = (events + 1, first, seq, cause)

    def gap_data(self) -> dict[str, Any] | None:
        """Return the payload of a `log.gap`; None if no event is missing."""
        return dict(zip(("events", "from_seq", "to_seq", "reason"), self.gap, strict=True)) if self.gap else None

    def forget_gap(self, logged: tuple[int, int, int, str] | None) -> None:
        """Drop a gap that is in the log now; events that a signal handler lost meanwhile stay."""
        if self.gap is logged:
            self.gap = None
        elif logged is not None and self.gap is not None:
            self.gap = (self.gap[0] - logged[0], logged[2] + 1, *self.gap[2:])

    def note(self, cause: str, error: Exception | None) -> None:
        """Keep an error as `last_error` and report it."""
        self.last_error = redact_text(f"{cause}: {error}") if error else cause  # it may quote the payload
        self._notices.report(
            cause,
            f"sessionlog: {self._path}: event not recorded ({self.last_error}); {_HINTS.get(cause, _HINT)}",
        )

    def warn(self, kind: str, issues: tuple[str, ...]) -> None:
        """Count an event with fields that no report understands; report each issue once."""
        if not issues:
            return
        self._warnings[kind] = self._warnings.get(kind, 0) + 1
        for issue in issues:
            text = f"sessionlog: {self._path}: {kind} not understood ({issue}); 'sessionlog check' names the events"
            self._notices.report_once(f"{kind} {issue.partition(':')[0]}", text)

    def note_numbers(self, names: tuple[str, ...]) -> None:
        """Count an event in which numbers that JSON lacks became texts; report each name once."""
        self._warnings["number"] = self._warnings.get("number", 0) + 1
        for name in names:
            text = f"sessionlog: {self._path}: {name} is no number of JSON, and is written as a text; {_HINT}"
            self._notices.report_once(f"number {name}", text)

    def health(self, *, waiting: int, unlocked: bool) -> Health:
        """Return the sums; `waiting` events are neither written nor dropped yet."""
        from sessionlog.logger.health import Health

        left = self.emitted - self.written - self._dropped
        waiting = min(left, waiting)
        more = {"interrupted": left - waiting} if left > waiting else {}
        if self.without_stack:
            more["no stack"] = self.without_stack
        return Health(
            path=self._path,
            emitted=self.emitted + self.without_stack,
            written=self.written,
            dropped=self._dropped + left - waiting + self.without_stack,
            deferred=waiting,
            dropped_by=self._dropped_by | more,
            last_error=self.last_error,
            unlocked=unlocked,
            warnings=self._warnings.copy(),
        )


def cause_of(error: Exception) -> str:
    """Name why an event was lost: the errno's name, `MemoryError`, else `encode`."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return type(error).__name__ if isinstance(error, MemoryError) else "encode"
