"""Page sums: every page of the ledger has a sum that its writers keep; what cannot be concluded from them is not."""

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from sessionlog.ledger import page_sums
from sessionlog.ledger.book import Book
from sessionlog.ledger.page_sums import check_pages, commit_number, keeping_sums
from sessionlog.ledger.store import open_ledger
from tests.ledger.entries import PRICES, record, session

PAGE = 4096


@pytest.fixture
def path(tmp_path):
    """Where a ledger will be."""
    return str(tmp_path / "own" / "ledger.sqlite")


def opened(path):
    return open_ledger(path, PRICES)


def fill(book, name, count=50):
    book.add(session(name, *(record(model=f"{name}-{n}") for n in range(count))))
    book.reconcile()


def filled(path, *names):
    """A ledger with these sessions, closed."""
    book = opened(path)
    for name in names:
        fill(book, name)
    book.close()


def checked(path):
    book = opened(path)
    try:
        return check_pages(path, book.connection)
    finally:
        book.close()


def damage(path, page, at=2000):
    content = bytearray(Path(path).read_bytes())
    content[(page - 1) * PAGE + at] ^= 8
    Path(path).write_bytes(content)


def test_a_new_ledger_has_no_sums_until_something_is_committed(path):
    """And that is no damage."""
    opened(path).close()
    assert checked(path) == page_sums.PageCheck(state="none")
    filled(path, "a")
    assert checked(path).state == "current"


def test_all_pages_are_summed_and_whole(path):
    """Those of the file, and nobody but its owner can read the sums."""
    filled(path, "a", "b")
    found = checked(path)
    assert (found.state, found.damaged) == ("current", ())
    assert found.pages == os.path.getsize(path) // PAGE > 5
    assert stat.S_IMODE(os.stat(path + ".sums").st_mode) == 0o600


@pytest.mark.parametrize("page", [1, 2, 5])
def test_damage_is_found_by_page(path, page):
    """Also in bytes that nothing uses."""
    filled(path, "a")
    damage(path, page)
    assert check_pages(path, None).damaged == (page,)


def test_a_file_that_is_cut_or_longer_is_damaged(path):
    """Every page that should be there, or should not."""
    filled(path, "a")
    pages = checked(path).pages
    with open(path, "ab") as file:
        file.write(b"x" * (PAGE + 10))
    assert check_pages(path, None).damaged == (pages + 1, pages + 2)
    os.truncate(path, (pages - 2) * PAGE)
    assert check_pages(path, None).damaged == (pages - 1, pages)


def test_each_commit_sums_only_what_it_wrote(path, monkeypatch):
    """While the sums before it are those of the commit before it, the file itself is not read."""
    book = opened(path)
    fill(book, "a")
    monkeypatch.setattr(page_sums, "_sums_of", lambda path: pytest.fail("all pages were read"))
    fill(book, "b", 500)
    fill(book, "c")
    monkeypatch.undo()
    assert check_pages(path, book.connection).state == "current"
    book.close()
    found = checked(path)
    assert (found.state, found.damaged) == ("current", ())


def test_pages_in_the_write_ahead_log_are_what_counts(path):
    """Before and after a checkpoint, with one writer or several, by whoever it is made."""
    first, second = opened(path), opened(path)
    first.connection.execute("PRAGMA wal_autocheckpoint = 0")
    for number in range(6):
        fill((first, second)[number % 2], f"s{number}")
        if number % 3 == 2:
            second.connection.execute("PRAGMA wal_checkpoint(RESTART)")
        found = check_pages(path, (second, first)[number % 2].connection)
        assert (found.state, found.damaged) == ("current", ())
    first.close()
    second.close()
    assert not os.path.exists(f"{path}-wal")
    assert checked(path).damaged == ()


