"""PriceReport: the prices of models per million tokens, and their sources."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from operator import attrgetter

from sessionlog.analytics.columns import Column
from sessionlog.analytics.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sessionlog.pricing.model_pricing import ModelPricing
    from sessionlog.pricing.price_info import PriceInfo

PRICES = ("input_per_mtok", "output_per_mtok", "cache_read_per_mtok", "cache_write_per_mtok", "cache_write_1h_per_mtok")
"""The prices of a model, in US dollars per million tokens."""


def _price(name: str, title: str | None = None) -> Column:
    return Column(name, "price", title, get=attrgetter(f"pricing.{name}"))


def _numbers(pricing: ModelPricing) -> dict[str, float | None]:
    return {name: getattr(pricing, name) for name in PRICES}


def _tiers(info: PriceInfo) -> list[dict[str, Any]]:
    return [{"above_prompt_tokens": tier.above_prompt_tokens, **_numbers(tier.pricing)} for tier in info.tiers]


def _kinds(info: PriceInfo) -> list[dict[str, Any]]:
    return [{"name": kind.name, "source": kind.source, **_numbers(kind.pricing)} for kind in info.kinds]


def _extras(info: PriceInfo) -> list[dict[str, Any]]:
    return [asdict(extra) for extra in info.extras]


COLUMNS = (
    Column("provider", "text", "PROVIDER", least=12),
    Column("model", "text", "MODEL", least=20),
    Column("source", "text"),
    Column("valid_from", "text"),
    _price("input_per_mtok", "INPUT"),
    _price("output_per_mtok", "OUTPUT"),
    _price("cache_read_per_mtok", "CACHED"),
    _price("cache_write_per_mtok", "WRITTEN"),
    _price("cache_write_1h_per_mtok"),
    Column("tiers", "objects", get=_tiers),
    Column("variants", "texts"),
    Column("kinds", "objects", get=_kinds),
    Column("extras", "objects", get=_extras),
)
"""The columns of a model, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceReport(Report):
    """The prices of models at one time."""

    schema = "sessionlog.pricing/2"
    title = "Prices"
    thing = "model"
    is_timed = False
    total_row = False
    columns = COLUMNS

    rows: tuple[PriceInfo, ...] = ()

    @property
    def extra(self) -> Mapping[str, Any]:
        """The price list and its date."""
        return {"priced_from": self.priced_from}

    def footnotes(self) -> Iterator[str]:
        """Yield the unit and the price list."""
        yield f"US dollars per million tokens, below all tiers · {self.priced_from}"
