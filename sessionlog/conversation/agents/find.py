"""Which adapter asks what was given: chosen by where its type comes from, so that nobody's client is imported first."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from sessionlog.conversation.agents.protocol import Answers

_ACCEPTED = (
    "an agent is a function f(messages) -> text, a pydantic-ai agent, an OpenAI or Anthropic client with model=, or an "
    "object with answer(ask)"
)
_CLIENTS = {"openai": "OpenAIClient", "anthropic": "AnthropicClient"}


def find_answers(agent: Any, model: str | None = None) -> Answers:
    """Return what asks an agent.

    Args:
        agent: A function, a pydantic-ai agent, an OpenAI or Anthropic client, or anything with `answer(ask)`.
        model: The model's name; a client needs it.

    Raises:
        TypeError: It is nothing that answers, or a client without a model.
    """
    if isinstance(agent, type):
        raise TypeError(f"the class {agent.__name__} is no agent; {_ACCEPTED}")
    homes = {kind.__module__.partition(".")[0] for kind in type(agent).__mro__}
    if "pydantic_ai" in homes:
        return _adapter("pydantic_ai", "PydanticAI", agent)
    for home, name in _CLIENTS.items():
        if home in homes:
            if not model:
                raise TypeError(f"a client of {home} does not know which model to ask: Agent(client, model=...)")
            return _adapter(home, name, agent, model)
    if callable(getattr(agent, "answer", None)):
        return cast("Answers", agent)
    if callable(agent):
        from sessionlog.conversation.agents.function import Function  # noqa: PLC0415 - one adapter is imported, as used

        return Function(agent, model)
    raise TypeError(f"{type(agent).__name__} is no agent; {_ACCEPTED}")


def _adapter(module: str, name: str, *args: Any) -> Answers:
    adapter = getattr(import_module(f"sessionlog.conversation.agents.{module}"), name)
    return cast("Answers", adapter(*args))
