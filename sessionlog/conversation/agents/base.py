"""BaseAgent: something that answers, with its system text and the tools that it may call. It remembers nothing.

Its adapter is chosen by where the type of what was given comes from, so no client library is imported needlessly.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

from sessionlog.conversation.turns.pieces import AgentRequest, Piece
from sessionlog.conversation.turns.tool import Tool, tools_of
from sessionlog.errors import MissingExtra

_ACCEPTED = (
    "an agent is a function f(messages) -> text, a pydantic-ai agent, an OpenAI or Anthropic client with model=, or an "
    "object with answer(ask)"
)
_CLIENTS = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""Provider → the class of its client, in the library of the same name."""


class ModelAdapter(Protocol):
    """Something that answers.

    Attributes:
        runs_tools: It calls the tools itself and gives `ToolReturned`; else the session runs them and asks again.
        model: The model that is asked for, None where it is not known before the answer.
        provider: Who serves it, None where it is unknown.
    """

    runs_tools: bool
    model: str | None
    provider: str | None

    def answer(self, ask: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Give the pieces of the answer as they come; what goes wrong is raised as the provider raises it."""
        ...


class BaseAgent:
    """All of an `Agent` except its sessions, which import this; see `Agent` for arguments and errors."""

    __slots__ = ("_adapter", "_model", "_name", "_system", "_tools")

    def __init__(
        self,
        call: Any = None,
        system: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        *,
        model: str | None = None,
        name: str | None = None,
        provider: str | None = None,
    ) -> None:
        if not isinstance(system, str | None):
            raise TypeError(f"system is {type(system).__name__}; it is a text")
        self._adapter = find_adapter(call, model, provider)
        self._system, self._tools, self._model = system, tools_of(tools), model
        names = (name, getattr(call, "__name__", None), getattr(call, "name", None))
        self._name = next((one for one in names if isinstance(one, str) and one), None)

    @property
    def adapter(self) -> ModelAdapter:
        """What asks it."""
        return self._adapter

    @property
    def system(self) -> str | None:
        """What it is told to be."""
        return self._system

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What it may call."""
        return self._tools

    @property
    def model(self) -> str | None:
        """The model that is asked for, None where it is not known before the answer."""
        return self._model or getattr(self._adapter, "model", None)

    @property
    def provider(self) -> str | None:
        """Who serves it, None where it is unknown."""
        return getattr(self._adapter, "provider", None)

    @property
    def runs_tools(self) -> bool:
        """It calls the tools itself."""
        return bool(getattr(self._adapter, "runs_tools", False))

    @property
    def name(self) -> str | None:
        """What to call it."""
        return self._name

    @property
    def is_async(self) -> bool:
        """It, or a tool of it, can only be asked where an event loop is."""
        asks = getattr(self._adapter, "is_async", inspect.isasyncgenfunction(self._adapter.answer))
        return bool(asks) or any(tool.is_async for tool in self._tools)

    def __repr__(self) -> str:
        tools = ", ".join(tool.name for tool in self._tools)
        return f"Agent({self._name or type(self._adapter).__name__}, tools=[{tools}])"


def find_adapter(agent: Any, model: str | None = None, provider: str | None = None) -> ModelAdapter:
    """Return what asks an agent.

    Args:
        agent: A function, a pydantic-ai agent, an OpenAI or Anthropic client, or anything with `answer(ask)`; None
            with a `provider`.
        model: The model's name; a client needs it.
        provider: `openai` or `anthropic`: a client of it is opened when it is asked first.

    Raises:
        TypeError: It is nothing that answers, a client without a model, or both an agent and a provider are given.
        ValueError: There is no such provider.
    """
    if provider is not None:
        if agent is not None:
            raise TypeError(f"provider={provider!r} opens a client of its own; leave out the agent")
        if provider not in _CLIENTS:
            raise ValueError(f"no client is known for {provider!r}; there are {', '.join(_CLIENTS)}")
        if not model:
            raise TypeError(f"a client of {provider} does not know which model to ask: Agent(provider=..., model=...)")
        return cast("ModelAdapter", NamedClient(provider, model))
    if isinstance(agent, type):
        raise TypeError(f"the class {agent.__name__} is no agent; {_ACCEPTED}")
    homes = {kind.__module__.partition(".")[0] for kind in type(agent).__mro__}
    if "pydantic_ai" in homes:
        return _load_adapter("pydantic_ai", "PydanticAI", agent)
    for home, name in _CLIENTS.items():
        if home in homes:
            if not model:
                raise TypeError(f"a client of {home} does not know which model to ask: Agent(client, model=...)")
            return _load_adapter(home, f"{name}Client", agent, model)
    if callable(getattr(agent, "answer", None)):
        return cast("ModelAdapter", agent)
    if callable(agent):
        return _load_adapter("function", "Function", agent, model)
    raise TypeError(f"{type(agent).__name__} is no agent; {_ACCEPTED}")


def _load_adapter(module: str, name: str, *args: Any) -> ModelAdapter:
    adapter = getattr(import_module(f"sessionlog.conversation.agents.{module}"), name)
    return cast("ModelAdapter", adapter(*args))


class NamedClient:
    """A client of a provider that is opened when it is asked first.

    Keys and addresses come from the environment, as the provider's own library reads them.

    Attributes:
        model: The model that is asked for.
        provider: The provider's name.
        runs_tools: The session runs the tools.
        is_async: The client blocks, in a thread of its own where an event loop runs.
    """

    runs_tools = False
    is_async = False

    def __init__(self, provider: str, model: str) -> None:
        self.provider, self.model = provider, model
        self._adapter: ModelAdapter | None = None

    def answer(self, ask: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Give the pieces of the answer.

        Raises:
            MissingExtra: The provider's library is not installed.
        """
        if self._adapter is None:
            try:
                library = import_module(self.provider)
            except ModuleNotFoundError as error:
                if error.name != self.provider:
                    raise
                raise MissingExtra(f"{self.provider} is not installed: pip install {self.provider}") from error
            self._adapter = find_adapter(getattr(library, _CLIENTS[self.provider])(), self.model)
        return self._adapter.answer(ask)
