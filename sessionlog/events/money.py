"""Money as integer nano-dollars; known and unknown are never mixed.

A recorded cost is converted once, at the edge, through the shortest decimal text of its float, so that 0.1 is exactly
100,000,000 nano-dollars and sums do not drift. Dollars as floats exist only in output.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NANO = 1_000_000_000
_MAX_USD = Decimal(10) ** 9
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN)  # the host program may have set another precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """A sum of costs of which some parts may be unknown.

    Adds associatively and commutatively; `Money()` is the empty element.

    Attributes:
        known_nano: Sum of the known parts in nano-dollars; None when no part is known.
        unknown: How many parts are unknown.
    """

    known_nano: int | None = None
    unknown: int = 0

    @classmethod
    def of(cls, nano: int | None) -> Money:
        """One part: known, or unknown when `nano` is None."""
        return cls(unknown=1) if nano is None else cls(known_nano=nano)

    def __add__(self, other: Money) -> Money:
        one, two = self.known_nano, other.known_nano
        known = one if two is None else two if one is None else one + two
        return Money(known_nano=known, unknown=self.unknown + other.unknown)


def usd(nano: int) -> float:
    """Return nano-dollars as a float of US dollars, correctly rounded."""
    return nano / NANO


def read_usd(value: Any) -> tuple[int | None, str | None]:
    """Read a recorded cost in US dollars into nano-dollars.

    Returns (None, None) for an absent cost and for a negative number, which means unknown in the logs of this family;
    (None, reason) for a value that is no amount at all.
    """
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None, f"cost is a {type(value).__name__}"
    try:
        amount = Decimal(float.__repr__(value) if isinstance(value, float) else value)
    except (InvalidOperation, ValueError):
        return None, f"cost {str(value)[:40]!r} is not an amount"
    if not amount.is_finite():
        return None, f"cost {str(value)[:40]!r} is not an amount"
    if amount < 0:
        return None, None
    if amount > _MAX_USD:
        return None, "cost is over a billion dollars"
    return int(_CONTEXT.multiply(amount, NANO).to_integral_value(context=_CONTEXT)), None
