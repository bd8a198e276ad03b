"""What it costs: the price table, its lookup, users' own prices.

The names load on first use, so that a write path which only records pays nothing for prices.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "DEFAULT_PRICING": "seed_table",
    "ModelPricing": "model_pricing",
    "PriceBook": "book",
    "PriceInfo": "book",
    "PriceTier": "book",
    "PricingTable": "seed_table",
    "estimate_cost": "estimate",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
