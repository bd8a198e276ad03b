"""Lay out a price: the rates of a model and their source, or how to configure a missing one."""

from __future__ import annotations

from sessionlog.analytics.price_report import PRICES
from sessionlog.render.escape import terminal
from sessionlog.render.numbers import price_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionlog.pricing.model_pricing import ModelPricing
    from sessionlog.pricing.price_info import PriceInfo

_LABELS = dict(zip(PRICES, ("input", "output", "cache read", "cache write", "cache write, 1 h"), strict=True))


def render_price(info: PriceInfo) -> str:
    """Return a model's price, in USD per million tokens."""
    lines = [terminal(_title(info)), f"  {terminal(info.source)}"]
    if info.valid_from:
        lines.append(f"  since {info.valid_from}")
    lines += ["", "  USD per million tokens", *_prices(info.pricing)]
    for tier in info.tiers:
        lines += ["", f"  above {tier.above_prompt_tokens:,} prompt tokens", *_prices(tier.pricing)]
    for kind in info.kinds:
        origin = [] if kind.source == info.source else [f"    {terminal(kind.source)}"]
        lines += ["", f"  {terminal(kind.name)}", *origin, *_prices(kind.pricing)]
    for extra in info.extras:
        usd = f"    {extra.name:<18}{price_text(extra.usd_per_thousand):>10}  a thousand"
        lines += ["", "  beside tokens", f"    {terminal(extra.source)}", usd]
    return "\n".join(lines) + "\n"


def _title(info: PriceInfo) -> str:
    """Return provider and model; the key of a configured price may name the provider already."""
    is_own = info.source == f"your price {info.model!r}"
    if is_own and info.model.lower().startswith(f"{info.provider.lower()}/"):
        return info.model
    return f"{info.provider}/{info.model}".strip("/")


def _prices(pricing: ModelPricing) -> Iterator[str]:
    for name, label in _LABELS.items():
        price = getattr(pricing, name)
        if price is not None:
            yield f"    {label:<18}{price_text(price):>10}"


def render_no_price(provider: str, model: str, config_path: str, *, is_alias: bool = False) -> str:
    """Return why there is no price and how to set one; `is_alias`: the user's alias names a model without one."""
    name = terminal(f"{provider}/{model}".strip("/"))
    unlisted = "it is not in the list, or its provider is your own model server"
    return (
        f"{name} has no price: {'it is your alias of a name that has no price' if is_alias else unlisted}.\n"
        f"In {terminal(config_path)}, give it the price of a listed model, as {_toml_key(provider, model)} ="
        ' "vendor/model" under [aliases],\n'
        "or set one (USD per million tokens; 0 means that it is free):\n\n"
        f"[prices.{_toml_key(provider, model)}]\ninput = 0\noutput = 0\n"
    )


def _toml_key(provider: str, model: str) -> str:
    """Return the quoted key: a JSON string is also a TOML string, and has no control characters."""
    import json

    return terminal(json.dumps(f"{provider}/{model}".strip("/"), ensure_ascii=False))
