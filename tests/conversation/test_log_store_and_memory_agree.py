"""Whatever is done with a session, its log and its store say the same as the session itself."""

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.rules import is_valid
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.pieces import ToolCalled
from sessionlog.errors import AgentError
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, calls, log_in, reply
from tests.profiles import examples

SETTINGS = ConversationSettings(
    max_conversation_tokens=90, truncation_keep_recent=3, retry_attempts=2, retry_initial_s=0, retry_jitter_s=0
)


def look(at="x"):
    """A tool that sees."""
    return f"seen {at}"


def turn(*answers):
    """A turn with these answers."""

    def do(session, agent):
        agent.answers = list(answers)
        with suppress(AgentError, KeyboardInterrupt):
            session.run("What is it? " * 3)

    return do


def left(kind):
    """A stream that is left at a piece of a kind."""

    def do(session, agent):
        agent.answers = [["Well, ", calls(("look", {}), ("look", {}))], reply("It is.")]
        for piece in session.stream("And?"):
            if isinstance(piece, kind):
                break

    return do


def again(session, agent):
    """The agent goes on without a word; first there has to be one."""
    agent.answers = [reply("More.")]
    session.run(None if session.messages else "What is it?")


STEPS = {
    "answer": turn(reply("It is a house. " * 4)),
    "pieces": turn(["It ", "is", reply("It is")]),
    "empty": turn(""),
    "tools": turn(calls(("look", {"at": "y"}), ("lok", {})), reply("It is.")),
    "calls left open": turn(*[calls(("look", {}))] * 9, ValueError("no")),
    "failure": turn(ValueError("no")),
    "broken": turn(["It ", ConnectionError("cut")]),
    "retried": turn(ConnectionError("cut"), reply("Yes.")),
    "interrupted": turn(["It ", KeyboardInterrupt()]),
    "left": left(object),
    "left at a tool": left(ToolCalled),
    "again": again,
    "added": lambda session, agent: session.add_message("user", "by the way"),
    "cut": lambda session, agent: session.truncate(),
    "undo": lambda session, agent: session.undo(),
    "clear": lambda session, agent: session.clear(),
}


@examples(40)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7))
def test_log_store_and_session_agree(steps):
    """After every step: messages, tokens and state, and what a resumed session knows."""
    with tempfile.TemporaryDirectory() as folder:
        store, agent = MemoryStore(), Scripted()
        session = Agent(agent, tools=[look]).session("s1", store=store, logger=log_in(folder), settings=SETTINGS)
        for step in steps:
            STEPS[step](session, agent)
            logged = find_logged_session(Path(folder) / "s1.jsonl")
            assert list(logged.messages) == session.messages, step
            assert (logged.usage, logged.state) == (session.usage, session.state), step
            stored = Session.load("s1", agent, store)
            assert (stored.messages, stored.usage, stored.state) == (session.messages, session.usage, session.state)
            for asked in agent.asked:
                assert is_valid([message for message in asked if message.role != "system"]), step
        assert Session.resume("s1", agent, directory=folder).messages == session.messages
        agent.answers = [reply("Yes.")]
        session.run("last")
        assert session.messages[-2:] == [Message.user("last"), Message.assistant("Yes.")]
        session.close()


@examples(20)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4))
def test_the_log_knows_how_the_last_turn_ended(steps):
    """As the session does."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Scripted()
        session = Agent(agent, tools=[look]).session(logger=log_in(folder), settings=SETTINGS)
        for step in steps:
            STEPS[step](session, agent)
            assert find_logged_session(Path(folder) / "s1.jsonl").state == session.state, step
        session.close()
