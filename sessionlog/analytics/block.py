"""Block, ActiveBlock and BlockReport: the values of a report on blocks, exact and with the JSON names.

A rate is measured from the start of its block, once the first record is a minute old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from sessionlog.analytics.columns import Column, row_data
from sessionlog.analytics.limits import RateLimit
from sessionlog.analytics.report import Report, SummedRows, cost_footnotes
from sessionlog.analytics.usage_row import COST_COLUMNS
from sessionlog.events.money import usd
from sessionlog.events.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MINUTE_NS = 60 * SECOND
_HOUR_NS = 3600 * SECOND

COLUMNS = (
    Column("start", "time", "BLOCK", get=attrgetter("start_ns")),
    Column("end", "time", "END", 7, get=attrgetter("end_ns")),
    Column("first", "time", get=attrgetter("first_ns")),
    Column("last", "time", "LAST", 7, get=attrgetter("last_ns")),
    Column("is_active", "flag", "ACTIVE", 1),
    Column("sessions", "count", "SESSIONS", 6),
    Column("requests", "count", "REQUESTS", 5),
    Column("failed_requests", "count", "FAILED", 10, label="failed"),
    Column("models", "texts", "MODEL", 1, label="model", least=12, style="secondary"),
    Column("input_tokens", "count", "INPUT", 4, label="input"),
    Column("output_tokens", "count", "OUTPUT", 2, label="output"),
    Column("cache_read_tokens", "count", "CACHED", 3, label="cached"),
    Column("cache_write_tokens", "count", "WRITTEN", 8, label="cache writes"),
    Column("reasoning_tokens", "count", "REASONING", 9, label="reasoning", shown=lambda b: b.reasoning_tokens or None),
    Column("total_tokens", "count", "TOKENS", label="tokens"),
    *COST_COLUMNS,
    Column("cost_is_partial", "flag"),
)
"""The columns of a block, in the order of JSON and CSV."""

TABLE = (
    "start", "end", "is_active", "last", "sessions", "requests", "failed_requests", "input_tokens",
    "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd",
    "models",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(SummedRows):
    """The sums of the records in one block.

    Attributes:
        start_ns: The full hour (UTC) in which it begins.
        end_ns: Its start plus the length of a block; exclusive.
        first_ns: The time of its first record.
        last_ns: The time of its last record.
        is_active: Whether the present lies in it.
        sessions: Distinct sessions with a record in it.
        models: Its models, the one with the most output first.
    """

    start_ns: int
    end_ns: int
    first_ns: int
    last_ns: int
    is_active: bool
    sessions: int
    models: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The block's object in the JSON document."""
        return row_data(COLUMNS, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveBlock:
    """The block in which the present lies, with its rates and projections.

    Attributes:
        block: The usage so far.
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
        """Time since the block began; None while the first record is less than a minute old: rates would jump."""
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
        """Tokens at the block's end at this rate."""
        elapsed, whole = self.elapsed_ns, self.block.end_ns - self.block.start_ns
        return None if elapsed is None else self.block.total_tokens * whole // elapsed

    @property
    def projected_cost_usd(self) -> float | None:
        """Cost at the block's end at this rate, in US dollars."""
        rate = self.cost_usd_per_hour
        return None if rate is None else rate * ((self.block.end_ns - self.block.start_ns) / _HOUR_NS)

    def _per(self, amount: float, unit_ns: int) -> float | None:
        elapsed = self.elapsed_ns
        return None if elapsed is None else amount / (elapsed / unit_ns)

    def to_dict(self) -> dict[str, Any]:
        """The block's object in the JSON document, with its rates."""
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
class BlockReport(Report):
    """Blocks, newest first; `Report` documents the other fields.

    Attributes:
        hours: The length of a block.
        sources: The sources whose records the blocks count.
        rows: Blocks with a record in the window, each whole.
        totals: Tokens and cost of all of them.
        active: The block in which the present lies.
        limits: The last reports of rate limits.
        untimed_requests: Requests without a time, which are in no block.
        found_blocks: The number of blocks before `only_active` and `limit`.
    """

    schema = "sessionlog.blocks/2"
    title = "Blocks"
    thing = "block"
    total_row = False
    columns = COLUMNS
    table = TABLE

    hours: int
    sources: tuple[str, ...] = ()
    rows: tuple[Block, ...] = ()
    totals: SummedRows = field(default_factory=SummedRows)
    active: ActiveBlock | None = None
    limits: tuple[RateLimit, ...] = ()
    untimed_requests: int = 0
    found_blocks: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is no block, and no rate limit to show."""
        return not self.found_blocks and not self.limits

    @property
    def extra(self) -> Mapping[str, Any]:
        """Sources, the active block with its rates, rate limits, and untimed requests."""
        return {
            "hours": self.hours,
            "sources": list(self.sources),
            "active": None if self.active is None else self.active.to_dict(),
            "limits": [limit.to_dict() for limit in self.limits],
            "untimed_requests": self.untimed_requests,
        }

    def footnotes(self) -> Iterator[str]:
        """Yield the meaning of cost marks, and the number of requests in no block."""
        yield from cost_footnotes(self.priced_from, self.rows)
        if self.untimed_requests:
            have = "request has" if self.untimed_requests == 1 else "requests have"
            yield f"{self.untimed_requests:,} {have} no time and so no block"
