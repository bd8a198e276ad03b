"""Rates: listed prices as integers, and the cost of a request at them.

Money is exact: prices are integers of 10^-18 US dollars per million tokens, products and sums stay integers, and one
rounding, half to even, gives nano-dollars. Above a tier's threshold all tokens of the request cost the tier's price;
the threshold counts all prompt tokens of that single request, cached or not.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

from sessionlog.fast_dataclasses import dataclass
from sessionlog.pricing.price_list import price_at, thresholds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.events.tokens import TokenUsage
    from sessionlog.pricing.price_list import Listed

# The finest price in use has 18 decimals (a list that divided 0.25 by 6), so 10^-18 loses nothing.
_PRICE_DECIMALS = 18
# 10^18 per dollar, 10^6 tokens per million, 10^9 nano-dollars per dollar.
_PER_NANO = 10 ** (_PRICE_DECIMALS + 6 - 9)
_MAX_NANO = 10**18
# Not the thread's context, whose precision an application may have lowered.
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)

_FALLBACKS = {
    "input": ("input",),
    "output": ("output",),
    "cache_read": ("cache_read", "input"),
    "cache_write": ("cache_write", "input"),
    "cache_write_1h": ("cache_write_1h", "cache_write", "input"),
    "reasoning": ("reasoning", "output"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Integer prices of a request with more than `above` prompt tokens, up to the next band."""

    above: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    reasoning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The prices of one kind of request.

    Attributes:
        bands: By threshold, the highest first; the last one applies to every request.
        request: Price of the request itself, in 10^-24 US dollars.
    """

    bands: tuple[Band, ...]
    request: int

    def cost(self, usage: TokenUsage, *, tiered: bool = True) -> int | None:
        """Return the cost of one request in nano-dollars; None above 10^9 US dollars, which only damage can cause.

        Totals of several requests are not `tiered`: they are priced at the lowest band.
        """
        band = self._band(usage, tiered=tiered)
        # A part that is larger than its whole is damage in the log: the whole is more likely right.
        hour = min(usage.cache_write_1h, usage.cache_write)
        thought = min(usage.reasoning, usage.output)
        return _rounded(
            usage.input * band.input
            + usage.cache_read * band.cache_read
            + (usage.cache_write - hour) * band.cache_write
            + hour * band.cache_write_1h
            + (usage.output - thought) * band.output
            + thought * band.reasoning
            + self.request
        )

    def cache_savings(self, usage: TokenUsage, *, tiered: bool = True) -> int | None:
        """Return how many nano-dollars more the request would cost without a cache; None as in `cost`.

        Negative where writing to the cache cost more than reading from it saved.
        """
        band = self._band(usage, tiered=tiered)
        hour = min(usage.cache_write_1h, usage.cache_write)
        return _rounded(
            usage.cache_read * (band.input - band.cache_read)
            + (usage.cache_write - hour) * (band.input - band.cache_write)
            + hour * (band.input - band.cache_write_1h)
        )

    def _band(self, usage: TokenUsage, *, tiered: bool) -> Band:
        if tiered and len(self.bands) > 1:
            prompt = usage.input + usage.cache_read + usage.cache_write
            for band in self.bands:
                if prompt > band.above:
                    return band
        return self.bands[-1]


def _rounded(amount: int) -> int | None:
    """Round an amount in 10^-24 US dollars to nano-dollars, half to even."""
    whole, rest = divmod(amount, _PER_NANO)
    if rest * 2 > _PER_NANO or (rest * 2 == _PER_NANO and whole & 1):
        whole += 1
    return whole if -_MAX_NANO <= whole <= _MAX_NANO else None


def build_rates(prices: Mapping[str, Any]) -> Rates:
    """Build rates from listed prices; a class without a price gets that of the class it is billed as."""
    bands = (
        Band(above=above, **{key: _scaled(_listed(prices, key, above)) for key in _FALLBACKS})
        for above in (*sorted(thresholds(prices), reverse=True), -1)
    )
    # Listed per thousand requests; a band's price is per million tokens: three decimals apart.
    return Rates(bands=tuple(bands), request=_scaled(prices.get("request")) * 1000)


def _listed(prices: Listed, key: str, above: int) -> str | float | None:
    return next((p for name in _FALLBACKS[key] if (p := price_at(prices, name, above)) is not None), None)


def _scaled(price: str | float | None) -> int:
    if price is None:
        return 0
    # str() gives a float's shortest text, so 0.1 becomes exactly a tenth.
    return int(Decimal(str(price)).scaleb(_PRICE_DECIMALS, _EXACT).to_integral_value(context=_EXACT))
