"""Many writers, one file: threads, processes, forks, and a holder of the lock that does not answer."""

import fcntl
import os
import signal
import threading
from collections import defaultdict

import pytest

from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.children import fork, in_child, wait
from tests.reliability.oracle import check_bytes, check_health, check_recorded, check_whole, read_log
from tests.reliability.seam import watched

SIZES = (10, 200, 5_000)


def open_logger(folder, **options):
    """A logger that says nothing aloud."""
    return SessionLogger(folder, "s", work_dir="/w", notify=lambda text: None, **options)


def in_threads(count, work):
    """Run `work(0)` … `work(count - 1)` at the same time."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_writer(log):
    """Writer → its numbers in file order."""
    read = defaultdict(list)
    for event in log.of_type("tool.call"):
        read[event.data["writer"]].append(event.data["n"])
    return read


@pytest.mark.parametrize(
    ("processes", "threads", "events"),
    [(4, 4, 200), pytest.param(8, 8, 2_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
def test_p05_writers_never_interleave(tmp_path, processes, threads, events):
    """Every event of every thread of every process is one line, once, in its writer's order."""

    def write(process):
        log = open_logger(tmp_path)

        def emit(thread):
            for n in range(events):
                data = {"writer": process * threads + thread, "n": n, "output": "x" * SIZES[n % len(SIZES)]}
                assert log.emit("tool.call", data)

        in_threads(threads, emit)
        health = log.health()
        assert check_health(health, threads * events, threads * events) == []

    children = [fork(lambda process=process: write(process)) for process in range(processes)]
    assert [wait(child) for child in children] == [0] * processes

    def judge():  # in a child, too: 128,000 events leave so much behind that every later fork would take long
        log = read_log(tmp_path / "s.jsonl")
        return check_whole(log), by_writer(log) == {w: list(range(events)) for w in range(processes * threads)}

    assert in_child(judge) == [[], True]


def test_p05_threads_write_seq_in_file_order(tmp_path):
    """Within one process, seq is the line's place in the file and ts never goes back."""
    log = open_logger(tmp_path)
    in_threads(8, lambda writer: [log.emit("tool.call", {"writer": writer, "n": n}) for n in range(250)])
    events = read_log(log.path).events
    assert [event.seq for event in events] == list(range(len(events)))
    stamps = [event.ts for event in events]
    assert stamps == sorted(stamps)


@pytest.fixture
def stopped_holder(tmp_path):
    """Another process that holds the log's lock and has been stopped."""
    path = tmp_path / "s.jsonl"
    open_logger(tmp_path).emit("tool.call", {"n": 0})

    def hold():
        fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
        os.kill(os.getpid(), signal.SIGSTOP)

    holder = fork(hold)
    os.waitpid(holder, os.WUNTRACED)
    yield holder
    os.kill(holder, signal.SIGKILL)
    wait(holder)


def test_p07_a_stopped_holder_is_waited_for_once(tmp_path, stopped_holder):
    """The first emit waits 50 ms at most and is recorded; the next ones do not wait; health says why."""

    def untouched(name, real, args, kwargs):
        return real(*args, **kwargs)

    with watched(untouched) as clock:
        log = open_logger(tmp_path)
        assert log.emit("tool.call", {"n": 1})
        assert 0 < clock.slept <= 0.06  # on a busy machine some of the 50 ms pass without
        first = clock.slept
        assert all(log.emit("tool.call", {"n": n}) for n in range(2, 50))
        assert clock.slept == first
        assert log.health().unlocked
        clock.slept += 11  # after ten seconds the lock is asked for again
        assert log.emit("tool.call", {"n": 50})
        assert clock.slept <= first + 11.06
    with open(log.path, "rb") as file:
        assert file.read().count(b"\n\n") == 50  # without the lock, no look at the last byte can be trusted
    read = read_log(log.path)
    assert check_whole(read) == []
    assert check_recorded(read, range(51), range(51)) == []


def test_the_lock_is_used_again_when_its_holder_goes_on(tmp_path, stopped_holder):
    """As soon as the holder lets go, lines go in under the lock."""
    log = open_logger(tmp_path)
    assert log.emit("tool.call", {"n": 1})
    assert log.health().unlocked
    os.kill(stopped_holder, signal.SIGCONT)
    wait_until_free(log.path)
    assert log.emit("tool.call", {"n": 2})
    assert not log.health().unlocked
    assert check_whole(read_log(log.path)) == []


def wait_until_free(path):
    """Return when nobody holds the file's lock."""
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.close(fd)


def test_p04_without_the_lock_a_torn_line_is_not_continued(tmp_path, stopped_holder):
    """A line that goes in without the lock begins anew, for somebody may be in the middle of his."""
    with open(tmp_path / "s.jsonl", "ab") as other:
        other.write(b'{"session_id":"s","seq":7,"ty')
    log = open_logger(tmp_path)
    assert log.emit("tool.call", {"n": 1})
    read = read_log(log.path)
    assert check_bytes(read) == []
    assert check_recorded(read, [0, 1], [0, 1]) == []


@pytest.mark.parametrize("rounds", [50, pytest.param(150, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_p07_fork_while_another_thread_emits(tmp_path, rounds):
    """A child forked in the middle of an emit has a logger that works: no lock is stuck, no line torn."""

    def work():
        log = open_logger(tmp_path)
        stop = threading.Event()
        count = [0]

        def emit():
            while not stop.is_set():
                assert log.emit("tool.call", {"writer": -1, "n": count[0]})
                count[0] += 1

        def child(number):
            for n in range(5):
                assert log.emit("tool.call", {"writer": number, "n": n})
            assert check_health(log.health(), 5, 5) == []

        thread = threading.Thread(target=emit)
        thread.start()
        codes = [wait(fork(lambda number=number: child(number))) for number in range(rounds)]
        stop.set()
        thread.join()
        return codes, count[0]

    codes, count = in_child(work)
    assert codes == [0] * rounds
    read = read_log(tmp_path / "s.jsonl")
    assert check_whole(read) == []
    expected = {number: list(range(5)) for number in range(rounds)}
    assert by_writer(read) == expected | {-1: list(range(count))}


def test_p07_a_child_does_not_answer_for_its_parent(tmp_path):
    """After a fork the child's account is empty, and what its parent lost is the parent's to tell."""
    (tmp_path / "in the way").write_text("")
    log = open_logger(tmp_path / "in the way")
    assert not log.emit("tool.call", {"n": 0})
    assert in_child(lambda: log.health().emitted) == 0
    assert log.health().dropped == 1
    os.unlink(tmp_path / "in the way")
    assert in_child(lambda: log.emit("tool.call", {"n": 1}))
    assert read_log(log.path).of_type("log.gap") == []
    assert log.emit("tool.call", {"n": 2})
    [gap] = read_log(log.path).of_type("log.gap")
    assert gap.data["events"] == 1
