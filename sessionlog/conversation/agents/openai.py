"""An OpenAI client as an agent: streamed chat completions, from sync and async clients.

The client retries twice by itself within each attempt that the session makes and records, unless it has
`max_retries=0`. `OpenAI(base_url=...)` reaches any server with this protocol; the provider is read from the address.
OpenAI's prompt tokens include cached ones; `TokenUsage` has disjoint classes. A stream without a finish reason is
broken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

from sessionlog.conversation.agents.client import Client, object_schema
from sessionlog.conversation.turns.pieces import AgentRequest, Piece, Reply, TextDelta
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.messages.wire import openai_messages

_NAMES_COMPLETION = {"openai", "azure"}
"""Providers whose newer models refuse `max_tokens`; others accept only that name."""


class OpenAIParser:
    """Parses the stream of one completion."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._texts: list[str] = []
        self._calls: list[dict[str, str]] = []
        self._open: dict[int | None, dict[str, str]] = {}
        self._model: str | None = None
        self._finish: str | None = None
        self._usage: Any = None

    def feed(self, chunk: Any) -> Iterator[Piece]:
        """Yield the text of one `ChatCompletionChunk`; a refusal counts as text."""
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices or ():
            if choice.index or choice.delta is None:  # of several choices, only the first is used
                continue
            self._finish = choice.finish_reason or self._finish
            for call in choice.delta.tool_calls or ():
                self._add_call(call)
            text = choice.delta.content or getattr(choice.delta, "refusal", None)
            if text:
                self._texts.append(text)
                yield TextDelta(text)

    def reply(self) -> Reply:
        """Return the whole completion."""
        if self._finish is None:
            raise ConnectionError("the stream ended before the answer did")
        calls = [ToolRequest.of_model(call["id"], call["name"], call["arguments"]) for call in self._calls]
        return Reply(
            message=Message.assistant("".join(self._texts), tool_calls=calls),
            usage=usage_of(self._usage),
            model=self._model,
            provider=self._provider,
            cost_usd=_cost(self._usage),
            finish_reason=self._finish,
        )

    def _add_call(self, piece: Any) -> None:
        """Add a fragment: a new id starts a call, its index continues it; some servers give every call index 0."""
        call = self._open.get(piece.index)
        if call is None or (piece.id and piece.id != call["id"]):
            call = {"id": piece.id or f"call_{uuid4().hex}", "name": "", "arguments": ""}
            self._open[piece.index] = call
            self._calls.append(call)
        if piece.function is not None:
            call["name"] = call["name"] or piece.function.name or ""
            call["arguments"] += piece.function.arguments or ""


def usage_of(usage: Any) -> TokenUsage | None:
    """Return a `CompletionUsage` in disjoint classes."""
    return None if usage is None else read_usage(usage)[0]


def _cost(usage: Any) -> float | None:
    """The cost that some gateways report, in US dollars."""
    cost = getattr(usage, "cost", None)
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None


class OpenAIClient(Client):
    """Sends requests through an `OpenAI` or `AsyncOpenAI` client."""

    def answer(self, request: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Request a chat completion."""
        return self._stream(self._client.chat.completions.create, self._arguments(request), OpenAIParser(self.provider))

    def _arguments(self, request: AgentRequest) -> dict[str, Any]:
        schema, instruction = object_schema(request.schema)
        messages = [
            *([{"role": "system", "content": instruction}] if instruction else ()),
            *openai_messages(request.messages, request.system),
        ]
        arguments: dict[str, Any] = {"model": self.model, "messages": messages, "stream": True}
        arguments["stream_options"] = {"include_usage": True}
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "function": {"name": one.name, "description": one.description, "parameters": dict(one.parameters)},
                }
                for one in request.tools
            ]
        if schema:
            named = {"name": str(schema.get("title", "answer")), "schema": schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": named}
        options = dict(request.options)
        if "max_tokens" in options and self.provider in _NAMES_COMPLETION:
            options["max_completion_tokens"] = options.pop("max_tokens")
        return arguments | options
