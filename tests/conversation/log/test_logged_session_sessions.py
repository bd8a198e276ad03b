"""remember: a live session is what its log says, whatever is done to it."""

import random
from contextlib import closing, suppress

import pytest

from sessionlog.conversation import Agent, ConversationSettings, Reply, Session, TextDelta, tool
from sessionlog.conversation.history.rules import open_calls
from sessionlog.errors import AgentError
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest


def answering(chance):
    """An agent that streams, asks for a tool now and then, and fails now and then, before or in its answer."""

    @tool
    def look(place: str) -> str:
        """Look at a place."""
        return f"saw {place}"

    def answer(messages):
        if chance.random() < 0.1:
            raise ValueError("down")
        pieces = ["well, ", "word " * chance.randrange(9)]
        yield from map(TextDelta, pieces)
        if chance.random() < 0.1:
            raise ValueError("broken")
        asks = messages[-1].role == "user" and chance.random() < 0.5
        calls = [ToolRequest(f"c{chance.random()}", "look", {"place": "here"})] if asks else ()
        yield Reply(message=Message.assistant("".join(pieces), tool_calls=calls), usage=TokenUsage(input=2, output=1))

    return Agent(answer, "be brief", [look])


@pytest.mark.parametrize("seed", range(8))
def test_a_live_session_is_what_its_log_says(folder, read, seed):
    """Whatever was done to it: turns, failures, streams that were left, truncations, undo, forks, a resume."""
    chance = random.Random(seed)
    agent, short = answering(chance), ConversationSettings(max_conversation_tokens=250, truncation_keep_recent=3)
    session, names = agent.session(logger=SessionLogger(folder, "s-0"), settings=short), 1
    for _ in range(40):
        match chance.choice(["run", "run", "run", "stream", "undo", "add", "clear", "fork", "resume", "end"]):
            case "run":
                with suppress(AgentError):
                    session.run("ask " * chance.randrange(1, 9))
            case "stream":
                with suppress(AgentError), closing(session.stream("say")) as pieces:
                    next(pieces)
            case "undo":
                session.undo()
            case "add" if not open_calls(session.messages):
                session.add_message("user", "by hand")
            case "clear" if chance.random() < 0.3:
                session.clear()
            case "fork":
                session, names = session.fork(f"s-{names}"), names + 1
            case "resume" if session.messages:
                session = Session.resume(folder / f"{session.session_id}.jsonl", agent, settings=short)
            case "end":
                session.close()
                session = agent.session(logger=SessionLogger(folder, session.session_id), settings=short)
        if (folder / f"{session.session_id}.jsonl").exists():
            found = read(folder / f"{session.session_id}.jsonl")
            assert list(found.messages) == session.messages
            assert found.usage == session.usage
