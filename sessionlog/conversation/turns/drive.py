"""Drivers: a turn is one generator that does nothing itself; it says what to do, and these do it, here or in a loop.

A turn yields pieces, which are passed on, and `Do` and `Pause`, whose result is sent back in or whose exception is
thrown in. So there is one turn for both worlds. What an async agent gives is awaited: by `Stream` in an event loop of
its own, by `AsyncStream` in the caller's, where whatever blocks runs in a thread instead.

A stream that is closed, or forgotten, before its end throws `Closed` into its turn, which keeps what was shown.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from sessionlog.conversation.turns.loops import check_no_loop, in_thread, runner_here, stoppable
from sessionlog.conversation.turns.pieces import Done, StreamPiece
from sessionlog.conversation.turns.stop import Closed, Stop

_GLANCE = 0.05  # seconds of a pause between two looks at whether the turn is to stop


@dataclass(frozen=True, slots=True)
class Do:
    """Something for the driver to do.

    Attributes:
        call: Does it; an awaitable result is awaited.
        blocking: It may take long: a loop hands it to a thread.
        whole: It is waited for also by whoever is being cancelled.
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


class Lifetime(Protocol):
    """Who is told of a stream's begin and end: the session, which has only one at a time."""

    def begun(self, stream: Course) -> None:
        """Nothing was done yet; raises if it must not begin."""

    def ended(self, stream: Course) -> None:
        """It is over."""


class Course:
    """What both kinds of stream are: a turn's steps, from the first to the last.

    Attributes:
        stop: Ends it from outside.
    """

    def __init__(self, steps: Steps, stop: Stop, lifetime: Lifetime) -> None:
        self.stop = stop
        self._steps, self._lifetime = steps, lifetime
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
            self._lifetime.begun(self)
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
        cause = (self._cause or Closed()) if self._state in {"running", "passing"} else None
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
            self._lifetime.ended(self)


class Stream(Course, Iterator[StreamPiece]):
    """The pieces of a turn as they come; the last one is `Done`. Closing it early keeps what was shown."""

    def __init__(
        self, steps: Steps, stop: Stop, lifetime: Lifetime, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(steps, stop, lifetime)
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
            asked = step
            step = self._answer(lambda: self._result(asked))  # noqa: B023 - called before the next round
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


class AsyncStream(Course, AsyncIterator[StreamPiece]):
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
