"""Usage: requests, tokens and cost by group keys, computed in SQL on the book (see `usage_sums`)."""

from __future__ import annotations

from dataclasses import replace

from sessionlog.analytics.conditions import TIME_KEYS
from sessionlog.analytics.question import Question, answer_sorted
from sessionlog.analytics.report import findings_of
from sessionlog.analytics.row_order import by_cost
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sums import TOTAL_TOKENS
from sessionlog.analytics.usage_row import UsageReport, UsageRow
from sessionlog.analytics.usage_sums import archived_sessions, fill_shares, provenance, sums_of
from sessionlog.ledger.book import Book
from sessionlog.ledger.quarter_hours import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from sessionlog.analytics.question import Options, Paths

DEFAULT_BY = ("provider", "model")


def aggregate_usage(paths: Paths = None, **options: Unpack[Options]) -> UsageReport:
    """Report the usage recorded in logs.

    Args:
        paths: Files or folders; native sessions and the logs of every agent when None. Missing paths are ignored.
        options: See `Question`; group keys are those of `conditions.KEYS` and `meta.KEY`.

    Raises:
        InvalidWindow: The window is outside the grammar.
        InvalidQuery: A group key, filter, source or sort column is unknown, or both `since` and `window` are given.
    """
    question = Question(paths=paths, **options)
    selection = question.selection(Selection, DEFAULT_BY)
    return answer_sorted(
        question,
        UsageReport(group_by=selection.by),
        lambda book: with_trend(book, selection, fold_usage(book, selection)),
        cuts=_cuts(question, selection),
        with_calls=False,
    )


def _cuts(question: Question, selection: Selection) -> set[int]:
    """The instants at which the windows of a report begin or end, which only an engine needs to know."""
    if question.engine is None or selection.window is None:
        return set()
    from sessionlog.analytics.trend import cuts_of

    return cuts_of(selection)


def fold_usage(book: Book, selection: Selection) -> UsageReport:
    """Query a book for a report, with rows in their default order: time keys oldest first, then highest cost."""
    selection.prepare(book)
    _, where, parameters = selection.sums()
    tables, bounds = selection.parts()
    fill_shares(book.query, keys=selection.keys(), tables=tables, bounds=bounds, where=where, parameters=parameters)
    rows, [totals] = sums_of(book.query, UsageRow, selection.by), sums_of(book.query, UsageRow)
    unpriced, without_usage = _without_cost(book, selection) if totals.unknown_cost_sessions else ((), ())
    return UsageReport(
        window=selection.window,
        group_by=selection.by,
        rows=tuple(sorted(rows, key=by_cost(selection.by, TIME_KEYS))),
        totals=totals,
        provenance=provenance(book.query),
        **findings_of(book),
        unpriced=unpriced,
        without_usage=without_usage,
        uncounted_sessions=_uncounted_sessions(book, selection),
        archived_sessions=archived_sessions(book.query),
    )


def with_trend(book: Book, selection: Selection, report: UsageReport) -> UsageReport:
    """Return the report with the usage before its window and the month's projection, if it has a window and usage."""
    if selection.window is None or not report.totals.requests:
        return report
    from sessionlog.analytics.trend import project_month, usage_before

    return replace(report, previous=usage_before(book, selection), projection=project_month(book, selection))


def _uncounted_sessions(book: Book, selection: Selection) -> int:
    """The number of sessions in the window that do not count in usage."""
    tables, where, parameters = selection.sums(listed_only=True)
    sql = f"""SELECT COUNT(DISTINCT r.session_id) FROM {tables}
              WHERE r.session_id IN (SELECT id FROM sessions WHERE NOT counted) AND {where}"""  # noqa: S608 - expressions of a closed list; values are bound
    [(count,)] = book.query(sql, parameters)
    return int(count)


def _without_cost(book: Book, selection: Selection) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The (provider, model) pairs without a cost, most sessions first: those without a price; those without tokens."""
    condition, parameters = selection.filtered()
    timely, bounds = selection.in_window()
    sql = f"""SELECT l.provider, l.model, r.has_tokens FROM (
                  SELECT DISTINCT r.session_id, r.label_id,
                      {TOTAL_TOKENS} > 0 AS has_tokens
                  FROM responses r WHERE r.counts AND {UNKNOWN} AND {timely}
                  AND r.session_id IN (SELECT session_id FROM quarter_hours WHERE unknown)
              ) r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id WHERE {condition}
              GROUP BY 1, 2, 3 ORDER BY COUNT(DISTINCT s.id) DESC, 1, 2"""  # noqa: S608 - expressions of a closed list; values are bound
    parameters |= bounds
    found = list(book.query(sql, parameters))
    return tuple(tuple((provider, model) for provider, model, has in found if bool(has) == wanted) for wanted in (1, 0))
