"""Event loops: what an async agent gives is awaited, and the wait can be ended from outside.

A plain caller's async agents are awaited in a loop of ours, one for each thread, as long as the thread lives: a client
keeps connections open from turn to turn, and they belong to the loop in which they were opened.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final


class TurnCancelled(BaseException):
    """The turn was asked to stop: no error of the agent, so nothing that tries again may take it for one."""


class CancelToken:
    """A wish to stop, made from any thread or from a signal handler: so without a lock.

    Attributes:
        requested: A caller wants the turn to end after the piece at hand.
        wake: Ends the wait for the piece at hand, where it can be ended; set by what waits.
    """

    __slots__ = ("requested", "wake")

    def __init__(self) -> None:
        self.requested = False
        self.wake: Callable[[], object] | None = None

    def request(self) -> None:
        """Ask the turn to stop."""
        self.requested = True
        wake = self.wake
        if wake is not None:
            wake()

    def check(self) -> None:
        """Raise `TurnCancelled` if that was asked for."""
        if self.requested:
            raise TurnCancelled


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


async def stoppable(awaitable: Awaitable[Any], stop: CancelToken | None) -> Any:
    """Await something; a stop cancels it. Without a `stop`, a cancelled caller waits for its end first.

    Raises:
        TurnCancelled: The turn was asked to stop meanwhile.
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
            raise TurnCancelled from None
        raise
    finally:
        stop.wake = None


async def in_thread(call: Callable[[], Any], stop: CancelToken | None) -> Any:
    """Run a call that blocks in a thread; one that is stopped is left alone, and what comes of it is lost."""
    return await stoppable(asyncio.to_thread(_without_stop_iteration, call), stop)


async def _whole(waiting: asyncio.Future[Any]) -> Any:
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not waiting.done():
            await asyncio.wait({waiting})
        if not waiting.cancelled():
            waiting.exception()  # retrieved: else the loop complains of an error that was never retrieved
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


END: Final = object()
"""What stands behind the last piece."""


class AsyncSource:
    """The pieces of an async iterator, asked for by one task from the first to the last.

    What an agent opens in one step and closes in another (a cancel scope, a task group) has to see the same task.
    """

    is_blocking = False
    _answer: asyncio.Future[Any]  # what the last `next` waits for
    _cleaned: asyncio.Future[None]  # done with the task

    def __init__(self, pieces: AsyncIterator[Any]) -> None:
        self._pieces = pieces
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    async def next(self) -> Any:
        """Return the next piece, or END."""
        loop = asyncio.get_running_loop()
        self._answer = answer = loop.create_future()
        if self._task is None:
            self._cleaned = loop.create_future()
            self._task = loop.create_task(self._run())
            self._task.add_done_callback(self._finish)
        elif self._task.done():
            return END
        self._wanted.set()
        return await answer

    def close(self) -> asyncio.Future[Any] | None:
        """Cancel what is under way; the future is done when the agent has cleaned up, and need not be awaited.

        It may be called from any thread, and after the loop is gone.
        """
        task = self._task
        if task is None or task.done():
            return None
        loop = task.get_loop()
        if loop.is_closed():
            return None
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        return self._cleaned

    async def _run(self) -> None:
        try:
            piece = None
            while piece is not END:
                await self._wanted.wait()
                self._wanted.clear()
                piece = await anext(self._pieces, END)
                self._tell(piece)
        except asyncio.CancelledError:  # by `close`; or the agent's own, which is neither is a result
            self._answer.cancel()
        except Exception as error:  # noqa: BLE001 - it is passed to the waiting `next`
            self._tell(error)
        finally:
            if inspect.isasyncgen(self._pieces):
                with suppress(Exception):
                    await self._pieces.aclose()

    def _finish(self, _: object) -> None:
        if not self._cleaned.done():
            self._cleaned.set_result(None)

    def _tell(self, piece: Any) -> None:
        if self._answer.done():
            return
        if isinstance(piece, Exception):
            self._answer.set_exception(piece)
        else:
            self._answer.set_result(piece)
