"""The order of a report's rows: by their keys, or by a column that was asked for; the same in every report."""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start 3 ms
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
    """Return what puts rows in the order of their keys, whatever the locale."""
    return [value.encode("utf-8", "surrogatepass") for value in row.keys.values()]


def by_cost(by: Sequence[str], time_keys: Container[str]) -> Callable[[Any], Any]:
    """Return what puts rows in their usual order: time keys oldest first, then the costliest, then the most tokens.

    Args:
        by: The group keys.
        time_keys: Those keys that are hours, days, weeks or months.
    """
    times = [index for index, key in enumerate(by) if key in time_keys]

    def order(row: Any) -> tuple[Any, ...]:
        keys, cost = by_keys(row), row.cost_nano
        return [keys[index] for index in times], cost is None, -(cost or 0), -row.total_tokens, keys

    return order


def by_column(sort: str, by: Sequence[str], columns: Mapping[str, str]) -> tuple[Callable[[Any], Any], bool]:
    """Return the sort key for a column or group key, and whether to reverse it; `-NAME` turns the order round.

    Args:
        sort: What was asked for.
        by: The group keys.
        columns: What a column may be called → its name.

    Raises:
        InvalidQuery: There is no such column or group key.
    """
    asked, turned = sort.removeprefix("-"), sort.startswith("-")
    if asked in by:
        return (lambda row: row.keys[asked]), turned
    name = columns.get(asked.lower())
    if name is None:
        from sessionlog.errors import InvalidQuery  # noqa: PLC0415 - 14 ms that a right question saves

        raise InvalidQuery(f"cannot sort by {asked!r}; sort by {', '.join((*by, *dict.fromkeys(columns.values())))}")
    lowest = float("-inf")
    return (lambda row: lowest if (value := getattr(row, name)) is None else value), not turned
