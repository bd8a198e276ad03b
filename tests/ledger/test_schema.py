"""The schema: columns for everything a record has, strict about types."""

import sqlite3

import pytest

from sessionlog.ledger.columns import TABLES, Response, insert
from sessionlog.ledger.tables import tables

NULLABLE = {
    "start_ns",
    "last_ns",
    "end_status",
    "duration_ms",
    "time_ns",
    "cost_nano",
    "estimate_nano",
    "saved_nano",
    "latency_ms",
}
NULLABLE |= {
    "latency_bucket",
    "duration_bucket",
    "id",
    "family",
    "key",
    "superseded_by",
    "recorded_nano",
    "duration_ms",
}
NULLABLE |= {
    "extra_nano",
    "recorded_extra_nano",
    "window_minutes",
    "resets_ns",
    "turns",
    "last_turn_ns",
    "response_id",
    "on_wire_of",
    "home",
}


@pytest.fixture
def connection():
    """The schema in an empty database."""
    connection = sqlite3.connect(":memory:")
    for statement in tables():
        connection.execute(statement)
    yield connection
    connection.close()


def columns(connection, table):
    return {row[1]: row[3] for row in connection.execute(f"PRAGMA table_info({table})")}


def test_a_row_has_every_column(connection):
    """In the order of the table, so that a row read is a row that can be written; names have an id of their own."""
    known = {table: row._fields for table, row in TABLES.items()}
    known |= {table: ("id", *known[table]) for table in ("labels", "names")}
    assert {table: tuple(columns(connection, table)) for table in known} == known


@pytest.mark.parametrize("table", TABLES)
def test_only_what_may_be_unknown_is_null(connection, table):
    """Group keys are never null, costs and times may be."""
    assert {name for name, required in columns(connection, table).items() if not required} <= NULLABLE


def test_types_are_strict(connection):
    """A text among the numbers is refused instead of summed as 0."""
    row = Response._make([0] * len(Response._fields))._replace(input="many")
    with pytest.raises(sqlite3.IntegrityError, match=r"TEXT value in INTEGER column responses\.input"):
        connection.execute(insert("responses", Response._fields), row)
