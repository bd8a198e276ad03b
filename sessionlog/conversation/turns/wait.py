"""Waiting in an event loop: for what can be stopped, and for what is not to be left half done.

A plain caller's async agents are awaited in a loop of ours, one for each thread, as long as the thread lives: a client
keeps connections open from turn to turn, and they belong to the loop in which they were opened.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from sessionlog.conversation.turns.stop import Stop, Stopped


def check_no_loop() -> None:
    """See that an event loop of one's own can be run here.

    Raises:
        RuntimeError: One is running already in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("the agent is async and an event loop runs here: use run_async, stream_async, json_async")


async def stoppable(awaitable: Awaitable[Any], stop: Stop | None) -> Any:
    """Await something; a stop cancels it. Without a `stop`, a cancelled caller waits for its end first.

    Raises:
        Stopped: The turn was asked to stop meanwhile.
    """
    waiting = asyncio.ensure_future(awaitable)
    if stop is None:
        return await _whole(waiting)
    loop = asyncio.get_running_loop()
    stop.wake = lambda: _cancel(loop, waiting)
    try:
        if stop.requested:
            waiting.cancel()
        return await waiting
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if stop.requested and waiting.cancelled() and not (task and task.cancelling()):
            raise Stopped from None
        raise
    finally:
        stop.wake = None


async def in_thread(call: Callable[[], Any], stop: Stop | None) -> Any:
    """Run a call that blocks in a thread; one that is stopped is left alone, and what comes of it is lost."""
    return await stoppable(asyncio.to_thread(_without_stop_iteration, call), stop)


async def _whole(waiting: asyncio.Future[Any]) -> Any:
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not waiting.done():
            await asyncio.wait({waiting})
        if not waiting.cancelled():
            waiting.exception()  # looked at: else the loop complains of an error that nobody saw
        raise


def _cancel(loop: asyncio.AbstractEventLoop, waiting: asyncio.Future[Any]) -> None:
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(waiting.cancel)


def _without_stop_iteration(call: Callable[[], Any]) -> Any:
    """No future can carry a StopIteration."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("StopIteration was raised") from error


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
