"""Streams: drivers of a turn. A turn is a generator that does no I/O; it yields steps, and a stream performs them.

A turn yields pieces, which the stream passes on, and `Do` and `Pause`, whose result is sent or whose exception is
thrown into the turn. So sync and async callers share one turn. `Stream` awaits results of async agents in an event loop
of its own; `AsyncStream` uses the caller's loop, and runs blocking calls in threads.

A stream that is closed or garbage-collected early throws `StreamClosed` into its turn, which keeps the text so far.
Signals end a turn in the same way, also while its stream is suspended.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Literal, Protocol, Self
from weakref import WeakSet

from sessionlog.conversation.turns.loops import (
    END,
    AsyncSource,
    CancelToken,
    check_no_loop,
    in_thread,
    stoppable,
    thread_runner,
)
from sessionlog.conversation.turns.pieces import Done, StreamPiece
from sessionlog.errors import AgentError

_POLL_SECONDS = 0.05  # how often a pause checks for cancellation


class StreamClosed(BaseException):
    """The stream was closed or garbage-collected before its end."""


@dataclass(frozen=True, slots=True)
class Do:
    """A call for the stream to make.

    Attributes:
        call: The function; an awaitable result is awaited.
        blocking: It may take long: an event loop runs it in a thread.
        shielded: It finishes even if the turn is cancelled.
    """

    call: Callable[[], Any]
    blocking: bool = False
    shielded: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait, ended early if the turn is cancelled."""

    seconds: float


Step = StreamPiece | Do | Pause
Steps = Generator[Step, Any, None]


class StreamOwner(Protocol):
    """The owner of a stream: the session, which has only one at a time."""

    def begun(self, stream: BaseStream) -> None:
        """Called before the first step; raises if the turn must not start."""

    def ended(self, stream: BaseStream) -> None:
        """Called after the last step."""


class BaseStream:
    """What sync and async streams share: performing a turn's steps.

    Attributes:
        stop: Cancels the turn from outside.
    """

    def __init__(self, steps: Steps, stop: CancelToken, owner: StreamOwner) -> None:
        self.stop = stop
        self._steps, self._owner = steps, owner
        self._cause: BaseException | None = None
        self._state: Literal["new", "running", "suspended", "ended"] = "new"

    @property
    def is_suspended(self) -> bool:
        """Whether the consumer has a piece, and may or may not request the next one."""
        return self._state == "suspended"

    def interrupted_by(self, error: BaseException) -> None:
        """Throw `error` instead of `StreamClosed` at an early end: the session was cancelled."""
        self._cause = error

    def abandon(self) -> None:
        """End the turn without awaiting anything; the text so far is kept."""
        with self._ending_early() as cause:
            step = self._send(error=cause) if cause else None
            while step is not None:
                step = self._send_result(step.call) if isinstance(step, Do) else self._send()

    def _enter(self) -> None:
        """Mark the stream as running; the first call starts the turn."""
        if self._state == "running":
            raise RuntimeError("the stream is running already, in another thread or task; Session.cancel() ends it")
        if self._state == "new":
            self._state = "ended"
            self._owner.begun(self)
        self._state = "running"

    def _pass_on(self, piece: StreamPiece) -> StreamPiece:
        self._state = "suspended"
        if isinstance(piece, Done):
            self._end()
        return piece

    def _send(self, value: Any = None, error: BaseException | None = None) -> Step | None:
        """Send a result, or throw an exception, into the turn; return its next step, None at its end."""
        try:
            return self._steps.send(value) if error is None else self._steps.throw(error)
        except StopIteration:
            return None

    def _send_result(self, call: Callable[[], Any]) -> Step | None:
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - the turn handles it
            return self._send(error=error)
        return self._send(value)

    @contextmanager
    def _ending_early(self) -> Iterator[BaseException | None]:
        """End a turn early; yield the exception to throw into it, None if it was not started."""
        cause = (self._cause or StreamClosed()) if self._state in {"running", "suspended"} else None
        self._state = "running" if cause else "ended"
        try:
            yield cause
        except BaseException as error:
            if error is not cause:
                raise
        finally:
            self._end()

    def _end(self) -> None:
        if self._state != "ended":
            self._state = "ended"
            self._steps.close()
            self._owner.ended(self)


