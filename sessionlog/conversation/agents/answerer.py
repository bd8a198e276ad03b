"""Answerer: something that answers, with what it is told to be and the tools that it may call. It remembers nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from sessionlog.conversation.agents.find import find_answers
from sessionlog.conversation.agents.protocol import Answers
from sessionlog.conversation.turns.tool import Tool, tools_of


class Answerer:
    """All of an `Agent` but its sessions, which are made of it; `Agent` says what it takes and raises."""

    __slots__ = ("_answers", "_model", "_name", "_system", "_tools")

    def __init__(
        self,
        call: Any,
        system: str | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        *,
        model: str | None = None,
        name: str | None = None,
    ) -> None:
        self._answers = find_answers(call, model)
        self._system, self._tools, self._model = system, tools_of(tools), model
        names = (name, getattr(call, "__name__", None), getattr(call, "name", None))
        self._name = next((one for one in names if isinstance(one, str) and one), None)

    @property
    def answers(self) -> Answers:
        """What asks it."""
        return self._answers

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
        return self._model or getattr(self._answers, "model", None)

    @property
    def provider(self) -> str | None:
        """Who serves it, None where nobody says."""
        return getattr(self._answers, "provider", None)

    @property
    def runs_tools(self) -> bool:
        """It calls the tools itself."""
        return bool(getattr(self._answers, "runs_tools", False))

    @property
    def name(self) -> str | None:
        """What to call it."""
        return self._name

    @property
    def is_async(self) -> bool:
        """It, or a tool of it, can only be asked where an event loop is."""
        asks = getattr(self._answers, "is_async", inspect.isasyncgenfunction(self._answers.answer))
        return bool(asks) or any(tool.is_async for tool in self._tools)

    def __repr__(self) -> str:
        tools = ", ".join(tool.name for tool in self._tools)
        return f"{type(self).__name__}({self._name or type(self._answers).__name__}, tools=[{tools}])"
