"""A repair that is killed, or finds the disk full, at any of its calls: no acknowledged event is lost and none doubled.

The repair runs in a child, call by call, while a writer in this process emits before each call: with the lock where it
can be had, without it while the repair holds it. Then the child is killed at one call, and the next repair finishes.
"""

import errno
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from sessionlog import SessionLogger, repair_log
from sessionlog.errors import LogNotReadable
from sessionlog.files.replace import find_stopped
from sessionlog.reader.check import check_log
from tests.reliability.children import fork, wait
from tests.reliability.seam import SleepingClock, put, watched
from tests.reliability.test_repair_living import damaged_log, numbers
from tests.turns import by_turns

NEVER = 1_000_000
TAKES_ROOM = {"write", "fsync", "link", "mkdir"}
WHERE = {"torn": {"write"}, "full": TAKES_ROOM}  # a kill is tried at every call


@dataclass
class Repair:
    """A repair in a child, which makes its next call only when it is told to.

    Attributes:
        pid: The child.
        calls: Names of the calls it has made.
        ended: It makes no more calls.
    """

    path: os.PathLike
    how: str
    calls: list = field(default_factory=list)
    ended: bool = False

    def __post_init__(self):
        self._told, telling = os.pipe()
        going, self._go = os.pipe()
        self.pid = fork(lambda: self._repair(telling, going))
        os.close(telling)
        os.close(going)

    def _repair(self, telling, going):
        os.close(self._told)
        os.close(self._go)
        full = False

        def watch(name, real, args, kwargs):
            nonlocal full
            os.write(telling, name.encode().ljust(10))
            if os.read(going, 1) == b"x":
                if self.how == "torn" and name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                if self.how != "full":
                    os.kill(os.getpid(), signal.SIGKILL)
                full = True
            if full and name in TAKES_ROOM:
                raise OSError(errno.ENOSPC, "No space left on device")
            return None if name == "fsync" else real(*args, **kwargs)

        with watched(watch), suppress(OSError, LogNotReadable):
            repair_log(self.path)

    def next(self):
        """Wait for the child's next call; return its name, "" when it has ended."""
        name = "" if self.ended else os.read(self._told, 10).decode().strip()
        self.calls.append(name)
        self.ended = not name
        return name

    def go(self, word):
        """Let the child make its call, or (`x`) let what is tested happen."""
        if not self.ended:
            os.write(self._go, word)

    def run_to(self, call, before_call=lambda: None):
        """Run the child up to a call, which it has not made yet."""
        while self.next() != call:
            before_call()
            self.go(b"g")

    def run(self, at, before_call=lambda: None):
        """Run the child to its end; what is tested happens at call number `at`."""
        while self.next():
            before_call()
            self.go(b"x" if len(self.calls) == at else b"g")
        os.close(self._told)
        os.close(self._go)
        self.calls.pop()
        return wait(self.pid)


