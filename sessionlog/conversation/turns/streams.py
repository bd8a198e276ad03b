"""Streams: a turn is one generator that does no work itself; it yields what is to be done, and a stream does it.

A turn yields pieces, which are passed on, and `Do` and `Pause`, whose result is sent back in or whose exception is
thrown in. So there is one turn for plain and async callers. What an async agent gives is awaited: by `Stream` in an
event loop of its own, by `AsyncStream` in the caller's, where whatever blocks runs in a thread instead.

A stream that is closed, or forgotten, before its end throws `StreamClosed` into its turn, which keeps what was shown.
Signals end a turn in the same way, also while its stream is suspended in the caller's loop.
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
    runner_here,
    stoppable,
)
from sessionlog.conversation.turns.pieces import Done, StreamPiece
from sessionlog.errors import AgentError

_GLANCE = 0.05  # seconds of a pause between two looks at whether the turn is to stop


class StreamClosed(BaseException):
    """The stream was closed, or forgotten, before its end."""


@dataclass(frozen=True, slots=True)
class Do:
    """Something for the driver to do.

    Attributes:
        call: Does it; an awaitable result is awaited.
        blocking: It may take long: a loop hands it to a thread.
        whole: It is waited for even while the turn is cancelled.
    """

    call: Callable[[], Any]
    blocking: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait; less long if the turn is to stop."""

    seconds: float


Step = StreamPiece | Do | Pause
Steps = Generator[Step, Any, None]


class StreamOwner(Protocol):
    """Who has a stream: the session, which has only one at a time."""

    def begun(self, stream: BaseStream) -> None:
        """Nothing was done yet; raises if it must not begin."""

    def ended(self, stream: BaseStream) -> None:
        """It is over."""


