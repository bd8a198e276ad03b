"""Sum tokens and costs of the responses, for the end line and for logs without an end.

Token classes are disjoint here, for every dialect of logs. A cost is recorded, estimated or unknown, and unknown is
never 0. The first session.start of a log counts, and nothing is counted twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from sessionlog.events.money import Money, read_usd
from sessionlog.events.payloads import SessionEnd, SessionStart
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.provider_names import is_local, normal_name
from sessionlog.render.replay.blocks import Cost, Served, SessionEndBlock
from sessionlog.render.replay.partial import Partial
from sessionlog.sources import values
from sessionlog.sources.fizeau_dialect import cost_is_recorded, normalise_usage
from sessionlog.sources.fold_usage import ACTIVE_GAP_NS
from sessionlog.sources.native import read_milliseconds

_NO_TOKENS = TokenUsage()
_NO_NAMES = ("", "", "")
_NO_MONEY, _UNKNOWN = Money(), Money(unknown=1)


class Price(Protocol):
    """(provider, model, usage, time_ns) → nano-dollars, or None where there is no price."""

    def __call__(
        self, provider: str, model: str, usage: TokenUsage, time_ns: int | None, /, *, single: bool = True
    ) -> int | None:
        """`single` is False for the totals of several requests, of which none is known to have reached a tier."""


class SessionTotals:
    """The sums of a session: `begin`, `add_time` and `add_response` collect, `end_block` returns the result.

    Attributes:
        requested_model: The model of the last request, which prices its response.
        event_ns: The event's time, None where it has none.
        time_ns: The last time of an event, None while no event had one.
        counts: Counts, as in `SessionEndBlock.totals`.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._start = SessionStart()
        self._start_ns: int | None = None
        self._model = ""
        self._active_ns = 0
        self._earlier, self._run = Sums(), Sums()
        self._earlier_ms = 0.0  # as the ends of earlier runs report
        self.requested_model = ""
        self.event_ns: int | None = None
        self.time_ns: int | None = None
        self.counts: Counter[str] = Counter()

    def begin(self, start: SessionStart | None, time_ns: int | None) -> None:
        """Store session.start, which names provider and dialect; None for a log without one."""
        self._start = start or self._start
        self._start_ns = self._start_ns if time_ns is None else time_ns

    def add_time(self, time_ns: int | None) -> None:
        """Add an event's time; the gap since the last event counts as work, unless it is long or negative."""
        self.event_ns = time_ns
        if time_ns is None:
            return
        if self.time_ns is not None and 0 < time_ns - self.time_ns <= ACTIVE_GAP_NS:
            self._active_ns += time_ns - self.time_ns
        self.time_ns = time_ns

    def other_provider(self, provider: object) -> str:
        """Return a provider that session.start does not name, else ""."""
        if not provider:
            return ""
        known = {self._start.provider, self._start.selected_provider, self._start.selected_route}
        return provider if isinstance(provider, str) and provider not in known else ""

    @property
    def provider(self) -> str:
        """The session's provider."""
        return self._start.served_by

    def usage(self, logged: TokenUsage | None, provider: str = "") -> TokenUsage | None:
        """Return logged usage in disjoint classes; in logs of the Go original the dialect depends on the provider."""
        if logged is None or not logged.cache_read or self._start.v is not None:
            return logged
        harness = self._start.resolved_harness or ""
        return normalise_usage(logged, harness=harness, provider=provider or self._start.provider or "")

    def add_response(
        self, data: Mapping[str, Any], response: Mapping[str, Any], partial: Partial, *, failed: bool
    ) -> Served:
        """Count a response and return its figures.

        Args:
            data: The payload as logged.
            response: Its fields, as read.
            partial: The stream before it, which may name model and provider.
            failed: Whether the request failed.

        A response that a fork has copied from its parent's log is not counted: it counts there.
        """
        attempt, logged = response.get("attempt") or {}, response.get("usage")
        usage = self.usage(logged, values.text(attempt, "provider_system") if attempt else "")
        cost = self._cost(response, usage)
        if not data.get("inherited"):
            self.counts["request"] += 1
            if failed:
                self.counts["failed request"] += 1
            self._run.add_tokens(usage, logged)
            if cost or usage or not failed:
                self._run.add_cost(cost)
        return Served(
            model=response.get("model") or partial.model,
            provider=self.other_provider(attempt.get("provider_name") or response.get("provider") or partial.provider),
            latency_ms=read_milliseconds(data.get("latency_ms")),
            usage=usage,
            cost=cost,
            finish_reason=response.get("finish_reason") or "",
            attempt=response.get("attempt_index") or 1,
        )

    def end_block(self, end: SessionEnd | None, data: Mapping[str, object], *, answer: str) -> SessionEndBlock:
        """Return the block of the session's end, or of a log without one; `answer` is not repeated as its output."""
        logged = end or SessionEnd()
        output, logged_ms = logged.output or "", read_milliseconds(data.get("duration_ms")) or None
        nano, _ = read_usd(logged.cost_usd)
        sums = self._earlier + self._run.closed(self._rest(logged), nano)
        # A difference of up to a nano-dollar per response is rounding.
        less = nano is not None and (self._run.recorded.known_nano or 0) - nano > self.counts["request"]
        is_own = self._start.v is not None  # an end of the Go original covers the whole log, with its own numbers
        model = self._configured or logged.model or self._model
        ended = SessionEndBlock(
            start=self._start,
            end=end,
            totals=Counter(self.counts),
            usage=sums.usage if is_own else self.usage(logged.tokens) or sums.usage,
            cost=self._checked(sums.cost, self.provider, model),
            end_cost=self._checked(Cost(nano=nano or 0), self.provider, model) if less else None,
            duration_ms=self._active_ns / 1e6 or None if logged_ms is None else self._earlier_ms + logged_ms,
            output="" if output.strip() == answer else output,
        )
        if end is not None and is_own:
            self._earlier, self._run = sums, Sums()
            self._earlier_ms += logged_ms or 0
        return ended

    def _rest(self, end: SessionEnd) -> Sums:
        """Return what the end reports beyond the responses, priced as one part."""
        total = end.tokens or _NO_TOKENS
        logged = total.beyond(self._run.logged)
        # The totals reveal the dialect; the difference to the responses may look like another one.
        usage = logged if self.usage(total) == total else self.usage(logged) or logged
        if not usage:
            return Sums()
        time_ns = self.time_ns if self.counts["request"] else self._start_ns
        nano = self._estimate(self.provider, (self._configured or end.model or "",), usage, time_ns, single=False)
        return Sums(usage=usage, logged=logged, estimated=Money.of(nano))

    def _cost(self, response: Mapping[str, Any], usage: TokenUsage | None) -> Cost | None:
        nano, _ = read_usd(response.get("cost_usd"))
        attempt, served = response.get("attempt") or {}, response.get("model") or ""
        names = ("provider_system", "requested_model", "response_model")
        system, asked, answered = [values.text(attempt, name) for name in names] if attempt else _NO_NAMES
        requested = asked or self.requested_model
        # As in the records of sources, the requested model comes before the served one.
        requested = requested or (served if self._start.v is not None else "") or self._configured or served
        provider = system or self.provider
        models = (answered or served, requested)
        self._model = models[0] or requested
        if nano:
            return Cost(nano=nano)
        estimate = self._estimate(provider, models, usage, self.event_ns) if usage else None
        if not estimate and cost_is_recorded(nano, attempt):
            return self._checked(Cost(nano=0), provider, self._model)
        return None if estimate is None else Cost(nano=estimate, estimated=True)

    def _estimate(
        self, provider: str, models: tuple[str, ...], usage: TokenUsage, time_ns: int | None, *, single: bool = True
    ) -> int | None:
        """Return the cost by the first of the models that has a price."""
        if self._price is None:
            return None
        for model in filter(None, dict.fromkeys(models)):
            price = self._price(provider, model, usage, time_ns, single=single)
            if price is not None:
                return price
        return None

    def _checked(self, cost: Cost | None, provider: str, model: str) -> Cost | None:
        """Mark a cost of 0 that could not be compared with a list price, since there is no price list."""
        if cost is None or cost.nano or self._price is not None or not model or is_local(normal_name(provider)):
            return cost
        return replace(cost, unchecked=True)

    @property
    def _configured(self) -> str:
        return self._start.resolved_model or self._start.model or ""


