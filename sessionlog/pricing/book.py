"""PriceBook: what a request costs, and which price that is.

The user's own prices and aliases come first, then the shipped list, then other names that are known of its models. An
unknown cost is None, a free request costs 0, and the shipped list never prices a local model server. A price is that of
the model at the time of the request for its service tier, mode and speed, times the factor of its region; where a kind
of request has no price of its own, it costs as the standard one. Searches have a price beside that of tokens. A user's
own price holds for every kind of request. Rates are cached per (provider, model, day, kind of request), because a
ledger looks up a few models millions of times.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache

from sessionlog.hashes import blake2b
from sessionlog.pricing.billing import load_billing
from sessionlog.pricing.lookup import Listing, find_listing, find_provider
from sessionlog.pricing.own_prices import Alias, OwnPrice, OwnPrices, parse_own_prices
from sessionlog.pricing.price_list import load_price_list
from sessionlog.pricing.provider_names import NOT_GIVEN, is_local, normal_name
from sessionlog.pricing.schedule import day_text, spans_of_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from sessionlog.events.tokens import TokenUsage
    from sessionlog.pricing.billing import Billing
    from sessionlog.pricing.price_info import PriceInfo
    from sessionlog.pricing.price_list import PriceList
    from sessionlog.pricing.rates import Rates

    Spans = tuple[tuple[int, Rates | None], ...]
    """The rates of one UTC day: (second from which they hold, rates or None for an unknown price), in order."""

_SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * _SECOND_NS
MOST_NANO = 10**18
"""Only damage makes a request cost more: its cost is unknown."""
_MAX_CACHED = 8192  # names come from logs, and a hostile log must not fill the memory with them
# To be raised when the same names and tokens cost something else than before, so that ledgers estimate again.
_RULES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A price of a name.

    Attributes:
        price: The price.
        when: What the name itself implies of the request, as in `request_context`.
        note: How the name leads to the price; "" if it is the price's own name.
    """

    price: Listing | OwnPrice
    when: Mapping[str, str]
    note: str = ""


