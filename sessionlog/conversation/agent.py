"""Agent: a model with its system text and tools, which starts sessions."""

from __future__ import annotations

from collections.abc import Iterable

from sessionlog.conversation.agents.base import BaseAgent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.protocol import SessionStore
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message


class Agent(BaseAgent):
    """A model, or a function in its place, that answers in any number of sessions.

    Args:
        call: A function `f(messages, **options)` (plain, a generator, or async) that returns a text, a Message or a
            Reply; or a pydantic-ai agent; or an OpenAI or Anthropic client; or any object with `answer(request)`.
        system: The system prompt.
        tools: Functions that the model may call.
        model: The model's name; required for a client.
        name: A name for the agent.
        provider: In place of `call`: `openai` or `anthropic`, whose client is opened at the first request.

    Raises:
        TypeError: `call` cannot be used as an agent or is given together with `provider`, `system` is not a text, or
            `tools` is not a list of functions.
        ValueError: Two tools have the same name, or the provider is unknown.
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
        """Start or restore a session; see `Session`."""
        return Session(self, session_id, system, messages, store, logger, settings=settings)
