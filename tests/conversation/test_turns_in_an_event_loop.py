"""The same in an event loop: async agents anywhere, and any agent without blocking the loop."""

import asyncio
import threading

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.conversation.turns.pieces import TextDelta
from sessionlog.errors import AgentError, SessionNotSaved
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, ScriptedAsync, calls, reply, said
from tests.conversation.test_failed_turns import Failing


def run(coroutine):
    """Run it, but not for ever."""
    return asyncio.run(asyncio.wait_for(coroutine, 10))


async def texts(stream):
    """The texts of a stream."""
    return [piece.text async for piece in stream if isinstance(piece, TextDelta)]


@pytest.mark.parametrize("kind", [Scripted, ScriptedAsync])
def test_every_agent_answers_in_a_loop(kind):
    """Async or not, whole or in pieces, with structured output."""

    async def main():
        session = Session(kind("1", ["2", "3"], reply("[4]")))
        assert (await session.run_async("a")).text == "1"
        assert await texts(session.stream_async("b")) == ["2", "3"]
        assert (await session.json_async("c", schema=list[int])).output == [4]
        assert [message.text for message in session.messages] == ["a", "1", "b", "23", "c", "[4]"]

    run(main())


def test_a_stream_may_be_awaited():
    """`async for piece in await session.stream_async(…)`, as other libraries have it, is the same."""

    async def main():
        session = Session(ScriptedAsync(["1", "2"]))
        stream = session.stream_async("a")
        assert await stream is stream
        assert await texts(stream) == ["1", "2"]

    run(main())


def test_an_async_agent_answers_without_a_loop():
    """In one of its own; streaming, too."""
    session = Session(ScriptedAsync("1", ["2", "3"], "[4]"))
    assert session.run("a").text == "1"
    assert [piece.text for piece in session.stream("b") if isinstance(piece, TextDelta)] == ["2", "3"]
    assert session.json("c").output == [4]


def test_an_async_generator_is_an_agent():
    """One that awaits between its pieces."""

    async def agent(messages):
        for text in ("1", "2"):
            await asyncio.sleep(0)
            yield text

    assert Session(agent).run("a").text == "12"
    assert run(Session(agent).run_async("a")).text == "12"


def test_an_async_agent_sees_one_task_from_the_first_piece_to_the_last():
    """What it opens in one step and closes in another, as a time limit, has to."""

    async def agent(messages):
        async with asyncio.timeout(5):
            yield "1"
            await asyncio.sleep(0)
            yield "2"

    assert Session(agent).run("a").text == "12"
    assert run(Session(agent).run_async("a")).text == "12"
    stream = Session(agent).stream("a")
    next(stream)
    stream.close()

    async def leave():
        stream = Session(agent).stream_async("a")
        await anext(stream)
        await stream.aclose()

    run(leave())


@pytest.mark.parametrize("ask", [Session.run, Session.stream, Session.json])
def test_an_async_agent_in_a_running_loop_is_asked_otherwise(ask):
    """A wrong call, and it says which is right."""

    async def main():
        session = Session(ScriptedAsync("1"))
        with pytest.raises(RuntimeError, match="run_async, stream_async, json_async"):
            ask(session, "a")
        assert session.messages == []

    run(main())


def test_an_agent_that_turns_out_to_be_async_in_a_running_loop_is_an_error():
    """Which says what to use; the question is kept."""

    class Own:
        """Gives an async iterator, and does not say so before."""

        def answer(self, ask):
            async def pieces():
                yield TextDelta("1")

            return pieces()

    async def main():
        session = Session(Own())
        with pytest.raises(AgentError, match="use run_async"):
            session.run("a")
        assert said(session.messages) == [("user", "a")]
        return session

    assert run(main()).run("b").text == "1"


def test_a_plain_agent_runs_in_a_thread():
    """The loop goes on meanwhile."""

    async def main():
        loop, waits = asyncio.get_running_loop(), threading.Event()

        def agent(messages):
            loop.call_soon_threadsafe(waits.set)
            assert waits.wait(5)
            return "1"

        return await Session(agent).run_async("a")

    assert run(main()).text == "1"


def test_tools_run_in_threads_or_in_the_loop():
    """As they are; both also without a loop, where the agent is async."""

    async def slow(x):
        await asyncio.sleep(0)
        return x

    def fast(x):
        assert threading.current_thread() is not threading.main_thread()
        return x

    async def main():
        agent = Agent(Scripted(calls(("slow", {"x": 1}), ("fast", {"x": 2})), "3"), tools=[slow, fast])
        session = agent.session()
        await session.run_async("a")
        return [message.text for message in session.messages if message.role == "tool"]

    assert run(main()) == ["1", "2"]
    session = Agent(Scripted(calls(("slow", {"x": 1})), "3"), tools=[slow]).session()
    session.run("a")
    assert said(session.messages)[2] == ("tool", "1")


def test_a_tool_that_raises_stop_iteration_is_an_error_like_others():
    """No future can carry it."""

    def run_out():
        return next(iter(()))

    session = Agent(Scripted(calls(("run_out", {})), "3"), tools=[run_out]).session()
    assert run(session.run_async("a")).text == "3"
    assert "StopIteration" in session.messages[2].text


def test_failures_are_those_of_run():
    """With the same words, tried again in the same way."""

    async def main():
        session = Session(
            ScriptedAsync(ConnectionError(), "1", ["2", ValueError("no")]),
            settings=ConversationSettings(retry_initial_s=0, retry_jitter_s=0),
        )
        assert (await session.run_async("a")).text == "1"
        with pytest.raises(AgentError, match="ValueError: no; the partial answer is kept"):
            await session.run_async("b")
        assert session.messages[-1] == Message.assistant("2", partial="failed")

    run(main())


def test_stores_are_those_of_run():
    """What fails before the question stops the turn."""

    async def main():
        session = Session(ScriptedAsync("1"), store=Failing(1, 3))
        with pytest.raises(SessionNotSaved):
            await session.run_async("a")
        assert session.messages == []
        with pytest.raises(SessionNotSaved):
            await session.run_async("a")
        assert said(session.messages) == [("user", "a"), ("assistant", "1")]

    run(main())


def test_an_agent_that_forgets_async_is_told():
    """A plain function that gives what has to be awaited."""

    async def answer():
        return "1"

    async def pieces():
        yield "1"

    for function in (answer, pieces):
        with pytest.raises(AgentError, match="define it with `async def`"):
            Session(lambda messages, function=function: function()).run("a")
