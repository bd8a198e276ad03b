"""Health: a logger's counts and state, as a value."""

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
        dropped: Events that were not acknowledged: they did not reach the file, or may not have (after a failed sync,
            or when an exception such as KeyboardInterrupt interrupted the emit).
        deferred: Events in progress: the one being written, and those that interrupted it and wait for it.
        dropped_by: Cause (`ENOSPC`, `closed`, `encode`, `interrupted`, …) → events.
        last_error: The newest cause in words; None without an error.
        unlocked: Appending without the file's lock, because another process does not release it.
        warnings: What was written but no report understands (`usage`, `field`; `number` for NaN and infinities, which
            became texts) → events.
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
