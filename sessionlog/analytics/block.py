"""Block, ActiveBlock and BlockReport: what a report on blocks says, in exact numbers and with the JSON names.

A pace is measured from the start of its block, and not before its first record is a minute old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessionlog.analytics.limits import LimitWord
from sessionlog.analytics.log_report import LogReport
from sessionlog.analytics.usage_columns import Sums
from sessionlog.errors import problems_dict
from sessionlog.events.money import usd
from sessionlog.events.times import SECOND, format_time

SCHEMA = "sessionlog.blocks/1"
_MINUTE_NS = 60 * SECOND
_HOUR_NS = 3600 * SECOND

_TIMES = ("start", "end", "first", "last")
COLUMNS = (
    *_TIMES, "is_active", "sessions", "requests", "failed_requests", "models", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens", "known_cost_usd",
    "estimated_cost_usd", "cost_usd", "cost_is_partial",
)  # fmt: skip
"""What JSON and CSV say of a block, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Sums):
    """The records of one stretch of hours.

    Attributes:
        start_ns: The full hour (UTC) in which it began.
        end_ns: Its start and the length of blocks; outside of it.
        first_ns: Its first record.
        last_ns: Its last record.
        is_active: The present lies in it.
        sessions: Distinct sessions with a record in it.
        requests: LLM calls.
        failed_requests: Those that failed.
        models: Its models, the one with the most output first.
        input_tokens: Tokens that touched no cache.
        output_tokens: Generated tokens, reasoning included.
        cache_read_tokens: Tokens served from a cache.
        cache_write_tokens: Tokens written to a cache.
        reasoning_tokens: The part of the output that was reasoning.
        known_nano: Recorded cost in nano-dollars, None when none is recorded.
        estimated_nano: Cost by the price table for the rest, None when there is none.
        cost_is_partial: A part has neither.
    """

    start_ns: int
    end_ns: int
    first_ns: int
    last_ns: int
    is_active: bool
    sessions: int
    requests: int
    failed_requests: int
    models: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    known_nano: int | None
    estimated_nano: int | None
    cost_is_partial: bool

    def to_dict(self) -> dict[str, Any]:
        """The block's object in `sessionlog.blocks/1`."""
        times = {name: format_time(getattr(self, f"{name}_ns")) for name in _TIMES}
        return times | {name: getattr(self, name) for name in COLUMNS[len(_TIMES) :]} | {"models": list(self.models)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveBlock:
    """The block in which the present lies: how fast it is used, and where that leads.

    Attributes:
        block: What was used so far.
        now_ns: The present.
    """

    block: Block
    now_ns: int

    @property
    def left_ms(self) -> int:
        """Time until the block ends."""
        return (self.block.end_ns - self.now_ns) // 1_000_000

    @property
    def elapsed_ns(self) -> int | None:
        """Time since the block began; None while its first record is less than a minute old, for a pace would jump."""
        measured = self.now_ns - self.block.first_ns >= _MINUTE_NS
        return self.now_ns - self.block.start_ns if measured else None

    @property
    def tokens_per_minute(self) -> float | None:
        """Tokens of all classes per minute."""
        return self._per(self.block.total_tokens, _MINUTE_NS)

    @property
    def uncached_tokens_per_minute(self) -> float | None:
        """Input that touched no cache, and output, per minute."""
        return self._per(self.block.input_tokens + self.block.output_tokens, _MINUTE_NS)

    @property
    def cost_usd_per_hour(self) -> float | None:
        """Recorded and estimated cost per hour, in US dollars."""
        cost = self.block.cost_nano
        return None if cost is None else self._per(usd(cost), _HOUR_NS)

    @property
    def projected_tokens(self) -> int | None:
        """Tokens at the block's end if it goes on at this pace."""
        elapsed, whole = self.elapsed_ns, self.block.end_ns - self.block.start_ns
        return None if elapsed is None else self.block.total_tokens * whole // elapsed

    @property
    def projected_cost_usd(self) -> float | None:
        """Cost at the block's end if it goes on at this pace, in US dollars."""
        rate = self.cost_usd_per_hour
        return None if rate is None else rate * ((self.block.end_ns - self.block.start_ns) / _HOUR_NS)

    def _per(self, amount: float, unit_ns: int) -> float | None:
        elapsed = self.elapsed_ns
        return None if elapsed is None else amount / (elapsed / unit_ns)

    def to_dict(self) -> dict[str, Any]:
        """The block's object, and its pace beside it."""
        return {
            **self.block.to_dict(),
            "left_ms": self.left_ms,
            "tokens_per_minute": self.tokens_per_minute,
            "uncached_tokens_per_minute": self.uncached_tokens_per_minute,
            "cost_usd_per_hour": self.cost_usd_per_hour,
            "projected_tokens": self.projected_tokens,
            "projected_cost_usd": self.projected_cost_usd,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport(LogReport):
    """Blocks, newest first.

    Attributes:
        hours: The length of a block.
        sources: Whose records are in the blocks, or would be if there were any.
        blocks: Those with a record in the window, each whole.
        active: The one in which the present lies.
        limits: What providers said about rate limits.
        untimed_requests: Requests without a time, which are in no block.
        archived_sessions: Sessions here that are only remembered: their logs are gone.
        found_blocks: How many there are before anything is left out.
        hidden_blocks: The older ones that a limit left out.
        priced_from: Which prices the estimates come from.
    """

    hours: int
    sources: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    active: ActiveBlock | None = None
    limits: tuple[LimitWord, ...] = ()
    untimed_requests: int = 0
    archived_sessions: int = 0
    found_blocks: int = 0
    hidden_blocks: int = 0
    priced_from: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.blocks/1`."""
        return {
            "schema": SCHEMA,
            "window": self.window_dict,
            "hours": self.hours,
            "sources": list(self.sources),
            "blocks": [block.to_dict() for block in self.blocks],
            "active": None if self.active is None else self.active.to_dict(),
            "limits": [word.to_dict() for word in self.limits],
            "untimed_requests": self.untimed_requests,
            "hidden_blocks": self.hidden_blocks,
            "problems": problems_dict(self.problem_count, self.problems),
        }
