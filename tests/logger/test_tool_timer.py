"""tool_call: four ways to record what a tool did, each exactly once."""

import asyncio
import gc
import inspect
from contextlib import contextmanager
from functools import partial
from unittest.mock import AsyncMock

import pytest

from sessionlog.logger import tool_timer
from sessionlog.logger.tool_timer import ToolTimer, describe
from sessionlog.testing import MemorySink


@pytest.fixture
def log():
    """A logger in memory."""
    return MemorySink()


@pytest.fixture
def ticks(monkeypatch):
    """A monotonic clock that moves 2.5 ms with every look."""
    now = [0]

    def monotonic_ns():
        now[0] += 2_500_000
        return now[0]

    monkeypatch.setattr(tool_timer, "monotonic_ns", monotonic_ns)
    return now


def calls(log):
    return [event.data for event in log.of_type("tool.call")]


def test_with_its_result_at_once(log):
    """With the result given, the call is recorded immediately and the answer says so."""
    timer = log.tool_call("read", {"path": "a.py"}, output="text", duration_ms=3.14159, id="c1")
    assert timer
    assert timer.recorded is True
    assert calls(log) == [
        {"tool": "read", "input": {"path": "a.py"}, "id": "c1", "output": "text", "duration_ms": 3.142}
    ]


@pytest.mark.parametrize("result", [{"output": ""}, {"duration_ms": 0}, {"error": "no"}])
def test_any_part_of_the_result_is_enough(log, result):
    """Empty output, no time, only an error: each is a result."""
    assert log.tool_call("read", **result)
    assert calls(log) == [{"tool": "read"} | result]


def test_an_exception_as_the_error(log):
    """It is spelled with its type."""
    log.tool_call("read", error=FileNotFoundError("a.py"))
    assert calls(log) == [{"tool": "read", "error": "FileNotFoundError: a.py"}]


def test_as_a_context_manager(log, ticks):
    """The block's time is measured; what it sets is the result."""
    with log.tool_call("bash", {"command": "ls"}) as call:
        call.output = "a.py"
    assert calls(log) == [{"tool": "bash", "input": {"command": "ls"}, "output": "a.py", "duration_ms": 2.5}]
    assert call.recorded is True


def test_an_exception_leaves_the_block(log, ticks):
    """It is recorded and goes on."""

    def run():
        with log.tool_call("bash") as call:
            call.output = "half"
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        run()
    assert calls(log) == [
        {"tool": "bash", "output": "half", "duration_ms": 2.5, "error": "ZeroDivisionError: division by zero"}
    ]


def test_an_error_that_was_set_by_hand_stays(log, ticks):
    """The caller's own words win over the exception's."""

    def run():
        with log.tool_call("bash") as call:
            call.error = "exit status 2"
            raise ValueError

    with pytest.raises(ValueError):
        run()
    assert calls(log)[0]["error"] == "exit status 2"


def test_as_a_decorator(log, ticks):
    """Every call is recorded with its arguments by name; the function's result is the caller's."""

    @log.tool_call("add", kind="maths")
    def add(a, b=2, *rest, **more):
        return a + b

    assert add(1) == 3
    assert add(1, 5, 7, c=8) == 6
    assert add.__name__ == "add"
    assert calls(log) == [
        {"tool": "add", "kind": "maths", "input": {"a": 1}, "output": 3, "duration_ms": 2.5},
        {
            "tool": "add",
            "kind": "maths",
            "input": {"a": 1, "b": 5, "rest": [7], "more": {"c": 8}},
            "output": 6,
            "duration_ms": 2.5,
        },
    ]


def test_as_a_decorator_of_a_method(log):
    """The object itself is not input."""

    class Tools:
        @log.tool_call("search")
        def search(self, query):
            return [query]

    assert Tools().search("x") == ["x"]
    assert calls(log)[0]["input"] == {"query": "x"}


def test_as_a_decorator_of_a_coroutine(log, ticks):
    """An async function stays one; the time is that of its run."""

    @log.tool_call("fetch")
    async def fetch(url):
        await asyncio.sleep(0)
        return url

    assert asyncio.run(fetch("u")) == "u"
    assert calls(log) == [{"tool": "fetch", "input": {"url": "u"}, "output": "u", "duration_ms": 2.5}]


def test_a_cancelled_coroutine_is_recorded(log):
    """The cancellation is the error, and goes on."""

    @log.tool_call("wait")
    async def wait():
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert calls(log)[0]["error"] == "CancelledError"


def test_an_exception_in_a_decorated_function(log):
    """It is recorded and goes on; the next call is another event."""

    @log.tool_call("divide")
    def divide(a, b):
        return a / b

    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    assert divide(4, 2) == 2.0
    assert [call.get("error") for call in calls(log)] == ["ZeroDivisionError: division by zero", None]


def test_a_decorated_function_called_wrongly_raises_what_it_would(log):
    """Wrong arguments are a TypeError, as without the decorator."""

    @log.tool_call("one")
    def one(a):
        return a

    with pytest.raises(TypeError):
        one()


def test_a_call_that_was_only_named(log):
    """Without a result, a block or a function the call is recorded when it is let go."""
    timer = log.tool_call("ping", {"host": "h"})
    assert not timer
    del timer
    gc.collect(0)
    assert calls(log) == [{"tool": "ping", "input": {"host": "h"}}]


def test_nothing_is_recorded_twice(log):
    """Finishing again, or letting go of a used timer, adds nothing."""
    with log.tool_call("bash") as call:
        pass
    call.finish(5)
    del call
    gc.collect(0)
    decorated = log.tool_call("deco")(lambda: 1)
    decorated()
    del decorated
    gc.collect(0)
    assert [call["tool"] for call in calls(log)] == ["bash", "deco"]


