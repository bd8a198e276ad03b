"""ToolTimer: one tool call being measured, as a value to fill in, a context manager or a decorator."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from functools import partial, wraps
from time import monotonic_ns
from types import TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

Record = Callable[[dict[str, object]], bool]


class ToolTimer:
    """Measures one `tool.call` with a monotonic clock and records it once.

    Three ways to use it, all from `SessionLogger.tool_call`:

        log.tool_call("read", {"path": "a.py"}, output=text, duration_ms=3)   # recorded at once; truthy = recorded
        with log.tool_call("bash", {"command": c}) as call: call.output = run(c)
        @log.tool_call("search")                                              # every call of the function

    Attributes:
        output: The tool's result; set it inside the `with` block.
        error: What went wrong; an exception that leaves the block sets it and propagates. A generator that its consumer
            closes early (GeneratorExit) has not failed.
        recorded: Whether the event is in the log.
    """

    __slots__ = ("_fields", "_record", "_started", "_used", "error", "output", "recorded")

    def __init__(self, record: Record, fields: dict[str, Any]) -> None:
        self._record = record
        self._fields = fields
        self._started = monotonic_ns()
        self._used = False
        self.output: Any = None
        self.error: str | None = None
        self.recorded = False

    def __bool__(self) -> bool:
        return self.recorded

    def __enter__(self) -> Self:
        self._used = True
        self._started = monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self.error is None and not isinstance(error, GeneratorExit):
            self.error = describe(error)
        self.finish((monotonic_ns() - self._started) / 1e6)

    def finish(self, duration_ms: float | None) -> None:
        """Record the call with what is known now; a second call does nothing."""
        self._used = True
        record, self._record = self._record, _done
        fields = dict(self._fields)
        if self.output is not None:
            fields["output"] = self.output
        if duration_ms is not None:
            fields["duration_ms"] = duration_ms
            with suppress(Exception):  # a value that is no number is logged as it is
                fields["duration_ms"] = round(duration_ms, 3)
        if self.error is not None:
            fields["error"] = self.error
        if record is not _done:
            self.recorded = record(fields)

    def __call__(self, function: _F) -> _F:
        """Measure every call of `function` (async ones too, and generators until their end or until they are closed).

        Its arguments by name are the input; what a generator yields is not recorded.
        """
        self._used = True
        signature = _signature(function)
        called = called_function(function)

        def begin(args: Any, kwargs: Any) -> ToolTimer:
            bound = {k: v for k, v in signature.bind(*args, **kwargs).arguments.items() if k not in ("self", "cls")}
            return ToolTimer(self._record, {**self._fields, "input": bound})

        if inspect.iscoroutinefunction(called):

            @wraps(function)
            async def measured_async(*args: Any, **kwargs: Any) -> Any:
                with begin(args, kwargs) as call:
                    call.output = await function(*args, **kwargs)
                return call.output

            return measured_async  # type: ignore[return-value] # wraps keeps the signature

        if inspect.isgeneratorfunction(called):

            @wraps(function)
            def measured_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with begin(args, kwargs) as call:
                    call.output = yield from function(*args, **kwargs)
                return call.output

            return measured_generator  # type: ignore[return-value] # wraps keeps the signature

        if inspect.isasyncgenfunction(called):

            @wraps(function)
            async def measured_async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
                with begin(args, kwargs):
                    values = function(*args, **kwargs)
                    step = anext(values)
                    while True:  # `yield from`, which async generators lack
                        try:
                            value = await step
                        except StopAsyncIteration:
                            break
                        try:
                            step = values.asend((yield value))
                        except GeneratorExit:
                            await values.aclose()
                            raise
                        except BaseException as error:  # noqa: BLE001 - thrown in by the consumer
                            step = values.athrow(error)

            return measured_async_generator  # type: ignore[return-value] # wraps keeps the signature

        @wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as call:
                call.output = function(*args, **kwargs)
            return call.output

        return measured  # type: ignore[return-value] # wraps keeps the signature

    def __del__(self) -> None:
        if not self._used:
            with suppress(Exception):  # an exception in a destructor cannot be caught
                self.finish(None)


def _any_arguments(*args: Any, **kwargs: Any) -> None:
    """Stand for a function of unknown arguments."""


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a function's signature; `(*args, **kwargs)` where Python knows none, as for some built-in functions."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.signature(_any_arguments)


def called_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a call runs: that of a `functools.partial`, or of an object with `__call__`."""
    while isinstance(function, partial):
        function = function.func
    is_function = inspect.isroutine(function) or inspect.isclass(function) or inspect.iscoroutinefunction(function)
    return function if is_function else function.__call__  # type: ignore[operator] # it is callable


def describe(error: BaseException) -> str:
    """Name an exception for a log: its type and its text."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception's text is the caller's code
        text = "[unprintable]"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_cancellation(error: BaseException | None) -> bool:
    """Whether the host was stopped, or has stopped reading: then nothing has failed.

    CancelledError is recognised by name, without importing asyncio.
    """
    return isinstance(error, GeneratorExit | KeyboardInterrupt) or type(error).__name__ == "CancelledError"


def _done(fields: dict[str, Any]) -> bool:
    return bool(fields)
