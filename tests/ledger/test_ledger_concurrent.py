"""Several processes sync and read one ledger at once: every answer is one true state, and nobody waits long."""

import json
import os
import sqlite3
import time
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from sessionlog import files
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.ledger import opening
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.problems import BUSY
from sessionlog.ledger.schema import VERSION
from sessionlog.search.store import open_index
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PATHS
from tests.ledger.little_reports import counted, of_ledger, of_scan
from tests.reliability.children import fork, wait

BOUND = 4.0
"""Seconds that a question may take while another process holds the lock: who waits for it waits five."""


@pytest.fixture
def home(tmp_path):
    """A home in which every log holds one answer."""
    home = LittleHome(tmp_path)
    for path in ("s/n1.jsonl", *PATHS["claude"][:1]):
        home.append(path, [("answer", 0, 1)])
    return home


@pytest.fixture
def writer(home):
    """Another connection to the ledger, for who writes."""
    of_ledger(home, PRICES)
    connection = sqlite3.connect(home.ledger, isolation_level=None)
    yield connection
    connection.close()


def sums(book):
    """Sums over cells, records and shares of sessions, which must be the same at any moment; and the calls."""
    [cells], [records] = (
        book.query(f"SELECT COALESCE(SUM(requests), 0), COALESCE(SUM(output), 0) FROM {table}", {})
        for table in ("quarter_hours", "records")
    )
    assert cells == records
    [(calls,)] = book.query("SELECT COUNT(*) FROM tools", {})
    return [*cells, calls]


def watch(home, rounds):
    """Ask so many times; what the ledger said.

    While it cannot be opened yet the logs are read by themselves: that is ahead of what the ledger says next.
    """
    answers = [
        ask(Where(ledger=home.ledger, env=home.env, prices=PRICES), lambda book: (sums(book), list(book.notes)))
        for _ in range(rounds)
    ]
    return [seen for seen, notes in answers if not any("the ledger is not used" in note for note in notes)]


def run_together(home, folder, processes, rounds):
    """Several processes ask while logs grow by an answer at a time; what each of them saw."""
    children = []
    for number in range(processes):

        def work(number=number):
            told = json.dumps(watch(home, rounds))
            (folder / f"{number}.json").write_text(told)

        children.append(fork(work))
    for amount in range(rounds):
        home.append("s/n1.jsonl", [("answer", amount % 3, 1), ("tool", amount % 2, 1)])
        home.append(PATHS["codex"][amount % 2], [("count", 0, 1)])
        home.append(PATHS["claude"][0], [("answer", amount, 1)])
    assert [wait(child) for child in children] == [0] * processes
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(processes)]


