"""How prices look: what applies to a model, where it comes from, and what to write to set one's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sessionlog.pricing.book import PriceInfo
from sessionlog.pricing.model_pricing import ModelPricing
from sessionlog.render.escape import terminal

SCHEMA = "sessionlog.pricing/1"
_LABELS = (
    ("input", "input_per_mtok"),
    ("output", "output_per_mtok"),
    ("cache read", "cache_read_per_mtok"),
    ("cache write", "cache_write_per_mtok"),
    ("cache write, 1 h", "cache_write_1h_per_mtok"),
)


def render_price(info: PriceInfo) -> str:
    """Return what a model costs, per million tokens."""
    lines = [terminal(_title(info)), f"  {terminal(info.source)}"]
    if info.valid_from:
        lines.append(f"  since {info.valid_from}")
    lines += ["", "  USD per million tokens", *_prices(info.pricing)]
    for tier in info.tiers:
        lines += ["", f"  above {tier.above_prompt_tokens:,} prompt tokens", *_prices(tier.pricing)]
    if info.variants:
        lines += ["", f"  other prices for: {terminal(', '.join(info.variants))}"]
    return "\n".join(lines) + "\n"


def _title(info: PriceInfo) -> str:
    """The provider and the model; the key of an own price may name the provider already."""
    is_own = info.source == f"your price {info.model!r}"
    if is_own and info.model.lower().startswith(f"{info.provider.lower()}/"):
        return info.model
    return f"{info.provider}/{info.model}".strip("/")


def _prices(pricing: ModelPricing) -> Iterator[str]:
    for label, name in _LABELS:
        price = getattr(pricing, name)
        if price is not None:
            yield f"    {label:<18}{_amount(price):>10}"


def _amount(price: float) -> str:
    text = f"{price:.6f}".rstrip("0")
    whole, _, fraction = text.partition(".")
    return f"${whole}.{fraction:0<2}"


def render_no_price(provider: str, model: str, config_path: str) -> str:
    """Return why there is no price and how to set one."""
    name = terminal(f"{provider}/{model}".strip("/"))
    return (
        f"{name} has no price: it is not in the list, or its provider is a model server of your own.\n"
        f"Set one in {terminal(config_path)} (USD per million tokens; 0 says that it is free):\n\n"
        f"[prices.{_toml_key(provider, model)}]\ninput = 0\noutput = 0\n"
    )


def _toml_key(provider: str, model: str) -> str:
    """The quoted key; a JSON string is a TOML string, and its escapes are the terminal's too."""
    return terminal(json.dumps(f"{provider}/{model}".strip("/"), ensure_ascii=False))


def render_price_list(prices: Iterable[PriceInfo]) -> Iterator[str]:
    """Yield one line per listed model."""
    yield f"{'PROVIDER':<20}  {'MODEL':<52}  {'INPUT':>9}  {'OUTPUT':>9}  {'CACHED':>9}\n"
    for info in prices:
        cached = info.pricing.cache_read_per_mtok
        yield (
            f"{terminal(info.provider):<20}  {terminal(info.model):<52}  {_amount(info.pricing.input_per_mtok):>9}  "
            f"{_amount(info.pricing.output_per_mtok):>9}  {_amount(cached) if cached is not None else '–':>9}\n"
        )


def price_document(info: PriceInfo | None) -> dict[str, Any]:
    """Return the JSON document `sessionlog.pricing/1` for one model; `price` is null when there is none."""
    return {"schema": SCHEMA, "price": None if info is None else price_object(info)}


def price_object(info: PriceInfo) -> dict[str, Any]:
    """Return one model's prices as JSON."""
    return {
        "provider": info.provider,
        "model": info.model,
        "source": info.source,
        "valid_from": info.valid_from,
        **_numbers(info.pricing),
        "tiers": [{"above_prompt_tokens": t.above_prompt_tokens, **_numbers(t.pricing)} for t in info.tiers],
        "variants": list(info.variants),
    }


def _numbers(pricing: ModelPricing) -> dict[str, float | None]:
    return {name: getattr(pricing, name) for _, name in _LABELS}
