"""Documents: the types of the results, which are the commands' `--json`, sent to clients as output schemas.

They name every field that a client may rely on; later versions only add fields. An unknown value is null, never 0.
These types only describe: the server sends the document that a function returned unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from sessionlog.analytics.budgets.report import BudgetReport
from sessionlog.analytics.report import Report, SummedRows
from sessionlog.analytics.sessions import SessionList
from sessionlog.analytics.usage_row import UsageReport

Number = float | None
Text = str | None
Usd = Annotated[float | None, Field(description="US dollars; null if unknown, which is not 0")]


class Span(TypedDict):
    """A half-open time [start, end), UTC; null is open."""

    start: Text
    end: Text


class Problems(TypedDict):
    """Damage found in the logs: how often, and the first findings."""

    count: int
    first: list[str]


_TYPES: Mapping[str, Any] = {
    "count": int, "bytes": Number, "usd": Usd, "whole_usd": Usd, "list_usd": Usd, "before_usd": Usd, "price": Usd,
    "amount": Number, "percent": Number, "ms": Number, "seconds": Number, "days": int | None, "ratio": Number,
    "share": Number, "rate": Number, "text": Text, "texts": list[str], "sentences": list[str],
    "objects": list[dict[str, Any]], "time": Text, "second": Text, "day": Text, "flag": bool,
}  # fmt: skip
"""Unit of a column → what its values are in JSON."""


def _report(kind: type[Report], description: str, totals: Iterable[str] | None = None, **more: Any) -> Any:
    """Return the type of a report's document, from its columns.

    Args:
        kind: The report.
        description: Of the document, in its schema.
        totals: The columns that have totals; None for all, empty for none.
        more: Fields that only this document has.
    """
    made: Any = TypedDict
    row = made(f"{kind.__name__}Row", {column.name: _TYPES[column.unit] for column in kind.columns})
    names = {column.name for column in kind.columns} if totals is None else set(totals)
    sums = made(f"{kind.__name__}Totals", {c.name: _TYPES[c.unit] for c in kind.columns if c.name in names})
    shape = made(f"{kind.__name__}Document", {
        "schema": str, "window": Span | None, "group_by": list[str], **more, "rows": GenericAlias(list, row),
        "totals": sums if names else None, "provenance": dict[str, int] | None, "hidden_rows": int,
        "archived_sessions": int, "problems": Problems,
    })  # fmt: skip
    shape.__doc__ = f"`{kind.schema}`: {description}"
    return shape


UsageDocument = _report(
    UsageReport,
    "usage by group; rows also have the keys they are grouped by. Token classes do not overlap: total = input + "
    "cache_read + cache_write + output",
)
SessionsDocument = _report(
    SessionList, "newest first; numbers are those of requests in the window",
    [column.name for column in SessionList.columns if hasattr(SummedRows(), column.name)],
)  # fmt: skip
BudgetDocument = _report(
    BudgetReport, "the user's own budgets, and the names of those that are exceeded or nearly used up", [],
    exceeded=list[str], warned=list[str],
)  # fmt: skip


class BudgetEntry(TypedDict):
    """One budget; `unit` is usd, tokens, requests, or percent for a rate limit as its provider reports it."""

    used: Number
    limit: Number
    percent: Number
    unit: str
    windowSeconds: Number
    resetsAt: Text
    source: str


class StatusSession(TypedDict):
    """The session that was found."""

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
    """The same for a whole session; `turns` is null where the log does not show them."""

    turns: int | None


class StatusUsage(TypedDict):
    """Usage of the session, its last turn and today, and the budgets by name."""

    session: UsedInSession | None
    lastTurn: Used | None
    today: Used | None
    budgets: dict[str, BudgetEntry | None]


class StatusContext(TypedDict):
    """The size of the last request and of the model's context window, in tokens."""

    used: int
    window: int | None
    percent: Number
    model: str


class StatusDocument(TypedDict):
    """`sessionlog.status/1`; `unavailable` gives the reason for each null."""

    schema: str
    session: StatusSession | None
    usage: StatusUsage
    context: StatusContext | None
    typical: dict[str, Any] | None
    problems: Problems
    unavailable: dict[str, str]


class Part(TypedDict):
    """A part of the context window."""

    kind: str
    name: str
    tokens: int
    count: int


class Repeat(Part):
    """Something that is in the window several times; with one copy it would take `spare_tokens` less."""

    spare_tokens: int


class Growth(TypedDict):
    """The size of one request's prompt."""

    request: int
    tokens: int
    reported: bool


class FoundText(TypedDict):
    """A text that matches; `marks` are the [start, end) of what was found in `text`."""

    session: str
    source: str
    project: str
    prompt: str
    time: Text
    turn: int
    kind: str
    tool: str
    path: str
    where: str
    text: str
    marks: list[list[int]]
    replay: Text


class FindDocument(TypedDict):
    """`sessionlog.find/1`, with the part of each text around what was found."""

    schema: str
    total: int
    total_is_exact: bool
    hits: list[FoundText]
    notes: list[str]


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
