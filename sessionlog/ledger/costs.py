"""What a response cost: what its log says, else what the price list of its date gives, else unknown."""

from __future__ import annotations

from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.lean import Row
from sessionlog.pricing.book import PriceBook


def cost_of(
    prices: PriceBook, label: Row, usage: TokenUsage, time_ns: int | None, recorded: int | None, requests: int,
    *, failed: bool, priced: bool,
) -> tuple[int | None, int | None]:  # fmt: skip
    """Return (recorded, estimated) nano-dollars; at most one of them is known.

    Args:
        prices: The price list, and the user's own.
        label: The response's names, in the order of `schema.LABEL`.
        usage: Its tokens.
        time_ns: When it was made.
        recorded: What the log says.
        requests: How many requests it stands for.
        failed: It is no answer.
        priced: False if it used nothing yet.
    """
    if recorded or not priced:
        return recorded, None
    estimate = None
    # An answer that names no tokens has used some: its price is unknown, not 0.
    if not requests or failed or usage:
        estimate = _estimate(prices, label, usage, time_ns, single=requests == 1)
    if recorded == 0 and not estimate:  # a recorded 0 is free only where there is no list price
        return 0, None
    return None, estimate


def _estimate(prices: PriceBook, label: Row, usage: TokenUsage, time_ns: int | None, *, single: bool) -> int | None:
    """The list price of the model that answered, else of the one asked for; tiers are for single requests."""
    provider, model, response_model, _, _, _, _, granularity, _, speed, tier = label
    single = single and granularity == "request"
    price = None
    if response_model != "unknown":
        price = prices.price(
            provider, response_model, usage, time_ns, service_tier=tier or None, speed=speed or None, single=single
        )
    if price is None and model != response_model:
        price = prices.price(
            provider, model, usage, time_ns, service_tier=tier or None, speed=speed or None, single=single
        )
    return price
