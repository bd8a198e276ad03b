"""PricingTable: a plain table of exact model ids, and the default one that fizeau, the Go original, has.

Ids match exactly, upper and lower case included. Unknown is -1.0 and free is 0.0; the two are never mixed up. For
dates, tiers, providers and spelling variants use `PriceBook`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pkgutil import get_data
from types import MappingProxyType

import orjson

from sessionlog.pricing.model_pricing import ModelPricing

UNKNOWN_COST = -1.0


class PricingTable(Mapping[str, ModelPricing]):
    """An immutable table from model id to prices.

    Attributes:
        source: Where the prices come from, one sentence; empty if unknown.
        date: The ISO date on which they were right, as precise as is known; empty if unknown.
    """

    __slots__ = ("_prices", "date", "source")

    def __init__(self, prices: Mapping[str, ModelPricing], *, source: str = "", date: str = "") -> None:
        self._prices = MappingProxyType(dict(prices))
        self.source = source
        self.date = date

    def __getitem__(self, model: str) -> ModelPricing:
        return self._prices[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._prices)

    def __len__(self) -> int:
        return len(self._prices)

    def __repr__(self) -> str:
        return f"PricingTable({len(self)} models, source={self.source!r}, date={self.date!r})"

    def to_own(self) -> dict[str, dict[str, float]]:
        """Return the table in the form of a user's own prices, as `PriceBook.load` takes them."""
        return {
            model: {
                field.name.removesuffix("_per_mtok"): value
                for field in fields(price)
                if (value := getattr(price, field.name)) is not None
            }
            for model, price in self.items()
        }

    def estimate_cost(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> float:
        """Estimate the cost of token counts in US dollars.

        `input_tokens` excludes what a cache served or stored. Where a cache price is None, cache tokens cost the input
        price, reads and writes alike.

        Returns:
            US dollars; 0.0 for a model known to be free, -1.0 for a model that the table does not have.
        """
        pricing = self._prices.get(model)
        if pricing is None:
            return UNKNOWN_COST
        plain = pricing.input_per_mtok
        read = plain if pricing.cache_read_per_mtok is None else pricing.cache_read_per_mtok
        write = plain if pricing.cache_write_per_mtok is None else pricing.cache_write_per_mtok
        return (
            input_tokens / 1e6 * plain
            + output_tokens / 1e6 * pricing.output_per_mtok
            + cache_read_tokens / 1e6 * read
            + cache_write_tokens / 1e6 * write
        )


def _read_default_pricing() -> PricingTable:
    data = orjson.loads(get_data("sessionlog", "data/seed_prices.json") or b"")
    models = {model: ModelPricing(**prices) for model, prices in data["models"].items()}
    return PricingTable(models, source=data["source"], date=data["date"])


DEFAULT_PRICING = _read_default_pricing()
"""The nine rows of fizeau's default table, with their source and date."""
