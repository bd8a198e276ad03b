"""What a record cost: what its log says, else what the price list of its date gives, else unknown."""

from __future__ import annotations

from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import Record


def cost_of(record: Record, prices: PriceBook) -> tuple[int | None, int | None]:
    """Return (recorded, estimated) nano-dollars; at most one of them is known."""
    recorded = record.cost_nano
    if recorded or not record.priced:
        return recorded, None
    estimate = _estimate(record, prices)
    if recorded == 0 and not estimate:  # a recorded 0 is free only where there is no list price
        return 0, None
    return None, estimate


def _estimate(record: Record, prices: PriceBook) -> int | None:
    """The list price of the model that answered, else of the one asked for; tiers are for single requests.

    An answer that names no tokens has used some: its price is unknown, not 0.
    """
    if record.requests and not record.failed and not record.usage:
        return None
    single = record.granularity == "request" and record.requests == 1
    for model in (record.response_model, record.model):
        if model is None:
            continue
        price = prices.price(
            record.provider,
            model,
            record.usage,
            record.time_ns,
            service_tier=record.service_tier or None,
            speed=record.speed or None,
            single=single,
        )
        if price is not None:
            return price
    return None
