"""Counting along: what the responses used and cost, for the end line and for logs that have no end.

Token classes are disjoint here, whatever the dialect of the log; a cost is recorded, estimated or unknown, and unknown
is never 0. The first session.start of a log counts, and nothing is ever counted anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.events.envelope import Event
from sessionlog.events.money import Money, read_usd
from sessionlog.events.payloads import LLMResponse, SessionEnd, SessionStart
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.provider_names import is_local, normal_name
from sessionlog.render.replay.blocks import Cost, Ended, Served
from sessionlog.render.replay.partial import Partial
from sessionlog.sources import values
from sessionlog.sources.fizeau_dialect import cost_is_recorded, normalise_usage
from sessionlog.sources.fold_usage import ACTIVE_GAP_NS
from sessionlog.sources.native import read_milliseconds

_NO_TOKENS = TokenUsage()
_NO_MONEY = Money()


class Price(Protocol):
    """(provider, model, usage, time_ns) → nano-dollars, or None where there is no price."""

    def __call__(
        self, provider: str, model: str, usage: TokenUsage, time_ns: int | None, /, *, single: bool = True
    ) -> int | None:
        """`single` is False for the totals of several requests, of which none is known to have reached a tier."""


class Account:
    """The sums of a session. `begin`, `pass_time` and `served` add, `ending` gives the result.

    Attributes:
        asked: The model of the last request, which prices its response.
        time_ns: The last event's time, None while no event had one.
        totals: What has been counted, as in `Ended`.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._start = SessionStart()
        self._start_ns: int | None = None
        self._model = ""
        self._active_ns = 0
        self._earlier = self._run = Sums()
        self._earlier_ms = 0.0  # that the ends of earlier runs report
        self.asked = ""
        self.time_ns: int | None = None
        self.totals: Counter[str] = Counter()

    def begin(self, start: SessionStart | None, time_ns: int | None) -> None:
        """Note what session.start says about provider and dialect; None where the log begins without one."""
        self._start = start or self._start
        self._start_ns = self._start_ns if time_ns is None else time_ns

    def pass_time(self, time_ns: int | None) -> None:
        """Note an event's time; what passed since the last one is work, unless it is long or negative."""
        if time_ns is None:
            return
        if self.time_ns is not None and 0 < time_ns - self.time_ns <= ACTIVE_GAP_NS:
            self._active_ns += time_ns - self.time_ns
        self.time_ns = time_ns

    def unnamed(self, provider: object) -> str:
        """A provider that the head of the session did not name, else ""."""
        known = {self._start.provider, self._start.selected_provider, self._start.selected_route}
        return provider if isinstance(provider, str) and provider not in known else ""

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
        """Count a response and return who served it; its stream may have named model and provider.

        One that a fork has copied from its parent's log counts there.
        """
        attempt = response.attempt or {}
        usage = self.usage(response.usage, values.text(attempt, "provider_system"))
        cost = self._cost(response, usage or _NO_TOKENS, event.time_ns)
        if not event.data.get("inherited"):
            self.totals["request"] += 1
            self.totals["failed request"] += failed
            nano = Money.of(cost.nano if cost else None) if cost or usage or not failed else _NO_MONEY
            is_estimated = cost is not None and cost.estimated
            self._run += Sums(
                usage=usage or _NO_TOKENS,
                logged=response.usage or _NO_TOKENS,
                recorded=_NO_MONEY if is_estimated else nano,
                estimated=nano if is_estimated else _NO_MONEY,
            )
        return Served(
            model=response.model or partial.model,
            provider=self.unnamed(attempt.get("provider_name") or response.provider or partial.provider),
            latency_ms=read_milliseconds(event.data.get("latency_ms")),
            usage=usage,
            cost=cost,
            finish_reason=response.finish_reason or "",
            attempt=response.attempt_index or 1,
        )

    def ending(self, end: SessionEnd | None, data: Mapping[str, object], *, answer: str) -> Ended:
        """Return the session's end, or that of a log without one; its output only where the last answer is another."""
        logged = end or SessionEnd()
        output, logged_ms = logged.output or "", read_milliseconds(data.get("duration_ms")) or None
        nano, _ = read_usd(logged.cost_usd)
        sums = self._earlier + self._run.closed(self._rest(logged), nano)
        # A nano-dollar per response is rounding.
        less = nano is not None and (self._run.recorded.known_nano or 0) - nano > self.totals["request"]
        ours = self._start.v is not None  # an end of the Go original speaks of the whole log, in its own numbers
        model = self._configured or logged.model or self._model
        ended = Ended(
            start=self._start,
            end=end,
            totals=Counter(self.totals),
            usage=sums.usage if ours else self.usage(logged.tokens) or sums.usage,
            cost=self._checked(sums.cost, self.provider, model),
            end_cost=self._checked(Cost(nano=nano or 0), self.provider, model) if less else None,
            duration_ms=self._active_ns / 1e6 or None if logged_ms is None else self._earlier_ms + logged_ms,
            output="" if output.strip() == answer else output,
        )
        if end is not None and ours:
            self._earlier, self._run = sums, Sums()
            self._earlier_ms += logged_ms or 0
        return ended

    def _rest(self, end: SessionEnd) -> Sums:
        """What the end reports beyond the responses, priced as one part; all of it where there are none."""
        total = end.tokens or _NO_TOKENS
        logged = total.beyond(self._run.logged)
        # The dialect shows in the totals; what is left of them may look like another.
        usage = logged if self.usage(total) == total else self.usage(logged) or logged
        if not usage:
            return Sums()
        time_ns = self.time_ns if self.totals["request"] else self._start_ns
        nano = self._estimate(self.provider, (self._configured or end.model or "",), usage, time_ns, single=False)
        return Sums(usage=usage, logged=logged, estimated=Money.of(nano))

    def _cost(self, response: LLMResponse, usage: TokenUsage, time_ns: int | None) -> Cost | None:
        nano, _ = read_usd(response.cost_usd)
        attempt, served = response.attempt or {}, response.model or ""
        asked = values.text(attempt, "requested_model") or self.asked
        # The model of a record: what was asked for comes before what was served.
        asked = asked or (served if self._start.v is not None else "") or self._configured or served
        provider = values.text(attempt, "provider_system") or self.provider
        models = (values.text(attempt, "response_model") or served, asked)
        self._model = models[0] or asked
        if nano:
            return Cost(nano=nano)
        estimate = self._estimate(provider, models, usage, time_ns) if usage else None
        if not estimate and cost_is_recorded(nano, attempt):
            return self._checked(Cost(nano=0), provider, self._model)
        return None if estimate is None else Cost(nano=estimate, estimated=True)

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


