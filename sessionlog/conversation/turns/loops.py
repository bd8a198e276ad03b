"""Event loops for async agents, and cancellation of what they wait for.

Without a running loop, async agents run in a loop of ours, one per thread for the thread's lifetime: clients keep
connections open between turns, and a connection belongs to the loop in which it was opened.
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
    """The turn was cancelled; a BaseException, so that no retry treats it as an error of the agent."""


class CancelToken:
    """A request to cancel, set from any thread or signal handler, and therefore without a lock.

    Attributes:
        requested: The turn has to end after the current piece.
        wake: Cancels the wait for the current piece, where possible; set by the waiting code.
    """

    __slots__ = ("requested", "wake")

    def __init__(self) -> None:
        self.requested = False
        self.wake: Callable[[], object] | None = None

    def request(self) -> None:
        """Request the end of the turn."""
        self.requested = True
        wake = self.wake
        if wake is not None:
            wake()

    def check(self) -> None:
        """Raise `TurnCancelled` if the end was requested."""
        if self.requested:
            raise TurnCancelled


def check_no_loop() -> None:
    """Check that no event loop runs in this thread, so that ours can.

    Raises:
        RuntimeError: A loop is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("the agent is async and an event loop runs here: use run_async, stream_async, json_async")


async def stoppable(awaitable: Awaitable[Any], stop: CancelToken | None) -> Any:
    """Await something that `stop` can cancel. Without a `stop`, it finishes even if the caller is cancelled.

    Raises:
        TurnCancelled: `stop` was requested.
    """
    waiting = asyncio.ensure_future(awaitable)
    if stop is None:
        return await _shielded(waiting)
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
    """Run a blocking call in a thread; after a stop it continues there, and its result is dropped."""
    return await stoppable(asyncio.to_thread(_without_stop_iteration, call), stop)


async def _shielded(waiting: asyncio.Future[Any]) -> Any:
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
    """Call, and convert StopIteration, which a future cannot carry."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("StopIteration was raised") from error


class _Loop(asyncio.SelectorEventLoop):
    """A loop that a forked process does not close: that would unregister the parent's file descriptors."""

    def __init__(self) -> None:
        self._process = os.getpid()
        super().__init__()

    def close(self) -> None:
        """Close the loop, but only in the process that opened it."""
        if self._process == os.getpid():
            super().close()


class _ThreadRunner:
    """A thread's runner; it is closed with the thread, and at the end of the program."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner(loop_factory=_Loop if hasattr(os, "fork") else None)
        self.process = os.getpid()
        weakref.finalize(self, _close, self.runner, self.process)


_threads = threading.local()


def thread_runner() -> asyncio.Runner:
    """Return the runner of this thread; a forked process gets a new one."""
    own: _ThreadRunner | None = getattr(_threads, "own", None)
    if own is None or own.process != os.getpid():
        own = _threads.own = _ThreadRunner()
    return own.runner


def _close(runner: asyncio.Runner, process: int) -> None:
    if process == os.getpid():
        runner.close()


END: Final = object()
"""Returned by a source after its last piece."""


class AsyncSource:
    """The pieces of an async iterator, all of them read by one task.

    A cancel scope or task group that the agent opens in one step and closes in another needs the same task.
    """

    is_blocking = False
    _answer: asyncio.Future[Any]  # awaited by the last `next`
    _cleaned: asyncio.Future[None]  # done when the task is

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
        """Cancel the task; return a future, done when the agent has cleaned up, which need not be awaited.

        Any thread may call it, also after the loop was closed.
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
                self._deliver(piece)
        except asyncio.CancelledError:  # by close() or by the agent; not a result
            self._answer.cancel()
        except Exception as error:  # noqa: BLE001 - it is passed to the waiting `next`
            self._deliver(error)
        finally:
            if inspect.isasyncgen(self._pieces):
                with suppress(Exception):
                    await self._pieces.aclose()

    def _finish(self, _: object) -> None:
        if not self._cleaned.done():
            self._cleaned.set_result(None)

    def _deliver(self, piece: Any) -> None:
        if self._answer.done():
            return
        if isinstance(piece, Exception):
            self._answer.set_exception(piece)
        else:
            self._answer.set_result(piece)
