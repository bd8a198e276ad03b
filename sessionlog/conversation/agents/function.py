"""A function as an agent: `f(messages, **options)`, plain, a generator, or async.

The function gets the history as a list of messages, the system text first, and the options that its signature has. It
returns a text, a Message or a Reply; or it yields texts and tool requests.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from sessionlog.conversation.turns.pieces import (
    AgentRequest,
    NextRequest,
    Piece,
    Reply,
    TextDelta,
    ToolCalled,
    ToolReturned,
)
from sessionlog.errors import AgentError
from sessionlog.logger.tool_timer import called_function
from sessionlog.messages.message import Message, ToolRequest

_PASSED_ON = (ToolCalled, ToolReturned, NextRequest)


class Function:
    """Calls a function in place of a model."""

    runs_tools = False
    provider: str | None = None

    def __init__(self, function: Callable[..., Any], model: str | None = None) -> None:
        self.model = model
        self._function = function
        self._takes = _options_of(function)
        self.is_async = _is_async(function)

    def answer(self, request: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Call the function, and convert what it returns or yields to pieces."""
        return self._answer_async(request) if self.is_async else self._answer(request)

    def _answer(self, request: AgentRequest) -> Iterator[Piece]:
        given = self._call(request)
        if inspect.isawaitable(given) or hasattr(given, "__anext__"):
            if inspect.iscoroutine(given):
                given.close()
            raise AgentError("the function gave something to be awaited; define it with `async def`")
        yield from _pieces(given)

    async def _answer_async(self, request: AgentRequest) -> AsyncIterator[Piece]:
        given = self._call(request)
        if inspect.isawaitable(given):
            given = await given
        if not isinstance(given, AsyncIterator):
            for read in _pieces(given):
                yield read
            return
        answer = _AnswerCollector()
        try:
            async for piece in given:
                for read in answer.read(piece):
                    yield read
        finally:
            if inspect.isasyncgen(given):
                await given.aclose()
        for read in answer.rest():
            yield read

    def _call(self, request: AgentRequest) -> Any:
        messages = list(request.messages)
        if request.system is not None:
            messages.insert(0, Message.system(request.system))
        options = {"tools": list(request.tools) or None, "schema": request.schema, **request.options}
        takes = options if self._takes is None else self._takes
        given = {name: value for name, value in options.items() if value is not None and name in takes}
        return self._function(messages, **given)


def _pieces(given: Any) -> Iterator[Piece]:
    """Convert what a plain function or generator returned to pieces."""
    answer = _AnswerCollector()
    if isinstance(given, Iterator):
        try:
            for piece in given:
                yield from answer.read(piece)
        finally:
            if inspect.isgenerator(given):
                given.close()
    else:
        yield from answer.read(given, whole=True)
    yield from answer.rest()


class _AnswerCollector:
    """Collects texts and calls into whole answers."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[ToolRequest] = []
        self._is_due = True

    def read(self, given: Any, *, whole: bool = False) -> Iterator[Piece]:
        """Convert one value to pieces; `whole` is a return value, not a yielded one."""
        if isinstance(given, str):
            given = Message.assistant(given) if whole else TextDelta(given)
        if isinstance(given, Message):
            given = Reply(message=given)
        if isinstance(given, TextDelta):
            self._texts.append(given.text)
            yield given
        elif isinstance(given, ToolRequest):
            self._calls.append(given)
        elif isinstance(given, Reply):
            yield self._completed(given)
        elif isinstance(given, _PASSED_ON):
            yield given
        else:
            whole_is = "an answer is a text, a Message or a Reply, or an iterator of texts and pieces"
            piece_is = "a piece is a text, a ToolRequest, a Message or a Reply"
            raise AgentError(f"the function gave {_named(given)}; {whole_is if whole else piece_is}")

    def rest(self) -> Iterator[Piece]:
        """Yield the answer that is still incomplete, if there is one."""
        if self._texts or self._calls or self._is_due:
            yield self._completed(Reply(message=Message.assistant("")))

    def _completed(self, reply: Reply) -> Reply:
        """The reply; where it has no text or no calls, with those yielded before it."""
        message = reply.message
        if message.role == "assistant" and (self._texts or self._calls):
            content = message.content or "".join(self._texts)
            calls = message.tool_calls or tuple(self._calls)
            reply = replace(reply, message=replace(message, content=content, tool_calls=calls))
        self._texts, self._calls, self._is_due = [], [], False
        return reply


def _named(value: object) -> str:
    shown = repr(value)
    return "None" if value is None else f"{type(value).__name__} ({shown[:80]}{'…' if len(shown) > 80 else ''})"


def _is_async(function: Callable[..., Any]) -> bool:
    called = called_function(function)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def _options_of(function: Callable[..., Any]) -> set[str] | None:
    """The options that a function takes by name; None is all."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return set()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return None
    named = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    return {one.name for one in parameters[1:] if one.kind in named}
