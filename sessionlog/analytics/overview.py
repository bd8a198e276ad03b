"""Overview: the usage of a period from every side, all read from one book in one go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from sessionlog.analytics.block import BlockReport
from sessionlog.analytics.blocks import fold_blocks
from sessionlog.analytics.question import Question, answer
from sessionlog.analytics.report import Report
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sessions import SessionList, fold_sessions
from sessionlog.analytics.tool_row import ToolReport
from sessionlog.analytics.tools import FILTERS as TOOL_FILTERS
from sessionlog.analytics.tools import CallSelection, fold_tools
from sessionlog.analytics.usage import fold_usage, with_trend
from sessionlog.analytics.usage_row import UsageReport
from sessionlog.analytics.window import present_time
from sessionlog.ledger.book import Book

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from sessionlog.analytics.question import Options, Paths

DEFAULT_SINCE = "30d"
_YEAR = timedelta(weeks=53)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Reports on one period; all but `year` have the same selection.

    Attributes:
        usage: By provider and model, with the comparison to the previous period.
        days: By day.
        days_by_model: By day and model.
        projects: By project.
        sources: By agent.
        sessions: The costliest first, as many as asked for.
        tools: Tool calls by server and tool; None where a filter chooses models, which calls do not have.
        blocks: Five-hour blocks, with the rate limits of the logs.
        year: By day, the 53 weeks up to now.
    """

    usage: UsageReport
    days: UsageReport
    days_by_model: UsageReport
    projects: UsageReport
    sources: UsageReport
    sessions: SessionList
    tools: ToolReport | None
    blocks: BlockReport
    year: UsageReport

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of the period."""
        found = (self.usage, self.days, self.projects, self.sources, self.sessions, self.tools, self.blocks)
        return tuple(report for report in found if report is not None)


def overview(paths: Paths = None, *, most_sessions: int = 20, **options: Unpack[Options]) -> Overview:
    """Report the usage of a period, the last 30 days by default.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None.
        most_sessions: How many sessions to list.
        options: See `Question`; without `by`, `sort` and `limit`.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A filter or source is unknown.
    """
    question = Question(paths=paths, **options)
    if question.window is None and question.since is None and question.until is None:
        question = replace(question, window=DEFAULT_SINCE)
    return answer(question, lambda book: fold_overview(book, question, most_sessions=most_sessions))


def fold_overview(book: Book, question: Question, *, most_sessions: int) -> Overview:
    """Query a book for an overview."""

    def usage(*by: str) -> UsageReport:
        return fold_usage(book, replace(question, by=by).selection(Selection))

    plain = replace(question, by=None)
    whole = plain.selection(Selection, ("provider", "model"))
    since = (present_time(question.now) - _YEAR).date().isoformat()
    past_year = replace(question, window=f"{since}..", since=None, until=None, by=("day",)).selection(Selection)
    sessions = fold_sessions(book, plain.selection(Selection))
    costliest = sorted(sessions.rows, key=lambda one: (-(one.cost_nano or 0), -one.total_tokens))
    has_calls = not set(question.filters or ()) - set(TOOL_FILTERS)
    return Overview(
        usage=with_trend(book, whole, fold_usage(book, whole)),
        days=usage("day"),
        days_by_model=usage("day", "model"),
        projects=usage("project"),
        sources=usage("source"),
        sessions=replace(sessions, rows=tuple(costliest)).limited(most_sessions),
        tools=fold_tools(book, plain.selection(CallSelection, ("server", "tool"))) if has_calls else None,
        blocks=fold_blocks(book, plain.selection(Selection)),
        year=fold_usage(book, past_year),
    )