class PriceBook:
    """The user's own prices and the shipped list. Use `PriceBook.load()`.

    Attributes:
        instead_of: The usual prices, which this value replaces for a single query.
        is_shipped: It holds the shipped list alone.
    """

    __slots__ = ("_billing", "_clock", "_days", "_list", "_listings", "_own", "instead_of", "is_shipped")

    def __init__(
        self,
        price_list: PriceList,
        own: OwnPrices,
        *,
        billing: Billing | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.instead_of: PriceBook | None = None
        self.is_shipped = False
        self._list = price_list
        self._own = own
        self._billing = billing or load_billing()
        self._clock = clock
        self._days: dict[tuple[Any, ...], Spans] = {}
        self._listings: dict[tuple[str, str], _Found | None] = {}

    @classmethod
    def load(cls, own: Mapping[str, Any] | None = None, *, instead_of: PriceBook | None = None) -> PriceBook:
        """Load the shipped list together with a user's prices and aliases.

        Args:
            own: "provider/model" or "model" (wildcards `*` and `?` allowed) to {input, output, cache_read?,
                cache_write?, cache_write_1h?} in US dollars per million tokens; or such a name, without wildcards, to
                "vendor/model", whose price it has.
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
        return _load_once, (self._own.table(),)

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
            b"%d %b %b %b" % (_RULES, self._list.digest.encode(), self._billing.digest.encode(), self._own.canonical()),
            digest_size=16,
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
        region: str | None = None,
        searches: int = 0,
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
            region: As logged, for instance us.
            searches: How many searches of the provider's own tool it made.
            single: False for the total of several requests, because it is unknown whether any of them reached a tier.

        Returns:
            Nano-dollars; 0 for a request known to be free, None for an unknown price.
        """
        day, ns = divmod(self.now_ns() if at_ns is None else at_ns, DAY_NS)
        spans = self.spans(provider, model, day, service_tier=service_tier, batch=batch, speed=speed, region=region)
        rates = rates_at(spans, ns)
        return None if rates is None else rates.cost(usage, tiered=single, searches=searches)

    def spans(
        self,
        provider: str,
        model: str,
        day: int,
        *,
        service_tier: str | None = None,
        batch: bool = False,
        speed: str | None = None,
        region: str | None = None,
    ) -> Spans:
        """Return the rates of a model through one UTC day (counted from 1970); the arguments are those of `price`."""
        key = (provider, model, day, service_tier, batch, speed, region)
        spans = self._days.get(key)
        if spans is None:
            context = request_context(service_tier, batch=batch, speed=speed, region=region)
            spans = self._resolve(provider, model, day, context)
            _cache(self._days, key, spans)
        return spans

    def now_ns(self) -> int:
        """Return the present, at which requests without a time are priced."""
        return self._clock()

    def explain(self, provider: str | None, model: str, at_ns: int | None = None) -> PriceInfo | None:
        """Return what a model costs at a moment (None is now), with the price's source; None for an unknown price."""
        at_ns = self._clock() if at_ns is None else at_ns
        found = self._find(provider or "", model, day_text(at_ns // DAY_NS))
        if found is None:
            return None
        if isinstance(found.price, OwnPrice):
            from sessionlog.pricing.price_info import own_info

            return own_info(found.price, provider or "", found.note)
        return self._explain_listing(found.price, at_ns, when=found.when, note=found.note)

    def why_unpriced(self, provider: str, model: str) -> str:
        """Return why requests of a model may have no cost.

        `alias`: the user's alias has no price; `unnamed`: the log names no model; `local`: the provider is a model
        server of the user's; `other_unit`: the list has no price of its tokens; `other_time`: it has one now;
        `unlisted`: there is no such name.
        """
        if isinstance(self._own.find(provider, model), Alias):
            return "alias"
        if model.strip().lower() in NOT_GIVEN:
            return "unnamed"
        if is_local(normal_name(provider)):
            return "local"
        if self.explain(provider, model) is not None:
            return "other_time"
        return "unlisted" if self._find(provider, model, day_text(self._clock() // DAY_NS)) is None else "other_unit"

    def models(self, at_ns: int | None = None) -> Iterator[PriceInfo]:
        """Yield every price at a moment (None is now): the user's own first, then the list by provider."""
        from sessionlog.pricing.price_info import own_info

        at_ns = self._clock() if at_ns is None else at_ns
        for own in self._own.entries:
            yield own_info(own, "", "")
        for provider, entry in self._list.providers.items():
            for model in entry["models"]:
                info = self._explain_listing(Listing(provider=provider, model=model), at_ns)
                if info is not None:
                    yield info

    def _explain_listing(
        self, listing: Listing, at_ns: int, *, when: Mapping[str, str] | None = None, note: str = ""
    ) -> PriceInfo | None:
        from sessionlog.pricing.price_info import list_info  # its classes would cost each report 2 ms

        day, ns = divmod(at_ns, DAY_NS)
        return list_info(listing, day, ns, when=when or {}, note=note, version=self.version, billing=self._billing)

    def _find(self, provider: str, model: str, today: str) -> _Found | None:
        """Return the price of a name on a day, or of the one that the user's alias names; None for an unknown price."""
        alias = self._own.find(provider, model)
        if not isinstance(alias, Alias):
            return self._find_named(provider, model, today)
        found = self._find_named(alias.vendor, alias.model, today)
        note = f"your alias {alias.key!r} of {alias.target}"
        return found and replace(found, note=f"{note}, {found.note}" if found.note else note)

    def _find_named(self, provider: str, model: str, today: str) -> _Found | None:
        """Return the price of a name itself."""
        key = (provider, model)
        if key not in self._listings:
            _cache(self._listings, key, self._look_up(provider, model))
        found = self._listings[key]
        if found is None and not is_local(normal_name(provider)):
            name, _ = self._billing.without_route(model.strip().lower())
            other = self._billing.other_name(find_provider(self._list, provider), name, today)
            if other is not None:
                found = self._target(other["model"], f"as {other['model']} ({other['source']})")
        return found

    def _look_up(self, provider: str, model: str) -> _Found | None:
        own = self._own.find(provider, model)
        if isinstance(own, OwnPrice):
            return _Found(price=own, when={})
        name = model.strip().lower()
        found = self._listed(provider, name)
        plain, is_routed = self._billing.without_route(name)
        if found is None and plain != name:
            found = self._listed(provider, plain, routed=name)
        if found is None and is_routed and not is_local(normal_name(provider)):
            found = self._listed("", plain, routed=name)  # the gateway bills, whatever protocol it speaks
        return found

    def _listed(self, provider: str, name: str, *, routed: str = "") -> _Found | None:
        """Return the price of a name in the list; `routed` is the name with what a gateway wrote around it."""
        note = f"{routed} without its route" if routed else ""
        for one in self._billing.entries["suffixes"]:
            plain = name.removesuffix(one["suffix"])
            base = None if plain == name else find_listing(self._list, provider, plain, is_routed=bool(routed))
            if base is not None and base.provider == one["provider"] and self._has_kind(base, one["when"]):
                return _Found(price=base, when=one["when"], note=one["source"])
        listing = find_listing(self._list, provider, name, is_routed=bool(routed))
        return None if listing is None else _Found(price=listing, when={}, note=note)

    def _target(self, name: str, note: str) -> _Found | None:
        """Return the price that another name has: "vendor/model"."""
        vendor, _, model = name.partition("/")
        own = self._own.find(vendor, model)
        if isinstance(own, OwnPrice):
            return _Found(price=own, when={}, note=note)
        found = self._listed(vendor, model.lower())
        return None if found is None else replace(found, note=note)

    def _has_kind(self, listing: Listing, when: Mapping[str, str]) -> bool:
        """Whether a listed model has, at any time, a price for such requests of the vendor's own."""
        if listing.resold:
            return False
        if any(when.items() <= variant["when"].items() for variant in listing.model.get("variants", ())):
            return True
        return any(when.items() <= factor["when"].items() for factor in self._billing.factors(listing))

    def _resolve(self, provider: str, model: str, day: int, context: Mapping[str, str]) -> Spans:
        today = day_text(day)
        found = self._find(provider, model, today)
        if found is None:
            return ((0, None),)
        from sessionlog.pricing.rates import build_rates  # an explanation has no use for them

        price = found.price
        if isinstance(price, OwnPrice):
            at_list = find_listing(self._list, provider, model)
            return ((0, build_rates(price.prices, search=self._search_price(at_list, day))),)
        context = {} if price.resold else {**context, **found.when}
        times, search = self._billing.times(price, day, context), self._search_price(price, day)
        return tuple(
            (span.second, None if span.prices is None else build_rates(span.prices, times=times, search=search))
            for span in spans_of_day(price.model, day, context)
        )

    def _search_price(self, listing: Listing | None, day: int) -> str:
        """Return what a thousand searches cost, in US dollars."""
        entry = None if listing is None else self._billing.search(listing, day)
        return "0" if entry is None else str(entry["usd_per_thousand"])


def rates_at(spans: Spans, ns: int) -> Rates | None:
    """Return the rates at a nanosecond of the day."""
    rates = spans[0][1]
    for second, later in spans[1:]:
        if ns >= second * _SECOND_NS:
            rates = later
    return rates


def request_context(
    service_tier: str | None, *, batch: bool, speed: str | None, region: str | None = None
) -> dict[str, str]:
    """Describe a request in the words of the price list."""
    # Anthropic reports a batch request as a service tier.
    batch = batch or service_tier == "batch"
    tier = "priority" if service_tier == "fast" else service_tier  # OpenAI's one tier had both names
    context = {"processing": "batch" if batch else None, "service_tier": tier, "speed": speed, "region": region}
    return {key: value for key, value in context.items() if value}


def _cache(cached: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cached) >= _MAX_CACHED:
        cached.clear()
    cached[key] = value


@cache
def _load_once(own: tuple[tuple[str, str | tuple[tuple[str, float], ...]], ...]) -> PriceBook:
    return PriceBook.load({key: value if isinstance(value, str) else dict(value) for key, value in own})
