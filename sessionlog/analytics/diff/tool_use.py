"""Tool use: how often a session called a tool, how often it failed, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """How a session used a tool.

    Attributes:
        calls: How often.
        errors: How often it failed.
        duration_ms: How long it ran in all; None where the log never says.
    """

    calls: int = 0
    errors: int = 0
    duration_ms: float | None = None

    def plus(self, *, failed: bool, duration_ms: float | None) -> ToolUse:
        """Return the same with one more call."""
        spent = self.duration_ms if duration_ms is None else (self.duration_ms or 0) + duration_ms
        return ToolUse(calls=self.calls + 1, errors=self.errors + failed, duration_ms=spent)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"calls": self.calls, "errors": self.errors, "duration_ms": self.duration_ms}
