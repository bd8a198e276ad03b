"""Emitting where no ordinary code runs: signal handlers, destructors, at exit; and being broken off anywhere."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from sessionlog.locks import InterruptSafeRLock
from sessionlog.logger import counters
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.children import in_child
from tests.reliability.oracle import check_health, check_recorded, check_whole, read_log


def open_logger(folder, **options):
    """A logger that says nothing aloud."""
    return SessionLogger(folder, "s", work_dir="/w", notify=lambda text: None, **options)


@pytest.mark.parametrize("events", [3_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_p07_a_signal_handler_emits_every_millisecond(tmp_path, events):
    """Events that interrupt an emit wait for it and are written before it returns: seq stays file order."""

    def work():
        log = open_logger(tmp_path)
        signals = [0]

        def handler(signum, frame):
            number = signals[0]
            signals[0] += 1  # before the emit: the next signal may come in the middle of it
            log.emit("progress", {"signal": number})

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        refused = sum(not log.emit("tool.call", {"n": n, "output": "x" * 500}) for n in range(events))
        signal.setitimer(signal.ITIMER_REAL, 0)
        health = log.health()
        log.close()
        return signals[0], refused, health.deferred, check_health(health, events + signals[0], events + signals[0])

    signals, refused, deferred, findings = in_child(work)
    assert (refused, deferred, findings) == (0, 0, [])
    read = read_log(tmp_path / "s.jsonl")
    assert check_whole(read) == []
    assert check_recorded(read, range(events), range(events)) == []
    numbers = [event.data["signal"] for event in read.of_type("progress")]
    assert sorted(numbers) == list(range(signals))  # a handler may be interrupted by the next before it emits
    assert [event.seq for event in read.events] == list(range(len(read.events)))


class Interrupting:
    """A payload that orjson cannot encode; asked for its text, it does something in the middle of the emit."""

    def __init__(self, action):
        self.action = action

    def __repr__(self):
        self.action()
        return "interrupting"


def test_p07_an_emit_inside_an_emit_waits_for_it(tmp_path):
    """It answers False, counts as deferred, and is in the file, behind the event that it interrupted."""
    log = open_logger(tmp_path)
    seen = []

    def inside():
        answer = log.emit("progress", {"n": 1})
        health = log.health()
        seen.append((answer, health.emitted, health.written, health.deferred))

    assert log.emit("tool.call", {"n": 0, "input": Interrupting(inside)})
    assert seen == [(False, 2, 0, 2)]
    assert check_health(log.health(), 2, 2) == []
    assert [event.type for event in read_log(log.path).events] == ["session.start", "tool.call", "progress"]


def test_p06_more_emits_inside_an_emit_than_are_kept(tmp_path):
    """A thousand are kept; the others are counted and the log tells of them."""
    log = open_logger(tmp_path)
    assert log.emit("tool.call", {"input": Interrupting(lambda: [log.emit("progress", {"n": n}) for n in range(1005)])})
    health = log.health()
    assert (health.written, health.dropped_by) == (1001, {"re-entered": 5})
    assert log.emit("tool.call", {})
    read = read_log(log.path)
    assert check_recorded(read, range(1000), range(1000)) == []
    assert sum(event.data["events"] for event in read.of_type("log.gap")) == 5


def test_close_inside_an_emit_waits_for_it(tmp_path):
    """A signal handler may close the logger: the event under way is written first."""
    log = open_logger(tmp_path)
    assert log.emit("tool.call", {"n": 0, "input": Interrupting(log.close)})
    assert not log.emit("tool.call", {"n": 1})
    assert log.health().dropped_by == {"closed": 1}
    assert check_recorded(read_log(log.path), [0], [0]) == []


def test_p07_destructors_and_exit_handlers_emit(tmp_path):
    """Emits from `__del__`, from atexit and while the interpreter shuts down are recorded, in silence."""
    script = """
