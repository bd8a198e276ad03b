"""Columns: the values that a report shows of each row, defined once for all formats; and the JSON document."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Literal

    Unit = Literal[
        "count", "bytes", "usd", "whole_usd", "list_usd", "before_usd", "price", "amount", "percent", "ms", "seconds",
        "days", "ratio", "share", "rate", "text", "texts", "sentences", "objects", "time", "second", "day", "flag",
    ]  # fmt: skip
    """Unit of a column's values: `usd` has the marks of its row's cost, `whole_usd` only that of an estimate,
    `before_usd` that of an estimate of the time before, `list_usd` and `price` have none; `amount` is in its row's
    `unit`, `ms` is a time span, `ratio` and `share` of 1, `rate` per second, `time`, `second` (shown with seconds) and
    `day` are in UTC nanoseconds."""


class Column:
    """One column of a report.

    Attributes:
        name: Its key in JSON, its heading in CSV, and its name for `--sort`.
        unit: The unit of its values, which decides how each format writes them.
        title: Its heading in tables and Markdown; None if only JSON and CSV have it.
        rank: The order in which narrow tables hide columns: the highest first, 0 never. Markdown has those up to 8.
        label: Its name in the list of hidden columns.
        least: The width to which its texts may be cut; None for columns that must not be cut.
        note: The meaning of its heading, below a table that shows it.
    """

    __slots__ = ("_get", "_shown", "_style", "label", "least", "name", "note", "rank", "title", "unit")

    def __init__(
        self,
        name: str,
        unit: Unit = "count",
        title: str | None = None,
        rank: int = 0,
        *,
        get: Callable[[Any], Any] | None = None,
        shown: Callable[[Any], Any] | None = None,
        style: Callable[[Any], str] | str = "",
        label: str = "",
        least: int | None = None,
        note: str = "",
    ) -> None:
        """Describe a column.

        Args:
            name: See the attributes; also the attribute of a row that it shows, unless `get` is given.
            unit: See the attributes.
            title: See the attributes.
            rank: See the attributes.
            get: Row → value.
            shown: Row → value in tables, if tables show another value; None is a dash.
            style: The style of its cells, or value → style.
            label: See the attributes.
            least: See the attributes.
            note: See the attributes.
        """
        self.name = name
        self.unit = unit
        self.title = title
        self.rank = rank
        self.label = label or name.replace("_", " ")
        self.least = least
        self.note = note
        self._get = get
        self._shown = shown
        self._style = style

    def value(self, row: Any) -> Any:
        """Return its value in a row."""
        return getattr(row, self.name) if self._get is None else self._get(row)

    def shown(self, row: Any) -> Any:
        """Return its value as tables show it; None is unknown."""
        return self.value(row) if self._shown is None else self._shown(row)

    def style(self, value: Any) -> str:
        """Return the style of a value in a table."""
        if isinstance(self._style, str):
            return self._style if value else ""
        return self._style(value) if value is not None else ""

    def data(self, row: Any) -> Any:
        """Return its JSON value."""
        value = self.value(row)
        if self.unit in ("time", "second", "day") and value is not None:
            from sessionlog.events.times import format_time

            return format_time(value)
        return list(value) if self.unit in ("texts", "sentences") else value


def column_aliases(columns: Sequence[Column]) -> dict[str, str]:
    """Return the accepted names of columns (heading and label in lower case, or name) → their names."""
    words = {word.lower(): column.name for column in columns if column.title for word in (column.title, column.label)}
    return words | {column.name: column.name for column in columns}


def names_of(columns: Iterable[Column]) -> tuple[str, ...]:
    """Return the names of columns, in their order."""
    return tuple(column.name for column in columns)


def row_data(columns: Iterable[Column], row: Any) -> dict[str, Any]:
    """Return a row's JSON object, without group keys."""
    return {column.name: column.data(row) for column in columns}


def document(
    schema: str,
    columns: Sequence[Column],
    *,
    window: Mapping[str, str | None] | None,
    group_by: Sequence[str],
    rows: Iterable[Any],
    totals: Any,
    provenance: Mapping[str, int] | None,
    hidden_rows: int,
    archived_sessions: int,
    problem_count: int,
    problems: Iterable[str],
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the JSON document of a report, its rows as an iterator, to be written one by one.

    Args:
        schema: Its name and version.
        columns: The columns of each row.
        window: The time window; None for all.
        group_by: The group keys.
        rows: The rows; those of a grouped report have `keys`.
        totals: The totals, with the attributes of the columns that add up; None without totals.
        provenance: Number of requests by provenance; None if the report is not about requests.
        hidden_rows: Rows that a limit left out.
        archived_sessions: Sessions whose logs are deleted and that only the ledger has.
        problem_count: Problems in the logs.
        problems: The first of them, a sentence each.
        extra: Additional keys of this report.
    """
    return {
        "schema": schema,
        "window": window,
        "group_by": list(group_by),
        **(extra or {}),
        "rows": (dict(getattr(row, "keys", ())) | row_data(columns, row) for row in rows),
        "totals": None if totals is None else row_data([c for c in columns if hasattr(totals, c.name)], totals),
        "provenance": None if provenance is None else dict(provenance),
        "hidden_rows": hidden_rows,
        "archived_sessions": archived_sessions,
        "problems": {"count": problem_count, "first": list(problems)},
    }


def counted(count: int, thing: str) -> str:
    """Return a number and its noun, `1 log` or `2 logs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
