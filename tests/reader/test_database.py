"""Other programs' databases: read as they are at that moment, and left without a trace."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from sessionlog.errors import LogNotReadable
from sessionlog.reader.database import WAIT_SECONDS, open_database

NOBODY = 65534


@pytest.fixture
def writer(tmp_path):
    """Make databases that are open in their program, with one row; journal modes as asked for."""
    opened = []

    def make(*pragmas, name="x.db"):
        connection = sqlite3.connect(tmp_path / name, isolation_level=None)
        opened.append(connection)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        return connection

    yield make
    for connection in opened:
        connection.close()


def state(folder):
    """Every file with its size and time."""
    return {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in Path(folder).iterdir()}


def rows(path, **options):
    """What a reader sees; it leaves the folder as it was."""
    before = state(Path(path).parent)
    with closing(open_database(str(path), **options)) as connection:
        found = [a for (a,) in connection.execute("SELECT a FROM t")]
    assert state(Path(path).parent) == before
    return found


def refusal(path, **options):
    """Why it is not readable; nothing is left behind either."""
    before = state(Path(path).parent)
    with pytest.raises(LogNotReadable) as caught:
        open_database(str(path), **options)
    assert state(Path(path).parent) == before
    return str(caught.value)


@pytest.mark.parametrize("mode", ["delete", "wal", "truncate", "persist"])
def test_a_database_in_use_is_read(writer, tmp_path, mode):
    """With what was committed, without what was not."""
    program = writer(f"journal_mode = {mode}")
    assert rows(tmp_path / "x.db") == [1]
    program.execute("BEGIN IMMEDIATE")
    program.execute("INSERT INTO t VALUES (2)")
    assert rows(tmp_path / "x.db") == [1]
    program.execute("COMMIT")
    assert rows(tmp_path / "x.db") == [1, 2]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_that_was_closed_is_read(writer, tmp_path, mode):
    """Nothing lies beside it, and nothing does afterwards."""
    writer(f"journal_mode = {mode}").close()
    assert list(state(tmp_path)) == ["x.db"]
    assert rows(tmp_path / "x.db") == [1]


def test_a_log_that_was_just_written_back_is_no_reason_to_look_away(writer, tmp_path):
    """It is empty, but its writer is there and may fill it while we read."""
    program = writer("journal_mode = wal")
    program.execute("PRAGMA wal_checkpoint(truncate)")
    assert (tmp_path / "x.db-wal").stat().st_size == 0
    with closing(open_database(str(tmp_path / "x.db"))) as connection:
        program.execute("INSERT INTO t VALUES (2)")
        assert connection.execute("SELECT COUNT(*) FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize("left", [("-wal", "-shm"), ("-wal",)])
def test_what_a_killed_program_left_in_its_log_is_read(writer, tmp_path, left):
    """Also from a backup that left the shared memory out."""
    writer("journal_mode = wal")
    (tmp_path / "copy").mkdir()
    for suffix in ("", *left):
        shutil.copy(tmp_path / f"x.db{suffix}", tmp_path / "copy")
    assert rows(tmp_path / "copy" / "x.db") == [1]


def test_a_private_copy_goes_away(writer, tmp_path, monkeypatch):
    """No folder for temporary files keeps somebody's conversations."""
    writer("journal_mode = wal")
    folder, temporary = tmp_path / "copy", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"x.db{suffix}", folder)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with closing(open_database(str(folder / "x.db"))) as connection:
        assert list(temporary.iterdir()) == []
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_link_leads_to_the_log_beside_its_file(writer, tmp_path):
    """What is in the write-ahead log is not lost on the way."""
    writer("journal_mode = wal")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "x.db").symlink_to(tmp_path / "x.db")
    assert rows(tmp_path / "links" / "x.db") == [1]


@pytest.mark.parametrize("pragmas", [("journal_mode = delete",), ("locking_mode = exclusive", "journal_mode = wal")])
def test_a_locked_database_is_waited_for_and_then_named(writer, tmp_path, pragmas):
    """Not for long: it is one of many logs."""
    writer(*pragmas).execute("BEGIN EXCLUSIVE")
    started = time.monotonic()
    assert refusal(tmp_path / "x.db", wait_seconds=0.05).endswith(
        "x.db: locked by another program; close it, or try again when it has finished"
    )
    assert time.monotonic() - started < 1
    assert WAIT_SECONDS <= 2


def test_a_journal_that_was_left_behind_is_not_played_back(writer, tmp_path):
    """The file itself is half changed then, and to mend it is its program's business."""
    program = writer("journal_mode = delete", "cache_size = 5")
    program.execute("BEGIN")
    program.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 500)
    program.execute("UPDATE t SET a = a || '!'")
    (tmp_path / "copy").mkdir()
    for suffix in ("", "-journal"):
        shutil.copy(tmp_path / f"x.db{suffix}", tmp_path / "copy")
    assert "readonly" in refusal(tmp_path / "copy" / "x.db")


def test_nothing_can_be_written(writer, tmp_path):
    """Whatever a source asks, it is a question."""
    writer()
    with closing(open_database(str(tmp_path / "x.db"))) as connection:
        for statement in ("INSERT INTO t VALUES (2)", "DROP TABLE t", "CREATE TABLE u (a)"):
            with pytest.raises(sqlite3.OperationalError):
                connection.execute(statement)


def test_text_that_is_no_utf_8_is_mended(writer, tmp_path):
    """A broken name is no reason to lose a conversation."""
    writer().execute("UPDATE t SET a = CAST(x'61ff62' AS TEXT)")
    assert rows(tmp_path / "x.db") == ["a\ufffdb"]


@pytest.mark.parametrize("name", ["a b?c#d%20.db", "bad-\udcff.db", "ü.db", "x&mode=rwc.db"])
def test_any_file_name_will_do(tmp_path, name):
    """Names are bytes and never part of how the file is opened."""
    path = tmp_path / name
    with closing(sqlite3.connect(os.fsencode(path))) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.commit()
    assert rows(path) == []


@pytest.mark.parametrize("content", [b"hello" * 1000, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_what_is_no_database_is_named(tmp_path, content):
    """With its path, and why."""
    (tmp_path / "x.db").write_bytes(content)
    assert refusal(tmp_path / "x.db").startswith(f"{tmp_path}/x.db: ")


def test_a_truncated_database_is_named_when_it_is_opened_or_read(writer, tmp_path):
    """It never looks like a smaller one."""
    program = writer("journal_mode = delete")
    program.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 500)
    program.close()
    content = (tmp_path / "x.db").read_bytes()
    for length in (50, 500, 4096, 5000, len(content) // 2):
        (tmp_path / "x.db").write_bytes(content[:length])
        with pytest.raises((LogNotReadable, sqlite3.DatabaseError)):
            rows(tmp_path / "x.db")


@pytest.mark.parametrize("make", [lambda p: None, Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_readable(tmp_path, make):
    """Missing, a folder, a pipe: none is opened by SQLite."""
    make(tmp_path / "x.db")
    refusal(tmp_path / "x.db")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_link_to_a_file_of_another_user_is_refused(writer, tmp_path):
    """A link that somebody else may have placed does not lead us to secrets of its target's owner."""
    writer().close()
    (tmp_path / "link.db").symlink_to(tmp_path / "x.db")
    os.lchown(tmp_path / "link.db", NOBODY, NOBODY)
    assert "a link to a file of another user" in refusal(tmp_path / "link.db")
