"""Conversations with a model: history, truncation, fork, stores, and resume from the log.

    agent = Agent(answer, system="Be brief.")          # a function, a pydantic-ai agent, an OpenAI or Anthropic client
    with agent.session(logger=SessionLogger()) as session:
        print(session.run("My name is Alice.").text)
        for piece in session.stream("What's my name?"): ...
    session = Session.resume(session.session_id, agent)  # after any crash: the log is the session

`history` holds messages and truncates them, `turns` runs one question until its answer, `agents` adapts models,
`stores` keep snapshots of sessions, `log` writes a session's events and folds them back. Names are loaded when they are
first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself costs a start-up 3 ms
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.conversation.agent import Agent
    from sessionlog.conversation.history.conversation import Conversation, TokenCounter
    from sessionlog.conversation.history.settings import ConversationSettings
    from sessionlog.conversation.history.truncation import Truncation
    from sessionlog.conversation.session import Session
    from sessionlog.conversation.stores.file import FileStore
    from sessionlog.conversation.stores.memory import MemoryStore
    from sessionlog.conversation.stores.protocol import Saved, SessionStore
    from sessionlog.conversation.stores.sqlite import SQLiteStore
    from sessionlog.conversation.turns.pieces import (
        Done,
        Reply,
        Response,
        StreamPiece,
        TextDelta,
        ToolCalled,
        ToolReturned,
    )
    from sessionlog.conversation.turns.tool import Tool, tool
    from sessionlog.errors import AgentError, InvalidHistory, MissingField, SessionNotSaved, StaleSession
    from sessionlog.messages.message import ContentPart, Message, ToolRequest

_HOMES = {
    "Agent": "sessionlog.conversation.agent",
    "AgentError": "sessionlog.errors",
    "ContentPart": "sessionlog.messages.message",
    "Conversation": "sessionlog.conversation.history.conversation",
    "ConversationSettings": "sessionlog.conversation.history.settings",
    "Done": "sessionlog.conversation.turns.pieces",
    "FileStore": "sessionlog.conversation.stores.file",
    "InvalidHistory": "sessionlog.errors",
    "MemoryStore": "sessionlog.conversation.stores.memory",
    "Message": "sessionlog.messages.message",
    "MissingField": "sessionlog.errors",
    "Reply": "sessionlog.conversation.turns.pieces",
    "Response": "sessionlog.conversation.turns.pieces",
    "SQLiteStore": "sessionlog.conversation.stores.sqlite",
    "Saved": "sessionlog.conversation.stores.protocol",
    "Session": "sessionlog.conversation.session",
    "SessionNotSaved": "sessionlog.errors",
    "SessionStore": "sessionlog.conversation.stores.protocol",
    "StaleSession": "sessionlog.errors",
    "StreamPiece": "sessionlog.conversation.turns.pieces",
    "TextDelta": "sessionlog.conversation.turns.pieces",
    "TokenCounter": "sessionlog.conversation.history.conversation",
    "Tool": "sessionlog.conversation.turns.tool",
    "ToolCalled": "sessionlog.conversation.turns.pieces",
    "ToolRequest": "sessionlog.messages.message",
    "ToolReturned": "sessionlog.conversation.turns.pieces",
    "Truncation": "sessionlog.conversation.history.truncation",
    "tool": "sessionlog.conversation.turns.tool",
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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'sessionlog.conversation' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - it imports warnings, which the command line does without

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
