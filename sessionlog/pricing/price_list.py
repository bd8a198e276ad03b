"""PriceList: the shipped list of what vendors charge, as data.

`sessionlog/data/prices.json.gz` is read once, when the first price is looked up, and kept as plain dicts. A report
needs a handful of the two thousand models, so each provider's models have a line of their own, parsed on first use. The
first line is the head; the lines after it are of the providers in their order (prices are decimal texts in US dollars
per million tokens):

    {"source", "retrieved_at", "licence", "unit",
     "providers": {id: {"api", "provider_match"?, "model_match"?, "fallback"?}}}
    [{"id", "match", "periods": [{"from"?, "hours"?, "prices"}], "variants"?: [{"when", "from"?, "prices"}]}, …]

`match` is a clause (`lookup.Clause`), `prices` maps input, output, cache_read, cache_write, cache_write_1h, reasoning
and request (per thousand requests) to "1.25" or {"base": "1.25", "above": [[200000, "2.5"]]}. `{}` is free; `null`
means that the list knows no token price, for instance because it charges by the hour of audio.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from functools import cache

from sessionlog.errors import InvalidPrices
from sessionlog.hashes import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Listed = Mapping[str, Any]
    """A JSON object of the list: a provider, a model, a period or its prices."""

_GZIP = 31  # zlib's `wbits` for a gzip header and any window; the gzip module would cost an import


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The shipped list.

    Attributes:
        source: Package and version that the facts come from.
        date: ISO date of that version.
        digest: Hash of the whole content.
        providers: Provider id → its models and the clauses that recognise it, in the order in which they are tried.
    """

    source: str
    date: str
    digest: str
    providers: Mapping[str, Listed]


class _Provider(dict[str, "Any"]):
    """A provider's entry; its models, nine tenths of the list, are parsed on first use."""

    def __init__(self, entry: Mapping[str, Any], models: str) -> None:
        super().__init__(entry)
        self._models = models

    def __missing__(self, key: str) -> Any:
        if key != "models":
            raise KeyError(key)
        try:
            models = self["models"] = json.loads(self._models)
        except ValueError as error:
            raise InvalidPrices(f"the price list cannot be read: {error}") from error
        return models


def parse_price_list(content: bytes) -> PriceList:
    """Parse the content of a price list.

    Raises:
        InvalidPrices: It is not a price list, or a part of it is missing. Models raise it when they are first used.
    """
    try:
        head, *models = content.decode().split("\n")
        data = json.loads(head)
        providers = {
            name: _Provider(entry, line) for (name, entry), line in zip(data["providers"].items(), models, strict=True)
        }
        source, date = str(data["source"]), str(data["retrieved_at"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidPrices(f"the price list cannot be read: {error}") from error
    return PriceList(source=source, date=date, digest=blake2b(content, digest_size=32).hexdigest(), providers=providers)


@cache
def load_price_list() -> PriceList:
    """Return the shipped list, read at the first call."""
    loader: Any = __spec__.loader  # as pkgutil.get_data, from a zip too, without the imports of pkgutil
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "prices.json.gz")
    return parse_price_list(zlib.decompress(loader.get_data(path), _GZIP))


def thresholds(prices: Listed) -> Iterator[int]:
    """Yield the numbers of prompt tokens above which some price changes, ascending and distinct."""
    tiers = (tier for price in prices.values() if isinstance(price, dict) for tier in price["above"])
    yield from sorted({start for start, _ in tiers})


def price_at(prices: Listed, key: str, above: int) -> str | float | None:
    """Return the listed price of a class for requests with just more than `above` prompt tokens; None if not listed."""
    price: str | float | dict[str, Any] | None = prices.get(key)
    if not isinstance(price, dict):
        return price
    reached = [tier_price for start, tier_price in price["above"] if start <= above]
    chosen: str = reached[-1] if reached else price["base"]
    return chosen
