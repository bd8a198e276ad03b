"""Many processes, one budget: together they never get more than it holds, and it never takes long."""

import os
import time
from multiprocessing import get_context

import pytest

from sessionlog.analytics.budgets.budget import Budget
from tests.reliability.children import fork, wait

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def environment(folder):
    """The environment of somebody without logs."""
    return {"HOME": str(folder), "PATH": ""}


def ask(folder, limit, count, begin, answers, index):
    """Ask for one request after the other; tell how many were allowed, and every other reason than that it is used."""
    budget = Budget(requests=limit, window="5h", env=environment(folder))
    begin.wait()
    found = [budget.allows(1) for _ in range(count)]
    odd = sorted({one.reason for one in found if "not known" in one.reason})
    answers.put((index, sum(map(bool, found)), odd))


def ask_together(folder, *, processes, count, limit):
    """Ask in so many processes at once; return how many were allowed, odd reasons, and the seconds that it took."""
    Budget(requests=limit, window="5h", env=environment(folder)).remaining()
    context = get_context("fork")
    answers, begin = context.Queue(), context.Barrier(processes + 1)
    pids = [fork(lambda n=n: _child(folder, limit, count, begin, answers, n)) for n in range(processes)]
    begin.wait()
    started = time.perf_counter()
    told = [answers.get() for _ in pids]
    seconds = time.perf_counter() - started
    assert [wait(pid) for pid in pids] == [0] * processes
    return sum(allowed for _, allowed, _ in told), [reason for *_, odd in told for reason in odd], seconds


def _child(folder, limit, count, begin, answers, index):
    ask(folder, limit, count, begin, answers, index)
    answers.close()
    answers.join_thread()


@pytest.mark.parametrize(
    ("processes", "count", "limit"),
    [
        (4, 25, 60),
        pytest.param(8, 1000, 3000, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
        pytest.param(8, 1000, 10**6, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_never_more_than_there_is(memory, processes, count, limit):
    """Whatever is asked at once: what is allowed is what there is, or all that was asked for."""
    allowed, odd, seconds = ask_together(memory, processes=processes, count=count, limit=limit)
    print(f"{processes} processes x {count:,} asks: {processes * count / seconds:,.0f} a second")
    assert odd == []
    assert allowed == min(limit, processes * count)
    left = Budget(requests=limit, window="5h", env=environment(memory)).remaining()
    assert left.amount == limit - allowed


def test_a_killed_process_takes_nothing_with_it(memory):
    """What it had reserved counts; what it was about to reserve does not."""
    budget = Budget(requests=50, window="5h", env=environment(memory))
    budget.remaining()
    reading, writing = os.pipe()

    def spend():
        while True:
            allowed = bool(budget.allows(1))
            os.write(writing, b"y" if allowed else b"n")

    pid = fork(spend)
    told = b"".join(os.read(reading, 1) for _ in range(5))
    os.kill(pid, 9)
    assert wait(pid) == -9
    os.close(writing)
    with os.fdopen(reading, "rb") as rest:
        told += rest.read()
    left = budget.remaining()
    assert left.reason == ""
    assert 50 - len(told) - 1 <= left.amount <= 50 - told.count(b"y")
