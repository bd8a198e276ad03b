"""InternedIds stand for names, both ways, and are the same in the next transaction."""

import sqlite3

import pytest

from sessionlog.ledger.columns import Label, Name
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.tables import tables

LABEL = Label("acme", "m", "unknown", "/w", "main", "1", "main", "request", "exact", "", "")
OTHER = LABEL._replace(provider="other")
NAME = Name("Bash", "", "main", "/w")


@pytest.fixture
def connection():
    """An empty book."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in tables():
        connection.execute(statement)
    yield connection
    connection.close()


def test_names_are_entered_once(connection):
    """And known again."""
    numbers = InternedIds(connection)
    first, other = numbers.label_id(LABEL), numbers.label_id(OTHER)
    assert first != other
    assert numbers.label_id(LABEL) == first
    assert connection.execute("SELECT COUNT(*) FROM labels").fetchone() == (2,)
    assert numbers.label(first) == LABEL
    assert numbers.label(other) == OTHER


def test_the_next_transaction_knows_them(connection):
    """New ones get new numbers."""
    label, name = InternedIds(connection).label_id(LABEL), InternedIds(connection).name_id(NAME)
    later = InternedIds(connection)
    assert (later.label_id(LABEL), later.name_id(NAME)) == (label, name)
    assert later.name(name) == NAME
    assert later.name_id(NAME._replace(tool="Read")) > name


def test_a_session_gets_its_number_before_its_facts(connection):
    """It is new only in the transaction that has met it first."""
    numbers = InternedIds(connection)
    one = numbers.session_id(("native", "a", ""))
    assert numbers.session_id(("native", "a", "")) == one
    assert numbers.session_id(("codex", "a", "")) != one
    assert numbers.session_id(("native", "a", "here")) != one
    assert numbers.has_new_sessions
    later = InternedIds(connection)
    assert (later.session_id(("native", "a", "")), later.has_new_sessions) == (one, False)
    assert (later.session(one), later.session(99)) == ("a", "")


def test_paths_are_bytes(connection):
    """So they are compared in one way, whatever they are."""
    for number, path in enumerate(("/ä", b"/\xff")):
        connection.execute(
            """INSERT INTO files VALUES (?, ?, '', 0, 0, 0, 0, 0, 0, '', 1, 0, 0, '', '', '', 0, 0, 0, '')""",
            (number, path),
        )
    numbers = InternedIds(connection)
    assert [numbers.path(number) for number in range(3)] == ["/ä".encode(), b"/\xff", b""]
