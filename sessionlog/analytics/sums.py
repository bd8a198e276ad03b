"""Sums: what reports add up of records, by name, and the one place that builds their SELECTs and reads the rows.

A name stands for the same expression in every report: for the sum of the column of that name, to which `_tokens` is
added where it counts tokens, or for what `_COLUMNS` and `_EXPRESSIONS` have. A row is read by name, so no report
depends on the order of a SELECT. The module imports little, because paths that start often use it, too.
"""

from __future__ import annotations

from sessionlog.ledger.quarter_hours import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from sessionlog.analytics.conditions import Query
    from sessionlog.ledger.book import Book

    T = TypeVar("T")

CLASSES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
"""Tokens in classes that do not overlap."""

USED = (
    "requests", "failed_requests", *CLASSES, "reasoning_tokens", "known_nano", "estimated_nano", "cost_is_partial",
)  # fmt: skip
"""What every report that adds up records has."""

PROVENANCE = ("exact", "partial", "estimated", "session")
IN_PROVENANCE = tuple(f"in_{kind}" for kind in PROVENANCE)
"""Requests by provenance; these need the labels `l`."""

_COLUMNS = {
    "failed_requests": "failed", "known_nano": "cost_nano", "estimated_nano": "estimate_nano",
    "unpriced_requests": "unpriced", "generation_tokens": "generated", "cost_is_partial": "unknown",
}  # fmt: skip
"""Name → the column that it is made of, where that has another name."""

_OF_KIND = (
    "SUM(CASE WHEN CASE l.granularity WHEN 'session' THEN 'session' ELSE l.quality END = '{}' THEN r.requests END)"
)
_EXPRESSIONS = {
    "sessions": "COUNT(DISTINCT r.session_id)",
    "cost_is_partial": "COALESCE(MAX(r.unknown), 0)",
    "first_ns": "MIN(r.first_ns)",
    "last_ns": "MAX(r.last_ns)",
    "latencies": "group_concat(r.latencies, '')",
    **{name: f"COALESCE({_OF_KIND.format(kind)}, 0)" for name, kind in zip(IN_PROVENANCE, PROVENANCE, strict=True)},
}
OF_RECORDS = {
    "cost_is_partial": f"COALESCE(MAX({UNKNOWN}), 0)",
    "first_ns": "MIN(r.time_ns)",
    "last_ns": "MAX(r.time_ns)",
}
"""The expressions that are others where single records are read, not sums of a quarter hour."""

TOTAL_TOKENS = " + ".join(f"r.{name.removesuffix('_tokens')}" for name in CLASSES)
"""The tokens of all classes of one row."""

_FLAGS = frozenset({"cost_is_partial"})


class Costs:
    """Recorded and estimated cost of summed records."""

    __slots__ = ()

    known_nano: int | None
    estimated_nano: int | None

    @property
    def cost_nano(self) -> int | None:
        """Recorded and estimated cost together, None when there is neither."""
        if self.known_nano is None and self.estimated_nano is None:
            return None
        return (self.known_nano or 0) + (self.estimated_nano or 0)

    @property
    def estimated(self) -> bool:
        """Whether a part of the cost is an estimate."""
        return self.estimated_nano is not None

    @property
    def known_cost_usd(self) -> float | None:
        """Recorded cost."""
        return usd(self.known_nano)

    @property
    def estimated_cost_usd(self) -> float | None:
        """Estimated cost of what has no recorded one."""
        return usd(self.estimated_nano)

    @property
    def cost_usd(self) -> float | None:
        """Recorded and estimated cost together, None when there is neither."""
        return usd(self.cost_nano)


class Sums(Costs):
    """Tokens and cost of summed records, and the values derived from them."""

    __slots__ = ()

    requests: int
    failed_requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int

    @property
    def total_tokens(self) -> int:
        """All classes together; they do not overlap."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    @property
    def prompt_tokens(self) -> int:
        """What was sent, whether from a cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class Row(Sums):
    """What a SELECT gave, by name; `keys` are the values that it is grouped by."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Any other column of the SELECT."""


NANO = 1_000_000_000  # `events.money` costs 15 ms


