"""Report: rows, totals and notes. Every report is a subclass; one writer per format renders them all."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar, TypeVar

from sessionlog.analytics.columns import Column, column_aliases, counted, document
from sessionlog.analytics.conditions import TIME_KEYS
from sessionlog.analytics.row_order import by_column, by_keys, period_order
from sessionlog.analytics.sums import Sums
from sessionlog.events.names import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Self

    from sessionlog.analytics.window import UsageWindow
    from sessionlog.errors import Problem
    from sessionlog.ledger.book import Book

_NAMED_PROBLEMS = 10
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The base of every report. Columns and titles belong to the class, rows to the instance.

    Attributes:
        schema: Name and version of its JSON.
        title: Its title in tables.
        thing: The noun for one row.
        columns: The columns of a row, in the order of JSON and CSV.
        table: Names of the columns that tables show first, in their order; other columns with a title follow.
        is_timed: Whether a time window chooses its rows.
        total_row: Whether tables and CSV end with a row of totals: not where rows are things, like sessions.
        least_key: Width to which a table may cut a group key before it hides columns.
        window: The time window; None for all.
        group_by: The group keys; rows of a grouped report have `keys`.
        rows: The rows, sorted.
        totals: Over all rows, also those that a limit left out; None where nothing adds up.
        provenance: The number of requests that are exact, partial, estimated, or known only by their session's totals;
            None in reports that are not about requests.
        hidden_rows: Rows that a limit left out.
        archived_sessions: Sessions whose logs are deleted and that only the ledger has.
        priced_from: The price list of the estimates.
        problem_count: Problems in the logs.
        problems: The first of them.
        unrecognised: Files under the paths that are not the log of a known agent.
        notes: Sentences on what could not be read or done.
    """

    schema: ClassVar[str]
    title: ClassVar[str]
    thing: ClassVar[str] = "row"
    columns: ClassVar[Sequence[Column]]
    table: ClassVar[Sequence[str]] = ()
    is_timed: ClassVar[bool] = True
    total_row: ClassVar[bool] = True
    least_key: ClassVar[int] = 20

    window: UsageWindow | None = None
    group_by: tuple[str, ...] = ()
    rows: tuple[Any, ...] = ()
    totals: Any = None
    provenance: Mapping[str, int] | None = None
    hidden_rows: int = 0
    archived_sessions: int = 0
    priced_from: str = ""
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()
    unrecognised: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no row matches, limits aside."""
        return not self.rows and not self.hidden_rows

    @property
    def why_empty(self) -> str:
        """Why there is no row although there are sessions, and what to do; empty where that is not known."""
        return ""

    @property
    def summary(self) -> str:
        """The text after a table's title."""
        return counted(len(self.rows) + self.hidden_rows, self.thing)

    @property
    def extra(self) -> Mapping[str, Any]:
        """Additional keys of the JSON document."""
        return {}

    def footnotes(self) -> Iterator[str]:
        """Yield sentences that explain the marks in the table."""
        yield from cost_footnotes(self.priced_from, self.rows)

    def sorted_by(self, sort: str | None) -> Self:
        """Return the report with its rows sorted by a column or group key; `-NAME` reverses the order.

        A column's name, heading or label is accepted. Equal rows keep the order of their keys.

        Raises:
            InvalidQuery: The column or group key is unknown.
        """
        if not sort:
            return self
        key, is_reversed = by_column(sort, self.group_by, column_aliases(self.columns))
        rows = sorted(self.rows, key=by_keys) if self.group_by else self.rows
        return replace(self, rows=tuple(sorted(rows, key=key, reverse=is_reversed)))

    def limited(self, limit: int | None) -> Self:
        """Return the report with the first rows only; totals stay those of all."""
        kept = self.rows if limit is None else self.rows[: max(0, limit)]
        return replace(self, rows=kept, hidden_rows=len(self.rows) - len(kept))

    def limited_to_newest(self, limit: int | None) -> Self:
        """Return the report, in its default order, with as many rows of the newest hours to months.

        Those come oldest first, so that their last rows are kept; of other groups the first ones are, as by `limited`.
        """
        if limit is None or limit >= len(self.rows):
            return self.limited(limit)
        periods = [(key, period_order(key)) for key in self.group_by if key in TIME_KEYS]

        def age(place: int) -> list[tuple[bool, str]]:
            names = ((order, self.rows[place].keys[key]) for key, order in periods)
            return [(name != UNKNOWN, order(name)) for order, name in names]

        kept = sorted(sorted(range(len(self.rows)), key=age, reverse=True)[: max(0, limit)])
        return replace(self, rows=tuple(self.rows[place] for place in kept), hidden_rows=len(self.rows) - len(kept))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        lazy = self.lazy_dict()
        return lazy | {"rows": list(lazy["rows"])}

    def lazy_dict(self) -> dict[str, Any]:
        """The JSON document with its rows as an iterator, to be written one by one."""
        return document(
            self.schema,
            self.columns,
            window=None if self.window is None else self.window.to_dict(),
            group_by=self.group_by,
            rows=self.rows,
            totals=self.totals,
            provenance=self.provenance,
            hidden_rows=self.hidden_rows,
            archived_sessions=self.archived_sessions,
            problem_count=self.problem_count,
            problems=[str(problem) for problem in self.problems[:_NAMED_PROBLEMS]],
            extra=self.extra,
        )


