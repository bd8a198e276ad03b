"""An OpenAI client as an agent: streamed chat completions, from sync and async clients.

The client retries twice by itself within each attempt that the session makes and records, unless it has
`max_retries=0`. `OpenAI(base_url=...)` reaches any server with this protocol; the provider is read from the address.
OpenAI's prompt tokens include cached ones; `TokenUsage` has disjoint classes. A stream without a finish reason is
broken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from uuid import uuid4

from sessionlog.conversation.agents.client import Client, object_schema
from sessionlog.conversation.turns.pieces import AgentRequest, Piece, Reply, TextDelta
from sessionlog.events.usage import read_usage
from sessionlog.messages.answers import ChatCompletion
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.messages.wire import openai_messages

_NAMES_COMPLETION = {"openai", "azure"}
"""Providers whose newer models refuse `max_tokens`; others accept only that name."""


class OpenAIParser:
    """Parses the stream of one completion."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._reader = ChatCompletion()

    def feed(self, chunk: Any) -> Iterator[Piece]:
        """Yield the text of one `ChatCompletionChunk`; a refusal counts as text."""
        text = self._reader.feed(chunk.to_dict())
        if text:
            yield TextDelta(text)

    def reply(self) -> Reply:
        """Return the whole completion."""
        read = self._reader
        if not read.is_whole:
            raise ConnectionError("the stream ended before the answer did")
        calls = [
            ToolRequest.of_model(call["id"] or f"call_{uuid4().hex}", call["name"], call["arguments"])
            for call in read.calls
        ]
        return Reply(
            message=Message.assistant("".join(read.texts), tool_calls=calls),
            usage=None if read.usage is None else read_usage(read.usage)[0],
            model=read.model,
            provider=self._provider,
            billed={"service_tier": read.tier} if read.tier else {},
            cost_usd=_cost(read.usage or {}),
            finish_reason=read.finish_reason,
        )


def _cost(usage: Mapping[str, Any]) -> float | None:
    """The cost that some gateways report, in US dollars."""
    cost = usage.get("cost")
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
