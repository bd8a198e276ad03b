"""Who leaves a turn in an event loop, by cancelling or by closing, loses nothing that was said."""

import asyncio
import gc
import threading

import pytest

from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.messages.message import Message
from tests.conversation.scripted import ScriptedAsync, events, log_in, said
from tests.conversation.test_turns_in_an_event_loop import run


def never():
    """An async agent that shows a piece, says so, and waits for ever; and what tells of it."""
    shown, closed = asyncio.Event(), asyncio.Event()

    async def agent(messages):
        try:
            yield "It "
            shown.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.set()

    return agent, shown, closed


def test_a_cancelled_task_keeps_what_was_said(tmp_path):
    """Saved, and ended in the log as cancelled; the agent has cleaned up."""

    async def main():
        agent, shown, closed = never()
        store = MemoryStore()
        session = Session(agent, "s1", store=store, logger=log_in(tmp_path))
        task = asyncio.create_task(session.run_async("a"))
        await shown.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed.is_set()
        assert session.messages == [Message.user("a"), Message.assistant("It ", partial="cancelled")]
        assert session.state == "cancelled"
        assert store.load("s1")["state"] == "cancelled"
        assert events(tmp_path)[-1] == ("session.end", events(tmp_path)[-1][1] | {"status": "cancelled"})

    run(main())


def test_cancel_ends_the_wait():
    """The task goes on, with a response that says so."""

    async def main():
        agent, shown, closed = never()
        session = Session(agent)
        task = asyncio.create_task(session.run_async("a"))
        await shown.wait()
        assert session.cancel()
        response = await task
        assert (response.status, response.text) == ("cancelled", "It ")
        assert closed.is_set()
        assert not task.cancelling()

    run(main())


def test_cancel_from_another_thread_ends_the_wait():
    """Also of an async agent that `run` drives."""
    shown, closed = threading.Event(), []

    async def agent(messages):
        try:
            yield "It "
            shown.set()
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    session = Session(agent)
    thread = threading.Thread(target=lambda: shown.wait(5) and session.cancel())
    thread.start()
    assert session.run("a").status == "cancelled"
    thread.join()
    assert closed == [True]


def test_cancel_leaves_a_blocking_call_alone():
    """The turn ends at once; what comes of the call is lost."""

    async def main():
        begun, end = threading.Event(), threading.Event()

        def agent(messages):
            begun.set()
            assert end.wait(5)
            return "1"

        session = Session(agent)
        task = asyncio.create_task(session.run_async("a"))
        await asyncio.to_thread(begun.wait, 5)
        session.cancel()
        response = await task
        end.set()
        assert (response.status, response.text) == ("cancelled", "")
        assert said(session.messages) == [("user", "a")]

    run(main())


def test_cancel_ends_a_pause():
    """Between two attempts."""

    async def main():
        failed = asyncio.Event()

        async def agent(messages):
            failed.set()
            raise ConnectionError

        session = Session(agent, settings=ConversationSettings(retry_initial_s=100, retry_max_s=100))
        task = asyncio.create_task(session.run_async("a"))
        await failed.wait()
        await asyncio.sleep(0)
        session.cancel()
        assert (await task).status == "cancelled"

    run(main())


def test_a_save_that_is_under_way_comes_to_its_end():
    """Whoever is cancelled waits for it: two at once would be each other's lost update."""

    async def main():
        begun, end = threading.Event(), threading.Event()

        class Slow(MemoryStore):
            def save(self, session_id, data):
                version = super().save(session_id, data)
                begun.set()
                assert end.wait(5)
                return version

        store = Slow()
        session = Session(ScriptedAsync("1"), "s1", store=store)
        task = asyncio.create_task(session.run_async("a"))
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        await asyncio.sleep(0)
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.load("s1")["state"] == "cancelled"

    run(main())


async def fail_after_one(stream):
    """A loop whose body fails."""
    async for _ in stream:
        raise ZeroDivisionError


@pytest.mark.parametrize("leave", ["close", "with", "break", "error"])
def test_a_stream_that_is_left_keeps_what_was_shown(leave):
    """At once: the next turn need not wait for the garbage collector."""

    async def main():
        agent, _, closed = never()
        session = Session(agent)
        stream = session.stream_async("a")
        if leave == "close":
            await anext(stream)
            await stream.aclose()
            assert closed.is_set()
        elif leave == "with":
            async with stream:
                await anext(stream)
            assert closed.is_set()
        elif leave == "break":
            async for _ in stream:
                break
            del stream
        else:
            with pytest.raises(ZeroDivisionError):
                await fail_after_one(stream)
            del stream
            gc.collect()
        assert session.messages == [Message.user("a"), Message.assistant("It ", partial="interrupted")]
        again = session.stream_async("b")
        await anext(again)
        await again.aclose()
        await asyncio.wait_for(closed.wait(), 5)

    run(main())


def test_a_stream_that_outlives_its_loop_keeps_what_was_shown():
    """Nothing is awaited any more."""
    held = []

    async def main(session):
        stream = session.stream_async("a")
        held.append(stream)
        await anext(stream)

    session = Session(never()[0])
    run(main(session))
    held.clear()
    assert session.messages[-1] == Message.assistant("It ", partial="interrupted")


def test_a_loop_that_ends_while_a_task_waits_keeps_what_was_shown():
    """As at the end of `asyncio.run`, which cancels what is left."""

    async def main(session, shown):
        asyncio.get_running_loop().held = asyncio.create_task(session.run_async("a"))
        await shown.wait()

    async def start():
        agent, shown, _ = never()
        session = Session(agent)
        await main(session, shown)
        return session

    session = asyncio.run(start())
    assert session.messages[-1] == Message.assistant("It ", partial="cancelled")


def test_two_tasks_do_not_read_one_stream():
    """The second is refused, the first goes on."""

    async def main():
        agent, shown, _ = never()
        session = Session(agent)
        stream = session.stream_async("a")
        await anext(stream)
        task = asyncio.create_task(anext(stream))
        await shown.wait()
        with pytest.raises(RuntimeError, match="running already"):
            await anext(stream)
        with pytest.raises(RuntimeError, match="cannot be closed"):
            await stream.aclose()
        with pytest.raises(RuntimeError, match="is busy"):
            await session.run_async("b")
        session.cancel()
        assert (await task).response.status == "cancelled"

    run(main())
