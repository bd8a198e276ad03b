"""What a log looks like from outside: any change of it, and of what is read beside it, must show."""

import os
import sqlite3

import pytest

from sessionlog.ledger.identity import are_sidecars_unchanged, identify, path_of, stored_path

OLD = 1_700_000_000 * 10**9


@pytest.fixture
def log(tmp_path):
    """A log of long ago."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    os.utime(path, ns=(OLD, OLD))
    return path


def look(path, *beside):
    return identify(str(path), [str(one) for one in beside])


def test_a_log_that_is_not_there_looks_like_nothing(tmp_path):
    """Nor does one under a file instead of a folder."""
    (tmp_path / "file").write_bytes(b"")
    assert look(tmp_path / "none") is None
    assert look(tmp_path / "file" / "none") is None


def test_an_unchanged_log_looks_the_same(log):
    """Reading it changes nothing."""
    before = look(log)
    log.read_bytes()
    assert look(log) == before
    assert before[2:] == (4, OLD, log.stat().st_ctime_ns, "")


def test_more_bytes_another_time_and_another_file_show(log):
    """Each alone."""
    before = look(log)
    os.utime(log, ns=(OLD, OLD + 1))
    later = look(log)
    os.utime(log, ns=(OLD, OLD))
    copy = log.with_name("b")
    copy.write_bytes(b"one\n")
    os.utime(copy, ns=(OLD, OLD))
    copy.replace(log)
    other = look(log)
    log.write_bytes(b"longer\n")
    os.utime(log, ns=(OLD, OLD))
    assert len({before, later, other, look(log)}) == 4


def test_a_rewrite_that_sets_size_and_mtime_back_shows(log):
    """The ctime is nobody's to set."""
    before = look(log)
    with log.open("r+b") as file:
        file.write(b"two")
    os.utime(log, ns=(OLD, OLD))
    assert (look(log)[:4], look(log) == before) == (before[:4], False)


def test_what_is_beside_shows_when_it_comes_changes_and_goes(log):
    """An absent file may come."""
    side = log.with_name("a.meta.json")
    absent = look(log, side)
    side.write_bytes(b"{}")
    os.utime(side, ns=(OLD, OLD))
    there = look(log, side)
    os.utime(side, ns=(OLD, OLD + 1))
    later = look(log, side)
    side.unlink()
    assert len({absent, there, later}) == 3
    assert look(log, side) == absent


def test_what_is_beside_is_compared_without_the_source(log):
    """Also paths with lines, colons and bytes that are no text; no file beside is no change."""
    odd = [log.with_name("a\nb:c"), os.fsdecode(os.fsencode(log.parent) + b"/\xff")]
    told = look(log, *odd)[-1]
    assert are_sidecars_unchanged(told)
    log.with_name("a\nb:c").write_bytes(b"x")
    assert not are_sidecars_unchanged(told)
    assert are_sidecars_unchanged(look(log, *odd)[-1])
    assert are_sidecars_unchanged("")


def test_a_databases_log_of_writes_is_beside_it(tmp_path):
    """New rows are there before they are in the file."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    before = look(path)
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    assert look(path) != before
    connection.close()


def test_a_folder_of_files_is_known_by_all_of_them(tmp_path):
    """One that comes, goes, grows, or is another one of the same size and time."""
    folder = tmp_path / "session"
    (folder / "deep").mkdir(parents=True)
    first, second = folder / "1.json", folder / "deep" / "2.json"

    def write(path, content):
        path.write_bytes(content)
        os.utime(path, ns=(OLD, OLD))
        return look(folder)

    one = write(first, b"1")
    two = write(second, b"2")
    assert two[2:4] == (2, OLD)
    grown = write(second, b"22")
    spare = tmp_path / "spare"
    write(spare, b"33")
    spare.replace(second)
    replaced = look(folder)
    second.unlink()
    assert len({one, two, grown, replaced}) == 4
    assert look(folder) == one


def test_a_change_inside_a_folder_is_beside_what_is_compared_without_the_source(tmp_path):
    """What is inside is looked at with the source alone: such a log never passes for unchanged otherwise."""
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "1.json").write_bytes(b"1")
    assert not are_sidecars_unchanged(look(folder)[-1])


@pytest.mark.parametrize("path", ["/a/b", "/ä/b", os.fsdecode(b"/a/\xff"), "/a\nb"])
def test_every_path_can_be_stored(path):
    """And comes back as it was."""
    stored = stored_path(path)
    connection = sqlite3.connect(":memory:")
    [(back,)] = connection.execute("SELECT ?", (stored,))
    connection.close()
    assert path_of(back) == path
