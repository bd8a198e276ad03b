"""What SQLite cannot hold is bent until it can, and sums stop instead of failing."""

import json
import sqlite3
from contextlib import closing

import pytest

from sessionlog.ledger.storable import metadata_text, saturating_sum, storable

LARGEST = 2**63 - 1


@pytest.mark.parametrize(("name", "kept"), [("plain", "plain"), ("ü", "ü"), ("a\udcffb", "a\\udcffb"), ("", "")])
def test_names_that_are_no_text_stay_visible(name, kept):
    """What is text stays as it is."""
    assert storable(name) == kept
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("SELECT ?", (storable(name),)).fetchall() == [(kept,)]


@pytest.mark.parametrize("odd", [10**30, "\ud800", float("nan"), {1: 2}, b"bytes", {"deep": [[[]]]}])
def test_metadata_are_always_json(odd):
    """Whatever a log or a source put into them, the keys beside it can be grouped by."""
    found = json.loads(metadata_text({"odd": odd, "team": "a"}))
    assert found["team"] == "a"


@pytest.mark.parametrize(
    ("values", "total"),
    [([1, 2, None], 3), ([], None), ([None], None), ([LARGEST, 1], LARGEST), ([LARGEST, LARGEST, -5], LARGEST - 5)],
)
def test_sums_stop_at_the_largest_number(values, total):
    """No values have no sum, as in SQL."""
    with closing(sqlite3.connect(":memory:")) as connection:
        saturating_sum(connection)
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        assert connection.execute("SELECT saturating_sum(a) FROM t").fetchall() == [(total,)]
