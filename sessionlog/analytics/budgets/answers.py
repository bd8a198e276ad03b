"""What a budget answers: how much is left, and whether something may be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What is left of a budget.

    Attributes:
        amount: US dollars, tokens or requests, never below 0; None if it is not known.
        reason: Why it is not known; empty if it is.
        unit: `usd`, `tokens` or `requests`.
    """

    amount: float | None
    reason: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The answer to `Budget.allows`; true if the call may be made.

    Attributes:
        allowed: Whether it may.
        reason: Why not; also why it may although something is unknown. Empty otherwise.
        reservation: The number of what was written down; None for nothing.
        give_back: Takes a reservation back.
    """

    allowed: bool
    reason: str = ""
    reservation: int | None = None
    give_back: Callable[[int], None] | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    def release(self) -> None:
        """Take the reservation back, for a call that is not made; what cannot be taken back ends by itself."""
        if self.give_back is not None and self.reservation is not None:
            self.give_back(self.reservation)
