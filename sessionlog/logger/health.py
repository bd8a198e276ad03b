"""Health: what a logger knows about itself, as a value. Nothing is lost in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A snapshot; `written + dropped + deferred = emitted`.

    Attributes:
        path: The log file.
        emitted: Events handed to the logger.
        written: Events acknowledged.
        dropped: Events that were not acknowledged: they did not reach the file, or (after a failed sync, or when an
            exception such as KeyboardInterrupt broke off the emit) nobody knows.
        deferred: Events not decided yet: the one being written, and those that interrupted it and wait for it.
        dropped_by: Cause (`ENOSPC`, `closed`, `encode`, `interrupted`, …) → events.
        last_error: The newest cause in words, None while all is well.
        unlocked: Appending without the file's lock, because its holder does not answer.
        warnings: What was written and no report will understand (`usage`, `field`) → events.
    """

    path: str
    emitted: int
    written: int
    dropped: int
    deferred: int
    dropped_by: Mapping[str, int]
    last_error: str | None
    unlocked: bool
    warnings: Mapping[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Nothing has been dropped."""
        return self.dropped == 0
