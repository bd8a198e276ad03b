"""A session and its log agree on how the last turn ended, after forks, undo and cancel too, and on how it all ended."""

import asyncio
import threading

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.state import NOT_RUN
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.pieces import TextDelta
from sessionlog.errors import AgentError
from tests.conversation.scripted import Scripted, calls, events, log_in, types


def state_of(folder, session_id="s1"):
    """What the log says."""
    return find_logged_session(folder / f"{session_id}.jsonl").state


def failed(folder, *answers):
    """A session whose last turn failed, and what it answers then."""
    agent = Scripted("1", ["It ", ValueError("no")], *answers)
    session = Session(agent, "s1", logger=log_in(folder))
    session.run("a")
    with pytest.raises(AgentError):
        session.run("b")
    return session


def test_a_fork_shows_what_its_history_shows(tmp_path):
    """In the session and in the log; one that was not used has not failed."""
    fork = failed(tmp_path).fork("s2")
    assert (fork.state, state_of(tmp_path, "s2")) == ("failed", "failed")
    fork.close()
    type_, data = events(tmp_path, "s2")[-1]
    assert (type_, data["status"]) == ("session.end", "success")


def test_a_fork_of_a_log_shows_what_its_history_shows(tmp_path):
    """As one of a session."""
    failed(tmp_path).close()
    fork = Session.fork_from("s1", Scripted(), session_id="s2", directory=tmp_path)
    assert (fork.state, state_of(tmp_path, "s2")) == ("failed", "failed")
    fork.undo()
    assert (fork.state, state_of(tmp_path, "s2")) == ("complete", "complete")


def test_undo_takes_the_failure_back(tmp_path):
    """The session is what it was before, and ends well."""
    session = failed(tmp_path)
    session.undo()
    assert (session.state, state_of(tmp_path)) == ("complete", "complete")
    session.close()
    assert events(tmp_path)[-1][1]["status"] == "success"


def test_a_cancel_between_two_answers_is_in_the_log(tmp_path):
    """Although the last answer was whole."""
    session = Session(Scripted("1"), "s1", logger=log_in(tmp_path))
    for piece in session.stream("a"):
        if isinstance(piece, TextDelta):
            session.cancel()
    assert (session.state, state_of(tmp_path)) == ("cancelled", "cancelled")


def test_a_turn_that_is_cancelled_before_its_question_asks_nobody():
    """As while the history is summed up."""
    agent = Scripted("1")

    class Cancelling(MemoryStore):
        """Cancels while the session is saved."""

        def save(self, session_id, data):
            session.cancel()
            return super().save(session_id, data)

    session = Session(agent, store=Cancelling())
    assert session.run("b").status == "cancelled"
    assert agent.asked == []


def test_calls_for_others_to_run_are_a_complete_turn(tmp_path):
    """In the log, too: they are closed as not run, and not as interrupted."""
    Session(Scripted(calls(("f", {}))), "s1", logger=log_in(tmp_path)).run("a")
    assert state_of(tmp_path) == "complete"
    session = Session.resume("s1", Scripted("2"), directory=tmp_path)
    session.run("b")
    assert session.messages[2].text == NOT_RUN


def test_what_the_agent_is_told_to_be_is_logged(tmp_path):
    """Also where it comes from an agent that goes on with a log without it."""
    Session(Scripted("1"), "s1", logger=log_in(tmp_path)).run("a")
    session = Session.resume("s1", Agent(Scripted("2"), "Be brief."), directory=tmp_path)
    session.run("b")
    assert (session.system, find_logged_session(tmp_path / "s1.jsonl").system) == ("Be brief.", "Be brief.")


def test_an_error_in_the_block_is_not_hidden_by_a_turn_under_way(tmp_path):
    """The turn is cancelled, the session ends with it, and the error says so."""
    is_asked, is_left = threading.Event(), threading.Event()

    def agent(messages):
        yield TextDelta("It ")
        is_asked.set()
        is_left.wait(10)
        yield TextDelta("is.")

    session = Session(agent, "s1", logger=log_in(tmp_path))
    thread = threading.Thread(target=lambda: session.run("a"))

    def block():
        with session:
            thread.start()
            assert is_asked.wait(10)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        block()
    assert "busy with another turn" in caught.value.__notes__[0]
    is_left.set()
    thread.join(10)
    assert types(tmp_path)[-1] == "session.end"
    assert (events(tmp_path)[-1][1]["status"], session.state) == ("error", "cancelled")
    with pytest.raises(RuntimeError, match="is closed"):
        session.run("b")


def test_a_session_is_an_async_context_manager(tmp_path):
    """As it is a plain one."""

    async def main():
        async with Session(Scripted("1"), "s1", logger=log_in(tmp_path)) as session:
            await session.run_async("a")

    asyncio.run(main())
    assert types(tmp_path) == ["session.start", "llm.request", "llm.response", "session.end"]