class Writer:
    """A logger whose events are numbered, and which never has to wait for a lock."""

    def __init__(self, folder):
        self.log = SessionLogger(folder, "s", notify=lambda text: None)
        self.count = 0

    def emit(self):
        """Emit the next event; it must be acknowledged."""
        assert self.log.emit("n", {"n": self.count})
        self.count += 1


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Waiting for a lock takes no time."""
    put(monkeypatch, "time", SleepingClock())


def start(folder):
    """A damaged log and its writer, which has it open."""
    folder.mkdir()
    path = damaged_log(folder)
    writer = Writer(folder)
    writer.emit()
    return path, writer


def judge(path, writer):
    """What is not in the log yet is named by `check`; after a repair all is in it, once, and nothing lies about."""
    writer.emit()
    if sorted(numbers(path)) != list(range(writer.count)):
        assert check_log(path).counts["stopped_repair"] == 1
    repair_log(path)
    writer.emit()
    writer.log.close()
    assert sorted(numbers(path)) == list(range(writer.count))
    assert find_stopped(str(path)) is None
    assert check_log(path).damaged == 0
    assert sorted(os.listdir(path.parent)) == ["s.jsonl", "s.jsonl.quarantine"]


def calls_of_a_repair(folder):
    """The names of the calls that a repair makes while somebody writes."""
    path, writer = start(folder)
    repair = Repair(path, "kill")
    assert repair.run(NEVER, writer.emit) == 0
    judge(path, writer)
    return repair.calls


def test_a_repair_that_is_not_disturbed(memory):
    """The control: it renames, copies what was written late, and leaves nothing."""
    calls = calls_of_a_repair(memory / "0")
    assert calls.index("link") < calls.index("replace") < calls.index("unlink", calls.index("replace"))
    assert "write" in calls[calls.index("replace") :]


@pytest.mark.parametrize(
    ("how", "step"), [("kill", 7), pytest.param("kill", 1, marks=pytest.mark.slow), ("torn", 1), ("full", 1)]
)
def test_stopped_at_each_call(memory, how, step):
    """Killed before a call (every seventh one in the quick tier), killed in the middle of a write, or no room."""
    stopped = 0
    for at, call in enumerate(calls_of_a_repair(memory / "0"), 1):
        if call not in WHERE.get(how, {call}) or at % step:
            continue
        path, writer = start(memory / str(at))
        Repair(path, how).run(at, writer.emit)
        stopped += find_stopped(str(path)) is not None
        judge(path, writer)
    assert stopped


def no_proc(path, **options):
    """As on a system that does not name open files."""
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)


@pytest.mark.parametrize(
    ("killed", "readlink"),
    by_turns([(True, no_proc), (True, os.readlink), (False, os.readlink), (False, no_proc)], 2),
)
def test_a_line_that_is_written_late(memory, monkeypatch, killed, readlink):
    """The writer looked at the log before it was replaced, and writes when the repair is further, or was killed."""
    monkeypatch.setattr(os, "readlink", readlink)
    write, done = os.write, []
    for after in range(1, NEVER):
        path, writer = start(memory / str(after))
        repair = Repair(path, "kill")
        repair.run_to("link")

        def write_late(fd, line, repair=repair, after=after):
            monkeypatch.setattr(os, "write", write)
            for _ in range(after):
                repair.go(b"g")
                repair.next()
            done.append(repair.ended)
            if killed:
                repair.go(b"x")
                repair.run(NEVER)
            return write(fd, line)

        monkeypatch.setattr(os, "write", write_late)
        writer.emit()
        if not killed:
            repair.go(b"g")
            repair.run(NEVER)
        judge(path, writer)
        if done[-1]:
            break
    assert after > 10


def test_a_writer_that_was_killed_in_its_line(memory):
    """It wrote to the new log without the lock: what is copied late does not stand behind its piece of a line."""
    path, writer = start(memory / "0")
    repair = Repair(path, "kill")
    repair.run_to("replace", writer.emit)
    writer.emit()
    repair.go(b"g")
    repair.next()
    with path.open("ab") as file:
        file.write(b'{"session_id":"torn')
    repair.go(b"g")
    assert repair.run(NEVER) == 0
    assert b'{"session_id":"torn\n' in path.read_bytes()
    judge(path, writer)


@pytest.mark.parametrize("step", [71, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_the_next_repair_is_killed_as_well(memory, step):
    """Killed where the log was replaced, the next one killed anywhere: the third finds what both have left."""
    calls = calls_of_a_repair(memory / "0")
    for first in range(calls.index("replace") + 2, len(calls), 4 if step > 10 else 1):
        for second in range(1, NEVER, step):
            path, writer = start(memory / f"{first}-{second}")
            Repair(path, "kill").run(first, writer.emit)
            with path.open("ab") as file:
                file.write(b'{"session_id":"torn"\n')
            again = Repair(path, "torn" if (first + second) % 2 else "kill")
            ended = again.run(second, writer.emit) == 0
            judge(path, writer)
            if ended:
                break


def test_a_file_system_without_hard_links(memory, monkeypatch):
    """A repair that is not disturbed works there, too."""

    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    path, writer = start(memory / "0")
    monkeypatch.setattr(os, "link", refuse)
    assert Repair(path, "kill").run(NEVER, writer.emit) == 0
    judge(path, writer)


def test_two_repairs_at_once(memory):
    """The second one is refused while the first is at work, and touches nothing of it."""
    path, writer = start(memory / "0")
    first = Repair(path, "kill")
    first.run_to("replace")
    with pytest.raises(LogNotReadable, match="another repair of it is in progress"):
        repair_log(path)
    assert find_stopped(str(path)) is None
    first.go(b"g")
    assert first.run(NEVER, writer.emit) == 0
    judge(path, writer)
