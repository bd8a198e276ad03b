"""Replay in time, with a clock and a sleep of our own."""

import pytest

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.render.replay import LONGEST, pace


class Time:
    """A clock that only sleeping, and work, moves."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def sleep(self, seconds):
        """Sleep."""
        self.slept.append(round(seconds, 6))
        self.now += seconds

    def clock(self):
        """Look at the clock."""
        return self.now


def event(second):
    """An event at a second of an hour, or at no time."""
    ts = "" if second is None else f"2026-11-21T10:{int(second) // 60:02}:{second % 60:09.6f}Z"
    return Event(session_id="s", seq=0, type="t", ts=ts)


@pytest.mark.parametrize(
    ("seconds", "speed", "slept"),
    [
        ([0, 1, 3], 1, [1, 2]),
        ([0, 1, 3], 10, [0.1, 0.2]),
        ([0, 1, 3], 0.5, [2, 4]),
        ([0, 600], 1, [LONGEST]),
        ([0, 600], 1000, [0.6]),
        ([10, 5, 6], 1, [1]),
        ([0, None, 2], 1, [2]),
        ([7], 1, []),
    ],
)
def test_pauses_are_the_logs_divided_by_the_speed(seconds, speed, slept):
    """Never longer than the longest, none for a clock that went back or that is missing."""
    time = Time()
    items = [event(second) for second in seconds]
    assert list(pace(items, speed=speed, sleep=time.sleep, clock=time.clock)) == items
    assert time.slept == slept


def test_work_counts_as_pause_and_lateness_is_not_caught_up():
    """Time that showing took is not slept again; after a halt the pace is the log's again."""
    time = Time()
    items = pace([event(0), event(1), event(2), event(3)], speed=1, sleep=time.sleep, clock=time.clock)
    next(items)
    time.now += 0.4
    next(items)
    time.now += 30
    next(items)
    next(items)
    assert time.slept == [0.6, 1]


def test_problems_pass_without_a_pause():
    """What has no time waits for nothing."""
    time = Time()
    problem = Problem(path="x", line=1, offset=0, kind="not_json", detail="")
    assert list(pace([event(0), problem, event(1)], speed=1, sleep=time.sleep, clock=time.clock))[1] is problem
    assert time.slept == [1]
