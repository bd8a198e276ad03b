"""Statements: one statement for many ids, or for many rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from sessionlog.ledger.storable import within_64_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.rows import Row


def choose(connection: sqlite3.Connection, ids: Iterable[int] | None) -> str:
    """Return a condition `IN (…)` on these ids, `IS NOT NULL` for all; it is valid until the next call."""
    if ids is None:
        return "IS NOT NULL"
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.chosen")
    connection.executemany("INSERT INTO temp.chosen VALUES (?)", ((number,) for number in sorted(ids)))
    return "IN (SELECT id FROM temp.chosen)"


def write(connection: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Run a statement for many rows; numbers beyond 64 bits are clamped."""
    try:
        connection.executemany(statement, rows)
    except OverflowError:  # rare, so numbers are checked only then; rows already inserted are replaced
        connection.executemany(statement, [within_64_bits(row) for row in rows])
