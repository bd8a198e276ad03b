"""Documents: the shapes of the results, which are the commands' `--json`, told to clients as output schemas.

Every field of a document is named that a client may rely on; more may come, for formats only grow. What may be null is
null where it is not known, never 0. Nothing is converted: the document that a function returned is sent as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

Number = float | None
Text = str | None
Usd = Annotated[float | None, Field(description="US dollars; null if unknown, which is not 0")]


class Span(TypedDict):
    """A half-open time [start, end), UTC; null is open."""

    start: Text
    end: Text


class Problems(TypedDict):
    """Damage found in the logs, and the first of it."""

    count: int
    first: list[str]


class Sums(TypedDict):
    """What was used. Token classes do not overlap: total = input + cache_read + cache_write + output."""

    requests: int
    failed_requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    total_tokens: int
    known_cost_usd: Usd
    estimated_cost_usd: Usd
    cost_usd: Usd


class UsageSums(Sums):
    """What a group used; it also has the keys that it is grouped by."""

    sessions: int
    success_sessions: int
    failed_sessions: int
    unfinished_sessions: int
    duration_ms: int
    latency_p50_ms: Number
    latency_p95_ms: Number
    latency_p99_ms: Number
    unknown_cost_sessions: int
    unpriced_requests: int
    cache_hit_rate: Number
    success_rate: Number
    cost_per_success: Usd
    input_tokens_per_second: Number
    output_tokens_per_second: Number
    generation_tokens_per_second: Number


class Report(TypedDict):
    """What every report has. `provenance` counts requests by how well they are known."""

    schema: str
    window: Span | None
    group_by: list[str]
    provenance: dict[str, int] | None
    hidden_rows: int
    archived_sessions: int
    problems: Problems


class UsageDocument(Report):
    """`sessionlog.usage/1`."""

    rows: list[UsageSums]
    totals: UsageSums


class SessionRow(Sums):
    """One session; its numbers are those of its requests in the window."""

    source: str
    session: str
    path: str
    start: Text
    last: Text
    status: str
    project: str
    harness: str
    route: str
    models: list[str]
    duration_ms: int
    prompt: str
    error: str
    cost_is_partial: bool
    counted: bool
    archived: bool
    parent: str


class SessionsDocument(Report):
    """`sessionlog.sessions/2`, newest first."""

    rows: list[SessionRow]
    totals: Sums


class BudgetEntry(TypedDict):
    """One budget; `unit` is usd, tokens, requests, or percent for what a provider said of its own window."""

    used: Number
    limit: Number
    percent: Number
    unit: str
    windowSeconds: Number
    resetsAt: Text
    source: str


class BudgetRow(TypedDict):
    """A budget of the user's own; `unknown` says why not all of its use may be known."""

    name: str
    used: Number
    limit: float
    percent: Number
    unit: str
    window_seconds: Number
    resets_at: Text
    source: str
    reserved: float
    level: Literal["ok", "warn", "exceeded"]
    burn_per_hour: float
    runs_out_at: Text
    unpriced_requests: int
    session: Text
    unknown: list[str]


class BudgetDocument(Report):
    """`sessionlog.budget/2`: budgets, and the names of those at or near their end."""

    exceeded: list[str]
    warned: list[str]
    rows: list[BudgetRow]
    totals: None


class StatusSession(TypedDict):
    """Which session it is."""

    id: str
    source: str
    path: str
    status: str
    project: Text
    model: Text
    task: Text
    start: Text
    last: Text
    archived: bool


class Used(TypedDict):
    """Sums over requests, in disjoint classes."""

    requests: int
    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    totalTokens: int
    cost: Usd


class UsedInSession(Used):
    """The same of a whole session; turns are null where the log does not tell them."""

    turns: int | None


class StatusUsage(TypedDict):
    """What was used, and the budgets by name."""

    session: UsedInSession | None
    lastTurn: Used | None
    today: Used | None
    budgets: dict[str, BudgetEntry | None]


class StatusContext(TypedDict):
    """What the last request sent, against the model's window."""

    used: int
    window: int | None
    percent: Number
    model: str


class StatusDocument(TypedDict):
    """`sessionlog.status/1`; `unavailable` gives the reason of each null."""

    schema: str
    session: StatusSession | None
    usage: StatusUsage
    context: StatusContext | None
    typical: dict[str, Any] | None
    problems: Problems
    unavailable: dict[str, str]


class Part(TypedDict):
    """A share of the window."""

    kind: str
    name: str
    tokens: int
    count: int


class Repeat(Part):
    """What is in the window several times; `spare_tokens` would be saved with one copy."""

    spare_tokens: int


class Growth(TypedDict):
    """How large the prompt was at a request."""

    request: int
    tokens: int
    reported: bool


class ContextDocument(TypedDict):
    """`sessionlog.context/1`; the parts sum to `total_tokens`."""

    schema: str
    source: str
    session: str
    path: str
    request: int
    requests: int
    session_requests: int | None
    answered: bool
    time: Text
    model: Text
    provider: Text
    window_tokens: int | None
    window_share: Number
    total_tokens: int
    reported_tokens: int | None
    estimated_tokens: int
    cached_tokens: int | None
    cached_share: Number
    log_holds_prompt: bool
    parts: list[Part]
    largest: list[Part]
    repeats: list[Repeat]
    growth: list[Growth]
    compactions: list[int]
    problem_count: int
