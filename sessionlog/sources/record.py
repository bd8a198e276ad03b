"""Record and ScannedSession: what a scan keeps of a log, lean enough to hold years of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sessionlog.errors import Problem
from sessionlog.events.tokens import TokenUsage

Granularity = Literal["request", "session"]
Quality = Literal["exact", "partial", "estimated"]

UNKNOWN = "unknown"
"""Every missing group key, never null."""

LONGEST_NAME = 400
"""Nobody's model is called longer; a hostile name must not fill tables and spreadsheets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One LLM response, or what a session used beyond them.

    Attributes:
        time_ns: When it was answered; None when the log has no times at all.
        provider: Who served it.
        model: The model asked for.
        response_model: The model that answered, as it names itself.
        usage: Tokens in disjoint classes.
        cost_nano: The recorded cost in nano-dollars; None when the log names none.
        latency_ms: Time of the LLM call.
        requests: 1, or 0 for a remainder that is no request of its own.
        failed: The call failed.
        active_ms: The session's active time since the record before.
        granularity: `session` when the log holds only the session's totals.
        quality: Whether the numbers are known to be exact.
        priced: False for a session that has used nothing yet: its cost is neither known nor unknown.
    """

    time_ns: int | None
    provider: str
    model: str
    response_model: str | None
    usage: TokenUsage
    cost_nano: int | None
    latency_ms: float | None = None
    requests: int = 1
    failed: bool = False
    active_ms: int = 0
    granularity: Granularity = "request"
    quality: Quality = "exact"
    priced: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """The damage of a log.

    Attributes:
        count: All findings.
        first: The first of them by name; at least one when there are any.
    """

    count: int = 0
    first: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedSession:
    """One session's log, read for reports.

    Attributes:
        source: Id of the source, e.g. `native`.
        session_id: The session's id within the source.
        path: The file it was read from.
        start_ns: Its start; None when the log has no times.
        last_ns: Its last event.
        status: What session.end says; None without an end.
        project: Absolute work_dir as logged, else `unknown`.
        harness: Which agent program ran it.
        route: Which route was chosen for it.
        duration_ms: What session.end says; None when it says nothing usable.
        prompt: The first words of the user, cut.
        error: Why it failed, one line, cut.
        metadata: Values to group and filter by.
        counted: Whether it counts in usage; a rejected pin or an empty start is only listed.
        records: Its records in file order.
        problems: What was wrong with the file.
    """

    source: str
    session_id: str
    path: str
    start_ns: int | None
    last_ns: int | None
    status: str | None = None
    project: str = UNKNOWN
    harness: str = UNKNOWN
    route: str = UNKNOWN
    duration_ms: int | None = None
    prompt: str = ""
    error: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    counted: bool = True
    records: tuple[Record, ...] = ()
    problems: Problems = Problems()


def read_name(value: Any) -> str | None:
    """Return a logged name, cut; None for what is no name."""
    return value[:LONGEST_NAME] if isinstance(value, str) and value else None
