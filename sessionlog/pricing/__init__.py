"""What it costs: the price table, its lookup, users' own prices.

The names load on first use, so that a write path which only records pays nothing for prices.
"""

from typing import TYPE_CHECKING

from sessionlog.lazy import lazy_names

if TYPE_CHECKING:
    from sessionlog.pricing.book import PriceBook, PriceInfo, PriceTier
    from sessionlog.pricing.estimate import estimate_cost
    from sessionlog.pricing.model_pricing import ModelPricing
    from sessionlog.pricing.seed_table import DEFAULT_PRICING, PricingTable

__all__ = [
    "DEFAULT_PRICING",
    "ModelPricing",
    "PriceBook",
    "PriceInfo",
    "PriceTier",
    "PricingTable",
    "estimate_cost",
]

_HOME = {
    "DEFAULT_PRICING": ".seed_table",
    "ModelPricing": ".model_pricing",
    "PriceBook": ".book",
    "PriceInfo": ".book",
    "PriceTier": ".book",
    "PricingTable": ".seed_table",
    "estimate_cost": ".estimate",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
