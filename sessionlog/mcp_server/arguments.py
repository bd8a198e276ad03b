"""Arguments: the arguments of each tool, sent to clients as input schemas. Unknown arguments are refused.

A model reads only these descriptions before it calls; the error for a wrong argument repeats its description.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sessionlog.analytics.conditions import KEYS

_MAX_LENGTH = 4096  # characters
_MAX_ROWS = 1000


def _words(value: Any) -> Any:
    """Split texts at commas: "a,b" and ["a", "b"] are the same list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return value
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


Words = Annotated[list[str], BeforeValidator(_words)]
Globs = Annotated[Words | None, Field(description="Only what fits one of these globs; null for all.")]
Limit = Annotated[int, Field(ge=1, le=_MAX_ROWS)]
Since = Annotated[
    str | None,
    Field(
        max_length=_MAX_LENGTH,
        description="7d, 24h, 2w, 1mo, today, last-week, 2026-11-21, or A..B; null for all time.",
    ),
]
Session = Annotated[
    str | None,
    Field(
        max_length=_MAX_LENGTH,
        description="A session id, the beginning or end of one, or the path of its log; null for the session with the "
        "newest event. Pass your own id or log path if you know it: another agent may have been the last to write.",
    ),
]


class Arguments(BaseModel):
    """The base of all arguments: frozen, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StatusArguments(Arguments):
    """Of `session_status`."""

    session: Session = None


class ContextArguments(Arguments):
    """Of `context`."""

    session: Session = None
    request: Annotated[int | None, Field(ge=1, description="Which request, from 1; null for the last.")] = None


class BudgetArguments(Arguments):
    """Of `budget`."""

    name: Annotated[str | None, Field(description="One budget by its name; null for all.")] = None


class UsageArguments(Arguments):
    """Of `usage`."""

    since: Since = "7d"
    until: Annotated[str | None, Field(description="The end of the time; a date includes that day.")] = None
    by: Annotated[
        Words,
        Field(description=f"Group by any of: {', '.join(KEYS)}, meta.KEY. Empty for totals alone."),
    ] = ["provider", "model"]
    provider: Globs = None
    model: Globs = None
    project: Globs = None
    status: Globs = None
    source: Globs = None
    sort: Annotated[str | None, Field(description="A column, largest first, or a group key; - turns it round.")] = None
    limit: Annotated[Limit, Field(description="At most so many rows; totals are over all.")] = 20


class FindArguments(Arguments):
    """Of `find`."""

    words: Annotated[
        str,
        Field(
            max_length=_MAX_LENGTH,
            description='Words that are all in one text; "a phrase" in quotes, -word for none with it, wor* for its '
            "beginning.",
        ),
    ] = ""
    part: Annotated[
        Literal["prompts", "answers", "tools", "paths"] | None,
        Field(description="prompts, answers (with reasoning), tools (calls and results) or paths; null for all."),
    ] = None
    since: Since = None
    project: Globs = None
    source: Globs = None
    session: Annotated[
        str | None, Field(max_length=_MAX_LENGTH, description="A session id, its beginning or end; null for all.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=50, description="At most so many, the newest.")] = 10


class SessionsArguments(Arguments):
    """Of `recent_sessions`."""

    limit: Annotated[Limit, Field(description="At most so many, the newest.")] = 10
    since: Since = None
    project: Globs = None
    source: Globs = None
    status: Globs = None
