"""Counting along: what the responses used and cost, for the end line and for logs that have no end.

Token classes are disjoint here, whatever the dialect of the log; a cost is recorded, estimated or unknown, and unknown
is never 0. The first session.start of a log counts, and nothing is ever counted anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.events.envelope import Event
from sessionlog.events.money import read_usd
from sessionlog.events.payloads import LLMResponse, SessionEnd, SessionStart
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.provider_names import is_local, normal_name
from sessionlog.render.replay.blocks import Cost, Ended, Served, Totals
from sessionlog.render.replay.partial import Partial
from sessionlog.sources.fizeau_dialect import cost_is_recorded, normalise_usage

_IDLE_NS = 300 * 10**9  # a longer gap is a person's pause, not the session's work
_LONGEST_MS = 1e15


class Price(Protocol):
    """(provider, model, usage, time_ns) → nano-dollars, or None where there is no price."""

    def __call__(
        self, provider: str, model: str, usage: TokenUsage, time_ns: int | None, /, *, single: bool = True
    ) -> int | None:
        """`single` is False for the totals of several requests, of which none is known to have reached a tier."""


class Account:
    """The sums of a session. `begin`, `pass_time`, `served`, `tool` and `damage` count, `ending` tells.

    Attributes:
        time_ns: The last event's time, None while no event had one.
        totals: What has been counted.
    """

    __slots__ = (
        "_active_ns",
        "_asked",
        "_earlier",
        "_earlier_ms",
        "_model",
        "_price",
        "_run",
        "_start",
        "_start_ns",
        "time_ns",
        "totals",
    )

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._start = SessionStart()
        self._start_ns: int | None = None
        self._asked = self._model = ""
        self._active_ns = 0
        self._earlier = self._run = Sums()
        self._earlier_ms = 0.0  # that the ends of earlier runs tell
        self.time_ns: int | None = None
        self.totals = Totals()

    def begin(self, start: SessionStart | None, time_ns: int | None) -> None:
        """Note what session.start says about provider and dialect; None where the log begins without one."""
        self._start = start or self._start
        self._start_ns = self._start_ns if time_ns is None else time_ns

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
        """Count a response and tell who served it; its stream may have named model and provider.

        One that a fork has copied from its parent's log counts there.
        """
        attempt = response.attempt or {}
        usage = self.usage(response.usage, _word(attempt, "provider_system"))
        cost = self._cost(response, usage or TokenUsage(), _logged(event, "cost_usd"), event.time_ns)
        if not _logged(event, "inherited"):
            self._count(requests=1, failed_requests=1 if failed else 0)
            self._run += Sums(
                usage=usage or TokenUsage(),
                logged=response.usage or TokenUsage(),
                recorded=cost.nano if cost and not cost.estimated else None,
                estimated=cost.nano if cost and cost.estimated else None,
                unpriced=int(cost is None and (bool(usage) or not failed)),
            )
        return Served(
            model=response.model or partial.model,
            provider=self.unnamed(attempt.get("provider_name") or response.provider or partial.provider),
            latency_ms=_milliseconds(event, "latency_ms"),
            usage=usage,
            cost=cost,
            finish_reason=response.finish_reason or "",
            attempt=response.attempt_index or 1,
        )

    def tool(self, *, failed: bool) -> None:
        """Count a tool call."""
        self._count(tools=1, failed_tools=1 if failed else 0)

    def damage(self) -> None:
        """Count a piece of the log that could not be read."""
        self._count(damaged=1)

    def ending(self, event: Event | None, end: SessionEnd | None, *, said: str) -> Ended:
        """The session's end, or that of a log without one; `said` is the last answer, which is not said again."""
        output = (end.output if end else None) or ""
        logged_ms = (_milliseconds(event, "duration_ms") if event else None) or None
        nano, _ = read_usd(_logged(event, "cost_usd") if event else None)
        run = self._run if end is None else self._run.closed(self._rest(end), nano)
        sums = self._earlier + run
        # A nano-dollar per response is rounding.
        less = nano is not None and (self._run.recorded or 0) - nano > self.totals.requests
        ours = self._start.v is not None  # an end of the Go original speaks of the whole log, in its own numbers
        model = self._configured or (end.model if end else None) or self._model
        ended = Ended(
            type="session.end",
            time_ns=event.time_ns if event else self.time_ns,
            start=self._start,
            end=end,
            totals=self.totals,
            usage=sums.usage if ours else self.usage(end.tokens if end else None) or sums.usage,
            cost=self._checked(sums.cost, self.provider, model),
            end_cost=self._checked(Cost(nano=nano or 0), self.provider, model) if less else None,
            duration_ms=self._active_ns / 1e6 or None if logged_ms is None else self._earlier_ms + logged_ms,
            output="" if output.strip() == said else output,
        )
        if end is not None and ours:
            self._earlier, self._run = sums, Sums()
            self._earlier_ms += logged_ms or 0
        return ended

    def _rest(self, end: SessionEnd) -> Sums:
        """What the end reports beyond the responses, priced as one part; all of it where there are none."""
        total = end.tokens or TokenUsage()
        logged = total.beyond(self._run.logged)
        # The dialect shows in the totals; what is left of them may look like another.
        usage = logged if self.usage(total) == total else self.usage(logged) or logged
        if not usage:
            return Sums()
        time_ns = self.time_ns if self.totals.requests else self._start_ns
        estimate = self._estimate(self.provider, (self._configured or end.model or "",), usage, time_ns, single=False)
        return Sums(usage=usage, logged=logged, estimated=estimate, unpriced=1 if estimate is None else 0)

    def _cost(self, response: LLMResponse, usage: TokenUsage, logged: object, time_ns: int | None) -> Cost | None:
        nano, _ = read_usd(logged)
        attempt = response.attempt or {}
        provider = _word(attempt, "provider_system") or self.provider
        models = (_word(attempt, "response_model") or response.model or "", self._asked_of(response, attempt))
        self._model = models[0] or models[1]
        if nano:
            return Cost(nano=nano)
        estimate = self._estimate(provider, models, usage, time_ns) if usage else None
        if estimate:
            return Cost(nano=estimate, estimated=True)
        if nano == 0 and cost_is_recorded(nano, attempt):
            return self._checked(Cost(nano=0), provider, self._model)
        return None if estimate is None else Cost(nano=0, estimated=True)

    def _estimate(
        self, provider: str, models: tuple[str, ...], usage: TokenUsage, time_ns: int | None, *, single: bool = True
    ) -> int | None:
        """The price of the first of the models that has one."""
        if self._price is None:
            return None
        prices = (
            self._price(provider, model, usage, time_ns, single=single) for model in dict.fromkeys(models) if model
        )
        return next((price for price in prices if price is not None), None)

    def _checked(self, cost: Cost | None, provider: str, model: str) -> Cost | None:
        """Mark a 0 that a list price might contradict, were there a list to ask."""
        if cost is None or cost.nano or self._price is not None or not model or is_local(normal_name(provider)):
            return cost
        return replace(cost, unchecked=True)

    @property
    def _configured(self) -> str:
        return self._start.resolved_model or self._start.model or ""

    def _asked_of(self, response: LLMResponse, attempt: Mapping[str, object]) -> str:
        """The model of a record: what was asked for comes before what was served."""
        asked = _word(attempt, "requested_model") or self._asked
        served = response.model or ""
        return asked or (served if self._start.v is not None else "") or self._configured or served

    def _count(self, **by: int) -> None:
        self.totals = replace(self.totals, **{name: getattr(self.totals, name) + n for name, n in by.items()})


