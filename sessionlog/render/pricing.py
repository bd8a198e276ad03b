"""How prices look: what applies to a model, where it comes from, and what to write to set one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sessionlog.analytics.price_report import PRICES
from sessionlog.pricing.book import PriceInfo
from sessionlog.pricing.model_pricing import ModelPricing
from sessionlog.render.escape import terminal
from sessionlog.render.numbers import price_text

_LABELS = dict(zip(PRICES, ("input", "output", "cache read", "cache write", "cache write, 1 h"), strict=True))


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
    for name, label in _LABELS.items():
        price = getattr(pricing, name)
        if price is not None:
            yield f"    {label:<18}{price_text(price):>10}"


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
