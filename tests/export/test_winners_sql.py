"""Winners in SQL: DuckDB chooses in exported files what the ledger has chosen, for copies of every kind."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.ledger import winners_sql as sql  # noqa: E402 - as above
from sessionlog.ledger.parquet_schema import TABLES  # noqa: E402 - after the skip
from tests.export.machines import counted  # noqa: E402 - as above
from tests.export.test_parquet import PRICES, REQUESTS, fill, make_machine  # noqa: E402 - as above
from tests.ledger.entries import record, session  # noqa: E402 - as above
from tests.ledger.test_copies import LOGS  # noqa: E402 - as above
from tests.ledger.test_wire import SESSIONS, made  # noqa: E402 - as above
from tests.profiles import examples  # noqa: E402 - as above


def chosen(team):
    """A connection with the views `requests`, `calls` and `merged` of a folder, as the module's statements make them."""
    connection = duckdb.connect(config={"threads": "1"})
    for table, columns in TABLES.items():
        kinds = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({kinds})")
        for path in Path(team).glob(f"{table}/**/*.parquet"):
            connection.execute(f"INSERT INTO {table} BY NAME SELECT {', '.join(columns)} FROM read_parquet('{path}')")
        connection.execute(f"CREATE VIEW latest_{table} AS {sql.latest_rows(table, tuple(columns))}")
    connection.execute(f"CREATE VIEW known AS {sql.known_sessions('latest_sessions')}")
    connection.execute(f"CREATE VIEW requests AS {sql.winning_responses('latest_usage', 'known')}")
    connection.execute(f"CREATE VIEW calls AS {sql.winning_calls('latest_tools', 'known')}")
    connection.execute(f"CREATE VIEW merged AS {sql.merged_sessions('latest_sessions')}")
    return connection


def agree(machine, sessions):
    """Whether the statements, and those of the page, choose what the ledger has chosen."""
    rows = [(*row[:2], *row[3:]) for row in fill(machine, sessions)]
    if not machine.export(prices=PRICES).usage:
        return rows == []
    expected = sorted(repr((*row[:3], bool(row[3]), *row[4:])) for row in rows)
    for of in (chosen, counted):
        with closing(of(machine.team)) as connection:
            if sorted(map(repr, connection.execute(REQUESTS).fetchall())) != expected:
                return False
    return True


@examples(8)
@given(LOGS)
def test_copies_are_decided_by_the_same_rule(tmp_path_factory, entries):
    """Rank, family, superseding sessions, numbers of one copy and place of another."""
    machine = make_machine(tmp_path_factory.mktemp("copies"), "a")
    assert agree(machine, [session(name, record(**fields), path=f"{path}.jsonl") for name, path, fields in entries])


@examples(8)
@given(st.data())
def test_requests_on_the_wire_count_once(tmp_path_factory, data):
    """Where it is in a log, or on the wire alone."""
    machine = make_machine(tmp_path_factory.mktemp("wire"), "a")
    assert agree(machine, [made(entry, number) for number, entry in enumerate(data.draw(SESSIONS))])
