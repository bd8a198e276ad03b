"""PriceInfo: what a model costs at one moment, for each kind of request, and where each price comes from."""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.pricing.model_pricing import ModelPricing
from sessionlog.pricing.price_list import price_at, thresholds
from sessionlog.pricing.schedule import active_variants, kind_name, spans_of_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from sessionlog.pricing.billing import Billing
    from sessionlog.pricing.lookup import Listing
    from sessionlog.pricing.own_prices import OwnPrice
    from sessionlog.pricing.price_list import Listed

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Prices of a request with more than `above_prompt_tokens` prompt tokens, for all of its tokens."""

    above_prompt_tokens: int
    pricing: ModelPricing


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceKind:
    """Prices of a kind of request, below every tier.

    Attributes:
        name: `batch`, `service_tier=flex`, `speed=fast`, `region=us`.
        pricing: The prices.
        source: Their source.
    """

    name: str
    pricing: ModelPricing
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """A price beside those of tokens.

    Attributes:
        name: What is charged: `search`.
        usd_per_thousand: US dollars for a thousand of it.
        source: The source of the price.
    """

    name: str
    usd_per_thousand: float
    source: str


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
        kinds: Kinds of requests with prices of their own.
        extras: What is charged beside tokens.
    """

    provider: str
    model: str
    pricing: ModelPricing
    source: str
    tiers: tuple[PriceTier, ...] = ()
    valid_from: str | None = None
    kinds: tuple[PriceKind, ...] = ()
    extras: tuple[Extra, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the kinds of requests with prices of their own."""
        return tuple(kind.name for kind in self.kinds)


def own_info(own: OwnPrice, provider: str, note: str) -> PriceInfo:
    """Explain a user's own price; `note` is what leads to it from another name."""
    source = f"your price {own.key!r}"
    return PriceInfo(
        provider=provider, model=own.key, pricing=own.pricing, source=f"{source}, {note}" if note else source
    )


def list_info(
    listing: Listing, day: int, ns: int, *, when: Mapping[str, str], note: str, version: str, billing: Billing
) -> PriceInfo | None:
    """Explain a listed price; None if the list has no price of tokens.

    Args:
        listing: The model.
        day: Days since 1970.
        ns: Nanoseconds of that day.
        when: What is known of the request, as `book.request_context` describes it.
        note: What leads to it from another name; "" if nothing does.
        version: Name and date of the list.
        billing: What the list does not have.
    """
    found = _prices(listing, day, ns, when, billing)
    if found is None:
        return None
    prices, times, valid_from = found
    source = f"list price, {version}"
    return PriceInfo(
        provider=listing.provider,
        model=listing.model["id"],
        pricing=_pricing(prices, -1, times),
        source=f"{source}, {note}" if note else source,
        tiers=tuple(PriceTier(above_prompt_tokens=n, pricing=_pricing(prices, n, times)) for n in thresholds(prices)),
        valid_from=valid_from,
        kinds=() if listing.resold or when else tuple(_kinds(listing, day, ns, source, billing)),
        extras=tuple(_extras(listing, day, billing)),
    )


def _prices(
    listing: Listing, day: int, ns: int, when: Mapping[str, str], billing: Billing
) -> tuple[Listed, Decimal | None, str | None] | None:
    """Return (listed prices, their factor, the date since which they hold) of a kind of request."""
    span = [one for one in spans_of_day(listing.model, day, when) if one.second * _SECOND_NS <= ns][-1]
    if span.prices is None:
        return None
    return span.prices, billing.times(listing, day, when), span.valid_from


def _kinds(listing: Listing, day: int, ns: int, source: str, billing: Billing) -> Iterator[PriceKind]:
    whens = {kind_name(when): (when, source) for when in active_variants(listing.model, day)}
    for factor in billing.factors(listing, day):
        origin = f"times {factor['times']}, {billing.source(factor)}"
        whens.setdefault(kind_name(factor["when"]), (factor["when"], origin))
    for name, (when, origin) in whens.items():
        found = _prices(listing, day, ns, when, billing)
        if found is not None:
            prices, times, _ = found
            yield PriceKind(name=name, pricing=_pricing(prices, -1, times), source=origin)


def _extras(listing: Listing, day: int, billing: Billing) -> Iterator[Extra]:
    search = billing.search(listing, day)
    if search is not None:
        usd = float(search["usd_per_thousand"])
        yield Extra(name="search", usd_per_thousand=usd, source=billing.source(search))


def _pricing(prices: Listed, above: int, times: Decimal | None) -> ModelPricing:
    def usd(key: str) -> float | None:
        price = price_at(prices, key, above)
        if price is None or times is None:
            return None if price is None else float(price)
        return float(times * type(times)(str(price)))

    return ModelPricing(
        input_per_mtok=usd("input") or 0.0,
        output_per_mtok=usd("output") or 0.0,
        cache_read_per_mtok=usd("cache_read"),
        cache_write_per_mtok=usd("cache_write"),
        cache_write_1h_per_mtok=usd("cache_write_1h"),
    )