def findings_of(book: Book) -> dict[str, Any]:
    """Return the report fields on problems in a book's logs, and its price list."""
    return {
        "problem_count": book.problem_count, "problems": tuple(book.problems), "unrecognised": book.unrecognised,
        "notes": tuple(book.notes), "priced_from": book.priced_from,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedRows(Sums):
    """Tokens and cost of a row, or of several together.

    Attributes:
        requests: LLM calls.
        failed_requests: Failed LLM calls.
        input_tokens: Tokens that touched no cache.
        output_tokens: Generated tokens, reasoning included.
        cache_read_tokens: Tokens served from a cache.
        cache_write_tokens: Tokens written to a cache.
        reasoning_tokens: The part of the output that was reasoning.
        known_nano: Recorded cost in nano-dollars, None when none is recorded.
        estimated_nano: Cost of the rest by the price table, None when there is none.
        cost_is_partial: Whether a part has neither.
    """

    requests: int = 0
    failed_requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    known_nano: int | None = None
    estimated_nano: int | None = None
    cost_is_partial: bool = False


def add_up(kind: type[T], rows: Iterable[Any]) -> T:
    """Return the totals of rows with all fields of a kind but `keys`; a cost that is None in all rows stays None."""
    sums = sum_fields(rows, [one.name for one in fields(kind) if one.name != "keys"])  # type: ignore[arg-type] # a dataclass
    return kind(**sums | {"cost_is_partial": bool(sums.get("cost_is_partial"))})


def sum_fields(rows: Iterable[Any], names: Iterable[str]) -> dict[str, Any]:
    """Return name → sum of that attribute over the rows, without names whose value is None in all of them."""
    sums: dict[str, Any] = {}
    for row in rows:
        for name in names:
            value = getattr(row, name)
            if value is not None:
                sums[name] = sums.get(name, 0) + value
    return sums


def cost_footnotes(priced_from: str, rows: Iterable[Any], *, is_estimated: bool = False) -> Iterator[str]:
    """Yield the meaning of the cost marks in the rows: `~` for an estimate, `+` for a sum with an unpriced part.

    `is_estimated`: something beside them is marked as an estimate, too.
    """
    rows = list(rows)
    if is_estimated or any(row.estimated_nano for row in rows):
        yield f"~ estimated from {priced_from}"
    if any(row.cost_nano is not None and row.cost_is_partial for row in rows):
        yield "+ a part of it has no price: `sessionlog models --unpriced` shows why"


def values_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, not copied."""
    return {one.name: getattr(value, one.name) for one in fields(value)}
