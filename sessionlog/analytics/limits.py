"""Limits: what providers said about rate limits, seen from the present.

How much a plan allows is never guessed: there is only what a log says, with its age, and nothing once its time is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessionlog.events.times import SECOND, format_time
from sessionlog.ledger.reading import ReadBook
from sessionlog.sources.record import UNKNOWN, Limit

_MINUTE_NS = 60 * SECOND
_LAST_NS = 253_402_300_799 * SECOND  # the end of the year 9999: a log may name a later time, a calendar cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The last word that a log has on a rate limit, seen from the present.

    Attributes:
        source: Whose log it is in.
        limit: What was said.
        now_ns: The present.
    """

    source: str
    limit: Limit
    now_ns: int

    @property
    def resets_ns(self) -> int | None:
        """When the limit starts anew: as said, else when its window must be over; None when neither is told."""
        if self.limit.resets_ns is not None:
            return self.limit.resets_ns
        if self.limit.window_minutes is None:
            return None
        return self.limit.time_ns + round(self.limit.window_minutes * _MINUTE_NS)

    @property
    def has_reset(self) -> bool:
        """It has started anew since, so that what was said of its use holds no more."""
        return self.resets_ns is not None and self.resets_ns <= self.now_ns

    @property
    def used_percent(self) -> float | None:
        """How much of it is used; None when it has started anew since."""
        return None if self.has_reset else self.limit.used_percent

    @property
    def age_ms(self) -> int:
        """How old the word is."""
        return max(0, self.now_ns - self.limit.time_ns) // 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """The limit's object in `sessionlog.blocks/2`."""
        return {
            "source": self.source,
            "name": self.limit.name,
            "plan": self.limit.plan,
            "used_percent": self.used_percent,
            "said_percent": self.limit.used_percent,
            "said": _time(self.limit.time_ns),
            "age_ms": self.age_ms,
            "window_minutes": self.limit.window_minutes,
            "resets": _time(self.resets_ns),
            "has_reset": self.has_reset,
        }


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_time(min(time_ns, _LAST_NS))


def fold_limits(book: ReadBook, now_ns: int) -> tuple[RateLimit, ...]:
    """Return the last word on every limit that the logs speak of, by source and by length; what is over comes last.

    A word that is later than the present is left out.
    """
    words = [
        RateLimit(source=source or UNKNOWN, limit=limit, now_ns=now_ns)
        for (source, _), limit in book.limits.items()
        if limit.time_ns <= now_ns
    ]
    return tuple(sorted(words, key=_order))


def _order(word: RateLimit) -> tuple[bool, str, float, str]:
    return word.has_reset, word.source, word.limit.window_minutes or 0, word.limit.name
