"""The scanner: however logs are divided among workers, and whatever becomes of these, the report is the same."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from benchmarks.corpus import generate
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.engine import scanner as engine
from sessionlog.engine import workers
from sessionlog.engine.shares import LOG, divide
from sessionlog.ledger.scanning import Job


class Failing(Executor):
    """Works for a while; then every share dies, and at last it takes no more."""

    def __init__(self, error, lives):
        self._error, self._lives = error, lives

    def submit(self, function, /, *args, **kwargs):
        self._lives -= 1
        if self._lives < -2:
            raise BrokenProcessPool
        future = Future()
        if self._lives < 0:
            future.set_exception(self._error)
        else:
            future.set_result(function(*args, **kwargs))
        return future


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A megabyte of logs in 60 files."""
    folder = tmp_path_factory.mktemp("logs") / "all"
    generate(folder, megabytes=1, files=60)
    return folder


@pytest.fixture
def small_shares(monkeypatch):
    """Shares of a few logs each."""
    monkeypatch.setattr(engine, "_SHARE", 30_000)


@pytest.fixture(scope="module")
def whole(logs):
    """The report of one process."""
    return aggregate_usage(logs, jobs=1).to_dict()


@pytest.mark.parametrize("jobs", [2, 5])
def test_p25_processes_find_what_one_process_finds(logs, whole, small_shares, jobs):
    """Down to the problems and their order."""
    assert aggregate_usage(logs, jobs=jobs).to_dict() == whole


def test_p25_any_executor_will_do(logs, whole, small_shares):
    """Threads are slower, and right."""
    with ThreadPoolExecutor(3) as executor:
        assert aggregate_usage(logs, executor=executor).to_dict() == whole


@pytest.mark.parametrize("error", [BrokenProcessPool(), OSError("lost"), ValueError("what a worker said")])
@pytest.mark.parametrize("lives", [0, 1, 7])
def test_p25_a_worker_that_dies_costs_time(logs, whole, small_shares, error, lives):
    """What it did not give is scanned here."""
    assert aggregate_usage(logs, executor=Failing(error, lives)).to_dict() == whole


def test_progress_counts_every_log_once(logs, small_shares):
    """Whoever scans it."""
    steps = []
    aggregate_usage(logs, jobs=2, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(number, 60) for number in range(1, 61)]


def test_shares_hold_every_job_once_and_large_ones_go_first():
    """A large log alone and at once, so that nobody waits for it at the end; small ones together."""
    sizes = [LOG, engine._SHARE * 3, LOG, engine._SHARE, engine._SHARE // 2, engine._SHARE // 2, LOG]
    sizes = [max(0, size - LOG) for size in sizes]
    work = [Job(number=n, source="native", path=str(n), size=size) for n, size in enumerate(sizes)]
    given = [[job.number for job in share] for share in reversed(divide(work, engine._SHARE, engine._size))]
    assert given == [[1], [0, 2], [3], [4, 5], [6]]
    assert divide([], engine._SHARE, engine._size) == []


@pytest.mark.parametrize(
    ("jobs", "size", "may_fork", "spread"),
    [(None, engine.PAYS, True, True), (None, engine.PAYS - 2, True, False), (2, 2, True, True), (2, 2, False, False)],
)
def test_processes_are_started_where_they_pay(monkeypatch, jobs, size, may_fork, spread):
    """By the bytes to read, by demand, and only where a fork is safe."""
    asked = []
    monkeypatch.setattr(workers, "may_fork", lambda: may_fork)
    monkeypatch.setattr(workers, "usable_cores", lambda: 2)
    monkeypatch.setattr(engine, "_spread", lambda *_, **__: asked.append("spread") or iter(()))
    monkeypatch.setattr(engine, "scan_here", lambda *_: iter(()))
    work = [Job(number=n, source="native", path=str(n), size=max(0, size // 2 - LOG)) for n in range(2)]
    list(engine.scanner(None, jobs)(work, {}, None))
    assert asked == (["spread"] if spread else [])


@pytest.mark.parametrize("lives", [0, 1, 7])
def test_a_worker_that_dies_loses_no_task(lives):
    """Each task has its result once, whoever computed it."""
    executor = Failing(BrokenProcessPool(), lives)
    found = workers.map_tasks(str, range(9), int, executor=executor)
    assert sorted(result for _, result in found) == [str(number) for number in range(9)]