def test_a_lost_call_says_so(log):
    """When the event is not in the log, the timer is not recorded."""
    log.failure = OSError(28, "No space left on device")
    assert not log.tool_call("bash", output="x")


class Mute(Exception):
    """An exception that will not be spelled."""

    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (Mute(), "Mute: [unprintable]"),
    ],
)
def test_how_an_exception_is_described(error, text):
    """Its type and its text, whatever its text does."""
    assert describe(error) == text


def test_a_generator_is_measured_to_its_end():
    """A decorated generator is one call that lasts until it is exhausted."""
    recorded = []

    def record(fields):
        recorded.append(fields)
        return True

    @ToolTimer(record, {"tool": "search"})
    def search(query):
        yield query
        yield query * 2
        return "done"

    found = search("ab")
    assert next(found) == "ab"
    assert recorded == []
    assert list(found) == ["abab"]
    assert [(f["tool"], f["input"], f["output"]) for f in recorded] == [("search", {"query": "ab"}, "done")]


def test_an_async_generator_is_measured_to_its_end(log, ticks):
    """As a generator: one call, which lasts until it is exhausted; what is sent and thrown into it arrives."""
    seen = []

    @log.tool_call("search")
    async def search(query):
        seen.append((yield query))
        try:
            yield query * 2
        except KeyError as error:
            seen.append(type(error))
        yield "last"

    async def read():
        found = search("ab")
        assert inspect.isasyncgen(found)
        assert await anext(found) == "ab"
        assert await found.asend("sent") == "abab"
        assert await found.athrow(KeyError) == "last"
        assert calls(log) == []
        return [value async for value in found]

    assert inspect.isasyncgenfunction(search)
    assert asyncio.run(read()) == []
    assert seen == ["sent", KeyError]
    assert calls(log) == [{"tool": "search", "input": {"query": "ab"}, "duration_ms": 2.5}]


def test_an_async_generator_that_fails_has_failed(log):
    """The error is recorded and goes on."""

    @log.tool_call("search")
    async def search():
        yield 1
        raise ValueError("no")

    async def read():
        return [value async for value in search()]

    with pytest.raises(ValueError, match="no"):
        asyncio.run(read())
    assert calls(log)[0]["error"] == "ValueError: no"


def test_a_generator_that_its_consumer_closes_has_not_failed(log, ticks):
    """It was read as far as it was wanted: the call has a duration and no error, and the function has cleaned up."""
    cleaned = []

    @log.tool_call("search")
    def search():
        with closing_in(cleaned):
            yield from range(10)

    @log.tool_call("stream")
    async def stream():
        with closing_in(cleaned):
            yield 1
            yield 2

    async def read_one():
        found = stream()
        assert await anext(found) == 1
        await found.aclose()

    found = search()
    assert next(found) == 0
    found.close()
    asyncio.run(read_one())
    assert cleaned == [True, True]
    assert calls(log) == [
        {"tool": "search", "input": {}, "duration_ms": 2.5},
        {"tool": "stream", "input": {}, "duration_ms": 2.5},
    ]


@contextmanager
def closing_in(cleaned):
    try:
        yield
    finally:
        cleaned.append(True)


def test_an_object_that_is_called_is_measured_as_a_function(log, ticks):
    """Also by functools.partial: what it returns is awaited, or read to its end."""

    class Fetch:
        async def __call__(self, url):
            await asyncio.sleep(0)
            return url

    class Read:
        def __call__(self, count):
            yield from range(count)

    class Stream:
        async def __call__(self, count):
            for number in range(count):
                yield number

    async def run():
        assert await log.tool_call("fetch")(Fetch())("u") == "u"
        assert await log.tool_call("fetch")(partial(Fetch(), "v"))() == "v"
        assert await log.tool_call("fetch")(AsyncMock(return_value="w"))() == "w"
        assert [number async for number in log.tool_call("stream")(Stream())(2)] == [0, 1]

    asyncio.run(run())
    assert list(log.tool_call("read")(Read())(2)) == [0, 1]
    assert [(call["tool"], call.get("output"), call["duration_ms"]) for call in calls(log)] == [
        ("fetch", "u", 2.5), ("fetch", "v", 2.5), ("fetch", "w", 2.5), ("stream", None, 2.5), ("read", None, 2.5)
    ]  # fmt: skip


def test_a_forgotten_call_never_raises_from_its_destructor():
    """With on_error="raise", a call that is dropped unrecorded has nobody to raise to."""

    def refuse(fields):
        raise OSError("no room")

    timer = ToolTimer(refuse, {"tool": "x"})
    del timer


@pytest.mark.parametrize("duration", ["x", [1], {}, object()], ids=["text", "list", "dict", "object"])
def test_p01_a_duration_that_is_no_number(duration):
    """It is recorded as it is, and the helper does not raise."""
    log = MemorySink()
    assert log.tool_call("read", duration_ms=duration)
    [call] = calls(log)
    assert call["duration_ms"] == (duration if isinstance(duration, str | list | dict) else repr(duration))


def test_p01_a_function_without_a_signature(log):
    """Some functions that are built in have none: their arguments are recorded as they are."""
    assert log.tool_call("type")(dict)(a=1) == {"a": 1}
    assert log.tool_call("min")(min)(2, 1) == 1
    assert [call["output"] for call in calls(log)] == [{"a": 1}, 1]
