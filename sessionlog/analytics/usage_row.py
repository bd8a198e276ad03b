"""UsageRow and UsageReport: what a usage report says, in exact numbers and with the JSON names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.analytics.log_report import LogReport
from sessionlog.analytics.usage_columns import COLUMNS, PROVENANCE, SCHEMA, UsageColumns, document

__all__ = ["COLUMNS", "PROVENANCE", "SCHEMA", "UsageReport", "UsageRow"]

_NAMED_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(UsageColumns):
    """Records summed by a grouping.

    Attributes:
        keys: Group key → value; empty for totals.
        sessions: Distinct sessions with a record here.
        success_sessions: Those that ended with `success`.
        failed_sessions: Those that ended with anything else.
        unfinished_sessions: Those without an end, running ones included.
        running_sessions: Those without an end whose last event is younger than ten minutes.
        requests: LLM calls.
        failed_requests: Those that failed.
        input_tokens: Tokens that touched no cache.
        output_tokens: Generated tokens, reasoning included.
        cache_read_tokens: Tokens served from a cache.
        cache_write_tokens: Tokens written to a cache.
        reasoning_tokens: The part of the output that was reasoning.
        duration_ms: The sessions' own wall time.
        latency_p50_ms: Median latency of the calls that did not fail, None without latencies; within 2 %.
        latency_p95_ms: The 95th percentile.
        latency_p99_ms: The 99th percentile.
        known_nano: Recorded cost in nano-dollars, None when none is recorded.
        estimated_nano: Cost by the price table for the rest, None when there is none.
        unknown_cost_sessions: Sessions with a part that has neither.
        unpriced_requests: Requests that have neither.
        generation_tokens: Output of the calls that have a latency.
        generation_ms: Their latency in all.
    """

    keys: Mapping[str, str]
    sessions: int = 0
    success_sessions: int = 0
    failed_sessions: int = 0
    unfinished_sessions: int = 0
    running_sessions: int = 0
    requests: int = 0
    failed_requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    duration_ms: int = 0
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None
    known_nano: int | None = None
    estimated_nano: int | None = None
    unknown_cost_sessions: int = 0
    unpriced_requests: int = 0
    generation_tokens: int = 0
    generation_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport(LogReport):
    """A usage report.

    Attributes:
        group_by: The group keys.
        rows: One per combination of them, in the order asked for.
        totals: Over all rows, with every session counted once.
        provenance: How many requests are exact, partial, estimated, or known by their session's totals only.
        hidden_rows: Rows that a limit left out.
        priced_from: Which prices the estimates come from.
        unpriced: The (provider, model) pairs without a price, the most used first.
        without_usage: Those of whose requests the log has no tokens.
        archived_sessions: Sessions that are only remembered: their logs are gone.
    """

    group_by: tuple[str, ...]
    rows: tuple[UsageRow, ...] = ()
    totals: UsageRow = field(default_factory=lambda: UsageRow(keys={}))
    provenance: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(PROVENANCE, 0))
    hidden_rows: int = 0
    priced_from: str = ""
    unpriced: tuple[tuple[str, str], ...] = ()
    without_usage: tuple[tuple[str, str], ...] = ()
    archived_sessions: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.usage/1`."""
        return self.lazy_dict() | {"rows": [row.to_dict() for row in self.rows]}

    def lazy_dict(self) -> dict[str, Any]:
        """The same with its rows as an iterator, to be written one by one."""
        return document(
            window=self.window_dict,
            group_by=self.group_by,
            rows=self.rows,
            totals=self.totals,
            provenance=self.provenance,
            problem_count=self.problem_count,
            problems=[str(problem) for problem in self.problems[:_NAMED_PROBLEMS]],
            archived_sessions=self.archived_sessions,
        )