class Sums(Struct, kw_only=True):
    """Adds; `Sums()` is the empty element.

    Attributes:
        usage: Tokens in disjoint classes.
        logged: Tokens as logged, for the comparison with the totals of the log.
        recorded: The sum of logged costs, and the number of unknown parts.
        estimated: The sum of estimates for the other parts, and the number of unknown ones.
    """

    usage: TokenUsage = field(default_factory=TokenUsage)
    logged: TokenUsage = field(default_factory=TokenUsage)
    recorded: Money = _NO_MONEY
    estimated: Money = _NO_MONEY

    def add_tokens(self, usage: TokenUsage | None, logged: TokenUsage | None) -> None:
        """Add the tokens of a response in place."""
        if usage is not None:
            self.usage.add(usage)
        if logged is not None:
            self.logged.add(logged)

    def add_cost(self, cost: Cost | None) -> None:
        """Add the cost of a response in place; None is unknown."""
        if cost is None:
            self.recorded += _UNKNOWN
        elif cost.estimated:
            self.estimated += Money(known_nano=cost.nano)
        else:
            self.recorded += Money(known_nano=cost.nano)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            usage=self.usage + other.usage,
            logged=self.logged + other.logged,
            recorded=self.recorded + other.recorded,
            estimated=self.estimated + other.estimated,
        )

    @property
    def cost(self) -> Cost | None:
        """The known part, None if nothing is known."""
        known = self.recorded + self.estimated
        if known.known_nano is None:
            return None
        is_estimated = bool(self.estimated.known_nano) or self.recorded.known_nano is None
        return Cost(nano=known.known_nano, estimated=is_estimated, partial=known.unknown > 0)

    def closed(self, rest: Sums, nano: int | None) -> Sums:
        """Return the sums with what an end reports beyond them: the `rest` of the tokens, and the total cost `nano`.

        The total covers responses without a cost; it is never less than the sum of the others. A total of 0 counts as
        no cost where there is a list price.
        """
        whole = self + rest
        if nano is None:
            return whole
        recorded = Money(known_nano=max(nano, whole.recorded.known_nano or 0))
        return replace(
            whole, recorded=recorded, estimated=Money(known_nano=None if nano else whole.estimated.known_nano)
        )