class Sums(Struct, frozen=True, kw_only=True):
    """Adds; `Sums()` is the empty element.

    Attributes:
        usage: Tokens in disjoint classes.
        logged: The same as the log has them, to be compared with what it reports as totals.
        recorded: What the log names, and how many parts are unknown.
        estimated: What a price table gives for other parts, and how many of these are unknown.
    """

    usage: TokenUsage = _NO_TOKENS
    logged: TokenUsage = _NO_TOKENS
    recorded: Money = _NO_MONEY
    estimated: Money = _NO_MONEY

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    @property
    def cost(self) -> Cost | None:
        """All that is known, None where nothing is."""
        known = self.recorded + self.estimated
        if known.known_nano is None:
            return None
        is_estimated = bool(self.estimated.known_nano) or self.recorded.known_nano is None
        return Cost(nano=known.known_nano, estimated=is_estimated, partial=known.unknown > 0)

    def closed(self, rest: Sums, nano: int | None) -> Sums:
        """These responses with what an end reports beyond them: the `rest` of their tokens, and the cost of all.

        A cost covers the responses that name none; it is never less than what the others name. One of 0 says the same
        as no cost where there is a list price.
        """
        whole = self + rest
        if nano is None:
            return whole
        recorded = Money(known_nano=max(nano, whole.recorded.known_nano or 0))
        return replace(
            whole, recorded=recorded, estimated=Money(known_nano=None if nano else whole.estimated.known_nano)
        )
