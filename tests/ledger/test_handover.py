"""Hand-over: a ledger that takes rows from files is the one into which they are inserted directly."""

import stat

import pytest

from sessionlog.engine.scanner import scan_share
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import TABLES
from sessionlog.ledger.handover import MOST_ATTACHED, HandedOver, HandOver, rows_in_file
from sessionlog.ledger.scanning import Job, Scanned
from sessionlog.ledger.writer import Writer
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, ToolUse
from tests.ledger.entries import NOON, PRICES, record, session


def call(key, **fields):
    """A call of Bash at noon."""
    return ToolUse(key=key, time_ns=NOON, tool="Bash", **fields)


def scans():
    """Logs with copies, names in common, names that are no text, superseded rows and large numbers; and more of one."""
    odd = session("c\udcff", record(model="m\udcff", input=2**70), record(superseded_by="native:a"), project="/\udcff")
    logs = [
        (session("a", record(key="k"), record(key="l", model="n"), tools=(call("1"),)), session("b", record())),
        (session("a", record(key="k", output=9), tools=(call("1", finished=True), call("2"))), odd),
        (),
    ]
    limit = Limit(name="5h", time_ns=NOON, used_percent=3.5)
    first = [Scanned(number=n, scan=LogScan(sessions=some), source="native") for n, some in enumerate(logs, 7)]
    more = LogScan(
        sessions=(session("a", record(key="l", model="n", output=6), record(), record(superseded_by="native:b")),),
        limits=(limit,),
        replaced_count=1,
    )
    return [first, [Scanned(number=7, scan=more, source="native", from_start=False)]]


def direct(batches):
    """The tables after all rows were inserted directly."""
    return after(batches, lambda _: None)


def after(batches, hand_over):
    """The tables of a ledger after some batches."""
    book = Book(PRICES)
    for logs in batches:
        book.connection.execute("BEGIN IMMEDIATE")
        writer, handed = Writer(book.connection, PRICES), HandedOver(book.connection)
        given = hand_over(logs)
        if given is not None:
            handed.attach(given, writer.ids)
        for scanned in logs:
            writer.insert(scanned.number + 100, scanned, None if given is None else handed)
        writer.reconcile()
        book.commit()
        handed.detach()
    return {table: sorted(book.connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def by_file(path):
    """A function that writes rows into a file, or into memory."""

    def hand_over(logs):
        with rows_in_file(path, PRICES) as (connection, rows):
            for scanned in logs:
                rows.insert(scanned.scan.sessions, scanned.number)
            connection.execute("COMMIT")
            data = connection.serialize() if path == ":memory:" else b""
        return HandOver(logs=logs, file="" if data else path, data=data)

    return hand_over


@pytest.mark.parametrize("name", ["rows", None])
def test_rows_that_are_handed_over_are_those_that_are_inserted(tmp_path, name):
    """With the ledger's own numbers for logs and names, also where a log has rows already; the file is gone."""
    path = ":memory:" if name is None else str(tmp_path / name)
    assert after(scans(), by_file(path)) == direct(scans())
    assert list(tmp_path.iterdir()) == []


def test_rows_of_many_files_are_taken_in_one_transaction(tmp_path):
    """Each of its own names; only as many as SQLite can attach."""
    book = Book(PRICES)
    book.connection.execute("BEGIN IMMEDIATE")
    writer, handed = Writer(book.connection, PRICES), HandedOver(book.connection)
    for number in range(MOST_ATTACHED):
        one = Scanned(number=0, scan=LogScan(sessions=(session(f"s{number}", record(model=f"m{number}")),)))
        handed.attach(by_file(str(tmp_path / str(number)))([one]), writer.ids)
        writer.insert(number + 1, one, handed)
    assert len(handed) == MOST_ATTACHED
    writer.reconcile()
    book.commit()
    handed.detach()
    sql = "SELECT s.session, l.model FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id"
    assert sorted(book.query(sql, {})) == [(f"s{number}", f"m{number}") for number in range(MOST_ATTACHED)]
    assert list(tmp_path.iterdir()) == []


def test_a_workers_file_is_the_users_alone(tmp_path):
    """As logs are."""
    log = tmp_path / "s.jsonl"
    log.write_text("")
    folder = tmp_path / "rows"
    folder.mkdir()
    given = scan_share([Job(number=3, source="native", path=str(log), size=0)], PRICES, str(folder))
    [file] = folder.iterdir()
    assert (given.file, stat.S_IMODE(file.stat().st_mode)) == (str(file), 0o600)
    assert [one.number for one in given.logs] == [3]


def test_a_worker_without_room_hands_nothing_over(tmp_path):
    """The ledger's owner scans its logs then."""
    job = Job(number=3, source="native", path=str(tmp_path / "s.jsonl"), size=0)
    assert scan_share([job], PRICES, str(tmp_path / "none")) is None
