"""What each durability buys: when syncs happen, what a failed one means, and what a power loss leaves."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sessionlog import files
from sessionlog.logger import syncer
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.children import in_child
from tests.reliability.oracle import check_health, check_whole, read_log
from tests.reliability.power import EVENTS, check_state, crash_states, record, run_states
from tests.reliability.seam import watched


class Calls:
    """A watch that lists the calls that matter to durability, and may let syncs fail."""

    def __init__(self):
        self.seen = []
        self.failing = False

    def __call__(self, name, real, args, kwargs):
        if name in ("fsync", "fdatasync"):
            kind = stat.S_IFMT(os.fstat(args[0]).st_mode)
            place = os.readlink(f"/proc/self/fd/{args[0]}") if kind == stat.S_IFDIR else "file"
            self.seen.append(f"sync {place}")
            if self.failing:
                raise OSError(5, "Input/output error")
            return None
        if name == "write":
            self.seen.append("write")
        if name == "open" and args[1] & os.O_CREAT:
            self.seen.append("open")
        return real(*args, **kwargs)


@pytest.fixture
def calls():
    """The calls of the write path while the test runs."""
    seen = Calls()
    with watched(seen):
        yield seen
        seen.failing = False
        wait_for(lambda: not sync_threads())


@pytest.fixture
def soon(monkeypatch):
    """Interval syncs come after 10 ms."""
    monkeypatch.setattr(syncer, "SYNC_SECONDS", 0.01)


def open_logger(folder, durability, **options):
    """A logger that says nothing aloud."""
    return SessionLogger(folder, "s", durability=durability, work_dir="/w", notify=lambda text: None, **options)


def wait_for(condition):
    """Wait until something that another thread does is done."""
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert condition()


def test_os_never_syncs(tmp_path, calls):
    """The default leaves it to the operating system, at the end as well."""
    log = open_logger(tmp_path, "os")
    assert log.emit("x", {})
    log.close()
    assert calls.seen == ["open", "write", "write"]


def test_p03_fsync_syncs_before_it_returns(tmp_path, calls):
    """Each event is on the disk when it is acknowledged; so are the file's name and those of the folders made for it."""
    log = open_logger(tmp_path / "a" / "b", "fsync")
    folders = {f"sync {tmp_path}", f"sync {tmp_path / 'a'}", f"sync {tmp_path / 'a' / 'b'}"}
    assert log.emit("x", {})
    assert calls.seen[0] == "open"
    assert set(calls.seen[1:4]) == folders
    assert calls.seen[4:] == ["write", "sync file"]
    calls.seen.clear()
    for _ in range(3):
        assert log.emit("x", {})
    assert calls.seen == ["write", "sync file"] * 3


def test_a_file_that_others_made_is_named_durably_too(tmp_path, calls):
    """Whoever made the file may not have synced its folder."""
    open_logger(tmp_path, "os").emit("x", {})
    calls.seen.clear()
    assert open_logger(tmp_path, "fsync").emit("x", {})
    assert calls.seen == ["open", f"sync {tmp_path}", "write", "sync file"]


def test_p03_a_failed_sync_is_not_acknowledged(tmp_path, calls):
    """The event is counted by its cause, and the descriptor is never used again: a second sync on it would lie."""
    log = open_logger(tmp_path, "fsync")
    assert log.emit("x", {"n": 0})
    calls.failing = True
    calls.seen.clear()
    assert not log.emit("x", {"n": 1})
    assert calls.seen == ["write", "sync file"]
    calls.failing = False
    assert log.emit("x", {"n": 2})
    assert calls.seen[2:] == ["open", f"sync {tmp_path}", "write", "sync file"]
    assert log.health().dropped_by == {"EIO": 1}
    log.close()
    read = read_log(log.path)
    assert check_whole(read) == []
    assert read.of_type("log.gap") == []  # no hole: the line is there, only nobody promised it


def test_a_folder_that_cannot_be_synced(tmp_path, calls):
    """No event is acknowledged in a file whose name may not survive."""
    calls.failing = True
    log = open_logger(tmp_path, "fsync")
    assert not log.emit("x", {"n": 0})
    assert "write" not in calls.seen
    calls.failing = False
    assert log.emit("x", {"n": 1})
    log.close()
    assert [event.type for event in read_log(log.path).events] == ["session.start", "log.gap", "x", "session.end"]


def test_p03_half_a_second_is_the_interval():
    """What the promise says, and the thread waits less, for syncing takes time itself."""
    assert syncer.SYNC_SECONDS <= 0.5


def test_interval_syncs_soon_and_once(tmp_path, calls, soon):
    """Events are acknowledged at once; one sync covers all that were written before it."""
    log = open_logger(tmp_path, "interval")
    for _ in range(20):
        assert log.emit("x", {})
    wait_for(lambda: "sync file" in calls.seen)
    log.emit("x", {})
    before = calls.seen.count("sync file")
    wait_for(lambda: calls.seen.count("sync file") > before)
    assert calls.seen.count("sync file") < 15
    log.close()


