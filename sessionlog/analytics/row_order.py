"""Sort keys for a report's rows: by group keys, by cost, or by a given column."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from typing import Any, Protocol

    class Keyed(Protocol):
        """A row of a report."""

        @property
        def keys(self) -> Mapping[str, str]:
            """Group key → value."""
            ...


def by_keys(row: Keyed) -> list[bytes]:
    """Return the sort key of a row by its group keys, independent of the locale."""
    return [value.encode("utf-8", "surrogatepass") for value in row.keys.values()]


def by_cost(by: Sequence[str], time_keys: Container[str]) -> Callable[[Any], Any]:
    """Return the sort key of the default order: time keys oldest first, then highest cost, then most tokens.

    Args:
        by: The group keys.
        time_keys: The group keys that are hours, days, weeks or months.
    """
    times = [(key, period_order(key)) for key in by if key in time_keys]

    def order(row: Any) -> tuple[Any, ...]:
        cost = row.cost_nano
        periods = [order_of(row.keys[key]) for key, order_of in times]
        return periods, cost is None, -(cost or 0), -row.total_tokens, by_keys(row)

    return order


def period_order(key: str) -> Callable[[str], str]:
    """Return what puts the names of periods in their order: of an hour that clocks repeat, the first comes first."""
    if key != "hour":
        return str
    from datetime import UTC, datetime

    def hour(name: str) -> str:
        try:
            return datetime.fromisoformat(name).astimezone(UTC).isoformat()
        except (ValueError, OverflowError):  # rows without a time, and the ends of the calendar
            return name

    return hour


def by_column(sort: str, by: Sequence[str], columns: Mapping[str, str]) -> tuple[Callable[[Any], Any], bool]:
    """Return the sort key for a column or group key, and whether to reverse it; `-NAME` reverses the order.

    Args:
        sort: The column or group key.
        by: The group keys.
        columns: Accepted name of a column → its name.

    Raises:
        InvalidQuery: The column or group key is unknown.
    """
    given, is_reversed = sort.removeprefix("-"), sort.startswith("-")
    if given in by:
        return (lambda row: row.keys[given]), is_reversed
    name = columns.get(given.lower())
    if name is None:
        from sessionlog.errors import InvalidQuery

        raise InvalidQuery(f"cannot sort by {given!r}; sort by {', '.join((*by, *dict.fromkeys(columns.values())))}")
    lowest = float("-inf")
    return (lambda row: lowest if (value := getattr(row, name)) is None else value), not is_reversed
