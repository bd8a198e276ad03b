"""UsageRow and UsageReport: the values of a usage report, exact and with the JSON names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.partial import partial_period
from sessionlog.analytics.report import Report
from sessionlog.analytics.sums import PROVENANCE
from sessionlog.analytics.usage_columns import COLUMNS, SCHEMA, TABLE, UsageColumns

TYPE_CHECKING = False
if TYPE_CHECKING:  # trend imports this module's users
    from sessionlog.analytics.trend import PeriodUsage, Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(UsageColumns):
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