def test_p03_interval_syncs_when_it_is_closed(tmp_path, calls):
    """After close everything is on the disk, however long the interval."""
    log = open_logger(tmp_path, "interval")
    assert log.emit("x", {})
    assert "sync file" not in calls.seen
    log.close()
    assert "sync file" in calls.seen


def test_a_failed_interval_sync_is_reported(tmp_path, calls, soon):
    """The next emit says so, and the one after it has a new descriptor and thread."""
    log = open_logger(tmp_path, "interval")
    assert log.emit("x", {})
    calls.failing = True
    log.emit("x", {})
    wait_for(lambda: "sync file" in calls.seen)
    wait_for(lambda: not sync_threads())
    calls.failing = False
    before = log.health()
    assert not log.emit("x", {})
    assert log.emit("x", {})
    health = log.health()
    assert health.dropped_by["EIO"] == before.dropped + 1
    assert check_health(health, before.written + 1, before.emitted + 2) == []
    log.close()


def sync_threads():
    """The threads that sync."""
    return [thread for thread in threading.enumerate() if thread.name == "sessionlog-sync"]


@pytest.mark.parametrize(("durability", "threads"), [("os", 0), ("fsync", 0), ("interval", 1)])
def test_p07_only_interval_has_a_thread(tmp_path, calls, durability, threads):
    """And it ends with the logger."""
    log = open_logger(tmp_path, durability)
    assert log.emit("x", {})
    assert len(sync_threads()) == threads
    log.close()
    wait_for(lambda: not sync_threads())


def test_a_thread_without_work_waits(tmp_path, calls, soon):
    """What was synced is not synced again and again."""
    log = open_logger(tmp_path, "interval")
    assert log.emit("x", {})
    wait_for(lambda: "sync file" in calls.seen)
    wait_for(lambda: not log._file._syncer._dirty.is_set())
    log.close()


def test_where_no_thread_can_be_had(tmp_path, calls, monkeypatch):
    """At a thread limit, or while the interpreter shuts down, interval syncs at once."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    log = open_logger(tmp_path, "interval")
    assert log.emit("x", {})
    assert log.emit("x", {})
    assert calls.seen.count("sync file") == 2
    log.close()


def test_a_forgotten_interval_logger_syncs(tmp_path, calls):
    """A logger that is collected without close has its last events synced."""
    open_logger(tmp_path, "interval").emit("x", {})
    wait_for(lambda: "sync file" in calls.seen)
    wait_for(lambda: not sync_threads())


def test_a_child_has_its_own_thread(tmp_path, calls, soon):
    """After a fork the child starts a thread of its own; the parent's did not come along."""
    log = open_logger(tmp_path, "interval")
    assert log.emit("x", {})

    def work():
        calls.seen.clear()
        assert log.emit("x", {})
        wait_for(lambda: "sync file" in calls.seen)
        return len(sync_threads())

    assert in_child(work) == 1
    log.close()


def test_a_process_that_ends_without_close(tmp_path):
    """What interval has acknowledged is synced before the interpreter is gone."""
    script = """
import sys
from sessionlog import files
from sessionlog.logger.session_logger import SessionLogger
log = SessionLogger(sys.argv[1], "s", durability="interval")
files.sync = lambda fd: print("synced", flush=True)
log.emit("x", {})
"""
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("synced\n", "")


def test_sync_reaches_the_disk(tmp_path):
    """The seam's sync is the kernel's: the call succeeds on a real file and fails on a closed one."""
    with open(tmp_path / "f", "wb") as file:
        files.sync(file.fileno())
        fd = file.fileno()
    with pytest.raises(OSError, match="Bad file descriptor"):
        files.sync(fd)


@pytest.mark.parametrize("durability", ["fsync", "interval"])
@pytest.mark.parametrize("count", [1_000, pytest.param(30_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_p03_power_loss_at_any_byte(memory, seed, monkeypatch, durability, count):
    """Cut anywhere behind the last sync, with blocks zeroed or scrambled: what was promised is read, and appended to."""
    monkeypatch.setattr(syncer, "SYNC_SECONDS", 0.002)
    events, findings, most = EVENTS, [], 0
    recorder = record(memory, durability, events, seed)
    for left, acknowledged, synced in crash_states(recorder, count, seed):
        promised = acknowledged if durability == "fsync" else synced
        findings += check_state(Path(memory) / "s.jsonl", left, promised, events)
        assert findings == []
        most = max(most, len(promised))
    assert most > events / 4
    assert len(recorder.states[-1][2]) > events - 5


def test_the_release_run_of_power_losses(memory, seed):
    """It ends after as many states as were asked for, and says of how many sessions they are."""
    tally = run_states(memory, 300, seed, minutes=5)
    assert (tally.findings, tally.states, tally.sessions) == ([], 300, 1)