@pytest.mark.parametrize(
    ("processes", "rounds"),
    [(4, 12), pytest.param(8, 200, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
def test_p23_every_answer_is_a_state_that_was(home, tmp_path, processes, rounds):
    """Nothing is counted twice or lost meanwhile: while logs only grow so do the numbers, and the last are exact."""
    for seen in run_together(home, tmp_path, processes, rounds):
        assert seen
        assert seen == sorted(seen)
        for before, after in pairwise(seen):
            assert all(one <= other for one, other in zip(before, after, strict=True))
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_who_finds_the_ledger_locked_says_so_and_gives_the_numbers_before(home, writer):
    """At once: a first sync of a large home takes a minute."""
    before = of_ledger(home, PRICES)
    home.append("s/n1.jsonl", [("answer", 1, 5)])
    writer.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    answer = of_ledger(home, PRICES)
    assert time.monotonic() - began < BOUND
    assert (counted(answer), answer["notes"]) == (counted(before), [BUSY])
    writer.execute("COMMIT")
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_reader_without_a_write_ahead_log_is_no_damage(home, writer):
    """Where a file system has none, a reader keeps a writer from its commit: what was written is rolled back."""
    before = of_ledger(home, PRICES)
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("UPDATE meta SET value = 'older' WHERE name = 'prices'")
    writer.execute("BEGIN")
    writer.execute("SELECT * FROM meta").fetchall()
    answer = of_ledger(home, PRICES)
    assert (counted(answer), answer["notes"]) == (counted(before), [BUSY])
    writer.execute("COMMIT")
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_ledger_that_is_being_filled_for_the_first_time_is_no_number_yet(home):
    """The logs are read by themselves then: zeros would be believed."""
    first = opening.open_ledger(home.ledger, PRICES)
    first.connection.execute("BEGIN IMMEDIATE")
    answer = of_ledger(home, PRICES)
    first.close()
    [note] = answer["notes"]
    assert "for the first time" in note
    assert counted(answer) == counted(of_scan(home, PRICES))


def test_a_ledger_locked_midway_is_busy_not_damaged(home, writer, monkeypatch):
    """Between two transactions of a sync another process may begin one of its own, and take long."""
    before = of_ledger(home, PRICES)
    home.append("s/n1.jsonl", [("answer", 1, 5)])

    def locked(*_, **__):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr("sessionlog.ledger.new_logs.sync", locked)
    answer = of_ledger(home, PRICES)
    assert (counted(answer), answer["notes"]) == (counted(before), [BUSY])


def test_who_has_nothing_to_read_does_not_wait_for_a_writer(home, writer):
    """All logs are in: where they were looked for can be written down another time."""
    os.utime(home.folder / "s", ns=(0, home.tick()))
    writer.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    answer = of_ledger(home, PRICES)
    assert time.monotonic() - began < BOUND
    assert (counted(answer), answer["notes"]) == (counted(of_scan(home, PRICES)), [])


def test_a_writer_does_not_keep_readers_from_what_has_not_changed(home, writer):
    """Nothing has changed, nothing is written, nobody is waited for."""
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM quarter_hours")
    began = time.monotonic()
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    assert time.monotonic() - began < BOUND


def test_a_reader_does_not_keep_a_writer_waiting(home):
    """It goes on seeing what it saw."""
    of_ledger(home, PRICES)
    reader = opening.open_ledger(home.ledger, PRICES)
    with reader.reading():
        before = sums(reader)
        home.append("s/n1.jsonl", [("answer", 1, 5)])
        began = time.monotonic()
        assert of_ledger(home, PRICES) == of_scan(home, PRICES)
        assert time.monotonic() - began < BOUND
        assert sums(reader) == before
    assert sums(reader) > before
    reader.close()


def test_two_that_make_a_ledger_at_once_make_one(home, tmp_path):
    """The first use on a machine may be by several agents."""
    children = [fork(lambda: of_ledger(home, PRICES)) for _ in range(4)]
    assert [wait(child) for child in children] == [0] * 4
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


class Interrupted(sqlite3.Connection):
    """A connection before whose statement of one number somebody else does something."""

    left = 0
    visit = staticmethod(lambda: None)

    def execute(self, *arguments):
        """Run a statement."""
        Interrupted.left -= 1
        if Interrupted.left == 0:
            Interrupted.visit()
        return super().execute(*arguments)


def open_interrupted(monkeypatch, opened, visit, number):
    """Open while `visit` comes before this statement of the opening; whether there was such a statement."""
    connect = sqlite3.connect
    Interrupted.left, Interrupted.visit = number, staticmethod(visit)
    with monkeypatch.context() as patch:
        patch.setattr("sqlite3.connect", lambda *args, **named: connect(*args, **named, factory=Interrupted))
        opened()
    return Interrupted.left <= 0


OPENINGS = {
    "ledger": lambda path: opening.open_ledger(path, PRICES).close(),
    "index": lambda path: open_index(path)[0].close(),
    "conversations": lambda path: SQLiteStore(path).close(),
}


@pytest.mark.parametrize("what", OPENINGS)
def test_another_first_use_may_come_at_any_moment(tmp_path, monkeypatch, what):
    """It makes the file before any statement of this one, and both have it, once."""
    connect, path = sqlite3.connect, ""

    def visit():
        with pytest.MonkeyPatch.context() as patch, suppress(OSError, ValueError):  # locked while this one creates
            patch.setattr("sqlite3.connect", lambda *args, **named: connect(*args, **{**named, "timeout": 0}))
            patch.setattr("sessionlog.ledger.opening.WAIT_SECONDS", 0)
            OPENINGS[what](path)

    number, is_reached = 0, True
    while is_reached:
        number += 1
        path = str(tmp_path / f"{number}" / "it.db")
        is_reached = open_interrupted(monkeypatch, partial(OPENINGS[what], path), visit, number)
        OPENINGS[what](path)
    assert number > 5


@pytest.mark.parametrize("what", ["ledger", "index"])
def test_a_first_use_waits_for_another_one_that_has_the_lock(tmp_path, monkeypatch, what):
    """SQLite does not wait by itself where the journal's mode is set."""
    path = str(tmp_path / "it.db")
    files.make_private(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("sessionlog.ledger.opening.time.sleep", lambda _: other.close())
    OPENINGS[what](path)
    [(mode,)] = sqlite3.connect(path).execute("PRAGMA journal_mode")
    assert mode == "wal"


def test_a_migration_is_whole_or_not_there(tmp_path, monkeypatch):
    """Who opens an older ledger meanwhile sees the older one, and what is derived of the new one with its tables."""
    path = tmp_path / "ledger.db"
    dump = (Path(__file__).parents[2] / "testdata/ledger/version-4.sql").read_text()
    seen = set()

    def look():
        other = sqlite3.connect(path, timeout=0)
        [(version,)] = other.execute("PRAGMA user_version").fetchall()
        [(requests,)] = other.execute("SELECT SUM(requests) FROM quarter_hours").fetchall()
        seen.add((version, requests))
        other.close()

    for number in range(1, 10_000, 40):
        path.unlink(missing_ok=True)
        made = sqlite3.connect(path)
        made.executescript(dump)
        made.execute("PRAGMA journal_mode = WAL")
        made.close()
        path.chmod(0o600)
        if not open_interrupted(monkeypatch, lambda: opening.open_ledger(str(path), PRICES).close(), look, number):
            break
        assert open_interrupted(monkeypatch, lambda: opening.open_ledger(str(path), PRICES).close(), look, 1)
    assert seen == {(4, 14), (VERSION, 14)}
