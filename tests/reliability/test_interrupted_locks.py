"""A Ctrl-C while a lock is acquired: whatever threads share goes on, in this thread and in others.

An interrupt comes where a signal's exception can: right after a function of C, here one of a lock. Until Python 3.13
`with lock:` acquires and begins in one step, and only locks that are used in other ways can fail here.
"""

import itertools
import random
import signal
import sys
import threading

import pytest

from sessionlog import Budget, SessionLogger, locks
from sessionlog.analytics.sql import result_stream
from sessionlog.context.registry import AgentRecorder, get_agent_context_snapshot, register_agent
from sessionlog.conversation.stores.file import FileStore
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.files import remote
from sessionlog.integrations.litellm import CallRecorder
from sessionlog.integrations.runs import Runs
from sessionlog.locks import InterruptSafeRLock, RLock
from sessionlog.reader.stream import read_events
from tests.reliability.children import in_child

LOCKS = (type(threading.Lock()), locks._thread.RLock)
ACQUIRES = {"acquire", "__enter__"}
MOST = 40
new_id = map("s{}".format, itertools.count()).__next__


class Interrupt(BaseException):
    """As KeyboardInterrupt, which pytest would take for itself."""


def is_ours(frame):
    """Whether a lock is the package's: acquired by it, or by a class of `threading` for it."""
    while frame.f_globals["__name__"] == "threading":
        frame = frame.f_back
    return frame.f_globals["__name__"].startswith("sessionlog.")