class BaseStream:
    """What both kinds of stream are: a turn's steps, from the first to the last.

    Attributes:
        stop: Ends it from outside.
    """

    def __init__(self, steps: Steps, stop: CancelToken, owner: StreamOwner) -> None:
        self.stop = stop
        self._steps, self._owner = steps, owner
        self._cause: BaseException | None = None
        self._state: Literal["new", "running", "passing", "ended"] = "new"

    @property
    def is_suspended(self) -> bool:
        """A piece is with the consumer, who may or may not ask for the next one."""
        return self._state == "passing"

    def interrupted_by(self, error: BaseException) -> None:
        """Take an early end from now on for that of the program: the session is cancelled."""
        self._cause = error

    def abandon(self) -> None:
        """End the turn here and now, with nothing awaited: what was shown is kept."""
        with self._leaving() as cause:
            step = self._go_on(error=cause) if cause else None
            while step is not None:
                step = self._answer(step.call) if isinstance(step, Do) else self._go_on()

    def _enter(self) -> None:
        """Take the turn for the one who asks for its next piece."""
        if self._state == "running":
            raise RuntimeError("the stream is running already, in another thread or task; Session.cancel() ends it")
        if self._state == "new":
            self._state = "ended"
            self._owner.begun(self)
        self._state = "running"

    def _pass_on(self, piece: StreamPiece) -> StreamPiece:
        self._state = "passing"
        if isinstance(piece, Done):
            self._end()
        return piece

    def _go_on(self, value: Any = None, error: BaseException | None = None) -> Step | None:
        """Send a result into the turn, or throw what happened instead; None at its end."""
        try:
            return self._steps.send(value) if error is None else self._steps.throw(error)
        except StopIteration:
            return None

    def _answer(self, call: Callable[[], Any]) -> Step | None:
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - the turn decides what becomes of it
            return self._go_on(error=error)
        return self._go_on(value)

    @contextmanager
    def _leaving(self) -> Iterator[BaseException | None]:
        """End a turn early: yields what to throw into it, None where nothing was begun."""
        cause = (self._cause or StreamClosed()) if self._state in {"running", "passing"} else None
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
    """The pieces of a turn as they come; the last one is `Done`. Closing it early keeps what was shown."""

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
            AgentError: The agent failed; what it said is kept.
            RuntimeError: The session is busy with another turn.
        """
        if self._state == "ended":
            raise StopIteration
        self._enter()
        try:
            piece = self._perform(self._go_on())
        except BaseException:
            self._end()
            raise
        if piece is None:
            self._end()
            raise StopIteration
        return self._pass_on(piece)

    def close(self) -> None:
        """End the turn here: what was shown is kept, as an interrupted answer."""
        if self._state == "running":
            raise RuntimeError("the stream is running, and cannot be closed; Session.cancel() ends it")
        with self._leaving() as cause:
            if cause:
                self._perform(self._go_on(error=cause))

    def interrupted_by(self, error: BaseException) -> None:
        """End the turn for a signal that comes while a piece is with the consumer; else it is raised in the turn."""
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
            step = self._answer(partial(self._result, step))
        return step

    def _result(self, step: Do | Pause) -> Any:
        if isinstance(step, Pause):
            return self._pause(step.seconds)
        value = step.call()
        if not inspect.isawaitable(value):
            return value
        if self._runner is None:
            self._runner = self._own_loop(value)
        return self._runner.run(stoppable(value, None if step.whole else self.stop))

    @staticmethod
    def _own_loop(value: Any) -> asyncio.Runner:
        try:
            check_no_loop()
        except RuntimeError:
            if inspect.iscoroutine(value):
                value.close()
            raise
        return runner_here()

    def _pause(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self.stop.requested:
            self._sleep(min(left, _GLANCE))
            left -= _GLANCE


class AsyncStream(BaseStream, AsyncIterator[StreamPiece]):
    """The pieces of a turn as they come, in an event loop; the last one is `Done`."""

    def __aiter__(self) -> Self:
        return self

    def __await__(self) -> Generator[None, None, Self]:
        """The stream itself: `async for piece in await session.stream_async(…)` is the same as without `await`."""
        yield from ()
        return self

    async def __anext__(self) -> StreamPiece:
        """Return the next piece.

        Raises:
            AgentError: The agent failed; what it said is kept.
            RuntimeError: The session is busy with another turn.
        """
        if self._state == "ended":
            raise StopAsyncIteration
        self._enter()
        try:
            piece = await self._perform(self._go_on())
        except GeneratorExit:  # the loop is gone: nothing can be awaited any more
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
        """End the turn here: what was shown is kept, as an interrupted answer."""
        if self._state == "running":
            raise RuntimeError("the stream is running, and cannot be closed; Session.cancel() ends it")
        with self._leaving() as cause:
            if cause:
                await self._perform(self._go_on(error=cause))

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
            except BaseException as error:  # noqa: BLE001 - the turn decides what becomes of it
                step = self._go_on(error=error)
            else:
                step = self._go_on(value)
        return step

    async def _result(self, step: Do | Pause) -> Any:
        if isinstance(step, Pause):
            return await stoppable(asyncio.sleep(step.seconds), self.stop)
        stop = None if step.whole else self.stop
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
        """Let the agent clean up; one that a thread is still waiting for does so when that wait is over."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            with suppress(Exception):
                close()


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


class Watcher(Protocol):
    """Who is called with what a signal is about to raise."""

    def interrupted_by(self, error: BaseException) -> None:
        """Put everything in order; it is raised right after."""


_DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
_watchers: WeakSet[Watcher] = WeakSet()  # weak: a forgotten stream is over
_previous: dict[int, Any] = {}


def watch(watcher: Watcher) -> None:
    """Call someone on SIGTERM and Ctrl-C from now on; does nothing outside of the main thread.

    Only where no other handler is set: then what it raises is given to all who watch, and raised
    where the program is. SIGTERM is `SystemExit(143)`.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _watchers.add(watcher)
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == default:
            _previous[number] = signal.signal(number, _on_signal)


def unwatch(watcher: Watcher) -> None:
    """Call them no more; with the last one, signals do what they did before."""
    _watchers.discard(watcher)
    if _watchers:
        return
    for number in list(_previous):
        with suppress(ValueError):  # not in the main thread: the next one to watch there finds ours in place
            if signal.getsignal(number) is _on_signal:
                signal.signal(number, _previous[number])
            del _previous[number]


def _on_signal(number: int, _frame: FrameType | None) -> None:
    error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
    for watcher in list(_watchers):
        watcher.interrupted_by(error)
    raise error
