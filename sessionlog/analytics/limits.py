"""Rate limits that providers reported in logs, as of a moment: the one function that reads them, for every command.

How much a plan allows is never guessed: there are only the logged values, with their age, and no use once a limit has
reset. The module imports little, because a status line uses it, too.
"""

from __future__ import annotations

from sessionlog.analytics.conditions import within_64_bits
from sessionlog.analytics.sums import Row, read_rows
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.schema import ELSEWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.conditions import Query

_MINUTE_NS = 60 * 1_000_000_000
_LAST_NS = 253_402_300_799 * 1_000_000_000  # the end of the year 9999: a log may name a later time, a calendar cannot

_LIMIT = {
    **{name: name for name in ("source", "name", "time_ns", "window_minutes", "resets_ns", "plan")},
    "logged_percent": "used_percent",
}
_LIMITS = f"""FROM limits
WHERE file_id NOT IN (SELECT id FROM files WHERE missing = {ELSEWHERE})
  AND (:source IS NULL OR source = :source) AND time_ns <= :now_ns
ORDER BY time_ns, COALESCE(resets_ns, 0), used_percent, rowid
"""  # noqa: S608 - a number
"""The last row of a limit is its latest report: of those of the same moment the one that resets later, then the one
with more use."""


class RateLimit:
    """The last logged state of a rate limit, as of now; not to be changed.

    Attributes:
        source: The source of the log.
        name: The limit's name.
        time_ns: When it was logged.
        logged_percent: The percentage used then.
        window_minutes: The length of its window; None if it is not logged.
        resets_ns: When it resets; None if it is not logged.
        plan: The user's plan; empty if it is not logged.
        now_ns: The present.
    """

    __slots__ = ("logged_percent", "name", "now_ns", "plan", "resets_ns", "source", "time_ns", "window_minutes")

    def __init__(
        self,
        source: str,
        name: str,
        time_ns: int,
        logged_percent: float,
        window_minutes: float | None = None,
        resets_ns: int | None = None,
        plan: str = "",
        *,
        now_ns: int,
    ) -> None:
        self.source = source or UNKNOWN
        self.name = name
        self.time_ns = time_ns
        self.logged_percent = logged_percent
        self.window_minutes = window_minutes
        self.resets_ns = resets_ns
        self.plan = plan
        self.now_ns = now_ns

    def at(self, now_ns: int) -> RateLimit:
        """Return the same report as of another moment."""
        return RateLimit(
            self.source, self.name, self.time_ns, self.logged_percent, self.window_minutes, self.resets_ns, self.plan,
            now_ns=now_ns,
        )  # fmt: skip

    @property
    def over_ns(self) -> int | None:
        """When its window is over: as logged, else a window's length after the report, when it has ended at the latest.

        None if neither is logged.
        """
        if self.resets_ns is not None or self.window_minutes is None:
            return self.resets_ns
        return self.time_ns + round(self.window_minutes * _MINUTE_NS)

    @property
    def has_reset(self) -> bool:
        """Whether its window is over, so that the logged use no longer holds."""
        return self.over_ns is not None and self.over_ns <= self.now_ns

    @property
    def used_percent(self) -> float | None:
        """The percentage used; None if it has reset since."""
        return None if self.has_reset else self.logged_percent

    @property
    def age_ms(self) -> int:
        """The age of the logged values."""
        return (self.now_ns - self.time_ns) // 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """The limit's object in `sessionlog.blocks/2`."""
        return {
            "source": self.source,
            "name": self.name,
            "plan": self.plan,
            "used_percent": self.used_percent,
            "said_percent": self.logged_percent,
            "said": stamp(self.time_ns),
            "age_ms": self.age_ms,
            "window_minutes": self.window_minutes,
            "resets": stamp(self.resets_ns),
            "has_reset": self.has_reset,
        }


def rate_limits(query: Query, now_ns: int, source: str | None = None) -> tuple[RateLimit, ...]:
    """Return the last state of every logged limit, sorted by source and length, those that have reset last.

    Args:
        query: Runs a statement.
        now_ns: The present; what was logged later does not count.
        source: Id of the source whose logs count; None for all sources.
    """
    found = read_rows(query, Row, _LIMIT, _LIMITS, {"source": source, "now_ns": within_64_bits(now_ns)})
    latest = {(row.source, row.name): row for row in found}
    return tuple(sorted((RateLimit(**vars(row), now_ns=now_ns) for row in latest.values()), key=_order))


def _order(one: RateLimit) -> tuple[bool, str, float, str]:
    return one.has_reset, one.source, one.window_minutes or 0, one.name


def stamp(time_ns: int | None) -> str | None:
    """Return an instant as `events.times.format_time` does, whose import takes 8 ms; at most the calendar's end."""
    if time_ns is None:
        return None
    from time import gmtime

    seconds, rest = divmod(min(time_ns, _LAST_NS), 1_000_000_000)
    at = gmtime(seconds)
    day = f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}"
    return f"{day}T{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{rest // 1000:06}Z"
