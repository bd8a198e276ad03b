"""SQLiteStore: the contract, its file, and what can be wrong with it."""

import gc
import os
import sqlite3
import stat
import warnings

import pytest

from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.errors import InvalidHistory, InvalidSessionId, LogNotReadable, SessionNotSaved, StaleSession
from sessionlog.testing import FixedClock, SessionStoreContract
from tests.reliability.children import fork, in_child, wait


class TestSQLiteStore(SessionStoreContract):
    """What every store promises."""

    def make_store(self, tmp_path):
        return SQLiteStore(tmp_path / "agent_sessions.db")


@pytest.fixture
def store(tmp_path):
    """A store, closed afterwards."""
    with SQLiteStore(tmp_path / "s.db") as store:
        yield store


def open_descriptors(path):
    """How often a file and what is beside it are open in this process."""
    found = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    return sum(name.startswith(str(path)) for name in found)


def test_it_is_a_table_that_anybody_can_ask(store):
    """JSON text, with a version and the two times."""
    with SQLiteStore(store.path, clock=FixedClock("2026-11-21T10:00:00Z")) as other:
        other.save("s", {"v": 1})
        other.save("s", {"v": 2})
    with sqlite3.connect(store.path) as connection:
        rows = connection.execute("SELECT session_id, data, version, created_at, updated_at FROM sessions").fetchall()
    connection.close()
    assert rows == [("s", '{"v":2}', 2, "2026-11-21T10:00:00.000000Z", "2026-11-21T10:00:01.000000Z")]


def test_the_file_is_where_the_seed_has_it(tmp_path, monkeypatch):
    """And stays there when the process goes elsewhere."""
    monkeypatch.chdir(tmp_path)
    with SQLiteStore() as store:
        monkeypatch.chdir("/")
        store.save("s", {})
    assert (tmp_path / "agent_sessions.db").exists()


def test_writers_do_not_keep_readers_waiting(store):
    """Its journal is a write-ahead log."""
    store.save("s", {"v": 1})
    writer = sqlite3.connect(store.path, isolation_level=None)
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM sessions")
    assert (store.load("s"), store.list_sessions(), store.exists("s")) == ({"v": 1}, ["s"], True)
    writer.close()


