"""Sessions that remember: history, truncation, fork, stores, and resume from the log.

    agent = Agent(answer, system="Be brief.")          # a function, a pydantic-ai agent, an OpenAI or Anthropic client
    with agent.session(logger=SessionLogger()) as session:
        print(session.run("My name is Alice.").text)
        for piece in session.stream("What's my name?"): ...
    session = Session.resume(session.session_id, agent)  # after any crash: the log is the session

`history` is what was said and how it is cut, `turns` is one question until its answer, `agents` are those who answer,
`stores` keep sessions beside the log, `log` writes a session's events and folds them back. Names are loaded when they
are first used.
"""

from __future__ import annotations

from sessionlog.lazy import lazy_names

TYPE_CHECKING = False  # typing itself costs a start-up 3 ms
if TYPE_CHECKING:
    from sessionlog.conversation.agent import Agent
    from sessionlog.conversation.history.conversation import Conversation
    from sessionlog.conversation.history.message import ContentPart, Message, ToolRequest
    from sessionlog.conversation.history.settings import ConversationSettings
    from sessionlog.conversation.history.token_counter import TokenCounter
    from sessionlog.conversation.history.truncation import Truncation
    from sessionlog.conversation.session import Session
    from sessionlog.conversation.stores.file import FileStore
    from sessionlog.conversation.stores.memory import MemoryStore
    from sessionlog.conversation.stores.protocol import Saved, SessionStore
    from sessionlog.conversation.stores.sqlite import SQLiteStore
    from sessionlog.conversation.turns.pieces import Done, Reply, StreamPiece, TextDelta, ToolCalled, ToolReturned
    from sessionlog.conversation.turns.response import Response
    from sessionlog.conversation.turns.tool import Tool, tool
    from sessionlog.errors import AgentError, InvalidHistory, MissingField, SessionNotSaved, StaleSession

_HOMES = {
    "Agent": ".agent",
    "AgentError": "sessionlog.errors",
    "ContentPart": ".history.message",
    "Conversation": ".history.conversation",
    "ConversationSettings": ".history.settings",
    "Done": ".turns.pieces",
    "FileStore": ".stores.file",
    "InvalidHistory": "sessionlog.errors",
    "MemoryStore": ".stores.memory",
    "Message": ".history.message",
    "MissingField": "sessionlog.errors",
    "Reply": ".turns.pieces",
    "Response": ".turns.response",
    "SQLiteStore": ".stores.sqlite",
    "Saved": ".stores.protocol",
    "Session": ".session",
    "SessionNotSaved": "sessionlog.errors",
    "SessionStore": ".stores.protocol",
    "StaleSession": "sessionlog.errors",
    "StreamPiece": ".turns.pieces",
    "TextDelta": ".turns.pieces",
    "TokenCounter": ".history.token_counter",
    "Tool": ".turns.tool",
    "ToolCalled": ".turns.pieces",
    "ToolRequest": ".history.message",
    "ToolReturned": ".turns.pieces",
    "Truncation": ".history.truncation",
    "tool": ".turns.tool",
}

__all__ = [
    "Agent",
    "AgentError",
    "ContentPart",
    "Conversation",
    "ConversationSettings",
    "Done",
    "FileStore",
    "InvalidHistory",
    "MemoryStore",
    "Message",
    "MissingField",
    "Reply",
    "Response",
    "SQLiteStore",
    "Saved",
    "Session",
    "SessionNotSaved",
    "SessionStore",
    "StaleSession",
    "StreamPiece",
    "TextDelta",
    "TokenCounter",
    "Tool",
    "ToolCalled",
    "ToolRequest",
    "ToolReturned",
    "Truncation",
    "tool",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
