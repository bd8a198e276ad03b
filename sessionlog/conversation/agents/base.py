"""BaseAgent: a model with its system text and tools; it keeps no history.

The adapter is chosen by the module of the given object's type, so no client library is imported needlessly.
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
    "object with answer(request)"
)
_CLIENTS = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""Provider → the class of its client, in the library of the same name."""


class ModelAdapter(Protocol):
    """Sends requests to one kind of agent.

    Attributes:
        runs_tools: The agent calls tools itself and yields `ToolReturned`; else the session runs them and asks again.
        model: The requested model; None where it is not known before the answer.
        provider: The provider; None where it is unknown.
    """

    runs_tools: bool
    model: str | None
    provider: str | None

    def answer(self, request: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Yield the pieces of the answer as they come; the provider's exceptions pass through."""
        ...


class BaseAgent:
    """All of an `Agent` except `session()`, which would import in a circle; see `Agent` for arguments and errors."""

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
        """Sends requests to the model."""
        return self._adapter

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return self._system

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        return self._tools

    @property
    def model(self) -> str | None:
        """The requested model; None where it is not known before the answer."""
        return self._model or getattr(self._adapter, "model", None)

    @property
    def provider(self) -> str | None:
        """The provider; None where it is unknown."""
        return getattr(self._adapter, "provider", None)

    @property
    def runs_tools(self) -> bool:
        """Whether the agent calls the tools itself."""
        return bool(getattr(self._adapter, "runs_tools", False))

    @property
    def name(self) -> str | None:
        """The given name, or that of the function or agent."""
        return self._name

    @property
    def is_async(self) -> bool:
        """Whether the model, or one of its tools, needs an event loop."""
        is_async = getattr(self._adapter, "is_async", inspect.isasyncgenfunction(self._adapter.answer))
        return bool(is_async) or any(tool.is_async for tool in self._tools)

    def __repr__(self) -> str:
        tools = ", ".join(tool.name for tool in self._tools)
        return f"Agent({self._name or type(self._adapter).__name__}, tools=[{tools}])"


def find_adapter(agent: Any, model: str | None = None, provider: str | None = None) -> ModelAdapter:
    """Return the adapter for an agent.

    Args:
        agent: The `call` of `Agent`; None with a `provider`.
        model: The model's name; required for a client.
        provider: `openai` or `anthropic`.

    Raises:
        TypeError: `agent` cannot be used as one, is a client without a model, or is given together with a provider.
        ValueError: The provider is unknown.
    """
    if provider is not None:
        if agent is not None:
            raise TypeError(f"provider={provider!r} opens a client of its own; leave out the agent")
        if provider not in _CLIENTS:
            raise ValueError(f"no client is known for {provider!r}; there are {', '.join(_CLIENTS)}")
        if not model:
            raise TypeError(f"a client of {provider} needs a model: Agent(provider=..., model=...)")
        return cast("ModelAdapter", NamedClient(provider, model))
    if isinstance(agent, type):
        raise TypeError(f"the class {agent.__name__} is no agent; {_ACCEPTED}")
    homes = {kind.__module__.partition(".")[0] for kind in type(agent).__mro__}
    if "pydantic_ai" in homes:
        return _load_adapter("pydantic_ai", "PydanticAI", agent)
    for home, name in _CLIENTS.items():
        if home in homes:
            if not model:
                raise TypeError(f"a client of {home} needs a model: Agent(client, model=...)")
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
    """A provider's client that is opened at the first request.

    Keys and addresses come from the environment, as the provider's own library reads them.

    Attributes:
        model: The requested model.
        provider: The provider's name.
        runs_tools: False: the session runs the tools.
        is_async: False: the client blocks, so an event loop calls it in a thread.
    """

    runs_tools = False
    is_async = False

    def __init__(self, provider: str, model: str) -> None:
        self.provider, self.model = provider, model
        self._adapter: ModelAdapter | None = None

    def answer(self, request: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Yield the pieces of the answer.

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
        return self._adapter.answer(request)
