"""Databases that never end or cannot be opened: views over endless queries, slow queries, other programs' locks."""

import _thread
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from sessionlog.errors import LogLocked, Problem
from sessionlog.reader.database import open_database
from sessionlog.sources import databases
from sessionlog.sources.databases import Database
from sessionlog.sources.discover import find_logs, recognise
from tests.sources.homes import all_cases, build_home

ENDLESS = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e)"
SECONDS = 50

READ = """
import sys
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.sources.registry import load_source

source, *paths = sys.argv[1:]
source = load_source(source)
for path in paths:
    list(source.name_sessions(path))
    found = [str(item) for item in source.read(path, None) if isinstance(item, Problem)]
    source.recognises(path, b"SQLite format 3\\x00")
    print(path, any("is a view" in one for one in found))
"""


def databases_of(case, folder):
    """The databases of a case."""
    home = build_home(case, folder)
    return [path for path in sorted(home.rglob("*")) if path.is_file() and path.read_bytes()[:6] == b"SQLite"]


def cases():
    """One case of each source that reads databases."""
    named = [case for case in all_cases() if "hostile" in case or case in {"kilo/v1-database", "openclaw/database"}]
    return [
        case
        for case in named
        if case.split("/")[0] in {"crush", "goose", "hermes", "kilo", "llm", "openclaw", "opencode"}
    ]


def with_view(original, table, copy):
    """Copy a database, one of its tables replaced by a view of an endless query with the same columns."""
    copy.write_bytes(original.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        columns = [cells[1] for cells in connection.execute(f'PRAGMA table_info("{table}")')]
        connection.execute("PRAGMA foreign_keys = 0")
        connection.execute(f'ALTER TABLE "{table}" RENAME TO "was_{table}"')
        names = ", ".join(f'n AS "{column}"' for column in columns)
        connection.execute(f'CREATE VIEW "{table}" AS {ENDLESS} SELECT {names} FROM e')
        connection.commit()
    return str(copy)


def tables_of(path):
    """The tables of a database."""
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


@pytest.mark.parametrize("case", cases())
def test_p08_a_view_of_an_endless_query_ends_in_every_source(case, tmp_path):
    """Whichever of its tables is one; the log names what was not read."""
    paths = [
        with_view(original, table, tmp_path / f"{number}-{table}.db")
        for number, original in enumerate(databases_of(case, tmp_path))
        for table in tables_of(original)
        if not table.startswith("sqlite_")
    ]
    command = [sys.executable, "-c", READ, case.split("/")[0], *paths]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == len(paths) > 0
    assert "True" in ended.stdout


VIEWS = (
    f"CREATE VIEW t(a) AS {ENDLESS} SELECT n FROM e",
    f"CREATE VIEW t(a) AS {ENDLESS} SELECT count(*) FROM e",
    f"CREATE VIEW other AS {ENDLESS} SELECT n FROM e; CREATE VIEW t(a) AS SELECT n FROM other",
    f"CREATE VIEW t(a) AS SELECT ({ENDLESS} SELECT max(n) FROM e)",
    "CREATE VIEW t(a) AS SELECT x.name FROM sqlite_master x, sqlite_master y, sqlite_master z",
    "CREATE VIEW t(a) AS SELECT instr(zeroblob(60000000), zeroblob(30000000) || x'01')",
    "CREATE VIEW t(a) AS VALUES (1), (2)",
    "CREATE VIEW t(a) AS SELECT 1",
    "CREATE VIEW t(a) AS SELECT value FROM json_each('[1, 2]')",
    "CREATE VIEW t(a) AS SELECT name FROM pragma_table_info('u')",
    "CREATE VIEW t(a) AS WITH x AS (SELECT a FROM u) SELECT a FROM x UNION SELECT a FROM u",
)


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_is_read(tmp_path, view):
    """Neither by name, nor by a query that was written out: SQLite asks for each thing that a view would read."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(f"CREATE TABLE u(a); INSERT INTO u VALUES (1); {view}")
    with Database(str(tmp_path / "x.db")) as database:
        assert list(database.select("t", ("a",))) == []
        assert [problem.detail for problem in database.problems()] == [
            "t is a view or a virtual table, and only plain tables are read"
        ]
        assert list(database.select("u", ("a",))) == [(1,)]
    for query in ("SELECT a FROM t", "SELECT count(*) FROM t", "SELECT 1 FROM t", "SELECT 1 FROM u, t WHERE 0"):
        with Database(str(tmp_path / "x.db")) as database:
            assert database.columns("u")
            assert list(database.rows(query)) == []
            assert len(list(database.problems())) == 1


def test_no_virtual_table_and_no_computed_column_is_read(tmp_path):
    """An index for searching may take its words from a view; a computed column is computed when it is read."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(
            f"CREATE VIEW v(a) AS {ENDLESS} SELECT n FROM e; CREATE VIRTUAL TABLE t USING fts5(a, content = 'v');"
            "CREATE TABLE Mixed(a, b AS (length(zeroblob(9)))); INSERT INTO Mixed(a) VALUES (1)"
        )
    with Database(str(tmp_path / "x.db")) as database:
        assert list(database.select("t", ("a",))) == []
        assert len(list(database.problems())) == 1
        assert list(database.select("mixed", ("a", "b"))) == [(1, None)]
        assert list(database.rows("SELECT b FROM mixed")) == []
        assert len(list(database.problems())) == 1


def test_a_query_that_yields_nothing_for_long_is_ended(tmp_path, monkeypatch):
    """It is a problem of that log; the time that the caller takes for a row does not count."""
    monkeypatch.setattr(databases, "LONGEST_WAIT", 0.2)
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t(a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(2000)])
        connection.commit()
    with Database(str(tmp_path / "x.db")) as database:
        assert database.columns("t") == {"a"}
        started = time.monotonic()
        assert list(database.rows("SELECT count(*) FROM t x, t y, t z, t w")) == []
        assert 0.1 < time.monotonic() - started < 5
        (problem,) = database.problems()
        assert (problem.kind, problem.detail) == ("bad_database", "a query was ended after 0.2 seconds without a row")
        rows = database.rows("SELECT x.a FROM t x, t y LIMIT 200000")
        for _ in range(3):
            next(rows)
            time.sleep(0.15)
        assert len(list(rows)) == 200_000 - 3
        assert list(database.problems()) == []


def test_an_interrupt_while_a_query_runs_is_an_interrupt(tmp_path):
    """It is no damage of the database."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t(a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(2000)])
        connection.commit()
    with Database(str(tmp_path / "x.db")) as database:
        assert database.columns("t") == {"a"}
        timer = threading.Timer(0.05, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(database.rows("SELECT count(*) FROM t x, t y, t z, t w"))
        timer.join()
        assert list(database.problems()) == []


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A database of Kilo that another program has locked; its path. It is waited for a quarter of a second."""
    monkeypatch.setitem(open_database.__kwdefaults__, "wait_seconds", 0.25)
    path = databases_of("kilo/v1-database", tmp_path)[0]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield str(path)
    connection.close()


def test_a_locked_database_is_not_one_of_an_unknown_agent(locked):
    """It is waited for once, not once for each source."""
    started = time.monotonic()
    found = recognise(locked)
    assert time.monotonic() - started < 1
    assert isinstance(found, Problem)
    assert (found.kind, found.severity) == ("unreadable", "damage")
    assert found.detail == "locked by another program; close it, or try again when it has finished"
    assert list(find_logs([locked], {})) == [found]
    with pytest.raises(LogLocked):
        Database(locked)
