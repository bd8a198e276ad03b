"""ModelPricing: what one model charges, in US dollars per million tokens.

A price is a finite number that is not negative; nothing else can be stored. A missing cache price means that such
tokens cost what plain input costs, because a list that does not name them bills them as input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from sessionlog.errors import InvalidPrices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_price(name: str, value: Any) -> None:
    """Raise InvalidPrices unless `value` is a price; the message begins with `name`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidPrices(f"{name} is {value!r}, but a price is a number of US dollars per million tokens")
    try:
        usable = math.isfinite(value) and value >= 0
    except OverflowError:
        usable = False
    if not usable:
        raise InvalidPrices(f"{name} is {value!r}, but a price is finite and not negative (0 means free)")


@dataclass(frozen=True, slots=True)
class ModelPricing:
    """Prices of one model in US dollars per million tokens.

    Attributes:
        input_per_mtok: Prompt tokens that touched no cache.
        output_per_mtok: Generated tokens, reasoning included.
        cache_read_per_mtok: Prompt tokens served from a cache; None charges them as input.
        cache_write_per_mtok: Prompt tokens written to a cache; None charges them as input.
        cache_write_1h_per_mtok: The part kept for an hour; None charges it as any other cache write.

    Raises:
        InvalidPrices: A price is negative, not finite, or not a number.
    """

    input_per_mtok: float
    output_per_mtok: float
    cache_read_per_mtok: float | None = None
    cache_write_per_mtok: float | None = None
    cache_write_1h_per_mtok: float | None = None

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if value is not None or name in ("input_per_mtok", "output_per_mtok"):
                check_price(name, value)
