"""Agent: something that answers, and begins sessions."""

from __future__ import annotations

from collections.abc import Iterable

from sessionlog.conversation.agents.base import BaseAgent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.protocol import SessionStore
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message


class Agent(BaseAgent):
    """Something that answers, in any number of sessions.

    Args:
        call: A function `f(messages, **options)` (plain, a generator, or async) that gives a text, a Message or a
            Reply; or a pydantic-ai agent; or an OpenAI or Anthropic client; or anything with `answer(ask)`.
        system: What it is told to be.
        tools: Functions that it may call.
        model: The model to ask; a client needs it.
        name: What to call it.
        provider: In place of `call`: `openai` or `anthropic`, of which a client is opened when it is asked first.

    Raises:
        TypeError: `call` is nothing that answers or stands beside a `provider`, `system` is no text, or `tools` no
            list of functions.
        ValueError: Two tools have the same name, or there is no such provider.
    """

    __slots__ = ()

    def session(
        self,
        session_id: str | None = None,
        *,
        system: str | None = None,
        messages: Iterable[Message] | None = None,
        store: SessionStore | None = None,
        logger: SessionLogger | None = None,
        settings: ConversationSettings | None = None,
    ) -> Session:
        """Begin or restore a session with it; see `Session`."""
        return Session(self, session_id, system, messages, store, logger, settings=settings)
