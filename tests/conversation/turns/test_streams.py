"""A turn says what to do; the drivers do it, in a loop or without, and see every turn to its end."""

import asyncio
import threading

import pytest

from sessionlog.conversation.turns.loops import TurnCancelled
from sessionlog.conversation.turns.pieces import TextDelta
from sessionlog.conversation.turns.streams import AsyncStream, CancelToken, Do, Pause, Stream, StreamClosed


class Told:
    """Who is told of a stream's begin and end."""

    def __init__(self, error=None):
        self.calls, self.error = [], error

    def begun(self, stream):
        self.calls.append("begun")
        if self.error:
            raise self.error

    def ended(self, stream):
        self.calls.append("ended")


def stream_of(steps, kind=Stream, told=None, **keywords):
    """A stream of steps, and what it is told and stopped by."""
    told = Told() if told is None else told
    return kind(steps, CancelToken(), told, **keywords), told


def read(kind, steps, **keywords):
    """All pieces of a stream of either kind."""
    stream, told = stream_of(steps, kind, **keywords)
    if kind is Stream:
        return list(stream), told.calls

    async def read_all():
        return [piece async for piece in stream]

    return asyncio.run(asyncio.wait_for(read_all(), 10)), told.calls


BOTH = pytest.mark.parametrize("kind", [Stream, AsyncStream])


async def later(value):
    """Something to be awaited."""
    await asyncio.sleep(0)
    return value


@BOTH
def test_what_is_done_comes_back(kind):
    """A result, an awaited one, or one of a thread."""

    def steps():
        found = []
        for do in (
            Do(lambda: 1),
            Do(lambda: later(2)),
            Do(lambda: 3, blocking=True),
            Do(lambda: later(4), shielded=True),
        ):
            found.append((yield do))
        found.append((yield Do(lambda: 5, blocking=True, shielded=True)))
        yield TextDelta(str(found))

    assert read(kind, steps()) == ([TextDelta("[1, 2, 3, 4, 5]")], ["begun", "ended"])


@BOTH
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("error", [ValueError, StopIteration])
def test_what_goes_wrong_comes_back(kind, blocking, error):
    """Thrown in where it was asked for; the turn decides."""

    def fail():
        raise error("no")

    def steps():
        try:
            yield Do(fail, blocking=blocking)
        except Exception as raised:
            yield TextDelta(f"{type(raised.__cause__ or raised).__name__}")

    assert read(kind, steps())[0] == [TextDelta(error.__name__)]


@BOTH
def test_what_the_turn_raises_ends_the_stream(kind):
    """And goes to whoever reads it."""

    def steps():
        yield TextDelta("1")
        raise ValueError("no")

    told = Told()
    with pytest.raises(ValueError, match="no"):
        read(kind, steps(), told=told)
    assert told.calls == ["begun", "ended"]


@BOTH
def test_a_turn_that_must_not_begin_does_not(kind):
    """And has no end."""
    told = Told(RuntimeError("busy"))
    ran = []

    def steps():
        ran.append(True)
        yield TextDelta("1")

    with pytest.raises(RuntimeError, match="busy"):
        read(kind, steps(), told=told)
    assert (told.calls, ran) == (["begun"], [])


@BOTH
def test_closing_throws_into_the_turn(kind):
    """Which may still have things done, awaited ones too."""
    kept = []

    def steps():
        try:
            yield TextDelta("1")
        except StreamClosed:
            kept.append((yield Do(lambda: later("kept"))))
            yield Pause(0)

    stream, told = stream_of(steps(), kind)
    if kind is Stream:
        next(stream)
        stream.close()
    else:

        async def leave():
            await anext(stream)
            await stream.aclose()
            await stream.aclose()

        asyncio.run(leave())
    assert (kept, told.calls) == (["kept"], ["begun", "ended"])


@BOTH
def test_what_goes_wrong_while_closing_is_raised(kind):
    """A store that fails, for one."""

    def steps():
        try:
            yield TextDelta("1")
        except StreamClosed:
            raise ValueError("not saved") from None

    async def leave(stream):
        await anext(stream)
        await stream.aclose()

    def leave_at_once(stream):
        next(stream)
        stream.close()

    stream, told = stream_of(steps(), kind)
    with pytest.raises(ValueError, match="not saved"):
        leave_at_once(stream) if kind is Stream else asyncio.run(leave(stream))
    assert told.calls == ["begun", "ended"]


@BOTH
def test_an_interruption_takes_the_place_of_closing(kind):
    """A turn learns that it is the program that ends."""
    caught = []

    def steps():
        try:
            yield TextDelta("1")
        except KeyboardInterrupt as error:
            caught.append(error)
            raise

    stream, told = stream_of(steps(), kind)
    error = KeyboardInterrupt()
    if kind is Stream:
        next(stream)
        stream.interrupted_by(error)
    else:
        asyncio.run(anext(stream))
        stream.interrupted_by(error)
        stream.abandon()
    assert caught == [error]
    assert told.calls == ["begun", "ended"]


def test_a_pause_is_slept_in_steps():
    """Which end when the turn is to stop."""
    slept = []
    assert read(Stream, iter_steps(Pause(0.12)), sleep=slept.append)[0] == []
    assert slept == pytest.approx([0.05, 0.05, 0.02])


def iter_steps(*steps):
    """A turn of these steps."""
    yield from steps


def test_a_stop_ends_a_wait():
    """Here and in a loop; also one that was asked for before."""
    stop = CancelToken()

    def steps():
        threading.Timer(0.005, stop.request).start()
        with pytest.raises(TurnCancelled):
            yield Do(asyncio.Event().wait)
        with pytest.raises(TurnCancelled):
            yield Do(asyncio.Event().wait)
        yield TextDelta("1")

    assert list(Stream(steps(), stop, Told())) == [TextDelta("1")]


def test_a_running_stream_is_not_read_or_closed_by_others():
    """Here a step that does so itself."""
    found = []

    def steps():
        for use in (lambda: next(stream), lambda: stream.close()):  # noqa: PLW0108 - there is no stream yet
            try:
                yield Do(use)
            except RuntimeError as error:
                found.append(str(error))

    stream, _ = stream_of(steps())
    assert list(stream) == []
    assert ["running already" in found[0], "cannot be closed" in found[1]] == [True, True]
