"""Rate limits that providers reported in logs, as of now.

How much a plan allows is never guessed: there are only the logged values, with their age, and no use once a limit has
reset.
"""

from __future__ import annotations

from sessionlog.events.names import UNKNOWN
from sessionlog.events.times import SECOND, format_time
from sessionlog.fast_dataclasses import dataclass
from sessionlog.ledger.reading import LoggedLimit, ReadBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MINUTE_NS = 60 * SECOND
_LAST_NS = 253_402_300_799 * SECOND  # the end of the year 9999: a log may name a later time, a calendar cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The last logged state of a rate limit, as of now.

    Attributes:
        source: The source of the log.
        limit: The logged values.
        now_ns: The present.
    """

    source: str
    limit: LoggedLimit
    now_ns: int

    @property
    def resets_ns(self) -> int | None:
        """When the limit resets: as logged, else at the end of its window; None if neither is logged."""
        if self.limit.resets_ns is not None:
            return self.limit.resets_ns
        if self.limit.window_minutes is None:
            return None
        return self.limit.time_ns + round(self.limit.window_minutes * _MINUTE_NS)

    @property
    def has_reset(self) -> bool:
        """Whether it has reset since, so that the logged use no longer holds."""
        return self.resets_ns is not None and self.resets_ns <= self.now_ns

    @property
    def used_percent(self) -> float | None:
        """The percentage used; None if it has reset since."""
        return None if self.has_reset else self.limit.used_percent

    @property
    def age_ms(self) -> int:
        """The age of the logged values."""
        return max(0, self.now_ns - self.limit.time_ns) // 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """The limit's object in `sessionlog.blocks/2`."""
        return {
            "source": self.source,
            "name": self.limit.name,
            "plan": self.limit.plan,
            "used_percent": self.used_percent,
            "said_percent": self.limit.used_percent,
            "said": time_text(self.limit.time_ns),
            "age_ms": self.age_ms,
            "window_minutes": self.limit.window_minutes,
            "resets": time_text(self.resets_ns),
            "has_reset": self.has_reset,
        }


def time_text(time_ns: int | None) -> str | None:
    """Return an instant as text, RFC 3339 UTC."""
    return None if time_ns is None else format_time(min(time_ns, _LAST_NS))


def fold_limits(book: ReadBook, now_ns: int) -> tuple[RateLimit, ...]:
    """Return the last state of every logged limit, sorted by source and length, those that have reset last.

    States later than the present are left out.
    """
    limits = [
        RateLimit(source=source or UNKNOWN, limit=limit, now_ns=now_ns)
        for (source, _), limit in book.limits.items()
        if limit.time_ns <= now_ns
    ]
    return tuple(sorted(limits, key=_order))


def _order(one: RateLimit) -> tuple[bool, str, float, str]:
    return one.has_reset, one.source, one.limit.window_minutes or 0, one.limit.name
