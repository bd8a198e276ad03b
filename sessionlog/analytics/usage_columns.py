"""Columns: what is said of records summed by a grouping, from the sums; and the JSON document made of them.

Rates are computed, never stored; an empty denominator gives None, not 0. Nothing is imported for it: the shortest way
to a report (`cli.warm`) and the whole one (`usage_row`) share this.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

SCHEMA = "sessionlog.usage/1"
PROVENANCE = ("exact", "partial", "estimated", "session")
_NANO = 1_000_000_000  # `events.money` costs 15 ms
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


class Sums:
    """Tokens and cost of summed records, and what follows from them."""

    __slots__ = ()

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    known_nano: int | None
    estimated_nano: int | None

    @property
    def total_tokens(self) -> int:
        """All classes together; they do not overlap."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    @property
    def cost_nano(self) -> int | None:
        """Recorded and estimated cost together, None when there is neither."""
        if self.known_nano is None and self.estimated_nano is None:
            return None
        return (self.known_nano or 0) + (self.estimated_nano or 0)

    @property
    def known_cost_usd(self) -> float | None:
        """Recorded cost."""
        return _usd(self.known_nano)

    @property
    def estimated_cost_usd(self) -> float | None:
        """Estimated cost of what has no recorded one."""
        return _usd(self.estimated_nano)

    @property
    def cost_usd(self) -> float | None:
        """Recorded and estimated cost together, None when there is neither."""
        return _usd(self.cost_nano)


def _usd(nano: int | None) -> float | None:
    return None if nano is None else nano / _NANO


class UsageColumns(Sums):
    """The columns of a usage report; `UsageRow` says what the sums are."""

    __slots__ = ()

    keys: Mapping[str, str]
    sessions: int
    success_sessions: int
    failed_sessions: int
    duration_ms: int
    generation_tokens: int
    generation_ms: float

    @property
    def provider(self) -> str:
        """The provider's group key, empty when the report is not grouped by it."""
        return self.keys.get("provider", "")

    @property
    def model(self) -> str:
        """The model's group key, empty when the report is not grouped by it."""
        return self.keys.get("model", "")

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


class SummedRow(UsageColumns):
    """A row of sums alone."""

    def __init__(self, sums: Mapping[str, Any]) -> None:
        self.__dict__.update(sums)


def document(
    *,
    window: Mapping[str, str | None] | None,
    group_by: Sequence[str],
    rows: Iterable[UsageColumns],
    totals: UsageColumns,
    provenance: Mapping[str, int],
    problem_count: int,
    problems: Iterable[str],
    archived_sessions: int,
) -> dict[str, Any]:
    """Return the JSON document `sessionlog.usage/1`, its rows as an iterator."""
    return {
        "schema": SCHEMA,
        "window": window,
        "group_by": list(group_by),
        "rows": (row.to_dict() for row in rows),
        "totals": totals.to_dict(),
        "provenance": dict(provenance),
        "problems": {"count": problem_count, "first": list(problems)},
        "archived_sessions": archived_sessions,
    }