def _logged(event: Event, key: str) -> object:
    values = event.data if isinstance(event.data, Mapping) else event.extra
    return values.get(key)


def _milliseconds(event: Event, key: str) -> float | None:
    """A time span as the usage report reads it: a number that can be one."""
    value = _logged(event, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST_MS:
        return None
    return float(value)


def _word(values: Mapping[str, object], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


_NOTHING = TokenUsage()


class Sums(Struct, frozen=True, kw_only=True):
    """Adds; `Sums()` is the empty element.

    Attributes:
        usage: Tokens in disjoint classes.
        logged: The same as the log has them, to be compared with what it reports as totals.
        recorded: Nano-dollars that the log names; None when it names none.
        estimated: Nano-dollars of a price table; None when nothing was estimated.
        unpriced: How many parts are neither.
    """

    usage: TokenUsage = _NOTHING
    logged: TokenUsage = _NOTHING
    recorded: int | None = None
    estimated: int | None = None
    unpriced: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            usage=self.usage + other.usage,
            logged=self.logged + other.logged,
            recorded=_plus(self.recorded, other.recorded),
            estimated=_plus(self.estimated, other.estimated),
            unpriced=self.unpriced + other.unpriced,
        )

    @property
    def cost(self) -> Cost | None:
        """All that is known, None where nothing is."""
        nano = _plus(self.recorded, self.estimated)
        if nano is None:
            return None
        return Cost(nano=nano, estimated=bool(self.estimated) or self.recorded is None, partial=self.unpriced > 0)

    def closed(self, rest: Sums, nano: int | None) -> Sums:
        """These responses with what an end reports beyond them: the `rest` of their tokens, and the cost of all.

        A cost covers the responses that name none; it is never less than what the others name. One of 0 says the same
        as no cost where there is a list price.
        """
        whole = self + rest
        if nano:
            return replace(whole, recorded=max(nano, self.recorded or 0), estimated=None, unpriced=0)
        return whole if nano is None else replace(whole, recorded=whole.recorded or 0, unpriced=0)


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
