"""Waiting in an event loop: for what can be stopped, and for what is not to be left half done."""

from __future__ import annotations

import asyncio
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