import atexit, gc, sys
from sessionlog.logger.session_logger import SessionLogger
log = SessionLogger(sys.argv[1], "s", work_dir="/w")
class Noisy:
    def __init__(self, n): self.n = n; self.circle = self
    def __del__(self): log.emit("tool.call", {"n": self.n})
gc.set_threshold(1)
for n in range(50):
    Noisy(n)
    log.emit("progress", {"list": [[] for _ in range(50)]})
gc.collect()
gc.set_threshold(700)  # Python 3.12.1 crashes at exit when it collects that often
atexit.register(lambda: log.emit("tool.call", {"n": 50}))
left = Noisy(51)
"""
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    read = read_log(tmp_path / "s.jsonl")
    assert check_whole(read) == []
    numbers = [event.data["n"] for event in read.of_type("tool.call")]
    assert numbers[-2:] == [50, 51]
    assert sorted(numbers) == list(range(52))


def in_destructor(frame):
    """Whether a `__del__` is running, or what a weak reference calls."""
    while frame is not None:
        if frame.f_code.co_name in {"__del__", "_close_folder"}:
            return True
        frame = frame.f_back
    return False


def interrupt_at(nth):
    """A profiler that raises KeyboardInterrupt where a signal's would come: after call `nth` returns, or in its entry."""
    left = [nth]

    def profiler(frame, event, arg):
        if event == "c_call":  # signals are looked for after a call, not before it
            return
        if in_destructor(frame):  # Python itself swallows what is raised there
            return
        if event == "return" and frame.f_code is InterruptSafeRLock.__enter__.__code__:
            return  # nor after a function of Python returns, which makes that one atomic (on 3.14)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return profiler


@pytest.mark.parametrize("case", ["first event", "next event", "special", "after a loss", "close"])
def test_p01_keyboard_interrupt_at_every_point(tmp_path, case):
    """Wherever an emit is broken off, the counts add up, no lock is stuck, and the next event is recorded."""
    SessionLogger(tmp_path, "warm").emit(
        "llm.response", {"usage": {"input": 1}, "cost_usd": 0.5}
    )  # imports are not ours
    for nth in range(1, 1000):
        folder = tmp_path / f"{nth}"
        if case == "after a loss":
            folder.write_text("in the way")
        log = open_logger(folder)
        if case in ("next event", "special", "close"):
            assert log.emit("tool.call", {"n": 0})
        if case == "after a loss":
            assert not log.emit("tool.call", {"n": 0})
            folder.unlink()
        interrupted = False
        sys.setprofile(interrupt_at(nth))
        try:
            if case == "close":
                log.close()
            else:
                log.emit("llm.response" if case == "special" else "tool.call", {"n": 1})
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.setprofile(None)
        if not interrupted:
            break
        assert_usable(log, case)
    assert nth > 10
    assert not interrupted


