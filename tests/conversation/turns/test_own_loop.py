"""Plain turns of one thread share an event loop, and so what an async client keeps open."""

import asyncio
import threading

from sessionlog.conversation import Agent


def looking(seen):
    """Make an agent that tells the loop it is awaited in."""

    async def answer(messages):
        seen.append(asyncio.get_running_loop())
        return "hello"

    return Agent(answer)


def test_turns_of_a_thread_share_their_loop():
    """Also those of other sessions with the same agent; it is open between them."""
    seen = []
    agent = looking(seen)
    session = agent.session()
    session.run("hi")
    session.run("hi")
    session.fork().run("hi")
    agent.session().run("hi")
    assert len(set(seen)) == 1
    assert not seen[0].is_closed()


def test_another_thread_has_its_own():
    """It is closed when the thread ends."""
    seen = []
    agent = looking(seen)
    agent.session().run("hi")
    thread = threading.Thread(target=lambda: agent.session().run("hi"))
    thread.start()
    thread.join()
    assert seen[0] is not seen[1]
    assert (seen[0].is_closed(), seen[1].is_closed()) == (False, True)
