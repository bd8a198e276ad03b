"""P25: workers that are slow, lie, or do their work twice change the time of a report, and nothing else."""

import random
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from benchmarks.corpus import generate
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.engine import scanner as engine


class Changing(Executor):
    """Does the work, and gives back something else."""

    def __init__(self, change):
        self._change, self.changed, self._last = change, 0, None

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        honest = function(*args, **kwargs)
        self.changed += 1
        future.set_result(self._change(honest, self._last))
        self._last = honest
        return future


def logs_changed(change):
    """A lie about the logs whose rows are handed over."""
    return lambda results, last: replace(results, logs=change(results.logs))


def raising_in_the_middle(results):
    """A generator that gives the first result and then raises."""
    yield from results[:1]
    raise OSError("the connection was lost")


LIES = {
    "nothing": lambda results, last: [],
    "None": lambda results, last: None,
    "a number": lambda results, last: 7,
    "a text": lambda results, last: "scanned",
    "no rows": lambda results, last: replace(results, data=b""),
    "one too few": logs_changed(lambda logs: logs[:-1]),
    "one twice": logs_changed(lambda logs: [*logs, logs[0]]),
    "all twice": logs_changed(lambda logs: logs * 2),
    "those of the share before": lambda results, last: last or results,
    "another order": logs_changed(lambda logs: logs[::-1]),
    "rubbish among them": logs_changed(lambda logs: [*logs[:-1], {"number": 1}]),
    "numbers that nobody asked for": logs_changed(lambda logs: [replace(one, number=one.number + 99) for one in logs]),
    "a generator that breaks off": logs_changed(raising_in_the_middle),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Half a megabyte of logs in 40 files."""
    folder = tmp_path_factory.mktemp("logs") / "all"
    generate(folder, megabytes=0.5, files=40)
    return folder


@pytest.fixture(scope="module")
def whole(logs):
    """The report of one process."""
    return aggregate_usage(logs, jobs=1).to_dict()


@pytest.fixture(autouse=True)
def _small_shares(monkeypatch):
    """Shares of a few logs each."""
    monkeypatch.setattr(engine, "_SHARE", 300_000)


@pytest.mark.parametrize("lie", LIES)
def test_p25_a_lying_worker_changes_no_result(logs, whole, lie):
    """What is not exactly the share that was given away is scanned here."""
    executor = Changing(LIES[lie])
    assert aggregate_usage(logs, executor=executor).to_dict() == whole
    assert executor.changed > 3


def test_p25_work_that_is_done_twice_counts_once(logs, whole):
    """An executor that starts a share again, because it took the first worker for dead."""

    class Twice(ThreadPoolExecutor):
        def submit(self, function, /, *args, **kwargs):
            super().submit(function, *args, **kwargs)
            return super().submit(function, *args, **kwargs)

    with Twice(3) as executor:
        assert aggregate_usage(logs, executor=executor).to_dict() == whole


def test_p25_slow_workers_give_the_same_report(logs, whole):
    """In whichever order their shares come back."""
    chance = random.Random(3)

    class Slow(ThreadPoolExecutor):
        def submit(self, function, /, *args, **kwargs):
            pause = chance.choice((0, 0, 0.01))
            return super().submit(lambda: (time.sleep(pause), function(*args, **kwargs))[1])

    with Slow(4) as executor:
        assert aggregate_usage(logs, executor=executor).to_dict() == whole
