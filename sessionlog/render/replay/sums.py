"""The sums of a session: tokens and money, what was recorded apart from what was estimated.

Known money is never hidden because another part is unknown, and unknown is never 0.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Cost

_NOTHING = TokenUsage()


class Sums(Struct, frozen=True, kw_only=True):
    """Adds; `Sums()` is the empty element.

    Attributes:
        usage: Tokens in disjoint classes.
        logged: The same as the log has them, to be compared with what it reports as totals.
        recorded: Nano-dollars that the log names; None when it names none.
        estimated: Nano-dollars of a price table; None when nothing was estimated.
        unpriced: How many parts are neither.
    """

    usage: TokenUsage = _NOTHING
    logged: TokenUsage = _NOTHING
    recorded: int | None = None
    estimated: int | None = None
    unpriced: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            usage=self.usage + other.usage,
            logged=self.logged + other.logged,
            recorded=_plus(self.recorded, other.recorded),
            estimated=_plus(self.estimated, other.estimated),
            unpriced=self.unpriced + other.unpriced,
        )

    @property
    def cost(self) -> Cost | None:
        """All that is known, None where nothing is."""
        nano = _plus(self.recorded, self.estimated)
        if nano is None:
            return None
        return Cost(nano=nano, estimated=bool(self.estimated) or self.recorded is None, partial=self.unpriced > 0)

    def closed(self, rest: Sums, nano: int | None) -> Sums:
        """These responses with what an end reports beyond them: the `rest` of their tokens, and the cost of all.

        A cost covers the responses that name none; it is never less than what the others name. One of 0 says the same
        as no cost where there is a list price.
        """
        whole = self + rest
        if nano:
            return replace(whole, recorded=max(nano, self.recorded or 0), estimated=None, unpriced=0)
        return whole if nano is None else replace(whole, recorded=whole.recorded or 0, unpriced=0)


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
