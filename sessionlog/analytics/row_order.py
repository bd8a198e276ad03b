"""The order of a report's rows: by their keys, or by a column that was asked for; the same in every report."""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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


def by_column(sort: str, by: Sequence[str], columns: Sequence[str]) -> tuple[Callable[[Any], Any], bool]:
    """Return the sort key for a column or group key, and whether to reverse it; `-NAME` turns the order round.

    Raises:
        InvalidQuery: There is no such column or group key.
    """
    name, turned = sort.removeprefix("-"), sort.startswith("-")
    if name in by:
        return (lambda row: row.keys[name]), turned
    if name not in columns:
        from sessionlog.errors import InvalidQuery  # noqa: PLC0415 - 14 ms that a right question saves

        raise InvalidQuery(f"cannot sort by {name!r}; sort by {', '.join((*by, *columns))}")
    lowest = float("-inf")
    return (lambda row: lowest if (value := getattr(row, name)) is None else value), not turned
