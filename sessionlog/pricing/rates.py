"""Rates: listed prices as integers, and the cost of a request at them.

Money is exact: prices are integers in a unit of which all of them are multiples, products and sums stay integers, and
one rounding, half to even, gives nano-dollars. Above a tier's threshold all tokens of the request cost the tier's
price; the threshold counts all prompt tokens of that single request, cached or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import gcd

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
        request: Price of the request itself.
        search: Nano-dollars for each search of the provider's own tool; 0 if it has none.
        per_nano: How much of these prices is a nano-dollar for a token: 1 where all are whole nano-dollars.
    """

    bands: tuple[Band, ...]
    request: int
    per_nano: int
    search: int = 0

    def cost(self, usage: TokenUsage, *, tiered: bool = True, searches: int = 0) -> int | None:
        """Return the cost of one request in nano-dollars, as `cost_and_savings` does, with its searches."""
        cost = self.cost_and_savings(usage, tiered=tiered)[0]
        whole = None if cost is None else cost + searches * self.search
        return whole if whole is not None and whole <= _MAX_NANO else None

    def cost_and_savings(self, usage: TokenUsage, *, tiered: bool = True) -> tuple[int | None, int | None]:
        """Return the cost of one request in nano-dollars, and how many more it would cost without a cache.

        Savings are negative where writing to the cache cost more than reading from it saved. None above 10^9 US
        dollars, which only damage can cause. Totals of several requests are not `tiered`: they are priced at the lowest
        band.
        """
        band, read, written, output = self.bands[-1], usage.cache_read, usage.cache_write, usage.output
        if tiered and len(self.bands) > 1:
            prompt = usage.input + read + written
            band = next((one for one in self.bands if prompt > one.above), band)
        # A part that is larger than its whole is damage in the log: the whole is more likely right.
        hour, thought = min(usage.cache_write_1h, written), min(usage.reasoning, output)
        cached = read * band.cache_read + (written - hour) * band.cache_write + hour * band.cache_write_1h
        cost = usage.input * band.input + cached + (output - thought) * band.output + thought * band.reasoning
        return self._rounded(cost + self.request), self._rounded((read + written) * band.input - cached)

    def _rounded(self, amount: int) -> int | None:
        """Round an amount at these prices to nano-dollars, half to even."""
        if self.per_nano > 1:
            amount, rest = divmod(amount, self.per_nano)
            if rest * 2 > self.per_nano or (rest * 2 == self.per_nano and amount & 1):
                amount += 1
        return amount if -_MAX_NANO <= amount <= _MAX_NANO else None


def build_rates(prices: Mapping[str, Any], *, times: Decimal | None = None, search: str = "0") -> Rates:
    """Build rates from listed prices; a class without a price gets that of the class it is billed as.

    Args:
        prices: Token class → price.
        times: The factor of all prices of tokens; None for none.
        search: US dollars for a thousand searches.
    """
    bands = {
        above: {key: _scaled(_listed(prices, key, above), times) for key in _FALLBACKS}
        for above in (*sorted(thresholds(prices), reverse=True), -1)
    }
    # Listed per thousand requests; a band's price is per million tokens: three decimals apart.
    request = _scaled(prices.get("request")) * 1000
    # Small integers multiply three times as fast, and most prices need no rounding.
    unit = gcd(_PER_NANO, request, *(price for band in bands.values() for price in band.values()))
    return Rates(
        bands=tuple(Band(above=above, **{k: n // unit for k, n in band.items()}) for above, band in bands.items()),
        request=request // unit,
        per_nano=_PER_NANO // unit,
        search=int(Decimal(search).scaleb(6, _EXACT).to_integral_value(context=_EXACT)),
    )


def _listed(prices: Listed, key: str, above: int) -> str | float | None:
    return next((p for name in _FALLBACKS[key] if (p := price_at(prices, name, above)) is not None), None)


def _scaled(price: str | float | None, times: Decimal | None = None) -> int:
    if price is None:
        return 0
    # str() gives a float's shortest text, so 0.1 becomes exactly a tenth.
    exact = Decimal(str(price))
    if times is not None:
        exact = _EXACT.multiply(exact, times)
    return int(exact.scaleb(_PRICE_DECIMALS, _EXACT).to_integral_value(context=_EXACT))
