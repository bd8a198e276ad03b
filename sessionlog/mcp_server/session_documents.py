"""Session documents: the shapes of what is told of one session, its status and its context (see `documents`)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from sessionlog.mcp_server.documents import BudgetEntry, Number, Problems, Text, Usd


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
