"""Statements: one statement for many ids, or for many rows."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sessionlog.ledger.columns import Call, File, Response, Row, columns_of, insert
from sessionlog.ledger.storable import within_64_bits

_R = TypeVar("_R", File, Response, Call)

_BATCH = 1024  # rows that are in memory at once


def choose(connection: sqlite3.Connection, ids: Iterable[int] | None) -> str:
    """Return a condition `IN (…)` on these ids, `IS NOT NULL` for all; it is valid until the next call."""
    if ids is None:
        return "IS NOT NULL"
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.chosen")
    connection.executemany("INSERT INTO temp.chosen VALUES (?)", ((number,) for number in sorted(ids)))
    return "IN (SELECT id FROM temp.chosen)"


def select_rows(
    connection: sqlite3.Connection, row: type[_R], rest: str, parameters: Mapping[str, Any] | Sequence[Any] = ()
) -> Iterator[_R]:
    """Yield the rows of a statement, which continues after `FROM` with a table called `r`."""
    columns = ", ".join(f"r.{name}" for name in row._fields)
    return map(row._make, connection.execute(f"SELECT {columns} FROM {rest}", parameters))  # noqa: S608 - names of the schema; values are bound


def insert_rows(connection: sqlite3.Connection, table: str, row: type[Row], rows: Iterable[Row]) -> None:
    """Insert or replace rows of a table; numbers beyond 64 bits are clamped.

    A None is bound as NaN, which SQLite stores as NULL: sqlite3 takes ten times as long for it as for a number.
    """
    statement, left = insert(table, [column.name for column in columns_of(row)]), iter(rows)
    while some := list(islice(left, _BATCH)):
        write(connection, statement, [[math.nan if value is None else value for value in one] for one in some])


def write(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for many rows; numbers beyond 64 bits are clamped."""
    try:
        connection.executemany(statement, rows)
    except OverflowError:  # rare, so numbers are checked only then; rows already inserted are replaced
        connection.executemany(statement, [within_64_bits(row) for row in rows])
