"""PriceList: the shipped list of what vendors charge, as data.

`sessionlog/data/prices.json.gz` is read once, when the first price is looked up, and kept as plain dicts: a report
needs a handful of the two thousand models. Its shape (prices are decimal texts in US dollars per million tokens):

    {"source", "retrieved_at", "licence", "unit",
     "providers": {id: {"api", "provider_match"?, "model_match"?, "fallback"?, "models": [
        {"id", "match", "periods": [{"from"?, "hours"?, "prices"}], "variants"?: [{"when", "from"?, "prices"}]}]}}}

`match` is a clause (`lookup.Clause`), `prices` maps input, output, cache_read, cache_write, cache_write_1h, reasoning
and request (per thousand requests) to "1.25" or {"base": "1.25", "above": [[200000, "2.5"]]}. `{}` is free; `null`
means that the list knows no token price, for instance because it charges by the hour of audio.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any

from msgspec import DecodeError, Raw, Struct, json

from sessionlog.errors import InvalidPrices
from sessionlog.hashes import blake2b

_GZIP = 31  # zlib's `wbits` for a gzip header and any window; the gzip module would cost an import

Listed = Mapping[str, Any]
"""A JSON object of the list: a provider, a model, a period or its prices."""


class PriceList(Struct, frozen=True, kw_only=True):
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


class _Provider(dict[str, Any]):
    """A provider's entry; its models, nine tenths of the list, are parsed on first use."""

    def __init__(self, entry: Mapping[str, Raw]) -> None:
        super().__init__({key: json.decode(value) for key, value in entry.items() if key != "models"})
        self._models = entry["models"]

    def __missing__(self, key: str) -> Any:
        if key != "models":
            raise KeyError(key)
        models = self["models"] = json.decode(self._models)
        return models


class _Content(Struct):
    source: str
    retrieved_at: str
    providers: dict[str, dict[str, Raw]]


def parse_price_list(content: bytes) -> PriceList:
    """Parse the JSON of a price list.

    Raises:
        InvalidPrices: It is not a price list, or a part of it is missing.
    """
    try:
        data = json.decode(content, type=_Content)
        providers = {name: _Provider(entry) for name, entry in data.providers.items()}
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidPrices(f"the price list cannot be read: {error}") from error
    except KeyError as error:
        raise InvalidPrices(f"the price list cannot be read: a provider has no {error.args[0]}") from error
    return PriceList(
        source=data.source,
        date=data.retrieved_at,
        digest=blake2b(content, digest_size=32).hexdigest(),
        providers=providers,
    )


@cache
def load_price_list() -> PriceList:
    """Return the shipped list, read at the first call."""
    return parse_price_list(zlib.decompress(get_data("sessionlog", "data/prices.json.gz") or b"", _GZIP))
