"""PriceBook: what a request costs, and which price that is.

The user's own prices come first, then the shipped list. An unknown cost is None, a free request costs 0, and the
shipped list never prices a local model server. Rates are cached per (provider, model, day, kind of request), because a
ledger looks up a few models millions of times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from sessionlog.hashes import blake2b
from sessionlog.pricing.lookup import Listing, find_listing
from sessionlog.pricing.model_pricing import ModelPricing
from sessionlog.pricing.own_prices import OwnPrice, OwnPrices, parse_own_prices
from sessionlog.pricing.price_list import load_price_list, price_at, thresholds
from sessionlog.pricing.schedule import active_variants, spans_of_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from sessionlog.events.tokens import TokenUsage
    from sessionlog.pricing.price_list import Listed, PriceList
    from sessionlog.pricing.rates import Rates

    Spans = tuple[tuple[int, Rates | None], ...]
    """The rates of one UTC day: (second from which they hold, rates or None for an unknown price), in order."""

_SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * _SECOND_NS
_MAX_CACHED = 8192  # names come from logs, and a hostile log must not fill the memory with them
# To be raised when the same names and tokens cost something else than before, so that ledgers estimate again.
_RULES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Prices of a request with more than `above_prompt_tokens` prompt tokens, for all of its tokens."""

    above_prompt_tokens: int
    pricing: ModelPricing


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceInfo:
    """What a model costs at one moment, and the source of that price.

    Attributes:
        provider: Who bills; for a user's own price, the provider that was asked for (may be empty).
        model: The model's id in the list, or the user's key.
        pricing: Prices below every tier.
        tiers: Prices of larger requests, ascending.
        valid_from: ISO date since which these prices hold; None if they are the oldest known.
        source: For example "list price, genai-prices 1.2.3 of 2026-01-31" or "your price 'vllm/qwen3-32b'".
        variants: Kinds of request with prices of their own: `batch`, `service_tier=flex`, `speed=fast`.
    """

    provider: str
    model: str
    pricing: ModelPricing
    source: str
    tiers: tuple[PriceTier, ...] = ()
    valid_from: str | None = None
    variants: tuple[str, ...] = ()


