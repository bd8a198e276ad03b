"""Where the pieces of an answer come from, one at a time and only when wanted, from a plain or an async agent."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from sessionlog.errors import AgentError

END: Final = object()
"""What stands behind the last piece."""


class PlainSource:
    """The pieces of an iterator."""

    is_blocking = True

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces

    def next(self) -> Any:
        """Return the next piece, or END."""
        return next(self._pieces, END)

    def close(self) -> None:
        """Let the agent clean up; one that a thread is still waiting for does so when that wait is over."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            with suppress(Exception):
                close()


class AsyncSource:
    """The pieces of an async iterator, asked for by one task from the first to the last.

    What an agent opens in one step and closes in another (a cancel scope, a task group) has to see the same task.
    """

    is_blocking = False

    def __init__(self, pieces: AsyncIterator[Any]) -> None:
        self._pieces = pieces
        self._task: asyncio.Task[None] | None = None
        self._wanted: asyncio.Event | None = None
        self._answer: asyncio.Future[Any] | None = None
        self._cleaned: asyncio.Future[None] | None = None

    async def next(self) -> Any:
        """Return the next piece, or END."""
        self._answer = answer = asyncio.get_running_loop().create_future()
        if self._task is None or self._wanted is None:
            self._wanted, self._cleaned = asyncio.Event(), asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._run(self._wanted))
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

    async def _run(self, wanted: asyncio.Event) -> None:
        try:
            piece = None
            while piece is not END:
                await wanted.wait()
                wanted.clear()
                piece = await anext(self._pieces, END)
                self._tell(piece)
        except asyncio.CancelledError:  # by `close`; or the agent's own, which is none of an answer's ends
            if self._answer is not None:
                self._answer.cancel()
        except Exception as error:  # noqa: BLE001 - whoever asked gets it
            self._tell(error)
        finally:
            if inspect.isasyncgen(self._pieces):
                with suppress(Exception):
                    await self._pieces.aclose()

    def _finish(self, _: object) -> None:
        if self._cleaned is not None and not self._cleaned.done():
            self._cleaned.set_result(None)

    def _tell(self, piece: Any) -> None:
        if self._answer is None or self._answer.done():
            return
        if isinstance(piece, Exception):
            self._answer.set_exception(piece)
        else:
            self._answer.set_result(piece)


def source_of(pieces: Any) -> PlainSource | AsyncSource:
    """Return the source of what an agent's `answer` gave.

    Raises:
        AgentError: It is nothing that gives pieces.
    """
    if isinstance(pieces, AsyncIterator):
        return AsyncSource(pieces)
    if isinstance(pieces, Iterable) and not isinstance(pieces, str | bytes):
        return PlainSource(iter(pieces))
    if inspect.iscoroutine(pieces):
        pieces.close()
    raise AgentError(f"answer() gave {type(pieces).__name__}; it gives an iterator of pieces, plain or async")
