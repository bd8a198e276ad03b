"""ToolRow and ToolReport: the values of a report on tools, exact and with the JSON names.

Durations are summed in whole microseconds, so that rows add up to the totals in any order. Rates are computed, never
stored; an empty denominator gives None, not 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sessionlog.analytics.columns import Column, counted, row_data
from sessionlog.analytics.partial import partial_period
from sessionlog.analytics.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MANY_ERRORS = 0.2

COLUMNS = (
    Column("calls", "count", "CALLS"),
    Column("open_calls", "count", "OPEN", 8, style="unfinished"),
    Column("errors", "count", "ERRORS", 4),
    Column("error_rate", "ratio", "RATE", 1, style=lambda rate: "failed" if rate > _MANY_ERRORS else ""),
    Column("duration_p50_ms", "ms", "P50", 3, label="duration p50"),
    Column("duration_p95_ms", "ms", "P95", 2, label="duration p95"),
    Column("duration_ms", "ms", "TIME", 6, label="total time"),
    Column("output_bytes", "bytes", "OUTPUT", 5, label="output"),
    Column("output_bytes_mean", "bytes", "MEAN", 7, label="mean output"),
    Column(
        "context_share",
        "share",
        "SHARE",
        label="share of context",
        note="of all bytes that these calls gave back into the context",
    ),
)
"""The columns after the group keys, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """Tool calls summed by a grouping.

    Attributes:
        keys: Group key → value; empty for totals.
        calls: Tool calls, open ones included.
        open_calls: Calls whose result is not in the log; they have no outcome, duration or output.
        errors: Calls whose result was an error.
        duration_p50_ms: Median duration, None without durations; within 2 %.
        duration_p95_ms: The 95th percentile.
        duration_us: All durations together in microseconds, None without durations.
        output_bytes: Bytes that the calls returned to the model.
        selected_bytes: The same over all calls in the selection.
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
        """The sum of durations in milliseconds; parallel calls count each."""
        return None if self.duration_us is None else self.duration_us / 1000

    @property
    def output_bytes_mean(self) -> float | None:
        """Output bytes per finished call."""
        return self.output_bytes / self.finished_calls if self.finished_calls else None

    @property
    def context_share(self) -> float | None:
        """Output bytes here ÷ output bytes of all calls in the selection."""
        return self.output_bytes / self.selected_bytes if self.selected_bytes else None

    def to_dict(self) -> dict[str, Any]:
        """Group keys, then `COLUMNS`."""
        return {**self.keys, **row_data(COLUMNS, self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport(Report):
    """A report on tool calls; `Report` documents the other fields.

    Attributes:
        rows: One per combination of the group keys.
        totals: Over all rows.
    """

    schema = "sessionlog.tools/1"
    title = "Tools"
    columns = COLUMNS
    least_key = 14

    rows: tuple[ToolRow, ...] = ()
    totals: ToolRow = field(default_factory=lambda: ToolRow(keys={}))

    @property
    def is_empty(self) -> bool:
        """Whether no call matches."""
        return not self.totals.calls

    @property
    def summary(self) -> str:
        """The number of calls, and of open and failed ones."""
        calls, unfinished, errors = self.totals.calls, self.totals.open_calls, self.totals.errors
        more = (f", {unfinished:,} open" if unfinished else "") + (f" · {counted(errors, 'error')}" if errors else "")
        return counted(calls, "call") + more

    def footnotes(self) -> Iterator[str]:
        """Yield which columns leave out open calls."""
        if self.rows and self.totals.open_calls:
            have = "open call has" if self.totals.open_calls == 1 else "open calls have"
            yield f"{self.totals.open_calls:,} {have} no result in the log: not in rates, times and means"
        yield from partial_period(self.window, self.rows)
