"""Databases: columns that come and go, JSON in cells, damage that is noted and never raised."""

import sqlite3

import pytest
from msgspec import Struct

from sessionlog.errors import LogNotReadable
from sessionlog.sources.databases import Database, tables_of
from sessionlog.sources.typed import Typed


class Cell(Struct):
    """What a column holds."""

    name: str = ""


@pytest.fixture
def path(tmp_path):
    """A database with one table."""
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.executescript("CREATE TABLE t(id TEXT, data TEXT); INSERT INTO t VALUES ('1', X'6869ff'), ('2', NULL)")
    connection.close()
    return str(tmp_path / "x.db")


def test_a_missing_column_is_none_and_a_missing_table_empty(path):
    """A blob is text all the same."""
    with Database(path) as database:
        assert list(database.select("t", ("id", "later", "data"), "ORDER BY id")) == [
            ("1", None, "hi\N{REPLACEMENT CHARACTER}"),
            ("2", None, None),
        ]
        assert list(database.select("gone", ("id",))) == []
        assert list(database.rows("SELECT id FROM t WHERE id = ?", "2")) == [("2",)]
        assert list(database.problems()) == []


def test_what_is_wrong_is_noted_once(path):
    """A query that fails ends; a cell that is no object has a place."""
    with Database(path) as database:
        assert list(database.rows("SELECT nothing FROM t")) == []
        assert database.decode(Typed(Cell), "[1]", "row 7") is None
        assert [(one.kind, one.path) for one in database.problems()] == [("bad_database", path), ("not_json", path)]
        assert list(database.problems()) == []


@pytest.mark.parametrize(
    ("cell", "name"),
    [('{"name": "a"}', "a"), ('{"name": 7}', ""), (b'{"name": "a"}\x00\x00', "a"), ('{"name": "\\ud83d"}', "\N{REPLACEMENT CHARACTER}")],
)  # fmt: skip
def test_json_is_read_as_far_as_it_can_be(path, cell, name):
    """Wrong types, NULs and lone surrogates cost only themselves."""
    with Database(path) as database:
        found = database.decode(Typed(Cell), cell, "a cell")
        assert found is not None
        assert found.name == name


def test_a_file_is_known_by_its_tables(path, tmp_path):
    """Only a database that can be opened has tables."""
    head = b"SQLite format 3\x00"
    assert tables_of(path, head) == {"t"}
    assert tables_of(path, b"{}") == frozenset()
    (tmp_path / "torn.db").write_bytes(head + b"\xff" * 500)
    assert tables_of(str(tmp_path / "torn.db"), head) == frozenset()
    with pytest.raises(LogNotReadable):
        Database(str(tmp_path / "torn.db"))