class PriceBook:
    """The user's own prices and the shipped list. Use `PriceBook.load()`.

    Attributes:
        instead_of: The usual prices, which this value replaces for a single query.
        is_shipped: It holds the shipped list alone.
    """

    __slots__ = ("_clock", "_days", "_list", "_listings", "_own", "instead_of", "is_shipped")

    def __init__(self, price_list: PriceList, own: OwnPrices, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.instead_of: PriceBook | None = None
        self.is_shipped = False
        self._list = price_list
        self._own = own
        self._clock = clock
        self._days: dict[tuple[Any, ...], Spans] = {}
        self._listings: dict[tuple[str, str], Listing | OwnPrice | None] = {}

    @classmethod
    def load(cls, own: Mapping[str, Any] | None = None, *, instead_of: PriceBook | None = None) -> PriceBook:
        """Load the shipped list together with a user's `[prices]` table.

        Args:
            own: "provider/model" or "model" (wildcards `*` and `?` allowed) to {input, output, cache_read?,
                cache_write?, cache_write_1h?} in US dollars per million tokens.
            instead_of: The usual prices, which this value replaces for a single query.

        Raises:
            InvalidPrices: An entry of `own` cannot be used; the message names its key and what is allowed.
        """
        book = cls(load_price_list(), parse_own_prices(own))
        book.is_shipped = not own
        book.instead_of = instead_of
        return book

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers get the user's own prices, and each loads the shipped list itself, once."""
        if self._list is not load_price_list():
            return PriceBook, (self._list, self._own)
        return _load_once, (tuple((entry.key, tuple(entry.prices.items())) for entry in self._own.entries),)

    @property
    def version(self) -> str:
        """The list and its date, for a footer."""
        return f"{self._list.source} of {self._list.date}"

    @property
    def named(self) -> str:
        """Where prices come from, for a footer: the user's own, if there are any, and else the list."""
        return f"own prices, else {self.version}" if self._own.entries else self.version

    @property
    def date(self) -> str:
        """ISO date of the shipped list."""
        return self._list.date

    @property
    def fingerprint(self) -> str:
        """A hash that changes when any price may have changed: with the list, the user's own prices, or the rules."""
        return blake2b(
            b"%d %b %b" % (_RULES, self._list.digest.encode(), self._own.canonical()), digest_size=16
        ).hexdigest()

    def price(
        self,
        provider: str,
        model: str,
        usage: TokenUsage,
        at_ns: int | None = None,
        *,
        service_tier: str | None = None,
        batch: bool = False,
        speed: str | None = None,
        single: bool = True,
    ) -> int | None:
        """Price one request. Never raises for odd names.

        Args:
            provider: As logged; empty or "unknown" if the log names none.
            model: As logged.
            usage: Tokens of this single request; tiers depend on its size.
            at_ns: When it was made, nanoseconds since 1970 UTC; None is now.
            service_tier: As logged, such as flex, priority, batch; without a price of its own it costs as standard.
            batch: The request went through a batch interface.
            speed: As logged, for instance fast.
            single: False for the total of several requests, because it is unknown whether any of them reached a tier.

        Returns:
            Nano-dollars; 0 for a request known to be free, None for an unknown price.
        """
        day, ns = divmod(self.now_ns() if at_ns is None else at_ns, DAY_NS)
        rates = rates_at(self.spans(provider, model, day, service_tier=service_tier, batch=batch, speed=speed), ns)
        return None if rates is None else rates.cost(usage, tiered=single)

    def spans(
        self,
        provider: str,
        model: str,
        day: int,
        *,
        service_tier: str | None = None,
        batch: bool = False,
        speed: str | None = None,
    ) -> Spans:
        """Return the rates of a model through one UTC day (counted from 1970); the arguments are those of `price`."""
        key = (provider, model, day, service_tier, batch, speed)
        spans = self._days.get(key)
        if spans is None:
            spans = self._resolve(provider, model, day, request_context(service_tier, batch=batch, speed=speed))
            _cache(self._days, key, spans)
        return spans

    def now_ns(self) -> int:
        """Return the present, at which requests without a time are priced."""
        return self._clock()

    def explain(self, provider: str | None, model: str, at_ns: int | None = None) -> PriceInfo | None:
        """Return what a model costs at a moment (None is now), with the price's source; None for an unknown price."""
        at_ns = self._clock() if at_ns is None else at_ns
        found = self._find(provider or "", model)
        if isinstance(found, OwnPrice):
            return _own_info(found, provider or "")
        return None if found is None else self._list_info(found, at_ns)

    def models(self, at_ns: int | None = None) -> Iterator[PriceInfo]:
        """Yield every price at a moment (None is now): the user's own first, then the list by provider."""
        at_ns = self._clock() if at_ns is None else at_ns
        for own in self._own.entries:
            yield _own_info(own, "")
        for provider, entry in self._list.providers.items():
            for model in entry["models"]:
                info = self._list_info(Listing(provider=provider, model=model), at_ns)
                if info is not None:
                    yield info

    def _find(self, provider: str, model: str) -> Listing | OwnPrice | None:
        key = (provider, model)
        if key in self._listings:
            return self._listings[key]
        found = self._own.find(provider, model) or find_listing(self._list, provider, model)
        _cache(self._listings, key, found)
        return found

    def _resolve(self, provider: str, model: str, day: int, context: Mapping[str, str]) -> Spans:
        found = self._find(provider, model)
        if found is None:
            return ((0, None),)
        from sessionlog.pricing.rates import build_rates  # an explanation has no use for them

        if isinstance(found, OwnPrice):
            return ((0, build_rates(found.prices)),)
        spans = spans_of_day(found.model, day, {} if found.resold else context)
        return tuple((span.second, None if span.prices is None else build_rates(span.prices)) for span in spans)

    def _list_info(self, listing: Listing, at_ns: int) -> PriceInfo | None:
        day, ns = divmod(at_ns, DAY_NS)
        span = [s for s in spans_of_day(listing.model, day, {}) if s.second * _SECOND_NS <= ns][-1]
        if span.prices is None:
            return None
        prices = span.prices
        return PriceInfo(
            provider=listing.provider,
            model=listing.model["id"],
            pricing=_pricing(prices, -1),
            source=f"list price, {self.version}",
            tiers=tuple(PriceTier(above_prompt_tokens=n, pricing=_pricing(prices, n)) for n in thresholds(prices)),
            valid_from=span.valid_from,
            variants=() if listing.resold else active_variants(listing.model, day),
        )


def rates_at(spans: Spans, ns: int) -> Rates | None:
    """Return the rates at a nanosecond of the day."""
    rates = spans[0][1]
    for second, later in spans[1:]:
        if ns >= second * _SECOND_NS:
            rates = later
    return rates


def request_context(service_tier: str | None, *, batch: bool, speed: str | None) -> dict[str, str]:
    """Describe a request in the words of the price list."""
    # Anthropic reports a batch request as a service tier.
    batch = batch or service_tier == "batch"
    context = {"processing": "batch" if batch else None, "service_tier": service_tier, "speed": speed}
    return {key: value for key, value in context.items() if value}


def _own_info(own: OwnPrice, provider: str) -> PriceInfo:
    return PriceInfo(provider=provider, model=own.key, pricing=own.pricing, source=f"your price {own.key!r}")


def _pricing(prices: Listed, above: int) -> ModelPricing:
    def usd(key: str) -> float | None:
        price = price_at(prices, key, above)
        return None if price is None else float(price)

    return ModelPricing(
        input_per_mtok=usd("input") or 0.0,
        output_per_mtok=usd("output") or 0.0,
        cache_read_per_mtok=usd("cache_read"),
        cache_write_per_mtok=usd("cache_write"),
        cache_write_1h_per_mtok=usd("cache_write_1h"),
    )


def _cache(cached: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cached) >= _MAX_CACHED:
        cached.clear()
    cached[key] = value


@cache
def _load_once(own: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]) -> PriceBook:
    return PriceBook.load({key: dict(prices) for key, prices in own})
