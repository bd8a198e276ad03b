"""Pieces come one at a time, and only when they are wanted."""

import asyncio
from contextlib import suppress

import pytest

from sessionlog.conversation.turns.loops import END, AsyncSource
from sessionlog.conversation.turns.streams import PlainSource, source_of
from sessionlog.errors import AgentError


def run(coroutine):
    """Run it, but not for ever."""
    return asyncio.run(asyncio.wait_for(coroutine, 10))


def test_a_plain_source_gives_pieces_until_the_end():
    """And stays there."""
    source = source_of([1, 2])
    assert isinstance(source, PlainSource)
    assert [source.next() for _ in range(4)] == [1, 2, END, END]
    source.close()


def test_an_async_source_gives_pieces_until_the_end():
    """Nothing is read ahead."""
    given = []

    async def pieces():
        for n in (1, 2):
            given.append(n)
            yield n

    async def main():
        source = source_of(pieces())
        assert isinstance(source, AsyncSource)
        assert await source.next() == 1
        await asyncio.sleep(0)
        assert given == [1]
        assert [await source.next() for _ in range(3)] == [2, END, END]
        assert source.close() is None

    run(main())


def test_one_task_asks_for_all_pieces():
    """A task group that is left in another task than it was entered in breaks."""

    async def pieces():
        async with asyncio.TaskGroup():
            yield asyncio.current_task()
            yield asyncio.current_task()

    async def main():
        source = source_of(pieces())
        asked = [await asyncio.create_task(source.next()) for _ in range(2)]
        assert asked[0] is asked[1]
        assert await source.next() is END

    run(main())


def test_what_goes_wrong_is_raised_where_a_piece_is_wanted():
    """Then there is no more."""

    async def pieces():
        yield 1
        raise ValueError("no")

    async def main():
        source = source_of(pieces())
        await source.next()
        with pytest.raises(ValueError, match="no"):
            await source.next()
        assert await source.next() is END

    run(main())


def test_an_agents_own_cancellation_is_no_end():
    """What it said so far is not the whole answer."""

    async def pieces():
        yield 1
        raise asyncio.CancelledError

    async def main():
        source = source_of(pieces())
        await source.next()
        with pytest.raises(asyncio.CancelledError):
            await source.next()

    run(main())


def test_closing_lets_the_agent_clean_up():
    """Also one that is waiting, and whether or not anybody awaits it."""
    cleaned = []

    async def pieces():
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def main():
        first, second = source_of(pieces()), source_of(pieces())
        await first.next()
        waiting = asyncio.create_task(first.next())
        await asyncio.sleep(0)
        await first.close()
        assert cleaned == [True]
        with suppress(asyncio.CancelledError):
            await waiting
        await second.next()
        closed = second.close()
        await asyncio.wait_for(closed, 5)
        assert source_of(pieces()).close() is None
        return source_of(pieces())

    run(main())
    assert cleaned == [True, True]


def test_closing_after_the_loop_is_gone_does_nothing():
    """There is nothing left to cancel."""

    async def pieces():
        yield 1
        yield 2

    source = source_of(pieces())
    run(source.next())
    assert source.close() is None


@pytest.mark.parametrize("given", [None, 7, "text", b"bytes"])
def test_what_gives_no_pieces_is_named(given):
    """In words."""
    with pytest.raises(AgentError, match=f"returned {type(given).__name__}"):
        source_of(given)


def test_a_coroutine_gives_no_pieces():
    """It is closed, so that nobody is warned of it."""

    async def answer():
        return []

    with pytest.raises(AgentError, match="returned coroutine"):
        source_of(answer())