def test_a_damaged_page_in_the_write_ahead_log_is_found(path):
    """It is what SQLite would read."""
    book = opened(path)
    fill(book, "a")
    with open(f"{path}-wal", "r+b") as file:
        file.seek(-100, os.SEEK_END)
        byte = file.read(1)
        file.seek(-100, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    assert check_pages(path, None).damaged != ()
    book.close()


def test_what_is_rolled_back_leaves_no_trace(path):
    """Its pages may be in the write-ahead log, but are not committed."""
    book = opened(path)
    fill(book, "a")
    book.connection.execute("PRAGMA cache_size = 5")
    book.connection.execute("BEGIN IMMEDIATE")
    book.connection.executemany("INSERT INTO meta VALUES (?, ?)", ((f"n{n}", "x" * 900) for n in range(300)))
    book.connection.execute("ROLLBACK")
    assert check_pages(path, book.connection) == page_sums.PageCheck(
        state="current", pages=check_pages(path, book.connection).pages
    )
    fill(book, "b")
    assert check_pages(path, book.connection).damaged == ()
    book.close()


def test_a_writer_killed_before_the_sums_leaves_them_older(path):
    """Nothing is concluded, and the next commit sums everything anew."""
    filled(path, "a")
    kept = Path(path + ".sums").read_bytes()
    filled(path, "b")
    Path(path + ".sums").write_bytes(kept)
    assert checked(path) == page_sums.PageCheck(state="older")
    filled(path, "c")
    found = checked(path)
    assert (found.state, found.damaged) == ("current", ())


def test_a_ledger_older_than_its_sums_has_lost_commits(path, tmp_path):
    """As after a power loss, or when a backup was put in its place."""
    filled(path, "a")
    shutil.copy(path, tmp_path / "kept")
    filled(path, "b")
    shutil.copy(tmp_path / "kept", path)
    assert checked(path) == page_sums.PageCheck(state="newer")
    filled(path, "c")
    assert checked(path).state == "current"


@pytest.mark.parametrize("content", [b"", b"no sums at all" * 400, b"SQLite format 3\0" + b"\xff" * 5000])
def test_sums_that_cannot_be_read_are_made_anew(path, content):
    """By the next commit; until then nothing is concluded."""
    filled(path, "a")
    Path(path + ".sums").write_bytes(content)
    assert checked(path) == page_sums.PageCheck(state="unreadable")
    filled(path, "b")
    assert (checked(path).state, checked(path).damaged) == ("current", ())


def test_damaged_sums_do_not_accuse_the_ledger(path):
    """They have a sum of their own."""
    filled(path, "a")
    whole = Path(path + ".sums").read_bytes()
    with sqlite3.connect(path + ".sums") as kept:
        [(pages,)] = kept.execute("SELECT pages FROM sums")
    kept.close()
    place = whole.index(pages[:40])
    Path(path + ".sums").write_bytes(whole[: place + 5] + bytes([whole[place + 5] ^ 1]) + whole[place + 6 :])
    assert checked(path).state == "unreadable"


def test_a_ledger_that_does_not_say_its_commit_is_compared_all_the_same(path):
    """The number has a sum, too: a damaged one is not another commit."""
    filled(path, "a")
    content = Path(path).read_bytes()
    place = content.index(b"commit") + len("commit")
    book = opened(path)
    assert commit_number(book.connection) == 1
    book.close()
    Path(path).write_bytes(content[:place] + b"2" + content[place + 1 :])
    found = checked(path)
    assert found.state == "unnumbered"
    assert len(found.damaged) == 1


def test_sums_that_cannot_be_written_stop_nothing(path, monkeypatch):
    """A commit is a commit."""
    monkeypatch.setattr(page_sums, "_WAIT_SECONDS", 0.0)
    filled(path, "a")
    holder = sqlite3.connect(path + ".sums", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    filled(path, "b")
    holder.execute("ROLLBACK")
    holder.close()
    assert checked(path).state == "older"
    os.unlink(path + ".sums")
    os.mkdir(path + ".sums")
    filled(path, "c")
    assert checked(path).state == "unreadable"
    book = opened(path)
    assert book.query("SELECT COUNT(*) FROM sessions", {}) == [(3,)]
    book.close()


def test_a_commit_that_fails_keeps_the_old_sums(path):
    """And lets go of the lock."""
    filled(path, "a")
    book = opened(path)
    book.connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(KeyError), keeping_sums(book.connection):
        raise KeyError
    book.connection.execute("ROLLBACK")
    assert check_pages(path, book.connection).state == "current"
    book.close()


def test_a_book_in_memory_has_no_sums(tmp_path, monkeypatch):
    """There is no file to be damaged."""
    monkeypatch.chdir(tmp_path)
    book = Book(PRICES)
    fill(book, "a")
    assert book.said("commit") is None
    assert os.listdir(tmp_path) == []
