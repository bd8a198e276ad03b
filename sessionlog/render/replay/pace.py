"""Replay in time: the pauses of the log, shortened by a factor.

A pause never lasts longer than 5 seconds, a clock that went backwards makes none, and work that took longer than its
pause is not caught up with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event

LONGEST = 5.0
"""Seconds of the longest pause."""


def pace(
    items: Iterable[Event | Problem],
    *,
    speed: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event | Problem]:
    """Yield `items` as they are, each not before its time: gaps between their `ts`, divided by `speed`."""
    before: int | None = None
    due = clock()
    for item in items:
        now = item.time_ns if isinstance(item, Event) else None
        if now is not None:
            gap = 0.0 if before is None else max(0.0, (now - before) / 1e9 / speed)
            before = now
            due = max(due, clock() - min(gap, LONGEST)) + min(gap, LONGEST)
            if due > clock():
                sleep(due - clock())
        yield item
