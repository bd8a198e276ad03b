"""Several processes save one session: no update is lost, nothing is torn, and a kill leaves the old or the new one."""

import os
import random
import signal
import time

import pytest

from sessionlog.conversation.stores.file import FileStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.errors import StaleSession
from tests.reliability.children import fork, wait

STORES = {
    "sqlite": lambda folder: SQLiteStore(folder / "s.db"),
    "file": lambda folder: FileStore(folder / "sessions"),
}


@pytest.fixture
def seed():
    """The seed of this run; given by `$SESSIONLOG_SEED`, else fresh."""
    value = int(os.environ.get("SESSIONLOG_SEED") or random.SystemRandom().getrandbits(32))
    print(f"SESSIONLOG_SEED={value}")
    return value


def save_often(store, who, times):
    """Load, change and save so many times; on StaleSession load again."""
    refused = 0
    for number in range(times):
        time.sleep(0.0003)  # as if there were something to do: the other one has a turn
        while True:
            data = store.load("s")
            data["saves"].append([who, number])
            data["text"] = "x" * len(data["saves"])
            try:
                store.save("s", data)
                break
            except StaleSession:
                refused += 1
    return refused


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(
    ("processes", "times"),
    [(2, 100), pytest.param(2, 500, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_no_update_is_lost(tmp_path, kind, processes, times):
    """Each save is there once, in the order of its process."""
    store = STORES[kind](tmp_path)
    store.save("s", {"saves": [], "text": ""})
    reading, writing = os.pipe()

    def work(who):
        os.read(reading, 1)
        own = STORES[kind](tmp_path)
        refused = save_often(own, who, times)
        if hasattr(own, "close"):
            own.close()
        (tmp_path / f"refused-{who}").write_text(str(refused))

    children = [fork(lambda who=who: work(who)) for who in range(processes)]
    os.write(writing, b"x" * processes)
    assert [wait(child) for child in children] == [0] * processes
    data = store.load("s")
    saves = data["saves"]
    assert len(saves) == processes * times == len(data["text"])
    for who in range(processes):
        assert [number for name, number in saves if name == who] == list(range(times))
    assert data.version == processes * times + 1
    print("refused as stale:", [int((tmp_path / f"refused-{who}").read_text()) for who in range(processes)])
    if kind == "sqlite":
        with store._open("checked") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        store.close()
    os.close(reading)
    os.close(writing)


def save_until_killed(folder, kind, acknowledged, first):
    """Save for ever, each one larger or smaller than the one before; say which were done."""
    store = STORES[kind](folder)
    data = store.load("s")
    number = first
    while True:
        number += 1
        data.update(number=number, text=str(number) * (5_000 if number % 3 else 40_000))
        store.save("s", data)
        os.pwrite(acknowledged, number.to_bytes(8, "little"), 0)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("kills", [12, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_a_kill_leaves_the_old_or_the_new_one(tmp_path, kind, kills, seed):
    """Whole, and never older than what was acknowledged; the next process goes on at once."""
    chance = random.Random(seed)
    store = STORES[kind](tmp_path)
    store.save("s", {"number": 0, "text": "0"})
    acknowledged = os.open(tmp_path / "acknowledged", os.O_RDWR | os.O_CREAT, 0o600)
    number = 0
    for _ in range(kills):
        before = int.from_bytes(os.pread(acknowledged, 8, 0), "little")
        child = fork(lambda number=number: save_until_killed(tmp_path, kind, acknowledged, number))
        deadline = time.monotonic() + 10
        while int.from_bytes(os.pread(acknowledged, 8, 0), "little") == before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.008))
        os.kill(child, signal.SIGKILL)
        assert wait(child) == -signal.SIGKILL
        data = store.load("s")
        number = data["number"]
        done = int.from_bytes(os.pread(acknowledged, 8, 0), "little")
        assert number in {done, done + 1}
        assert data["text"] == str(number) * (5_000 if number % 3 else 40_000)
    os.close(acknowledged)
    store.save("other", {})
    assert store.list_sessions() == ["other", "s"]
    if kind == "file":
        store.clean()
        assert sorted(os.listdir(store.directory)) == [".counter", ".lock", "other.json", "s.json"]
    else:
        store.close()
