"""Counting along: what the responses used and cost, for the end line and for logs that have no end.

Token classes are disjoint here, whatever the dialect of the log; a cost is recorded, estimated or unknown, and unknown
is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sessionlog.events.envelope import Event
from sessionlog.events.money import read_usd
from sessionlog.events.payloads import LLMResponse, SessionEnd, SessionStart
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Cost, Ended, Served, Totals
from sessionlog.render.replay.partial import Partial
from sessionlog.sources.fizeau import cost_is_recorded, normalise_usage

Price = Callable[[str, str, TokenUsage, "int | None"], "int | None"]
"""(provider, model, usage, time_ns) → nano-dollars, or None where there is no price."""

_IDLE_NS = 300 * 10**9  # a longer gap is a person's pause, not the session's work


class Account:
    """The sums of a session. `open` begins it, `pass_time`, `served`, `tool` and `damage` count, `ending` tells.

    Attributes:
        time_ns: The last event's time, None while no event had one.
        totals: What has been counted.
    """

    __slots__ = ("_active_ns", "_asked", "_price", "_start", "_sum", "_unpriced", "time_ns", "totals")

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self.time_ns: int | None = None
        self.totals = Totals()
        self.open(None)

    def open(self, start: SessionStart | None) -> None:
        """Begin at zero (damage is the file's), with what session.start says about provider and dialect."""
        self._start = start or SessionStart()
        self._asked = ""
        self._active_ns = 0
        self._sum: Cost | None = None
        self._unpriced = 0
        self.totals = Totals(damaged=self.totals.damaged)

    def pass_time(self, time_ns: int | None) -> None:
        """Note an event's time; what passed since the last one is work, unless it is long or negative."""
        if time_ns is None:
            return
        if self.time_ns is not None and 0 < time_ns - self.time_ns <= _IDLE_NS:
            self._active_ns += time_ns - self.time_ns
        self.time_ns = time_ns

    def unnamed(self, provider: object) -> str:
        """A provider that the head of the session did not name, else ""."""
        known = {self._start.provider, self._start.selected_provider, self._start.selected_route}
        return provider if isinstance(provider, str) and provider not in known else ""

    def asked(self, model: str | None) -> None:
        """Note the model of a request, which prices its response."""
        self._asked = model or ""

    @property
    def provider(self) -> str:
        """The session's provider, or the harness that ran it."""
        return self._start.provider or self._start.resolved_harness or ""

    def usage(self, logged: TokenUsage | None, provider: str = "") -> TokenUsage | None:
        """Logged usage in disjoint classes: logs of our own are so, others depend on who served the request."""
        if logged is None or not logged.cache_read or self._start.v is not None:
            return logged
        harness = self._start.resolved_harness or ""
        return normalise_usage(logged, harness=harness, provider=provider or self._start.provider or "")

    def served(self, event: Event, response: LLMResponse, partial: Partial, *, failed: bool) -> Served:
        """Count a response and tell who served it; its stream may have named model and provider."""
        attempt = response.attempt or {}
        usage = self.usage(response.usage, _word(attempt, "provider_system"))
        cost = self._cost(response, usage or TokenUsage(), _logged_cost(event), event.time_ns)
        self._add(usage, cost, failed=failed)
        return Served(
            model=response.model or partial.model,
            provider=self.unnamed(attempt.get("provider_name") or response.provider or partial.provider),
            latency_ms=response.latency_ms,
            usage=usage,
            cost=cost,
            finish_reason=response.finish_reason or "",
            attempt=response.attempt_index or 1,
        )

    def _add(self, usage: TokenUsage | None, cost: Cost | None, *, failed: bool) -> None:
        self._count(requests=1, failed_requests=1 if failed else 0)
        self.totals = replace(self.totals, usage=self.totals.usage + (usage or TokenUsage()))
        if cost is not None:
            before = self._sum or Cost(nano=0)
            self._sum = Cost(nano=before.nano + cost.nano, estimated=before.estimated or cost.estimated)
        elif usage or not failed:
            self._unpriced += 1

    def tool(self, *, failed: bool) -> None:
        """Count a tool call."""
        self._count(tools=1, failed_tools=1 if failed else 0)

    def damage(self) -> None:
        """Count a piece of the log that could not be read."""
        self._count(damaged=1)

    def ending(self, event: Event | None, end: SessionEnd | None, *, said: str) -> Ended:
        """The session's end, or that of a log without one; `said` is the last answer, which is not said again."""
        output = (end.output if end else None) or ""
        reported = self.usage(end.tokens) if end else None
        logged_ms = end.duration_ms if end and (end.duration_ms or 0) > 0 else None
        return Ended(
            type="session.end",
            time_ns=event.time_ns if event else self.time_ns,
            start=self._start,
            end=end,
            totals=self.totals,
            usage=reported or self.totals.usage,
            cost=self._end_cost(_logged_cost(event) if event else None),
            duration_ms=self._active_ns / 1e6 or None if logged_ms is None else logged_ms,
            output="" if output.strip() == said else output,
        )

    def _end_cost(self, logged: object) -> Cost | None:
        """What the end reports, else the sum of the responses, else None."""
        nano, _ = read_usd(logged)
        if nano:
            return Cost(nano=nano)
        if nano == 0 and not (self._sum and self._sum.estimated and self._sum.nano):
            return Cost(nano=0)
        return replace(self._sum, partial=self._unpriced > 0) if self._sum else None

    def _cost(self, response: LLMResponse, usage: TokenUsage, logged: object, time_ns: int | None) -> Cost | None:
        nano, _ = read_usd(logged)
        if nano:
            return Cost(nano=nano)
        estimate = self._estimate(response, usage, time_ns)
        if estimate:
            return Cost(nano=estimate, estimated=True)
        if nano == 0 and cost_is_recorded(nano, response.attempt or {}):
            return Cost(nano=0)
        return None if estimate is None or not usage else Cost(nano=0, estimated=True)

    def _estimate(self, response: LLMResponse, usage: TokenUsage, time_ns: int | None) -> int | None:
        if self._price is None or not usage:
            return None
        attempt = response.attempt or {}
        provider = _word(attempt, "provider_system") or self.provider
        return self._price(provider, self._model(response, attempt), usage, time_ns)

    def _model(self, response: LLMResponse, attempt: Mapping[str, object]) -> str:
        """The model of a record: what was asked for comes before what was served."""
        asked = _word(attempt, "requested_model") or self._asked
        served = response.model or ""
        configured = self._start.resolved_model or self._start.model or ""
        return asked or (served if self._start.v is not None else "") or configured or served

    def _count(self, **by: int) -> None:
        self.totals = replace(self.totals, **{name: getattr(self.totals, name) + n for name, n in by.items()})


def _logged_cost(event: Event) -> object:
    values = event.data if isinstance(event.data, Mapping) else event.extra
    return values.get("cost_usd")


def _word(values: Mapping[str, object], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""
