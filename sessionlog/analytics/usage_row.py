"""UsageRow and UsageReport: what a usage report says, in exact numbers and with the JSON names.

Rates are computed, never stored; an empty denominator gives None, not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import Problem
from sessionlog.events.money import usd

SCHEMA = "sessionlog.usage/1"
_NAMED_PROBLEMS = 10
PROVENANCE = ("exact", "partial", "estimated", "session")
_LEAST_MS = 1e-6
"""Nothing is answered faster; a log that says so says nothing about speed."""

COLUMNS = (
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "requests", "failed_requests",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens",
    "duration_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "known_cost_usd", "estimated_cost_usd",
    "cost_usd", "unknown_cost_sessions", "unpriced_requests", "cache_hit_rate", "success_rate", "cost_per_success",
    "input_tokens_per_second", "output_tokens_per_second", "generation_tokens_per_second",
)  # fmt: skip
"""The columns after the group keys, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
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

    @property
    def provider(self) -> str:
        """The provider's group key, empty when the report is not grouped by it."""
        return self.keys.get("provider", "")

    @property
    def model(self) -> str:
        """The model's group key, empty when the report is not grouped by it."""
        return self.keys.get("model", "")

    @property
    def total_tokens(self) -> int:
        """All classes together; they do not overlap."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    @property
    def known_cost_usd(self) -> float | None:
        """Recorded cost."""
        return None if self.known_nano is None else usd(self.known_nano)

    @property
    def estimated_cost_usd(self) -> float | None:
        """Estimated cost of what has no recorded one."""
        return None if self.estimated_nano is None else usd(self.estimated_nano)

    @property
    def cost_usd(self) -> float | None:
        """Recorded and estimated cost together, None when there is neither."""
        if self.known_nano is None and self.estimated_nano is None:
            return None
        return usd((self.known_nano or 0) + (self.estimated_nano or 0))

    @property
    def cache_hit_rate(self) -> float | None:
        """cache_read / (input + cache_read + cache_write), at most 1."""
        prompt = self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
        return self.cache_read_tokens / prompt if prompt else None

    @property
    def success_rate(self) -> float | None:
        """Successes ÷ (successes + failures); sessions without an end are neither."""
        ended = self.success_sessions + self.failed_sessions
        return self.success_sessions / ended if ended else None

    @property
    def cost_per_success(self) -> float | None:
        """Cost of everything here per session that succeeded, in US dollars."""
        cost = self.cost_usd
        return cost / self.success_sessions if cost is not None and self.success_sessions else None

    @property
    def input_tokens_per_second(self) -> float | None:
        """Input tokens per second of the sessions' wall time."""
        return self.input_tokens / (self.duration_ms / 1000) if self.duration_ms else None

    @property
    def output_tokens_per_second(self) -> float | None:
        """Output tokens per second of the sessions' wall time, tools and pauses included."""
        return self.output_tokens / (self.duration_ms / 1000) if self.duration_ms else None

    @property
    def generation_tokens_per_second(self) -> float | None:
        """Output tokens per second of LLM latency alone."""
        return self.generation_tokens / (self.generation_ms / 1000) if self.generation_ms > _LEAST_MS else None

    def to_dict(self) -> dict[str, Any]:
        """Group keys, then `COLUMNS`."""
        return {**self.keys, **{name: getattr(self, name) for name in COLUMNS}}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """A usage report.

    Attributes:
        window: Which time it covers, None for all.
        group_by: The group keys.
        rows: One per combination of them, in the order asked for.
        totals: Over all rows, with every session counted once.
        provenance: How many requests are exact, partial, estimated, or known by their session's totals only.
        problem_count: Findings about the logs.
        problems: The first of them.
        unrecognised: Files under the paths that are no log of a known agent.
        hidden_rows: Rows that a limit left out.
        priced_from: Which prices the estimates come from.
        unpriced: The (provider, model) pairs without a price, the most used first.
        archived_sessions: Sessions that are only remembered: their logs are gone.
        notes: What could not be done as it should be, a sentence each.
    """

    window: UsageWindow | None
    group_by: tuple[str, ...]
    rows: tuple[UsageRow, ...] = ()
    totals: UsageRow = field(default_factory=lambda: UsageRow(keys={}))
    provenance: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(PROVENANCE, 0))
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    unrecognised: int = 0
    hidden_rows: int = 0
    priced_from: str = ""
    unpriced: tuple[tuple[str, str], ...] = ()
    archived_sessions: int = 0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.usage/1`."""
        return {
            "schema": SCHEMA,
            "window": None if self.window is None else self.window.to_dict(),
            "group_by": list(self.group_by),
            "rows": [row.to_dict() for row in self.rows],
            "totals": self.totals.to_dict(),
            "provenance": dict(self.provenance),
            "problems": {"count": self.problem_count, "first": [str(p) for p in self.problems[:_NAMED_PROBLEMS]]},
            "archived_sessions": self.archived_sessions,
        }