def interrupted(use, nth):
    """Call `use` and interrupt it after it has acquired a lock for the nth time; return whether it came to that."""
    left = [nth]

    def profile(frame, event, call):
        if event == "c_return" and call.__name__ in ACQUIRES and isinstance(call.__self__, LOCKS) and is_ours(frame):
            left[0] -= 1
            if not left[0]:
                sys.setprofile(None)
                raise Interrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        use()
    except Interrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def check_goes_on(use):
    """Interrupt `use` at each lock: another thread can use the same afterwards, and this one, too."""
    for nth in range(1, MOST):
        is_interrupted = interrupted(use, nth)
        other = threading.Thread(target=use, daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive(), f"another thread waits for ever after an interrupt at lock {nth}"
        use()
        if not is_interrupted:
            return
    pytest.fail(f"more than {MOST} locks are acquired")


def session_logger(folder):
    """A logger's own methods."""
    log = SessionLogger(folder / "log", "s", work_dir="/w")

    def use():
        log.emit("progress", {"n": 1})
        log.health()
        log.count_failure(ValueError("x"))

    return use


def closed_logger(folder):
    """A logger is closed again after an interrupt."""
    log = SessionLogger(folder / "log", "s", work_dir="/w")
    log.emit("progress", {})
    return log.close


def runs(folder):
    """The loggers of an integration."""
    hosts = Runs(None, {"directory": str(folder / "log")})
    return lambda: hosts.begin("run", prompt="hi")


def otel(folder):
    """The processor of spans."""
    from opentelemetry.sdk.trace import TracerProvider

    from sessionlog.integrations.otel import SessionLogSpanProcessor

    processor = SessionLogSpanProcessor(directory=str(folder / "log"))
    provider = TracerProvider()

    def use():
        span = provider.get_tracer("t").start_span(
            "chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
        )
        processor.on_start(span)
        span.end()
        processor.on_end(span)

    return use


def litellm(folder):
    """The recorder of litellm's calls."""
    recorder = CallRecorder(SessionLogger(folder / "log", "s", work_dir="/w"))

    def use():
        recorder.log_pre_api_call("m", [], {"litellm_call_id": "c", "optional_params": {}})
        recorder.close(wait_s=0.01)

    return use


def memory_store(folder):
    """Sessions in memory."""
    store = MemoryStore()

    def use():
        name = new_id()
        store.save(name, {"messages": []})
        store.list_sessions()
        store.delete(name)
        store.clear()

    return use


def sqlite_store(folder):
    """Sessions in a database."""
    store = SQLiteStore(folder / "sessions.db", wait_seconds=5)

    def use():
        name = new_id()
        store.save(name, {"messages": []})
        store.load(name)
        store.clear()

    return use


def opened_sqlite_store(folder):
    """All stores are listed, for forks."""
    return lambda: SQLiteStore(folder / "sessions.db").close()


def file_store(folder):
    """Sessions in files, whose lock is the system's."""
    store = FileStore(folder / "sessions")

    def use():
        name = new_id()
        store.save(name, {"messages": []})
        store.delete(name)

    return use


def budget(folder):
    """A budget's ledger."""
    env = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
    own = Budget(usd=5, period="day", env=env)

    def use():
        assert own.remaining().amount == 5
        assert own.allows(0.0)

    return use


def registry(folder):
    """The agents of a process, and what is recorded of one."""
    recorder = AgentRecorder()

    def use():
        register_agent("a", None, recorder=recorder)
        recorder.begin_turn()
        recorder.record_request({"input_tokens": 3})
        assert get_agent_context_snapshot("a") is not None

    return use


def replayed(folder):
    """The recordings of a replay."""
    from sessionlog.testing.replay.matcher import Matcher, Rules
    from sessionlog.testing.replay.request import Request

    matcher = Matcher(Rules(path="x", recordings=(), live=print))
    return lambda: matcher.find(Request(model="m", system="", messages=(), tools={}, parameters={}))


def recorded(folder):
    """A recorder with real models."""
    from sessionlog.testing.replay.recorder import Recorder

    recorder = Recorder(folder / "log.jsonl")
    return lambda: recorder._write({"messages": []}, {"content": "x"})


def remote_place(folder):
    """Logs in a store."""
    with SessionLogger(folder, "s", work_dir="/w") as log:
        log.emit("progress", {"text": "x" * 1000})
    url = f"local://{folder}"

    def use():
        with remote.opened([url]):
            assert len(list(read_events(f"{url}/s.jsonl"))) == 3

    return use


def proxy(folder):
    """The connections of a proxy."""
    from sessionlog.proxy.server import ProxyServer

    server = ProxyServer({})
    server.close()
    return lambda: server._forget(None)


PLACES = [
    session_logger, closed_logger, runs, otel, litellm, memory_store, sqlite_store, opened_sqlite_store, file_store,
    budget, registry, replayed, recorded, remote_place, proxy,
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", PLACES)
def test_p07_a_ctrl_c_leaves_no_lock_held(tmp_path, place):
    """What was interrupted may be lost; nothing waits for it."""
    check_goes_on(place(tmp_path))


def test_p07_the_rows_of_a_query_end_after_a_ctrl_c():
    """Closing them waits for nothing that the interrupt has left."""

    class Query:
        def results(self, is_cancelled):
            yield ("a",)
            while not is_cancelled():
                yield [(1,)]

        def cancel(self):
            pass

        def refusal(self, error):
            return error

    def close_after(nth):
        def read():
            stream = result_stream.ResultStream(Query())
            is_interrupted = interrupted(lambda: [next(iter(stream)), next(iter(stream))], nth)
            stream.close()
            found.append(is_interrupted)

        found = []
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), f"it waits for ever after an interrupt at lock {nth}"
        return found[0]

    nth = 1
    while close_after(nth):
        nth += 1


def test_before_3_14_a_lock_needs_nothing_that_is_not_there():
    """`RLock._recursion_count` came with 3.11.7 and 3.12.1: without it no logger could be opened."""
    assert (RLock is InterruptSafeRLock) == (sys.version_info >= (3, 14))


@pytest.mark.skipif(sys.version_info < (3, 11, 7), reason="its RLock does not count")
@pytest.mark.parametrize("held", [0, 1, 2])
def test_a_lock_is_as_it_was_before_the_interrupt(held):
    """Also one that its thread holds already; after an error of its own as well."""
    lock = InterruptSafeRLock()
    for _ in range(held):
        lock.acquire()

    def use():
        with lock:
            pass

    assert interrupted(use, 1)
    assert lock._recursion_count() == held
    use()
    assert lock._recursion_count() == held
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    assert lock._recursion_count() == held


@pytest.mark.parametrize("signals", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_p07_no_signal_leaves_the_lock_held(signals):
    """Real ones, at any moment; a plain lock stays held after half of them on Python 3.14."""

    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    def work():
        lock, left = RLock(), 0
        signal.signal(signal.SIGALRM, stop)
        for _ in range(signals):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.0003))
                while True:
                    with lock:
                        pass
                    with lock, lock:
                        pass
            except Stop:
                pass
            while lock._is_owned():
                left += 1
                lock.release()
        return left

    assert in_child(work) == 0