def test_nobody_else_may_read_it(tmp_path):
    """Nor its write-ahead log, whatever the umask says."""

    def work():
        os.umask(0)
        store = SQLiteStore(tmp_path / "a" / "s.db")
        store.save("s", {})
        modes = {name: stat.S_IMODE(os.stat(tmp_path / "a" / name).st_mode) for name in os.listdir(tmp_path / "a")}
        return modes | {"a": stat.S_IMODE(os.stat(tmp_path / "a").st_mode)}

    modes = in_child(work)
    assert modes == {"a": 0o700, "s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600}


def test_saves_within_one_second_have_an_order(store):
    """The seed listed by the second, a session saved again behind older ones; clocks may even go back."""
    clock = FixedClock(step_ns=0)
    with SQLiteStore(store.path, clock=clock) as other:
        other.save("k", {})
        other.save("m", {})
        other.save("k", {"v": 2})
        clock.advance(-3600)
        other.save("z", {})
        assert other.list_sessions() == ["z", "k", "m"]


def test_connections_are_closed(tmp_path):
    """The seed never closed one."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    store = SQLiteStore(tmp_path / "s.db")
    store.save("s", {})
    assert open_descriptors(tmp_path) > 0
    store.close()
    store.close()
    assert open_descriptors(tmp_path) == 0
    assert sorted(os.listdir(tmp_path)) == ["s.db"]
    with SQLiteStore(tmp_path / "s.db") as again:
        assert again.load("s") == {}
    assert open_descriptors(tmp_path) == 0


def test_one_that_nobody_closed_lets_go(tmp_path):
    """When it is collected, without a warning."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("descriptors are listed in /proc only")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SQLiteStore(tmp_path / "s.db").save("s", {})
        gc.collect()
    assert open_descriptors(tmp_path) == 0


def test_a_closed_store_says_so(store):
    """It is not opened again behind its owner's back."""
    store.save("s", {})
    store.close()
    for call in (store.list_sessions, store.clear, store.vacuum, lambda: store.load("s"), lambda: store.save("s", {})):
        with pytest.raises(ValueError, match=r"s\.db: this store is closed"):
            call()


def test_the_last_writer_does_not_win(store):
    """The seed's upsert had no version."""
    with SQLiteStore(store.path) as other:
        store.save("s", {"by": "us"})
        with pytest.raises(StaleSession, match=r"stored already \(version 1\) and was not loaded"):
            other.save("s", {"by": "them"})
        theirs = other.load("s")
        store.save("s", {"by": "us again"})
        with pytest.raises(StaleSession, match=r"\(version 2, this one comes from 1\)"):
            other.save("s", theirs)
        assert other.load("s") == {"by": "us again"}


def test_a_refused_save_takes_no_version(store):
    """Nothing of its transaction is left."""
    store.save("s", {"v": 1})
    with SQLiteStore(store.path) as other, pytest.raises(StaleSession):
        other.save("s", {})
    with pytest.raises(InvalidHistory, match=r"\['a'\]: bytes is not JSON"):
        store.save("s", {"a": b""})
    assert store.save("s", {"v": 2}) == 2


@pytest.mark.parametrize("odd", ["", None, 7, "half \ud800"])
def test_an_id_is_a_text(store, odd):
    """Any that is not empty."""
    for call in (store.load, store.exists, store.delete, lambda name: store.save(name, {})):
        with pytest.raises(InvalidSessionId):
            call(odd)


def test_half_a_character_is_kept(store):
    """A stream that was cut may leave one in a text."""
    store.save("s", {"text": "\ud83d"})
    assert store.load("s") == {"text": "\ud83d"}


def test_clear_and_vacuum(store):
    """All are forgotten, and then their text is in no byte of the file."""
    for number in range(50):
        store.save(f"s{number}", {"secret": f"ELEPHANT{number}" * 100})
    large = os.path.getsize(store.path) + os.path.getsize(f"{store.path}-wal")
    store.clear()
    store.vacuum()
    assert (store.list_sessions(), store.load("s1")) == ([], None)
    store.save("s1", {"v": 1})
    store.close()
    with open(store.path, "rb") as file:
        content = file.read()
    assert b"ELEPHANT" not in content
    assert len(content) < large / 2


class TestTheFile:
    """Whose it is, and what is in it."""

    @pytest.mark.parametrize("kind", ["another program's", "newer", "text", "half"])
    def test_what_is_none_of_ours_is_left_as_it_is(self, tmp_path, kind):
        """And named."""
        path = tmp_path / "s.db"
        if kind == "newer":
            with SQLiteStore(path) as store:
                store.save("s", {"v": 1})
        if kind in {"newer", "another program's"}:
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA user_version = 9" if kind == "newer" else "CREATE TABLE sessions (id, data)")
            connection.close()
        else:
            path.write_bytes(
                {"text": b"hello, world" * 100, "half": b"SQLite format 3\x00" + b"\x10\x00" + b"x" * 900}[kind]
            )
        before = path.read_bytes()
        says = {
            "another program's": r"s\.db: another program's database; name another file",
            "newer": r"s\.db: made by a newer sessionlog \(version 9; this one reads 1\); it is left as it is",
            "text": r"s\.db: not opened: file is not a database; the stored data is unchanged",
            "half": r"s\.db: not opened: ",
        }
        with pytest.raises(InvalidHistory, match=says[kind]):
            SQLiteStore(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["s.db"]

    def test_a_link_is_refused(self, tmp_path):
        """Nothing is made where it leads."""
        (tmp_path / "s.db").symlink_to(tmp_path / "target")
        with pytest.raises(SessionNotSaved, match="it is a link; name the file itself"):
            SQLiteStore(tmp_path / "s.db")
        assert not (tmp_path / "target").exists()

    @pytest.mark.parametrize("kind", ["folder", "pipe"])
    def test_only_a_file_is_opened(self, tmp_path, kind):
        """Nothing hangs."""
        place = tmp_path / "s.db"
        place.mkdir() if kind == "folder" else os.mkfifo(place)
        with pytest.raises(SessionNotSaved, match="it is no regular file"):
            SQLiteStore(place)

    @pytest.mark.parametrize("path", ["", ":memory:"])
    def test_a_database_without_a_file_is_a_mistake(self, path):
        """It would be gone at the next fork."""
        with pytest.raises(ValueError, match="MemoryStore keeps sessions in memory"):
            SQLiteStore(path)

    def test_a_folder_that_cannot_be_had(self, tmp_path):
        """It is named."""
        (tmp_path / "file").write_text("")
        with pytest.raises(SessionNotSaved, match=r"s\.db: not opened: not a directory"):
            SQLiteStore(tmp_path / "file" / "s.db")

    def test_a_row_that_somebody_spoilt(self, store):
        """The others can be loaded; it is left as it is."""
        store.save("good", {})
        for number, odd in enumerate(["{", "[]", b"\xff", "NaN"]):
            store.save(f"bad{number}", {})
            with sqlite3.connect(store.path) as connection:
                connection.execute("UPDATE sessions SET data = ? WHERE session_id = ?", (odd, f"bad{number}"))
            connection.close()
            with pytest.raises(InvalidHistory, match=rf"s\.db: session 'bad{number}': not a saved session"):
                store.load(f"bad{number}")
        assert store.load("good") == {}

    def test_a_damaged_file(self, tmp_path):
        """What cannot be read is not None: who begins it anew would lose it."""
        with SQLiteStore(tmp_path / "s.db") as store:
            for number in range(30):
                store.save(f"s{number}", {"text": "x" * 5000})
        content = bytearray((tmp_path / "s.db").read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        (tmp_path / "s.db").write_bytes(content)
        with SQLiteStore(tmp_path / "s.db") as store:
            with pytest.raises(InvalidHistory, match="malformed"):
                store.load("s1")
            with pytest.raises(InvalidHistory, match="malformed"):
                store.save("s1", {})
        assert (tmp_path / "s.db").read_bytes() == content

    def test_one_that_others_keep_locked(self, store):
        """It is said after a while, and nothing is changed."""
        store.save("s", {"v": 1})
        writer = sqlite3.connect(store.path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with SQLiteStore(store.path, wait_seconds=0.005) as hasty:
            mine = hasty.load("s")
            with pytest.raises(SessionNotSaved, match="not saved: database is locked; the stored data is unchanged"):
                hasty.save("s", mine)
            writer.close()
            hasty.save("s", mine)

    def test_a_reader_that_is_locked_out(self, store):
        """Somebody repairs the file: a session that cannot be read now is not missing."""
        store.save("s", {"v": 1})
        store.close()
        other = sqlite3.connect(store.path, isolation_level=None)
        with SQLiteStore(store.path, wait_seconds=0.005) as hasty:
            hasty._disconnect()
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            other.execute("UPDATE counter SET last = last")
            with pytest.raises(LogNotReadable, match="not read: database is locked"):
                hasty.load("s")
            other.close()
            assert hasty.load("s") == {"v": 1}

    def test_a_file_that_was_deleted_takes_no_saves(self, store):
        """A new one is made: nothing is written into what has no name."""
        store.save("s", {"v": 1})
        mine = store.load("s")
        for name in os.listdir(os.path.dirname(store.path)):
            os.unlink(os.path.join(os.path.dirname(store.path), name))
        mine["v"] = 2
        store.save("s", mine)
        with SQLiteStore(store.path) as other:
            assert other.load("s") == {"v": 2}

    def test_several_that_make_it_at_once_make_one(self, tmp_path):
        """The first use on a machine may be by several agents."""

        def work(number):
            with SQLiteStore(tmp_path / "s.db") as store:
                store.save(f"s{number}", {})

        children = [fork(lambda number=number: work(number)) for number in range(6)]
        assert [wait(child) for child in children] == [0] * 6
        with SQLiteStore(tmp_path / "s.db") as store:
            assert len(store.list_sessions()) == 6


class TestFork:
    """SQLite's connections must not be carried into a child."""

    def test_parent_and_child_both_go_on(self, store):
        """Each with a connection of its own."""
        store.save("s", {"v": 1})

        def work():
            data = store.load("s")
            data["v"] = 2
            store.save("s", data)
            return [data.version, store.list_sessions()]

        assert in_child(work) == [2, ["s"]]
        mine = store.load("s")
        assert (mine, mine.version) == ({"v": 2}, 2)
        store.save("s", mine)

    def test_no_connection_is_open_while_it_forks(self, store):
        """A child that only inherits one would not know which locks it has."""
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("descriptors are listed in /proc only")
        store.save("s", {"v": 1})
        assert open_descriptors(os.path.dirname(store.path)) > 0
        assert in_child(lambda: open_descriptors(os.path.dirname(store.path))) == 0
        assert store.load("s") == {"v": 1}

    def test_a_closed_one_stays_closed(self, store):
        """In the child as well."""
        store.close()
        assert in_child(lambda: open_descriptors(os.path.dirname(store.path))) == 0
        with pytest.raises(ValueError, match="closed"):
            store.load("s")
