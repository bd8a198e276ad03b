"""The event loop in which a plain caller's async agents are awaited: one for each thread, as long as the thread lives.

A client keeps connections open from turn to turn, and they belong to the loop in which they were opened: with a loop of
its own for each turn, the second turn fails.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref


class _Loop(asyncio.SelectorEventLoop):
    """A loop that a forked process lets alone: closed there, it would be deaf in the process that goes on with it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        super().__init__()

    def close(self) -> None:
        """Close it, where it was opened."""
        if self._process == os.getpid():
            super().close()


class _Own:
    """A thread's runner; it is closed with the thread, and at the end of the program."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner(loop_factory=_Loop if hasattr(os, "fork") else None)
        self.process = os.getpid()
        weakref.finalize(self, _close, self.runner, self.process)


_threads = threading.local()


def runner_here() -> asyncio.Runner:
    """Return the runner of this thread; a forked process has its own."""
    mine: _Own | None = getattr(_threads, "own", None)
    if mine is None or mine.process != os.getpid():
        mine = _threads.own = _Own()
    return mine.runner


def _close(runner: asyncio.Runner, process: int) -> None:
    if process == os.getpid():
        runner.close()
