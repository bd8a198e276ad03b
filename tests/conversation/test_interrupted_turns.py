"""An interrupt ends a turn, and mostly the session: what was said is kept, and the log says how it ended."""

from contextlib import suppress

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session
from sessionlog.conversation.state import CUT_OFF
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import AgentError
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, calls, events, log_in, said, types
from tests.conversation.test_failed_turns import Failing


def test_an_interrupt_while_the_question_is_saved_keeps_it(tmp_path):
    """In the history and the log, although nobody was asked."""

    class Interrupted(Failing):
        """A store that somebody interrupts."""

        def save(self, session_id, data):
            try:
                return super().save(session_id, data)
            except OSError:
                raise KeyboardInterrupt from None

    agent = Scripted("Yes.")
    session = Session(agent, "s1", store=Interrupted(1), logger=log_in(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        session.run("a")
    assert (said(session.messages), session.state, agent.asked) == ([("user", "a")], "cancelled", [])
    assert types(tmp_path) == ["session.start", "history.add", "history.add", "session.end"]  # and its state
    assert session.run("b").text == "Yes."


def interrupt(error, pieces):
    """An agent that is interrupted behind some pieces."""
    return Scripted([*pieces, error], "Yes.")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interrupt_keeps_what_was_said_and_goes_on(tmp_path, error):
    """Saved, and ended in the log as cancelled."""
    store = MemoryStore()
    session = Session(interrupt(error, ["It ", "is"]), "s1", store=store, logger=log_in(tmp_path))
    with pytest.raises(type(error)) as caught:
        session.run("a")
    assert caught.value is error
    assert session.messages == [Message.user("a"), Message.assistant("It is", partial="cancelled")]
    assert session.state == "cancelled"
    saved = Session(Scripted(), "s1", store=store)
    assert (saved.messages, saved.state) == (session.messages, "cancelled")
    assert [(type_, data.get("status")) for type_, data in events(tmp_path)][-1] == ("session.end", "cancelled")


def test_a_turn_after_the_end_begins_a_second_run(tmp_path):
    """The log has an end for each."""
    with Session(interrupt(KeyboardInterrupt(), ["It"]), logger=log_in(tmp_path)) as session:
        with pytest.raises(KeyboardInterrupt):
            session.run("a")
        assert session.run("b").text == "Yes."
    ends = [data["status"] for type_, data in events(tmp_path) if type_ == "session.end"]
    assert ends == ["cancelled", "success"]


def test_an_interrupt_can_leave_the_session_open(tmp_path):
    """As a prompt does, which Ctrl-C only gives back."""
    session = Session(interrupt(KeyboardInterrupt(), ["It"]), logger=log_in(tmp_path))
    session.ends_on_interrupt = False
    with pytest.raises(KeyboardInterrupt):
        session.run("a")
    assert "session.end" not in types(tmp_path)
    assert session.state == "cancelled"


def test_an_interrupt_while_a_tool_runs_leaves_no_orphan():
    """Its call is closed before the next turn: it may have taken effect."""

    def run():
        raise KeyboardInterrupt

    agent = Scripted(calls(("run", {}), ("run", {})), "Yes.")
    session = Session(Agent(agent, tools=[run]))
    with pytest.raises(KeyboardInterrupt):
        session.run("a")
    assert said(session.messages) == [("user", "a"), ("assistant", "")]
    session.run("b")
    assert said(agent.asked[1])[2:] == [("tool", CUT_OFF), ("tool", CUT_OFF), ("user", "b")]


def test_an_exit_with_an_error_ends_the_session_with_it(tmp_path):
    """As the logger's own `with` does."""
    with pytest.raises(ZeroDivisionError), Session(Scripted("Yes."), logger=log_in(tmp_path)) as session:  # noqa: PT012
        session.run("a")
        raise ZeroDivisionError("mine")
    _, end = events(tmp_path)[-1]
    assert (end["status"], end["error"]) == ("error", "ZeroDivisionError: mine")


@pytest.mark.parametrize(
    ("answer", "status"), [("Yes.", "success"), (ValueError("no"), "error"), (["It", KeyboardInterrupt()], "cancelled")]
)
def test_a_session_ends_as_its_last_turn_did(tmp_path, answer, status):
    """Unless it is closed as something else."""
    session = Session(Scripted(answer), logger=log_in(tmp_path))
    session.ends_on_interrupt = False
    with suppress(AgentError, KeyboardInterrupt):
        session.run("a")
    session.close()
    assert events(tmp_path)[-1][1]["status"] == status
