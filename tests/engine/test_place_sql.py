"""The SQL of reports runs on DuckDB as on SQLite."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.engine.place_sql import PlaceSQL  # noqa: E402 - after the skip
from sessionlog.ledger.schema import QUARTER_NS  # noqa: E402 - as above

TEXTS = st.text(alphabet="ab]c[^-*?é.\\\n", max_size=5)


@pytest.fixture(scope="module")
def place():
    """A database without files."""
    return PlaceSQL(duckdb.connect(), lambda kind, _: f"FROM {kind}_arguments")


@examples(300)
@given(TEXTS, st.text(alphabet="ab]c[^-*?é.\\\n", max_size=8))
def test_a_pattern_matches_what_it_does_in_sqlite(place, text, pattern):
    """GLOB, with sets of characters, inverted and unclosed ones."""
    sql, values = "SELECT :text GLOB :pattern", {"text": text, "pattern": pattern}
    with closing(sqlite3.connect(":memory:")) as connection:
        [(wanted,)] = connection.execute(sql, values)
    assert place.query(sql, values) == [(bool(wanted),)]


def test_functions_are_called_for_each_argument_that_they_may_get(place):
    """One may get what another has returned, and a function of time gets the start of the quarter hour."""
    place.query("CREATE TEMP TABLE text_arguments AS SELECT 'A' AS argument UNION SELECT 'B'", {})
    place.query(f"CREATE TEMP TABLE time_arguments AS SELECT NULL AS argument UNION SELECT {QUARTER_NS}", {})
    place.query(f"CREATE TEMP TABLE r AS SELECT NULL AS time_ns UNION SELECT {QUARTER_NS + 7}", {})
    place.define("lower_case", str.lower)
    place.define("project_key", lambda name: f"Main {name}")
    place.define("quarter", lambda time_ns: None if time_ns is None else time_ns // QUARTER_NS)
    assert place.query("SELECT lower_case(project_key('A'))", {}) == [("main a",)]
    assert place.query("SELECT quarter(r.time_ns) FROM r ORDER BY 1", {}) == [(None,), (1,)]
    place.define("lower_case", lambda name: name + name)
    assert place.query("SELECT lower_case('B')", {}) == [("BB",)]
    with pytest.raises(duckdb.Error, match="no value of lower_case: C"):
        place.query("SELECT lower_case('C')", {})


def test_sums_are_clamped_to_64_bits(place):
    """As a ledger's, and without rows there is none."""
    sql = "SELECT SUM(x), SUM(-x), SUM(CASE WHEN x < 0 THEN x END) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)"
    assert place.query(sql, {}) == [(2**63 - 1, -(2**63 - 1), None)]
