"""A store on a disk that is full or fails: what was stored stays, the refusal has a name, and the next save goes well."""

import errno
import os
import sqlite3
import subprocess
from collections import Counter
from contextlib import contextmanager, suppress

import pytest

from sessionlog.conversation.stores.file import FileStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.errors import LogNotReadable, SessionNotSaved
from tests.reliability.seam import CALLS, Double, put

CAUSES = ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EMFILE", "EFBIG", "ESTALE")
MEGABYTE = 1 << 20


class FailingFile:
    """A file whose writes go through a watch; what was written before a failure stays half written."""

    def __init__(self, file, fuse):
        self._file, self._fuse = file, fuse

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, piece):
        self._file.write(piece[: len(piece) // 2])
        self._fuse.meet("write")
        self._file.write(piece[len(piece) // 2 :])

    def __getattr__(self, name):
        return getattr(self._file, name)


class Fuse:
    """Lets call `nth` of one function fail, from when it is armed."""

    def __init__(self, call=None, nth=0, cause="EIO"):
        self.arm(call, nth, cause)

    def arm(self, call=None, nth=0, cause="EIO"):
        self._fault, self._cause = (call, nth), cause
        self.calls = Counter()

    def meet(self, name):
        self.calls[name] += 1
        if (name, self.calls[name]) == self._fault:
            code = getattr(errno, self._cause)
            raise OSError(code, os.strerror(code))

    def __call__(self, name, real, args, kwargs):
        if name == "fsync":  # the disk's time is not what is tested
            self.meet(name)
            return None
        if name == "close":  # Linux closes, whatever it says
            real(*args)
            self.meet(name)
            return None
        self.meet(name)
        opened = real(*args, **kwargs)
        return FailingFile(opened, self) if name == "fdopen" and args[1] == "wb" else opened


@contextmanager
def faults(fuse):
    """Put the fuse between `files` and the system."""
    with pytest.MonkeyPatch.context() as patch:
        put(patch, "os", Double(os, (*CALLS, "fdopen", "replace", "lstat"), fuse))
        yield


def every_fault(folder):
    """Every call that a save makes, with each cause."""
    store = FileStore(folder)
    store.save("s", {"v": 1})
    fuse = Fuse()
    with faults(fuse):
        store.save("s", {"v": 2})
    store.delete("s")
    return [(call, nth, cause) for call, times in fuse.calls.items() for nth in range(1, times + 1) for cause in CAUSES]


def refusal(store, name, data):
    """What a store says to a save; None if it took it."""
    try:
        store.save(name, data)
    except SessionNotSaved as error:
        return str(error)
    return None


def test_every_call_that_can_fail(tmp_path):
    """The file is the old one or the new one, the error is SessionNotSaved, and the same save can be tried again."""
    tried = every_fault(tmp_path / "count")
    assert {"write", "fsync", "replace", "open"} <= {call for call, _, _ in tried}
    fuse = Fuse()
    with faults(fuse):
        for number, fault in enumerate(tried):
            name = f"s{number % 7}"
            store = FileStore(tmp_path / "sessions")
            store.delete(name)
            store.save(name, {"v": "old"})
            mine = store.load(name)
            mine["v"] = "new"
            fuse.arm(*fault)
            said = refusal(store, name, mine)
            fuse.arm()
            assert said is None or f"{name}.json: not saved: " in said, fault
            may_be = [{"v": "new"}] if said is None else [{"v": "new"}, {"v": "old"}]
            assert FileStore(tmp_path / "sessions").load(name) in may_be, fault
            mine["v"] = "newer"
            store.save(name, mine)
            assert store.load(name) == {"v": "newer"}, fault
            assert store.list_sessions()[0] == name, fault


def test_a_first_save_that_fails_leaves_nothing(tmp_path):
    """No file of that session, whole or not; the next one makes it."""
    store = FileStore(tmp_path / "sessions")
    with faults(Fuse("write", 2, "ENOSPC")), pytest.raises(SessionNotSaved, match=r"s\.json: not saved: no space left"):
        store.save("s", {"v": 1})
    assert (store.load("s"), store.list_sessions()) == (None, [])
    assert [name for name in os.listdir(store.directory) if "json" in name] == []
    store.save("s", {"v": 1})
    assert store.load("s") == {"v": 1}


@pytest.fixture
def disk(tmp_path):
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_keeps_the_old_file(disk):
    """A session that has grown too large is refused, the one before is there byte for byte, and room again is enough."""
    store = FileStore(disk / "sessions")
    store.save("s", {"text": "x" * 400_000})
    mine = store.load("s")
    with open(os.path.join(store.directory, "s.json"), "rb") as file:
        before = file.read()
    mine["text"] = "y" * 700_000
    with pytest.raises(SessionNotSaved, match=r"s\.json: not saved: no space left on device; it is unchanged"):
        store.save("s", mine)
    with open(os.path.join(store.directory, "s.json"), "rb") as file:
        assert file.read() == before
    assert sorted(os.listdir(store.directory)) == [".counter", ".lock", "s.json"]
    mine["text"] = "z" * 450_000
    store.save("s", mine)
    assert store.load("s") == {"text": "z" * 450_000}


def test_a_disk_without_one_free_byte(disk):
    """Not even the counter can be written: the session is as it was, and can be loaded, listed and deleted."""
    store = FileStore(disk / "sessions")
    store.save("s", {"v": 1})
    with open(disk / "ballast", "wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)
    with pytest.raises(SessionNotSaved, match="no space left"):
        store.save("s", {"v": 2})
    assert (store.load("s"), store.list_sessions(), store.delete("s")) == ({"v": 1}, ["s"], True)


def test_sqlite_on_a_full_disk(disk):
    """The transaction is undone; the file is whole, and goes on when there is room."""
    with SQLiteStore(disk / "s.db") as store:
        store.save("s", {"text": "x" * 100_000})
        mine = store.load("s")
        mine["text"] = "y" * MEGABYTE
        with pytest.raises(
            SessionNotSaved, match=r"s\.db: not saved: database or disk is full; the stored data is unchanged"
        ):
            store.save("s", mine)
        assert store.load("s") == {"text": "x" * 100_000}
        mine["text"] = "z" * 1000
        store.save("s", mine)
        assert store.load("s") == {"text": "z" * 1000}
    connection = sqlite3.connect(disk / "s.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.mark.parametrize("room", [0, 4096, 16_384])
def test_sqlite_where_there_is_no_room_to_open_it(disk, room):
    """A full disk is said to be full, not to fail or to be damaged, and what was stored is there when there is room."""
    with SQLiteStore(disk / "s.db") as store:
        store.save("s", {"v": 1})
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        with suppress(OSError):
            while True:
                ballast.write(b"x" * 4096)
        ballast.truncate(ballast.tell() - room)
    with pytest.raises((SessionNotSaved, LogNotReadable), match=r"no space left on device|disk is full"):
        SQLiteStore(disk / "s.db").save("s", {"v": 2})
    (disk / "ballast").unlink()
    with SQLiteStore(disk / "s.db") as store:
        assert store.load("s") == {"v": 1}
