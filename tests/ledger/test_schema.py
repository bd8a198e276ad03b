"""The schema: columns for everything a record has, strict about types."""

import sqlite3

import pytest

from sessionlog.ledger.schema import LABEL, RECORD, SCHEMA, SESSION, TOOL, insert

NULLABLE = {"start_ns", "last_ns", "end_status", "duration_ms", "time_ns", "cost_nano", "estimate_nano", "latency_ms"}
NULLABLE |= {"latency_bucket", "duration_bucket", "id"}


@pytest.fixture
def connection():
    """The schema in an empty database."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    yield connection
    connection.close()


def columns(connection, table):
    return {row[1]: row[3] for row in connection.execute(f"PRAGMA table_info({table})")}


def test_inserts_name_every_column(connection):
    """In the order of the table, so that a row read is a row that can be written."""
    known = {"records": RECORD, "tools": TOOL, "sessions": ("id", *SESSION), "labels": ("id", *LABEL)}
    assert {table: tuple(columns(connection, table)) for table in known} == known


@pytest.mark.parametrize("table", ["sessions", "labels", "records", "tools"])
def test_only_what_may_be_unknown_is_null(connection, table):
    """Group keys are never null, costs and times may be."""
    assert {name for name, required in columns(connection, table).items() if not required} <= NULLABLE


def test_types_are_strict(connection):
    """A text among the numbers is refused instead of summed as 0."""
    values = [1, 1, 1, 0, "", 2, None, 1, 0, "many", *[0] * 5, None, None, 1, None, None, 0]
    with pytest.raises(sqlite3.IntegrityError, match=r"TEXT value in INTEGER column records\.input"):
        connection.execute(insert("records", RECORD), values)
