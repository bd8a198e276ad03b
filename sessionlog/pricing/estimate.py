"""estimate_cost: the list price of one request's tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from sessionlog.events.money import usd
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.book import PriceBook

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def estimate_cost(
    model: str,
    input_tokens: int = 0,
    output_tokens: int = 0,
    *,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    provider: str | None = None,
    at: datetime | None = None,
    prices: PriceBook | None = None,
) -> float | None:
    """Estimate what one request costs in US dollars.

    Args:
        model: As the provider or a log names it.
        input_tokens: Prompt tokens that touched no cache.
        output_tokens: Generated tokens, reasoning included.
        cache_read_tokens: Prompt tokens served from a cache.
        cache_write_tokens: Prompt tokens written to a cache.
        provider: Who served it; without one the model's name must show who made it.
        at: When; a naive time is UTC, None is now.
        prices: Prices that include the user's own; None is the shipped list alone.

    Returns:
        US dollars, 0.0 for a model known to be free, None for an unknown price.
    """
    book = _shipped_book() if prices is None else prices
    usage = TokenUsage(
        input=input_tokens, output=output_tokens, cache_read=cache_read_tokens, cache_write=cache_write_tokens
    )
    nano = book.price(provider or "", model, usage, None if at is None else _nanoseconds(at))
    return None if nano is None else usd(nano)


@cache
def _shipped_book() -> PriceBook:
    return PriceBook.load()


def _nanoseconds(at: datetime) -> int:
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
