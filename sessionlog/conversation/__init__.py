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

from sessionlog.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "conversation.agent": "Agent",
        "conversation.history.conversation": "Conversation TokenCounter",
        "conversation.history.settings": "ConversationSettings",
        "conversation.history.truncation": "Truncation",
        "conversation.session": "Session",
        "conversation.stores.file": "FileStore",
        "conversation.stores.memory": "MemoryStore",
        "conversation.stores.protocol": "Saved SessionStore",
        "conversation.stores.sqlite": "SQLiteStore",
        "conversation.turns.pieces": "Done Reply Response StreamPiece TextDelta ToolCalled ToolReturned",
        "conversation.turns.tool": "Tool tool",
        "errors": "AgentError InvalidHistory MissingField SessionNotSaved StaleSession",
        "messages.message": "ContentPart Message ToolRequest",
    },
)