def assert_usable(log, case):
    """The logger's lock is free, another thread can emit, and the log is whole."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(log.emit("tool.call", {"n": 2})), daemon=True)
    thread.start()
    thread.join(5)
    health = log.health()
    assert health.written + health.dropped == health.emitted
    assert health.deferred == 0
    log.close()
    if case == "close":
        return
    assert answers == [True]
    read = read_log(log.path)
    assert check_whole(read) == []
    acknowledged = [2] if case in ("first event", "after a loss") else [0, 2]
    assert check_recorded(read, range(3), acknowledged) == []


def test_p01_real_interrupts_at_random_points(tmp_path, seed):
    """The same with signals: hundreds of Ctrl-C, none of which leaves anything but itself behind."""

    def work():
        chance = random.Random(seed)
        log = open_logger(tmp_path)
        acknowledged, interrupts = [], 0
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for n in range(2_000):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 6e-5))
                recorded = log.emit("tool.call", {"n": n, "output": "x" * 300})
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
                continue
            if recorded:
                acknowledged.append(n)
        health = log.health()
        log.close()
        return acknowledged, interrupts, health.written + health.dropped == health.emitted, health.deferred

    acknowledged, interrupts, adds_up, deferred = in_child(work)
    print(f"{interrupts} interrupts")
    assert adds_up
    assert deferred == 0
    assert interrupts > 10
    read = read_log(tmp_path / "s.jsonl")
    assert check_whole(read) == []
    assert check_recorded(read, range(2_000), acknowledged) == []


def test_p01_at_the_end_of_the_stack(tmp_path):
    """Where Python itself has no room for a call, the logger loses that event and nothing else."""
    log = open_logger(tmp_path)
    answers = {}

    def dive(n):
        with suppress(RecursionError):
            dive(n + 1)
        try:
            answers[n] = log.emit("tool.call", {"n": n})
        except RecursionError:  # the call itself had no room
            answers[n] = False

    dive(0)
    health = log.health()
    assert health.written + health.dropped == health.emitted
    assert answers[0]
    read = read_log(log.path)
    assert check_whole(read) == []
    recorded = {event.data["n"] for event in read.of_type("tool.call")}
    assert {n for n, answer in answers.items() if answer} <= recorded


def test_p06_an_event_at_the_last_frame_is_counted(tmp_path):
    """Where one call is possible and no second one, emit returns False and health() counts the event as lost."""
    log = open_logger(tmp_path)
    answers = []

    def call(type_, data):
        """Need what a call of emit needs."""

    def dive():
        with suppress(RecursionError):
            dive()
        try:
            call("tool.call", {})
        except RecursionError:
            return
        answers.append(log.emit("tool.call", {"n": len(answers)}))

    dive()
    health = log.health()
    assert health.emitted == len(answers)
    assert health.written == sum(answers)
    assert health.dropped == len(answers) - sum(answers)
    assert health.dropped_by["no stack"] > 0
    assert answers[-1]
    read = read_log(log.path)
    assert check_whole(read) == []
    assert len(read.of_type("tool.call")) == sum(answers)


def test_a_child_forked_in_the_middle_of_an_emit_writes(tmp_path):
    """The emit that it was forked from is its parent's; its own are not set aside for it."""
    log = open_logger(tmp_path)
    answers = []
    assert log.emit("note", {})

    def split():
        answers.append(in_child(lambda: log.emit("progress", {"of": "the child"})))

    assert log.emit("tool.call", {"output": Interrupting(split)})
    assert answers == [True]
    assert sorted(event.type for event in read_log(log.path).events) == [
        "note",
        "progress",
        "session.start",
        "tool.call",
    ]


def test_p06_what_waits_is_neither_lost_nor_written(tmp_path):
    """health() in the middle of an emit: the event that is being written and those set aside are deferred."""
    log = open_logger(tmp_path)
    seen = []

    def ask():
        log.emit("progress", {"n": 1})
        seen.append(log.health())

    assert log.emit("tool.call", {"output": Interrupting(ask)})
    [during] = seen
    assert (during.emitted, during.written, during.dropped, during.deferred) == (2, 0, 0, 2)
    after = log.health()
    assert (after.emitted, after.written, after.dropped, after.deferred) == (2, 2, 0, 0)


