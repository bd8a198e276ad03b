"""WatchSnapshot: the running sessions at one time, as values and as the document `sessionlog.watch/1`.

A pace is the usage in a window of whole steps that ends now, four and a half to five minutes long, divided by its
length. The window is the same for every session, so the paces of sessions add up to the total. Its sums are those of a
`usage` report for the same window. An unknown value is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.analytics.limits import RateLimit, stamp
from sessionlog.analytics.report import SummedRows, add_up, values_of
from sessionlog.analytics.sums import usd
from sessionlog.events.names import UNKNOWN
from sessionlog.events.times import SECOND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.budgets.states import BudgetState

SCHEMA = "sessionlog.watch/1"
STEP_NS = 30 * SECOND
STEPS = 10
"""The number of steps in the window; the last one is incomplete."""

_MINUTE_NS = 60 * SECOND


def window_start(now_ns: int) -> int:
    """Return the start of the window that ends now."""
    return now_ns // STEP_NS * STEP_NS - (STEPS - 1) * STEP_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(SummedRows):
    """The usage in the window; `SummedRows` documents the sums.

    Attributes:
        minutes: The length of the window.
        steps: Tokens of each step.
    """

    minutes: float = 1.0
    steps: tuple[int, ...] = (0,) * STEPS

    @property
    def tokens_per_minute(self) -> float:
        """Tokens per minute."""
        return self.total_tokens / self.minutes

    @property
    def cost_per_minute(self) -> float | None:
        """US dollars per minute."""
        return None if self.cost_usd is None else self.cost_usd / self.minutes

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "requests": self.requests,
            "failed_requests": self.failed_requests,
            "total_tokens": self.total_tokens,
            "cost_usd": self.cost_usd,
            "cost_is_partial": self.cost_is_partial,
            "minutes": self.minutes,
            "tokens_per_minute": self.tokens_per_minute,
            "cost_per_minute_usd": self.cost_per_minute,
            "tokens_by_step": list(self.steps),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(SummedRows):
    """The ledger's sums of a session without an end whose last event is younger than ten minutes.

    `SummedRows` documents the sums, which are those of all its time.

    Attributes:
        id: Its number in the ledger.
        source: The source of its log.
        session: Its id.
        path: Its log.
        project: Its folder; `unknown` if the log has none.
        start_ns: The time of its start; None if the log has none.
        last_ns: The time of its last event.
        turns: The number of turns; None if the logs of its source do not show them.
    """

    id: int = 0
    source: str
    session: str
    path: str
    project: str
    start_ns: int | None
    last_ns: int
    turns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSession(Running):
    """A running session with the fill of its context, and its pace.

    Attributes:
        model: The model of its last request; empty before the first.
        context_tokens: Prompt tokens of the main agent's last request; None before the first one with tokens.
        context_window: The model's context window; None if unknown.
        pace: Its usage in the window.
    """

    model: str
    context_tokens: int | None
    context_window: int | None
    pace: Pace

    @property
    def context_percent(self) -> float | None:
        """The percentage of the context window that is filled."""
        if self.context_tokens is None or not self.context_window:
            return None
        return self.context_tokens / self.context_window * 100

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "source": self.source,
            "session": self.session,
            "path": self.path,
            "project": self.project,
            "model": self.model or UNKNOWN,
            "start": stamp(self.start_ns),
            "last": stamp(self.last_ns),
            "turns": self.turns,
            "requests": self.requests,
            "total_tokens": self.total_tokens,
            "cost_usd": self.cost_usd,
            "cost_is_partial": self.cost_is_partial,
            "context_tokens": self.context_tokens,
            "context_window": self.context_window,
            "context_percent": self.context_percent,
            "pace": self.pace.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """An event of a session.

    Attributes:
        time_ns: Its time.
        source: The source of the log.
        session: The session's id.
        kind: `start`, `response`, `tool` or `end`.
        name: The model of a response, the tool of a call, the status of an end; empty for a start.
        failed: Whether the request, call or session failed.
        finished: False for a tool call without a result yet.
        tokens: Of a response: (prompt tokens, output tokens).
        cost_nano: Of a response; None if unknown.
        estimated: Whether the cost is estimated.
        duration_ms: Of a response or a finished call; None if the log has none.
    """

    time_ns: int
    source: str
    session: str
    kind: str
    name: str = ""
    failed: bool = False
    finished: bool = True
    tokens: tuple[int, int] | None = None
    cost_nano: int | None = None
    estimated: bool = False
    duration_ms: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        sent, generated = self.tokens or (None, None)
        return {
            "time": stamp(self.time_ns),
            "source": self.source,
            "session": self.session,
            "kind": self.kind,
            "name": self.name,
            "failed": self.failed,
            "finished": self.finished,
            "prompt_tokens": sent,
            "output_tokens": generated,
            "cost_usd": usd(self.cost_nano),
            "duration_ms": self.duration_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSnapshot:
    """The state of all running sessions at one time.

    Attributes:
        now_ns: The time, which is the end of the window.
        sessions: The running sessions: active in the window first, then the newest.
        totals: The usage of all sessions in the window, ended ones too.
        budgets: The user's own budgets.
        limits: The rate limits that have not reset since.
        events: The last events, newest first.
        notes: Sentences on what could not be read or used.
    """

    now_ns: int
    sessions: tuple[RunningSession, ...] = ()
    totals: Pace = Pace()
    budgets: tuple[BudgetState, ...] = ()
    limits: tuple[RateLimit, ...] = ()
    events: tuple[WatchEvent, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def pace(self) -> Pace:
        """The usage of the running sessions in the window, the sum of their rows; ended ones are not in it."""
        return add(Pace(minutes=window_minutes(self.now_ns)), *(session.pace for session in self.sessions))

    @property
    def start_ns(self) -> int:
        """The start of the window."""
        return window_start(self.now_ns)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.watch/1`."""
        return {
            "schema": SCHEMA,
            "now": stamp(self.now_ns),
            "window": {"start": stamp(self.start_ns), "end": stamp(self.now_ns)},
            "step_seconds": STEP_NS // SECOND,
            "sessions": [session.to_dict() for session in self.sessions],
            "totals": {"running_sessions": len(self.sessions), **self.totals.to_dict()},
            "running": self.pace.to_dict(),
            "budgets": {budget.name: budget.to_dict() for budget in self.budgets},
            "limits": [limit.to_dict() for limit in self.limits],
            "events": [event.to_dict() for event in self.events],
            "notes": list(self.notes),
        }


def window_minutes(now_ns: int) -> float:
    """Return the length of the window that ends now, in minutes."""
    return (now_ns - window_start(now_ns)) / _MINUTE_NS


def add(*paces: Pace) -> Pace:
    """Return the sum of paces of one window."""
    return Pace(
        **values_of(add_up(SummedRows, paces)),
        minutes=max(one.minutes for one in paces),
        steps=tuple(map(sum, zip(*(one.steps for one in paces), strict=True))),
    )
