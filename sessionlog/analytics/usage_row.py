"""UsageRow and UsageReport: the values of a usage report, exact and with the JSON names; and its columns.

Rates are computed, never stored; an empty denominator gives None, not 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sessionlog.analytics.columns import Column, counted, row_data
from sessionlog.analytics.partial import partial_period
from sessionlog.analytics.report import Report
from sessionlog.analytics.sums import PROVENANCE, Sums, usd

TYPE_CHECKING = False
if TYPE_CHECKING:  # trend imports this module's users
    from typing import Any

    from sessionlog.analytics.trend import PeriodUsage, Projection

SCHEMA = "sessionlog.usage/1"
_LEAST_MS = 1e-6
"""No request is faster: a smaller latency in a log is no measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(Sums):
    """Records summed by a grouping.

    Attributes:
        keys: Group key → value; empty for totals.
        sessions: Distinct sessions with a record here.
        success_sessions: Sessions that ended with `success`.
        failed_sessions: Sessions that ended with any other status.
        unfinished_sessions: Sessions without an end, running ones included.
        running_sessions: Sessions without an end whose last event is younger than ten minutes.
        requests: LLM calls.
        failed_requests: Failed LLM calls.
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
        estimated_nano: Cost of the rest by the price table, None when there is none.
        unknown_cost_sessions: Sessions with a part that has neither.
        unpriced_requests: Requests that have neither.
        generation_tokens: Output of the calls that have a latency.
        generation_ms: The sum of their latencies.
        ended_nano: Cost of the ended sessions whose whole cost is known; None without one.
        priced_successes: The successful sessions among them.
        saved_nano: The savings by the cache at list prices; None where nothing with a list price was cached.
        searches: Web searches of the providers' own tools.
        extra_nano: The part of the cost that is charged beside tokens, in nano-dollars; None where none is known.
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
    ended_nano: int | None = None
    priced_successes: int = 0
    saved_nano: int | None = None
    searches: int = 0
    extra_nano: int | None = None

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


def _has_usage(row: UsageRow) -> bool:
    """Whether the log has tokens: every request that did not fail uses some."""
    return bool(row.total_tokens) or row.requests <= row.failed_requests


def _speed(row: UsageRow) -> float | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport(Report):
    """A usage report; `Report` documents the other fields.

    Attributes:
        rows: One per combination of the group keys.
        totals: Over all rows, with every session counted once.
        unpriced: The (provider, model) pairs without a price, the most used first.
        without_usage: The (provider, model) pairs whose requests have no tokens in the log.
        uncounted_sessions: Sessions in the window without a response, which no row counts.
        previous: The usage of the equally long window before; None without any, or if the logs do not go back so far.
        projection: The projected cost of the current month; None if the window does not allow one. Both depend on the
            present, so the JSON document does not have them: it is the same for the same logs.
    """

    schema = SCHEMA
    title = "Usage"
    columns: ClassVar[Sequence[Column]] = COLUMNS
    table: ClassVar[Sequence[str]] = TABLE

    rows: tuple[UsageRow, ...] = ()
    totals: UsageRow = field(default_factory=lambda: UsageRow(keys={}))
    provenance: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(PROVENANCE, 0))
    unpriced: tuple[tuple[str, str], ...] = ()
    without_usage: tuple[tuple[str, str], ...] = ()
    uncounted_sessions: int = 0
    previous: PeriodUsage | None = None
    projection: Projection | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no session matches."""
        return not self.rows and not self.totals.sessions

    @property
    def why_empty(self) -> str:
        """That the only sessions have no response."""
        return self._uncounted()

    @property
    def summary(self) -> str:
        """The number of sessions, and of running ones."""
        text = counted(self.totals.sessions, "session")
        return f"{text}, {self.totals.running_sessions} running" if self.totals.running_sessions else text

    def footnotes(self) -> Iterator[str]:
        """Yield what marks mean, the models without a cost, the provenance of requests, and what is not counted."""
        rows = [self.totals, *self.rows] if self.rows else []
        if any(row.estimated_nano for row in rows):
            yield f"~ estimated from {self.priced_from}"
        unknown = self.totals.unknown_cost_sessions
        if unknown:
            mark = "+ " if any(row.cost_usd is not None and row.cost_is_partial for row in rows) else ""
            have = "has" if unknown == 1 else "have"
            yield f"{mark}{counted(unknown, 'session')} {have} parts {self._without_cost()}"
        yield from partial_period(self.window, self.rows)
        for word, meaning in _PROVENANCE.items():
            count = self.provenance.get(word, 0)
            if count:
                yield f"{count:,} of {self.totals.requests:,} requests: {meaning}"
        if self.uncounted_sessions and not self.is_empty:
            yield self._uncounted()

    def _uncounted(self) -> str:
        """How many sessions no row counts, and what lists them; empty for none."""
        if not self.uncounted_sessions:
            return ""
        are, them = ("is", "it") if self.uncounted_sessions == 1 else ("are", "them")
        named = f"{counted(self.uncounted_sessions, 'session')} without a response"
        return f"{named} {are} not counted: `sessionlog sessions` lists {them}"

    def _without_cost(self) -> str:
        """The parts without a cost, and what to do."""
        without_tokens = f"without tokens in the log ({_models(self.without_usage)})"
        if self.without_usage and not self.unpriced:
            return without_tokens
        price = f"without a price ({_models(self.unpriced)})"
        named = f"{price} or {without_tokens}" if self.without_usage else price
        return f"{named}: `sessionlog models --unpriced` shows why"


_PROVENANCE = {
    "partial": "their numbers are known to be incomplete",
    "estimated": "their numbers are estimates",
    "session": "only the session's totals are in the log, counted as one request",
}
_NAMED_MODELS = 3
_LONGEST_NAME = 48


def _models(pairs: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(pairs) - _NAMED_MODELS} more" if len(pairs) > _NAMED_MODELS else ""
    names = (f"{provider}/{model}" for provider, model in pairs[:_NAMED_MODELS])
    return ", ".join(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names) + more
