"""Statements: one statement for many ids, or for many rows."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence

from sessionlog.ledger.schema import SCHEMA, insert
from sessionlog.ledger.storable import within_64_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.rows import Row

_CHUNK = 256  # rows whose columns are looked at together, while they are in the processor's cache
_NULLABLE = {line.split()[0] for line in SCHEMA.splitlines() if line[:4].isspace() and "NOT NULL" not in line}


def choose(connection: sqlite3.Connection, ids: Iterable[int] | None) -> str:
    """Return a condition `IN (…)` on these ids, `IS NOT NULL` for all; it is valid until the next call."""
    if ids is None:
        return "IS NOT NULL"
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.chosen")
    connection.executemany("INSERT INTO temp.chosen VALUES (?)", ((number,) for number in sorted(ids)))
    return "IN (SELECT id FROM temp.chosen)"


def insert_rows(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Insert or replace rows; numbers beyond 64 bits are clamped.

    No None is bound, because sqlite3 takes ten times as long for it as for a number: a column without any value is left
    out of the statement, and other missing values are NaN, which SQLite stores as NULL.
    """
    for start in range(0, len(rows), _CHUNK):
        kept: list[Sequence[object]] = []
        names = []
        for name, values in zip(columns, zip(*rows[start : start + _CHUNK], strict=True), strict=True):
            missing = values.count(None) if name in _NULLABLE else 0
            if missing < len(values):
                names.append(name)
                kept.append([math.nan if value is None else value for value in values] if missing else values)
        write(connection, insert(table, tuple(names)), list(zip(*kept, strict=True)))


def write(connection: sqlite3.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Run a statement for many rows; numbers beyond 64 bits are clamped."""
    try:
        connection.executemany(statement, rows)
    except OverflowError:  # rare, so numbers are checked only then; rows already inserted are replaced
        connection.executemany(statement, [within_64_bits(row) for row in rows])
