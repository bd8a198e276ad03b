"""Storable: text and numbers of logs in a form that SQLite can hold, and sums that cannot overflow."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_SATURATED = 2**63 - 1


def storable(name: str) -> str:
    """Return a name as valid UTF-8, which SQLite needs; lone surrogates (as of file names) become escapes.

    Different names stay different.
    """
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode("utf-8")


def within_64_bits(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row with numbers beyond 64 bits clamped."""
    return tuple(
        max(-_SATURATED, min(_SATURATED, value)) if isinstance(value, int) and abs(value) > _SATURATED else value
        for value in row
    )


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return metadata as JSON; if that fails (nesting, size), only texts and numbers, which reports can group by."""
    import orjson

    try:
        return orjson.dumps(metadata, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        import json

        plain = {key: value for key, value in metadata.items() if isinstance(value, str | int | float)}
        return storable(json.dumps(plain, ensure_ascii=False))


def rows_of(
    connection: sqlite3.Connection,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    make: Callable[[tuple[Any, ...]], Any] | None = None,
) -> list[Any]:
    """Run a statement and return its rows, or `make(row)` for each; sums beyond 64 bits are clamped.

    With `make` many rows are not held in memory twice.
    """
    try:
        rows = connection.execute(sql, parameters or {})
        return rows.fetchall() if make is None else list(map(make, rows))
    except Exception as error:
        from sqlite3 import OperationalError

        if not isinstance(error, OperationalError) or "overflow" not in str(error):
            raise
        saturating_sum(connection)
        rows = connection.execute(sql.replace("SUM(", "saturating_sum("), parameters or {})
        return rows.fetchall() if make is None else list(map(make, rows))


def saturating_sum(connection: sqlite3.Connection) -> None:
    """Register the aggregate `saturating_sum`: SUM, clamped to 64 bits."""
    connection.create_aggregate("saturating_sum", 1, _SaturatingSum)  # type: ignore[arg-type] # the stub wants a protocol of exact signatures


class _SaturatingSum:
    def __init__(self) -> None:
        self._sum: int | None = None

    def step(self, value: int | None) -> None:
        if value is not None:
            self._sum = min((self._sum or 0) + int(value), _SATURATED)

    def finalize(self) -> int | None:
        return self._sum
