"""Write the shipped price list from an installed genai-prices: `python .ci/make_prices.py`.

A maintainers' tool, no part of the package. The same version of genai-prices always gives the same content. That
package carries no date, so a new version needs `--date`, the day of its release; for the version already shipped the
file's own date is kept. Only facts are copied: ids, the clauses that recognise names, prices, their dates and hours.
Prices that are not per token of text or per request are left out.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from sessionlog.errors import InvalidPrices, MissingExtra
from sessionlog.pricing.price_list import load_price_list

_TOKEN_PRICES = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_reasoning_mtok": "reasoning",
    "requests_kcount": "request",
}
# Prices of what no token counter of a log counts: other media, tools, hours, pages.
_OTHER_UNITS = ("audio", "image", "video", "document", "searches", "hours", "mchars", "messages", "citation")
# Kinds of request that logs record. A route or a search type is not among them.
_CONTEXT_KEYS = frozenset({"processing", "service_tier", "speed"})
# Words of a description by which a model without any price is free, and not merely of unknown price.
_FREE_WORDS = ("free of charge", "included in the subscription")
_SHIPPED = Path(__file__).parents[1] / "sessionlog" / "data" / "prices.json.gz"
_LICENCE = "MIT, Copyright (c) Pydantic Services Inc. 2025 to present; see NOTICE"


def build_list(released: str | None = None) -> bytes:
    """Build the list's content from the installed genai-prices (see `sessionlog.pricing.price_list`).

    Args:
        released: ISO date of the package's release; None keeps the shipped list's date if it is of the same version.

    Raises:
        MissingExtra: genai-prices is not installed.
        InvalidPrices: There is no date for a new version, or the package has prices that this tool does not know.
    """
    source, providers = read_package("the price list is made from")
    head = {
        "source": source,
        "retrieved_at": released or _known_date(source),
        "licence": _LICENCE,
        "unit": "USD per million tokens; request: USD per thousand requests",
        "providers": {provider.id: _provider(provider) for provider in providers},
    }
    models = [[_model(model) for model in provider.models] for provider in providers]
    return b"\n".join(map(orjson.dumps, [head, *models]))


def compress(content: bytes) -> bytes:
    """Compress reproducibly: no time and no name in the header."""
    return gzip.compress(content, 9, mtime=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(prog="python .ci/make_prices.py", description=__doc__)
    return write_shipped(parser, _SHIPPED, lambda released: compress(build_list(released)), arguments)


def read_package(what: str) -> tuple[str, Sequence[Any]]:
    """Return name and version of the installed genai-prices, and its providers.

    Raises:
        MissingExtra: It is not installed; the message begins with `what`.
    """
    try:
        providers: Sequence[Any] = import_module("genai_prices.data").providers
    except ImportError as error:
        raise MissingExtra(f"{what} genai-prices; pip install 'sessionlog[test]'") from error
    return f"genai-prices {version('genai-prices')}", providers


def write_shipped(
    parser: argparse.ArgumentParser,
    shipped: Path,
    build: Callable[[str | None], bytes],
    arguments: Sequence[str] | None,
) -> int:
    """Write what `build` returns for a release date to the file that the arguments name, by default the shipped one."""
    parser.add_argument("--output", type=Path, default=shipped, help="the file to write (default: the shipped one)")
    parser.add_argument("--date", type=_iso_date, help="release date of genai-prices, YYYY-MM-DD")
    options = parser.parse_args(arguments)
    try:
        content = build(options.date)
    except (InvalidPrices, MissingExtra) as error:
        parser.error(str(error))
    options.output.write_bytes(content)
    return 0


def _iso_date(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def _known_date(source: str) -> str:
    try:
        shipped = load_price_list()
    except (OSError, ValueError, zlib.error):
        shipped = None
    if shipped is None or shipped.source != source:
        raise InvalidPrices(f"{source} is not the shipped version; give the day of its release with --date YYYY-MM-DD")
    return shipped.date


def _provider(provider: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"api": provider.api_pattern}
    for key in ("provider_match", "model_match"):
        if getattr(provider, key) is not None:
            entry[key] = _clause(getattr(provider, key))
    if provider.fallback_model_providers:
        entry["fallback"] = list(provider.fallback_model_providers)
    return entry


def _model(model: Any) -> dict[str, Any]:
    free = model.id.endswith(":free") or any(
        word in f"{model.description} {model.price_comments}".lower() for word in _FREE_WORDS
    )
    history = model.prices if isinstance(model.prices, list) else [None]
    periods = [
        {**_constraint(getattr(period, "constraint", None)), "prices": _period_prices(model, period, free=free)}
        for period in history
    ]
    variants = [
        {"when": dict(variant.when), **_constraint(variant.constraint), "prices": prices}
        for variant in model.price_variants or ()
        if variant.when.keys() <= _CONTEXT_KEYS and (prices := _prices(model.id, variant.prices))
    ]
    entry: dict[str, Any] = {"id": model.id, "match": _clause(model.match), "periods": periods}
    return {**entry, "variants": variants} if variants else entry


def _period_prices(model: Any, period: Any, *, free: bool) -> dict[str, Any] | None:
    listed = model.prices if period is None else period.prices
    prices = _prices(model.id, listed)
    if prices:
        return prices
    # Unknown is never 0: an hour of audio costs money although its tokens are not listed.
    priced_otherwise = any(price is not None for price in vars(listed).values())
    return {} if free and not priced_otherwise else None


def _prices(model: str, listed: Any) -> dict[str, Any]:
    prices = {}
    for key, price in vars(listed).items():
        if price is None:
            continue
        if key in _TOKEN_PRICES:
            prices[_TOKEN_PRICES[key]] = _price(price)
        elif not any(unit in key for unit in _OTHER_UNITS):
            raise InvalidPrices(f"{model} has a price {key!r}; decide in {__file__} whether tokens of text pay it")
    return dict(sorted(prices.items()))


def _price(price: Any) -> str | dict[str, Any]:
    if hasattr(price, "tiers"):
        return {"base": _text(price.base), "above": [[tier.start, _text(tier.price)] for tier in price.tiers]}
    return _text(price)


def _text(price: Any) -> str:
    text = format(price, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _constraint(constraint: Any) -> dict[str, Any]:
    if constraint is None:
        return {}
    if hasattr(constraint, "start_date"):
        return {"from": constraint.start_date.isoformat()}
    hours = (constraint.start_time, constraint.end_time)
    if any(hour.tzinfo not in (None, UTC) for hour in hours):
        raise InvalidPrices(f"hours of {constraint} are not UTC")
    return {"hours": [hour.replace(tzinfo=None).isoformat(timespec="seconds") for hour in hours]}


def _clause(clause: Any) -> Mapping[str, Any]:
    [(name, value)] = vars(clause).items()
    kind = name.rstrip("_")
    if kind in ("or", "and"):
        return {kind: [_clause(part) for part in value]}
    return {kind: value if kind == "regex" else value.lower()}


if __name__ == "__main__":
    sys.exit(main())
