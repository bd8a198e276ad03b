"""What belongs to a log is found, and only what can be read is taken."""

import os
import sqlite3

import pytest

from sessionlog.archive.collect import contents_of, last_written_ns, list_files
from sessionlog.errors import LogNotReadable
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import load_source
from tests.sources.logs import LONG_AGO, start, write_log


def log_at(path, source="native"):
    """A log of a source."""
    return Log(source=load_source(source), path=str(path))


def test_a_file_is_looked_at_and_not_opened(tmp_path, monkeypatch):
    """Its size and its time are enough."""
    path = write_log(tmp_path / "s.jsonl", start())
    monkeypatch.setattr(os, "open", None)
    [seen] = list_files(log_at(path))
    assert (seen.path, seen.kind, seen.size) == (path, "own", os.path.getsize(path))


def test_a_folder_is_all_of_its_files(tmp_path):
    """In a stable order, with what is beside it; devices are none."""
    message = tmp_path / "storage" / "message" / "ses_1"
    part = tmp_path / "storage" / "part" / "msg_1"
    for folder in (message, part):
        folder.mkdir(parents=True)
    for name in ("msg_1.json", "a.json"):
        (message / name).write_text("{}")
    (part / "prt_1.json").write_text("{}")
    os.mkfifo(message / "pipe")
    seen = list_files(log_at(message, "opencode"))
    assert [(os.path.basename(one.path), one.kind) for one in seen] == [
        ("a.json", "own"), ("msg_1.json", "own"), ("prt_1.json", "part"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["none.jsonl", "pipe.jsonl"])
def test_what_is_no_file_is_not_readable(tmp_path, name):
    """Neither nothing nor a device is a log."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(LogNotReadable, match="no such file"):
        list_files(log_at(tmp_path / name))


def test_what_happens_beside_a_log_does_not_keep_it_open(tmp_path):
    """A shared index is written to all the time; a database's write-ahead log is the database's own."""
    log = write_log(tmp_path / "agents" / "a" / "sessions" / "s.jsonl", start())
    index = tmp_path / "agents" / "a" / "sessions" / "sessions.json"
    index.write_text("{}")
    seen = list_files(log_at(log, "openclaw"))
    assert [one.kind for one in seen] == ["own", "beside"]
    assert last_written_ns(seen) == LONG_AGO * 10**9
    database = tmp_path / "logs.db"
    for path in (database, tmp_path / "logs.db-wal"):
        path.write_bytes(b"x")
        os.utime(path, (LONG_AGO, LONG_AGO))
    os.utime(tmp_path / "logs.db-wal", (LONG_AGO + 9, LONG_AGO + 9))
    assert last_written_ns(list_files(log_at(database, "llm"))) == (LONG_AGO + 9) * 10**9


def test_a_damaged_database_is_kept_as_it_is(tmp_path):
    """Its bytes are all that there is."""
    path = tmp_path / "logs.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\xee" * 5000)
    [content] = contents_of(list_files(log_at(path, "llm")), str(tmp_path))
    assert b"".join(content.pieces()) == path.read_bytes()


def test_a_locked_database_is_left_for_later(tmp_path, monkeypatch):
    """Bytes in the middle of a change would be no database."""
    path = tmp_path / "logs.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE t (x)")
    writer.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("sessionlog.archive.collect.open_database", impatient)
    with pytest.raises(LogNotReadable, match="locked"):
        contents_of(list_files(log_at(path, "llm")), str(tmp_path))
    writer.close()


def impatient(path):
    """Open a database without waiting for its writer."""
    from sessionlog.reader.database import open_database

    return open_database(path, wait_seconds=0)


def test_what_cannot_be_read_beside_a_log_is_left_out(tmp_path):
    """The log itself is worth keeping without it."""
    log = write_log(tmp_path / "agents" / "a" / "sessions" / "s.jsonl", start())
    index = tmp_path / "agents" / "a" / "sessions" / "sessions.json"
    index.write_text("{}")
    seen = list_files(log_at(log, "openclaw"))
    index.unlink()
    os.mkfifo(index)
    assert [content.path for content in contents_of(seen, str(tmp_path))] == [log]