@pytest.mark.parametrize("tasks", [1_000])
def test_p07_asyncio_tasks_emit_and_are_cancelled(tmp_path, seed, tasks):
    """A thousand tasks share a logger; a third is cancelled at any time; everything acknowledged is there."""
    chance = random.Random(seed)
    log = open_logger(tmp_path)
    acknowledged = []

    async def agent(number):
        for step in range(3):
            if log.emit("tool.call", {"n": number * 3 + step}):
                acknowledged.append(number * 3 + step)
            await asyncio.sleep(0)

    async def main():
        running = [asyncio.create_task(agent(number)) for number in range(tasks)]
        for task in chance.sample(running, tasks // 3):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(main())
    assert check_health(log.health(), len(acknowledged), len(acknowledged)) == []
    read = read_log(log.path)
    assert check_whole(read) == []
    assert [event.data["n"] for event in read.of_type("tool.call")] == acknowledged


def test_stderr_that_cannot_be_written(tmp_path):
    """A loss is announced on stderr; where that is closed or full, the agent goes on all the same."""
    blocked = tmp_path / "in the way"
    blocked.write_text("")
    script = (
        "import os, sys\n"
        "from sessionlog.logger.session_logger import SessionLogger\n"
        "log = SessionLogger(sys.argv[1], 's')\n"
        "sys.stderr.close() if sys.argv[2] == 'closed' else os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n"
        "answer = log.emit('x', {})\n"
        "print(answer, log.health().dropped)\n"
        "sys.stdout.flush(); os._exit(0)\n"
    )
    for state in ("closed", "full"):
        if state == "full" and not os.path.exists("/dev/full"):
            continue
        run = subprocess.run([sys.executable, "-c", script, blocked, state], capture_output=True, text=True)
        assert run.stdout == "False 1\n"


LATE = {
    "a destructor": """
class Late:
    def __del__(self, emit_late=emit_late):
        emit_late()
sys.late = Late()
""",
    "a suspended generator": """
def late(emit_late=emit_late):
    try:
        yield
    finally:
        emit_late()
sys.late = late()
next(sys.late)
""",
}


@pytest.mark.parametrize("durability", ["os", "interval"])
@pytest.mark.parametrize("late", LATE)
def test_p07_a_process_ends_while_a_daemon_thread_emits(tmp_path, late, durability):
    """The thread is frozen while it holds the logger's lock; whoever emits after that does not wait for it."""
    script = f"""
import os, sys, threading, time
from sessionlog.logger.session_logger import SessionLogger
log = SessionLogger(sys.argv[1], "s", work_dir="/w", durability={durability!r})
def emit_late(log=log, write=os.write):  # what a module names may be gone by then
    recorded = log.emit("progress", {{"late": True}})
    log.close()
    write(1, b"recorded" if recorded else b"not recorded")
{LATE[late]}
def work():
    while True:
        log.emit("tool.call", {{"output": "x" * 2000}})
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""
    outcomes = set()
    for _ in range(4):
        run = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=20
        )
        outcomes.add(run.stdout)
        assert "Traceback" not in run.stderr
    assert outcomes <= {"recorded", "not recorded"}
    log = read_log(tmp_path / "s.jsonl")
    # The end of a process can cut the thread's write between two pages; the next process ends that line.
    cut = [problem for problem in log.problems if problem.kind == "not_json"]
    assert len(cut) <= 4
    assert [finding for finding in check_whole(log) if finding not in {f"damage: {problem}" for problem in cut}] == []


def test_p06_what_comes_while_a_stopped_thread_holds_the_lock_is_counted(tmp_path, monkeypatch):
    """It is not waited for; the event is in `health()`, by its cause."""
    log = open_logger(tmp_path)
    held, done = threading.Event(), threading.Event()

    def hold():
        with log._lock:
            held.set()
            done.wait()

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    monkeypatch.setattr(type(log), "_is_finalizing", staticmethod(lambda: True))
    assert not log.emit("tool.call", {"n": 0})
    health = log.health()
    assert (health.emitted, health.dropped, health.dropped_by) == (1, 1, {"shutdown": 1})
    log.close()
    done.set()


def test_p07_an_emit_at_the_end_does_not_raise_where_modules_have_lost_their_names(tmp_path, monkeypatch):
    """The interpreter sets the names of modules to None before the last destructors run."""
    log = open_logger(tmp_path)
    assert log.emit("progress", {})
    holder = threading.Thread(target=log._lock.acquire)
    holder.start()
    holder.join()
    monkeypatch.setattr(EventWriter, "_is_finalizing", staticmethod(lambda: True))
    for name in ("_HINTS", "redact_text"):
        monkeypatch.setattr(counters, name, None)
    assert not log.emit("progress", {"late": True})
    assert (log.health().emitted, log.health().dropped_by) == (2, {"shutdown": 1})
    log.close()