class Stream(BaseStream, Iterator[StreamPiece]):
    """The pieces of a turn as they come; the last one is `Done`. Closing it early keeps the text so far."""

    def __init__(
        self, steps: Steps, stop: CancelToken, owner: StreamOwner, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(steps, stop, owner)
        self._sleep = sleep
        self._runner: asyncio.Runner | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamPiece:
        """Return the next piece.

        Raises:
            AgentError: The agent failed; the text so far is kept.
            RuntimeError: The session is busy with another turn.
        """
        if self._state == "ended":
            raise StopIteration
        self._enter()
        try:
            piece = self._perform(self._send())
        except BaseException:
            self._end()
            raise
        if piece is None:
            self._end()
            raise StopIteration
        return self._pass_on(piece)

    def close(self) -> None:
        """End the turn; the text so far is kept as an interrupted answer."""
        if self._state == "running":
            raise RuntimeError("the stream is running, and cannot be closed; Session.cancel() ends it")
        with self._ending_early() as cause:
            if cause:
                self._perform(self._send(error=cause))

    def interrupted_by(self, error: BaseException) -> None:
        """End the turn if the stream is suspended; else the signal's exception is raised within the turn."""
        super().interrupted_by(error)
        if self.is_suspended:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._state != "ended":
            self.close()

    def _perform(self, step: Step | None) -> StreamPiece | None:
        while isinstance(step, Do | Pause):
            step = self._send_result(partial(self._result, step))
        return step

    def _result(self, step: Do | Pause) -> Any:
        if isinstance(step, Pause):
            return self._pause(step.seconds)
        value = step.call()
        if not inspect.isawaitable(value):
            return value
        if self._runner is None:
            self._runner = self._own_loop(value)
        return self._runner.run(stoppable(value, None if step.shielded else self.stop))

    @staticmethod
    def _own_loop(value: Any) -> asyncio.Runner:
        try:
            check_no_loop()
        except RuntimeError:
            if inspect.iscoroutine(value):
                value.close()
            raise
        return thread_runner()

    def _pause(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self.stop.requested:
            self._sleep(min(left, _POLL_SECONDS))
            left -= _POLL_SECONDS


class AsyncStream(BaseStream, AsyncIterator[StreamPiece]):
    """The pieces of a turn as they come, in an event loop; the last one is `Done`."""

    def __aiter__(self) -> Self:
        return self

    def __await__(self) -> Generator[None, None, Self]:
        """Return the stream: `async for piece in await session.stream_async(…)` works with and without `await`."""
        yield from ()
        return self

    async def __anext__(self) -> StreamPiece:
        """Return the next piece.

        Raises:
            AgentError: The agent failed; the text so far is kept.
            RuntimeError: The session is busy with another turn.
        """
        if self._state == "ended":
            raise StopAsyncIteration
        self._enter()
        try:
            piece = await self._perform(self._send())
        except GeneratorExit:  # the loop is closed: nothing can be awaited any more
            self.abandon()
            raise
        except BaseException:
            self._end()
            raise
        if piece is None:
            self._end()
            raise StopAsyncIteration
        return self._pass_on(piece)

    async def aclose(self) -> None:
        """End the turn; the text so far is kept as an interrupted answer."""
        if self._state == "running":
            raise RuntimeError("the stream is running, and cannot be closed; Session.cancel() ends it")
        with self._ending_early() as cause:
            if cause:
                await self._perform(self._send(error=cause))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._state != "ended":
            self.abandon()

    async def _perform(self, step: Step | None) -> StreamPiece | None:
        while isinstance(step, Do | Pause):
            try:
                value = await self._result(step)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - the turn handles it
                step = self._send(error=error)
            else:
                step = self._send(value)
        return step

    async def _result(self, step: Do | Pause) -> Any:
        if isinstance(step, Pause):
            return await stoppable(asyncio.sleep(step.seconds), self.stop)
        stop = None if step.shielded else self.stop
        value = await in_thread(step.call, stop) if step.blocking else step.call()
        return await stoppable(value, stop) if inspect.isawaitable(value) else value


class PlainSource:
    """The pieces of an iterator."""

    is_blocking = True

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces

    def next(self) -> Any:
        """Return the next piece, or END."""
        return next(self._pieces, END)

    def close(self) -> None:
        """Close the iterator, so that the agent cleans up; if a thread waits in it, cleaning up follows that wait."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            with suppress(Exception):
                close()


def source_of(pieces: Any) -> PlainSource | AsyncSource:
    """Return a source of the pieces that an agent's `answer` returned.

    Raises:
        AgentError: It returned no iterator.
    """
    if isinstance(pieces, AsyncIterator):
        return AsyncSource(pieces)
    if isinstance(pieces, Iterable) and not isinstance(pieces, str | bytes):
        return PlainSource(iter(pieces))
    if inspect.iscoroutine(pieces):
        pieces.close()
    raise AgentError(
        f"answer() returned {type(pieces).__name__}; it has to return an iterator of pieces, sync or async"
    )


class Watcher(Protocol):
    """Called before a signal handler raises its exception."""

    def interrupted_by(self, error: BaseException) -> None:
        """Clean up; `error` is raised right after."""


_DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
_watchers: WeakSet[Watcher] = WeakSet()  # weak: a garbage-collected stream has ended
_previous: dict[int, Any] = {}


def watch(watcher: Watcher) -> None:
    """Call the watcher on SIGTERM and Ctrl-C from now on; do nothing outside of the main thread.

    Only if no other handler is set. The handler passes its exception to all watchers, and raises it: KeyboardInterrupt
    for Ctrl-C, `SystemExit(143)` for SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _watchers.add(watcher)
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == default:
            _previous[number] = signal.signal(number, _on_signal)


def unwatch(watcher: Watcher) -> None:
    """Remove a watcher; the last one restores the previous signal handlers."""
    _watchers.discard(watcher)
    if _watchers:
        return
    for number in list(_previous):
        with suppress(ValueError):  # not in the main thread: our handler stays until the next `unwatch` there
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, _previous[number])
            del _previous[number]


def _on_signal(number: int, _frame: FrameType | None) -> None:
    error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
    for watcher in list(_watchers):
        watcher.interrupted_by(error)
    raise error
