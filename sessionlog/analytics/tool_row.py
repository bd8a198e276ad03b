"""ToolRow and ToolReport: what a report on tools says, in exact numbers and with the JSON names.

Durations are summed in whole microseconds, so that rows add up to the totals in any order. Rates are computed, never
stored; an empty denominator gives None, not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.analytics.log_report import LogReport
from sessionlog.errors import problems_dict

SCHEMA = "sessionlog.tools/1"

COLUMNS = (
    "calls", "open_calls", "errors", "error_rate", "duration_p50_ms", "duration_p95_ms", "duration_ms", "output_bytes",
    "output_bytes_mean", "context_share",
)  # fmt: skip
"""The columns after the group keys, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """Tool calls summed by a grouping.

    Attributes:
        keys: Group key → value; empty for totals.
        calls: Tool calls, open ones included.
        open_calls: Those whose result is not in the log; they have no outcome, duration or output.
        errors: Those whose result was an error.
        duration_p50_ms: Median duration, None without durations; within 2 %.
        duration_p95_ms: The 95th percentile.
        duration_us: All durations together in microseconds, None without durations.
        output_bytes: What the calls gave back to the model.
        selected_bytes: The same of all calls in the selection, whatever their row.
    """

    keys: Mapping[str, str]
    calls: int = 0
    open_calls: int = 0
    errors: int = 0
    duration_p50_ms: float | None = None
    duration_p95_ms: float | None = None
    duration_us: int | None = None
    output_bytes: int = 0
    selected_bytes: int = 0

    @property
    def server(self) -> str:
        """The MCP server's group key, empty when the report is not grouped by it."""
        return self.keys.get("server", "")

    @property
    def tool(self) -> str:
        """The tool's group key, empty when the report is not grouped by it."""
        return self.keys.get("tool", "")

    @property
    def finished_calls(self) -> int:
        """Calls whose result is in the log."""
        return self.calls - self.open_calls

    @property
    def error_rate(self) -> float | None:
        """Errors ÷ finished calls."""
        return self.errors / self.finished_calls if self.finished_calls else None

    @property
    def duration_ms(self) -> float | None:
        """All durations together in milliseconds; calls that ran side by side count each."""
        return None if self.duration_us is None else self.duration_us / 1000

    @property
    def output_bytes_mean(self) -> float | None:
        """Output bytes per finished call."""
        return self.output_bytes / self.finished_calls if self.finished_calls else None

    @property
    def context_share(self) -> float | None:
        """Output bytes here ÷ output bytes of all calls in the selection: who fills the context with results."""
        return self.output_bytes / self.selected_bytes if self.selected_bytes else None

    def to_dict(self) -> dict[str, Any]:
        """Group keys, then `COLUMNS`."""
        return {**self.keys, **{name: getattr(self, name) for name in COLUMNS}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport(LogReport):
    """A report on tool calls.

    Attributes:
        group_by: The group keys.
        rows: One per combination of them, in the order asked for.
        totals: Over all rows.
        archived_sessions: Sessions here that are only remembered: their logs are gone.
        hidden_rows: Rows that a limit left out.
    """

    group_by: tuple[str, ...]
    rows: tuple[ToolRow, ...] = ()
    totals: ToolRow = field(default_factory=lambda: ToolRow(keys={}))
    archived_sessions: int = 0
    hidden_rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.tools/1`."""
        return {
            "schema": SCHEMA,
            "window": self.window_dict,
            "group_by": list(self.group_by),
            "rows": [row.to_dict() for row in self.rows],
            "totals": self.totals.to_dict(),
            "problems": problems_dict(self.problem_count, self.problems),
        }