def usd(nano: int | None) -> float | None:
    """Return nano-dollars in US dollars."""
    return None if nano is None else nano / NANO


def measures(names: Iterable[str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return name → its expression on rows `r` of `quarter_hours`; `more` has those that are others here."""
    special = {**_EXPRESSIONS, **(more or {})}
    return {name: special.get(name) or added(name, column_of(name)) for name in names}


def column_of(name: str) -> str:
    """Return the column of `quarter_hours` that a measure is made of."""
    return _COLUMNS.get(name) or name.removesuffix("_tokens")


def added(name: str, column: str) -> str:
    """Return the sum of a column under a name: of money NULL where nothing is known, of all else 0."""
    return f"SUM(r.{column})" if name.endswith("_nano") else f"COALESCE(SUM(r.{column}), 0)"


def select(columns: Mapping[str, str], source: str, *, by: Mapping[str, str] | None = None) -> str:
    """Return the SELECT of columns (name → expression) from `source`, grouped by the columns `by`."""
    listed = ", ".join(f"{sql} AS {name}" for name, sql in {**(by or {}), **columns}.items())
    grouped = f" GROUP BY {', '.join(str(number + 1) for number in range(len(by)))}" if by else ""
    return f"SELECT {listed} {source}{grouped}"


def reader(columns: Iterable[str], *, by: Iterable[str] = ()) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
    """Return what reads a row of `select` by name; the columns `by` are in `keys`."""
    names, keys = tuple(columns), tuple(by)
    count, flags = len(keys), _FLAGS.intersection(names)

    def read(row: tuple[Any, ...]) -> dict[str, Any]:
        values = dict(zip(names, row[count:], strict=True))
        if keys:
            values["keys"] = dict(zip(keys, row, strict=False))
        for name in flags:
            values[name] = bool(values[name])
        return values

    return read


def read_rows(
    query: Query,
    make: Callable[..., T],
    columns: Mapping[str, str],
    source: str,
    parameters: Mapping[str, Any],
    *,
    by: Mapping[str, str] | None = None,
) -> list[T]:
    """Run a `select`, and return what `make` makes of the values of each row (see `reader`)."""
    read = reader(columns, by=by or ())
    return [make(**read(row)) for row in query(select(columns, source, by=by), dict(parameters))]


def sums(
    query: Query,
    make: Callable[..., T],
    names: Iterable[str],
    tables: str,
    where: str,
    parameters: Mapping[str, Any],
    *,
    by: Mapping[str, str] | None = None,
) -> list[T]:
    """Return what `make` makes of the measures of these names, for each group or over all.

    Args:
        query: Runs a statement.
        make: Makes a row of a keyword for each measure, and of `keys` where there are groups.
        names: The measures.
        tables: What is summed, as `Selection.sums` gives it with the next two.
        where: The condition on it.
        parameters: The parameters of both.
        by: Key of a group → its expression.
    """
    return read_rows(query, make, measures(names), f"FROM {tables} WHERE {where}", parameters, by=by)


def by_provenance(counts: Mapping[str, int | None]) -> dict[str, int]:
    """Return kind of provenance → requests, from the measures `IN_PROVENANCE`."""
    return {kind: counts[name] or 0 for kind, name in zip(PROVENANCE, IN_PROVENANCE, strict=True)}


def models_by(book: Book, key: str, tables: str, where: str, parameters: dict[str, Any]) -> dict[Any, tuple[str, ...]]:
    """Return each value of an expression → its models, the one with the most output first."""
    sql = f"SELECT {key}, l.model FROM {tables} WHERE {where} GROUP BY 1, 2 ORDER BY SUM(r.output) DESC, l.model"  # noqa: S608 - expressions of closed lists; values are bound
    found: dict[Any, tuple[str, ...]] = {}
    same: dict[tuple[str, ...], tuple[str, ...]] = {}  # many have the same models: keep each once

    def add_model(row: tuple[Any, str]) -> None:
        value, model = row
        names = (*found.get(value, ()), model)
        found[value] = same.setdefault(names, names)

    book.query(sql, parameters, add_model)
    return found
