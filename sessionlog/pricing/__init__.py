"""What it costs: the price table, its lookup, users' own prices.

The names load on first use, so that a write path which only records pays nothing for prices.
"""

from __future__ import annotations

from sessionlog.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.estimate import estimate_cost
    from sessionlog.pricing.model_pricing import ModelPricing
    from sessionlog.pricing.price_info import PriceInfo, PriceTier
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

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "pricing.book": "PriceBook",
        "pricing.estimate": "estimate_cost",
        "pricing.model_pricing": "ModelPricing",
        "pricing.price_info": "PriceInfo PriceTier",
        "pricing.seed_table": "DEFAULT_PRICING PricingTable",
    },
)
