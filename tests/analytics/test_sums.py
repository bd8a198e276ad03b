"""What reports add up has names, which are those of the ledger's columns; rows are read by them."""

import sqlite3

import pytest

from sessionlog.analytics.conditions import KEYS
from sessionlog.analytics.report import SummedRows
from sessionlog.analytics.sums import CLASSES, IN_PROVENANCE, OF_RECORDS, USED, Row, measures, select, sums
from sessionlog.ledger.columns import Label, Response, columns_of, names_of
from sessionlog.ledger.quarter_hours import OF_PARTS
from sessionlog.ledger.tables import tables

OTHERS = ("sessions", "first_ns", "last_ns", "latencies", "unpriced_requests", "generation_tokens", "generation_us")
SUMMED = names_of(Response, "sum")


@pytest.fixture
def query():
    """Statements on an empty ledger."""
    connection = sqlite3.connect(":memory:")
    for statement in tables():
        connection.execute(statement)
    return lambda sql, parameters: connection.execute(sql, parameters).fetchall()


def test_classes_are_the_summed_columns_of_tokens():
    """All but reasoning, which is a part of the output."""
    tokens = [f"{column.name}_tokens" for column in columns_of(Response) if {"sum", "tokens"} <= {*column.words}]
    assert sorted(CLASSES) == sorted({*tokens} - {"reasoning_tokens"})


def test_every_summed_column_has_a_measure_of_its_name():
    """A column that is added needs no word here."""
    assert measures(SUMMED) == {
        name: f"SUM(r.{name})" if name.endswith("_nano") else f"COALESCE(SUM(r.{name}), 0)" for name in SUMMED
    }


def test_rows_of_reports_have_what_all_of_them_add_up():
    """`SummedRows` is made of these by name."""
    assert set(SummedRows.__slots__) == set(USED)


def test_no_rows_add_up_to_nothing(query):
    """Counts are 0; money, times and latencies are unknown."""
    names = (*USED, *OTHERS, *IN_PROVENANCE, *SUMMED)
    [row] = sums(query, Row, names, OF_PARTS.format("quarter_hours"), "1", {})
    values = {name: getattr(row, name) for name in names}
    nothing = {name for name, value in values.items() if value is None}
    assert nothing == {name for name in names if name.endswith("_nano")} | {"first_ns", "last_ns", "latencies"}
    assert {value for value in values.values() if value is not None} == {0}
    assert row.cost_is_partial is False
    assert row.total_tokens == row.prompt_tokens == 0
    assert row.cost_nano is row.cost_usd is None


def test_records_have_the_same_measures(query):
    """Single records have no column `unknown`."""
    [values] = query(select(measures(USED, OF_RECORDS), "FROM responses r"), {})
    assert len(values) == len(USED)


def test_rows_are_read_by_name(query):
    """Groups are `keys`; the order of names does not matter."""
    query("INSERT INTO quarter_hours (session_id, label_id, unknown, unpriced, generated, generation_us, requests,"
          " failed, input, output, cache_read, cache_write, reasoning, cost_nano)"
          " VALUES (1, 1, 1, 0, 0, 0, 5, 1, 2, 3, 4, 6, 7, 9), (2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, NULL)", {})  # fmt: skip
    rows = sums(query, Row, reversed(USED), "quarter_hours r", "1", {}, by={"session": "r.session_id", "label": "9"})
    assert [row.keys for row in rows] == [{"session": 1, "label": 9}, {"session": 2, "label": 9}]
    [one, other] = rows
    assert (one.requests, one.failed_requests, one.input_tokens, one.reasoning_tokens) == (5, 1, 2, 7)
    assert (one.total_tokens, one.prompt_tokens, one.known_nano, one.cost_is_partial) == (15, 12, 9, True)
    assert (other.requests, other.known_nano, other.cost_is_partial) == (1, None, False)


def test_labels_are_group_keys():
    """But for those that say how exact a row is, and the speed; the service tier has a shorter name."""
    names = {"tier" if name == "service_tier" else name for name in Label._fields}
    assert names - {*KEYS} == {"granularity", "quality", "speed"}
