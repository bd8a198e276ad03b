"""Usage columns: the columns of a usage report, computed from sums of records.

Rates are computed, never stored; an empty denominator gives None, not 0.
"""

from __future__ import annotations

from sessionlog.analytics.columns import Column, row_data
from sessionlog.analytics.sums import Row, Sums, usd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA = "sessionlog.usage/1"
_LEAST_MS = 1e-6
"""No request is faster: a smaller latency in a log is no measurement."""


class UsageColumns(Sums):
    """The columns of a usage report; `UsageRow` documents the sums."""

    __slots__ = ()

    keys: Mapping[str, str]
    sessions: int
    success_sessions: int
    failed_sessions: int
    unpriced_requests: int
    duration_ms: int
    unknown_cost_sessions: int
    generation_tokens: int
    generation_ms: float
    ended_nano: int | None
    priced_successes: int
    saved_nano: int | None
    searches: int
    extra_nano: int | None

    @property
    def provider(self) -> str:
        """The provider's group key, empty when the report is not grouped by it."""
        return self.keys.get("provider", "")

    @property
    def model(self) -> str:
        """The model's group key, empty when the report is not grouped by it."""
        return self.keys.get("model", "")

    @property
    def cost_is_partial(self) -> bool:
        """Whether a part has neither a recorded nor an estimated cost."""
        return bool(self.unknown_cost_sessions)

    @property
    def cache_hit_rate(self) -> float | None:
        """cache_read / (input + cache_read + cache_write), at most 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def success_rate(self) -> float | None:
        """Successes ÷ (successes + failures); sessions without an end are neither."""
        ended = self.success_sessions + self.failed_sessions
        return self.success_sessions / ended if ended else None

    @property
    def cost_per_success(self) -> float | None:
        """Cost of ended sessions ÷ successful ones, in US dollars; only sessions whose whole cost is known count."""
        cost = usd(self.ended_nano)
        return cost / self.priced_successes if cost is not None and self.priced_successes else None

    @property
    def cost_per_request(self) -> float | None:
        """Cost per LLM call that has one, in US dollars."""
        cost, priced = self.cost_usd, self.requests - self.unpriced_requests
        return cost / priced if cost is not None and priced > 0 else None

    @property
    def cache_savings_usd(self) -> float | None:
        """The cost of the same tokens without a cache minus their cost, at list prices.

        Negative where cache writes cost more than the reads saved; None where nothing with a list price was cached.
        """
        return usd(self.saved_nano)

    @property
    def extra_cost_usd(self) -> float | None:
        """The part of the cost that is charged beside tokens, as for searches."""
        return usd(self.extra_nano)

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
        return {**self.keys, **row_data(COLUMNS, self)}


class SummedRow(UsageColumns, Row):
    """A row made of its sums."""


COST_COLUMNS = (
    Column("known_cost_usd", "usd"),
    Column("estimated_cost_usd", "usd"),
    Column("cost_usd", "usd", "COST", label="cost"),
)
"""The columns of what rows cost, in the order of JSON and CSV."""


def _tokens(name: str, title: str, rank: int, label: str) -> Column:
    return Column(
        name, "count", title, rank, label=label, shown=lambda row: getattr(row, name) if _has_usage(row) else None
    )


def _time(name: str, title: str, rank: int, label: str) -> Column:
    """A column of time spans; 0 is unknown, because every session and request takes time."""
    return Column(name, "ms", title, rank, label=label, shown=lambda row: getattr(row, name) or None)


def _has_usage(row: UsageColumns) -> bool:
    """Whether the log has tokens: every request that did not fail uses some."""
    return bool(row.total_tokens) or row.requests <= row.failed_requests


def _speed(row: UsageColumns) -> float | None:
    return row.generation_tokens_per_second if _has_usage(row) else None


COLUMNS = (
    Column("sessions", "count", "SESSIONS", 1),
    Column("success_sessions"),
    Column("failed_sessions", "count", "FAILED", 9, label="failed", style="failed"),
    Column("unfinished_sessions", "count", "OPEN", 10, label="unfinished", style="unfinished"),
    Column("requests", "count", "REQUESTS", 7),
    Column("failed_requests"),
    _tokens("input_tokens", "INPUT", 3, "input"),
    _tokens("output_tokens", "OUTPUT", 0, "output"),
    _tokens("cache_read_tokens", "CACHED", 4, "cached"),
    _tokens("cache_write_tokens", "WRITTEN", 11, "cache writes"),
    # 0 also stands for logs that do not separate reasoning
    Column(
        "reasoning_tokens", "count", "REASONING", 12, label="reasoning", shown=lambda row: row.reasoning_tokens or None
    ),
    Column("total_tokens"),
    _time("duration_ms", "DURATION", 13, "duration"),
    _time("latency_p50_ms", "P50", 14, "latency p50"),
    _time("latency_p95_ms", "P95", 15, "latency p95"),
    Column("latency_p99_ms", "ms"),
    *COST_COLUMNS,
    Column("unknown_cost_sessions"),
    Column("unpriced_requests"),
    Column("cache_hit_rate", "ratio", "HIT", 5, label="cache hit", style=lambda rate: "cached" if rate > 0.5 else ""),
    Column("success_rate", "ratio", "OK", 2, label="success", style=lambda rate: "failed" if rate < 0.5 else ""),
    Column("cost_per_success", "whole_usd", "PER OK", 6),
    Column("input_tokens_per_second", "rate"),
    Column("output_tokens_per_second", "rate"),
    Column("generation_tokens_per_second", "rate", "TOK/S", 8, label="tok/s", shown=_speed),
    Column("cost_per_request", "whole_usd", "PER REQUEST", 16),
    Column(
        "cache_savings_usd",
        "list_usd",
        "SAVED",
        7,
        label="saved by cache",
        style="cached",
        note="what these tokens would have cost more without a cache, at list prices",
    ),
    Column("searches", "count", "SEARCHES", 8, label="web searches", shown=lambda row: row.searches or None),
    Column(
        "extra_cost_usd",
        "list_usd",
        "EXTRA",
        6,
        label="beside tokens",
        shown=lambda row: row.extra_cost_usd or None,
        note="the part of the cost that is charged beside tokens, for web searches",
    ),
)
"""The columns after the group keys, in the order of JSON and CSV."""

TABLE = (
    "sessions", "success_rate", "failed_sessions", "unfinished_sessions", "requests", "input_tokens",
    "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "searches",
    "cache_hit_rate", "cache_savings_usd", "cost_usd", "extra_cost_usd", "cost_per_success",
    "generation_tokens_per_second",
)  # fmt: skip
"""The order of a table's first columns."""
