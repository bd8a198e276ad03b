"""The book behind a watch: deleted, unusable, failing or busy, there always is one, and a sentence says so."""

import sqlite3
from pathlib import Path

import pytest

from sessionlog.analytics.watch import watching
from sessionlog.ledger.keep_open import RETRY_SECONDS, KeptBook
from tests.analytics.watch.watch_world import MINUTE, Machine
from tests.ledger.entries import NOON, PRICES


@pytest.fixture
def machine(tmp_path):
    """An empty home."""
    return Machine(tmp_path)


def test_a_ledger_that_is_deleted_is_noticed(machine):
    """It is made anew, and says the same."""
    machine.write("s-1", 100)
    with machine.watcher() as watcher:
        before = watcher.snapshot(NOON)
        for path in machine.home.glob("ledger.sqlite*"):
            path.unlink()
        assert watcher.snapshot(NOON) == before
        assert Path(machine.ledger).exists()


def test_a_ledger_that_cannot_be_used_is_a_sentence(machine):
    """The logs answer all the same."""
    Path(machine.ledger).write_text("no database at all, but a text", "utf-8")
    machine.write("s-1", 100)
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
        machine.write("s-1", 100, before=MINUTE)
        again = watcher.snapshot(NOON)
    assert [one.requests for one in (*seen.sessions, *again.sessions)] == [1, 2]
    assert seen.notes == again.notes
    assert seen.notes[0].startswith("the ledger is not used: ")


def test_a_ledger_that_fails_while_it_is_asked(machine, monkeypatch):
    """A damaged row may be anything: the same look is taken in memory."""
    machine.write("s-1", 100)
    find = watching.find_events

    def fail_on_a_file(query, window):
        if watcher._book._kept is not None:
            raise sqlite3.DatabaseError("database disk image is malformed")
        return find(query, window)

    monkeypatch.setattr(watching, "find_events", fail_on_a_file)
    with machine.watcher() as watcher:
        seen = watcher.snapshot(NOON)
    assert [one.session for one in seen.sessions] == ["s-1"]
    assert "malformed" in seen.notes[0]


def test_what_is_our_mistake_is_raised(machine, monkeypatch):
    """In memory there is nothing to fall back to."""
    monkeypatch.setattr(watching, "find_events", lambda *_: 1 / 0)
    with machine.watcher(ledger=None) as watcher, pytest.raises(ZeroDivisionError):
        watcher.snapshot(NOON)


def test_a_ledger_is_tried_again(machine):
    """But not at every look, and what is in memory meanwhile is kept."""
    now = [0.0]
    kept = KeptBook(machine.ledger, PRICES, machine.env, monotonic=lambda: now[0])
    Path(machine.ledger).write_text("no database at all, but a text", "utf-8")
    memory, notes = kept.ask(lambda book: (book, list(book.notes)))
    assert notes
    Path(machine.ledger).unlink()
    assert kept.ask(lambda book: (book, list(book.notes))) == (memory, notes)
    now[0] = RETRY_SECONDS
    book, notes = kept.ask(lambda book: (book, list(book.notes)))
    assert (book is not memory, notes) == (True, [])
    kept.close()


def test_a_busy_ledger_says_so(machine):
    """What is known is shown."""
    machine.write("s-1", 100)
    with machine.watcher() as watcher:
        watcher.snapshot(NOON)
        machine.write("s-1", 100, before=MINUTE)
        other = sqlite3.connect(machine.ledger, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        seen = watcher.snapshot(NOON)
        other.execute("ROLLBACK")
        other.close()
        assert [one.requests for one in seen.sessions] == [1]
        assert "another sessionlog is reading" in seen.notes[0]
        assert watcher.snapshot(NOON).notes == ()
