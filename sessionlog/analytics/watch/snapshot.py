"""WatchSnapshot: what one look at the running sessions saw, as values and as the document `sessionlog.watch/1`.

The pace is of a window of whole steps that ends now, four and a half to five minutes: what was used in it by its
length, for every session the same, so that the paces of sessions add up to that of all that are running. Its sums are
those of the records in it, as `usage` of the same window says. What is not known is None and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessionlog.analytics.budgets.states import BudgetState
from sessionlog.analytics.limits import RateLimit
from sessionlog.events.money import usd
from sessionlog.events.times import SECOND, format_time
from sessionlog.sources.record import UNKNOWN

SCHEMA = "sessionlog.watch/1"
STEP_NS = 30 * SECOND
STEPS = 10
"""The window: so many steps, the last of them unfinished."""

_MINUTE_NS = 60 * SECOND
_LAST_NS = 253_402_300_799 * SECOND  # the end of the year 9999: a log may name a later time, a calendar cannot


def window_start(now_ns: int) -> int:
    """Return where the window begins that ends now."""
    return now_ns // STEP_NS * STEP_NS - (STEPS - 1) * STEP_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What was used in the window.

    Attributes:
        requests: LLM calls.
        failed: Those that failed.
        tokens: Of all classes.
        cost_nano: In nano-dollars; None if no part of it is known.
        estimated: A part of the cost is estimated.
        cost_is_partial: A part of it has no price.
        minutes: How long the window is.
        steps: Tokens of each step.
    """

    requests: int = 0
    failed: int = 0
    tokens: int = 0
    cost_nano: int | None = None
    estimated: bool = False
    cost_is_partial: bool = False
    minutes: float = 1.0
    steps: tuple[int, ...] = (0,) * STEPS

    @property
    def tokens_per_minute(self) -> float:
        """Tokens by minutes."""
        return self.tokens / self.minutes

    @property
    def cost_per_minute(self) -> float | None:
        """US dollars by minutes."""
        return None if self.cost_nano is None else usd(self.cost_nano) / self.minutes

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "requests": self.requests,
            "failed_requests": self.failed,
            "total_tokens": self.tokens,
            "cost_usd": _usd(self.cost_nano),
            "cost_is_partial": self.cost_is_partial,
            "minutes": self.minutes,
            "tokens_per_minute": self.tokens_per_minute,
            "cost_per_minute_usd": self.cost_per_minute,
            "tokens_by_step": list(self.steps),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A session that has not ended, and whose last event is younger than ten minutes, as the ledger sums it.

    Attributes:
        id: The ledger's number of it.
        source: The agent whose log it is.
        session: Its id.
        path: Its log.
        project: The folder it is about; `unknown` if the log does not say.
        start_ns: When it began; None if the log does not say.
        last_ns: When its last event was.
        turns: None if the logs of its source do not tell.
        requests: LLM calls so far.
        tokens: So far, of all classes.
        cost_nano: So far; None if no part of it is known.
        estimated: A part of the cost is estimated.
        cost_is_partial: A part of it has no price.
    """

    id: int = 0
    source: str
    session: str
    path: str
    project: str
    start_ns: int | None
    last_ns: int
    turns: int | None
    requests: int
    tokens: int
    cost_nano: int | None
    estimated: bool
    cost_is_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSession(Running):
    """A running session with what fills its context, and its pace.

    Attributes:
        model: Of its last request; empty before the first.
        context_tokens: What the main agent's last request sent; None before there was one that says.
        context_window: The model's window; None if it is not known.
        pace: What it used in the window.
    """

    model: str
    context_tokens: int | None
    context_window: int | None
    pace: Pace

    @property
    def context_percent(self) -> float | None:
        """How much of the window is filled."""
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
            "start": time_text(self.start_ns),
            "last": time_text(self.last_ns),
            "turns": self.turns,
            "requests": self.requests,
            "total_tokens": self.tokens,
            "cost_usd": _usd(self.cost_nano),
            "cost_is_partial": self.cost_is_partial,
            "context_tokens": self.context_tokens,
            "context_window": self.context_window,
            "context_percent": self.context_percent,
            "pace": self.pace.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """Something that happened in a session.

    Attributes:
        time_ns: When.
        source: The agent whose log it is.
        session: The session's id.
        kind: `start`, `response`, `tool` or `end`.
        name: The model of a response, the tool of a call, how a session ended; empty for a start.
        failed: The request or the call failed.
        finished: False for a tool call without a result yet.
        tokens: Of a response: (what was sent, what was generated).
        cost_nano: Of a response; None if it is not known.
        estimated: The cost is estimated.
        duration_ms: Of a response or a finished call; None if the log does not say.
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
            "time": time_text(self.time_ns),
            "source": self.source,
            "session": self.session,
            "kind": self.kind,
            "name": self.name,
            "failed": self.failed,
            "finished": self.finished,
            "prompt_tokens": sent,
            "output_tokens": generated,
            "cost_usd": _usd(self.cost_nano),
            "duration_ms": self.duration_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSnapshot:
    """All that one look saw.

    Attributes:
        now_ns: When it was, and where the window ends.
        sessions: Those that are running: busy ones first, then the newest.
        totals: What all sessions used in the window, ended ones too.
        budgets: The user's own.
        limits: What providers said of their windows that are not over.
        events: The last ones, newest first.
        notes: Sentences: what could not be done as it should be.
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
        """What the running sessions used in the window, without those that have ended: the sum of their rows."""
        whole = Pace(minutes=window_minutes(self.now_ns))
        for session in self.sessions:
            whole = add(whole, session.pace)
        return whole

    @property
    def start_ns(self) -> int:
        """Where the window begins."""
        return window_start(self.now_ns)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.watch/1`; a budget has the shape it has wherever one is shown."""
        return {
            "schema": SCHEMA,
            "now": time_text(self.now_ns),
            "window": {"start": time_text(self.start_ns), "end": time_text(self.now_ns)},
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
    """Return how long the window is that ends now."""
    return (now_ns - window_start(now_ns)) / _MINUTE_NS


def add(one: Pace, other: Pace) -> Pace:
    """Return what two paces of one window are together."""
    costs = [cost for cost in (one.cost_nano, other.cost_nano) if cost is not None]
    return Pace(
        requests=one.requests + other.requests,
        failed=one.failed + other.failed,
        tokens=one.tokens + other.tokens,
        cost_nano=sum(costs) if costs else None,
        estimated=one.estimated or other.estimated,
        cost_is_partial=one.cost_is_partial or other.cost_is_partial,
        minutes=max(one.minutes, other.minutes),
        steps=tuple(a + b for a, b in zip(one.steps, other.steps, strict=True)),
    )


def time_text(time_ns: int | None) -> str | None:
    """Return an instant as text, RFC 3339 UTC."""
    return None if time_ns is None else format_time(min(time_ns, _LAST_NS))


def _usd(nano: int | None) -> float | None:
    return None if nano is None else usd(nano)
