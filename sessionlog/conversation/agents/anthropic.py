"""An Anthropic client as an agent: streamed messages, from sync and async clients.

The client retries twice by itself within each attempt that the session makes and records, unless it has
`max_retries=0`. Of `metadata`, only `user_id` is sent. `max_tokens` is 4,096 by default.
Blocks other than text and tool calls, such as thinking, are kept and sent back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from sessionlog.conversation.agents.client import Client, object_schema, system_text
from sessionlog.conversation.turns.pieces import AgentRequest, Piece, Reply, TextDelta
from sessionlog.events.billing import billed_fields
from sessionlog.events.usage import read_usage
from sessionlog.messages.answers import AnthropicMessage
from sessionlog.messages.message import ContentPart, Message, ToolRequest, content_of
from sessionlog.messages.wire import anthropic_messages

MAX_TOKENS = 4096
_SENT = {
    "message_start", "message_delta", "message_stop",
    "content_block_start", "content_block_delta", "content_block_stop",
}  # fmt: skip
"""The events that the server sends."""


class AnthropicParser:
    """Parses the stream of one message."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._reader = AnthropicMessage()

    def feed(self, event: Any) -> Iterator[Piece]:
        """Yield the text of one event of `messages.stream`; those that the client adds to the stream are skipped."""
        text = self._reader.feed(event.to_dict()) if event.type in _SENT else ""
        if text:
            yield TextDelta(text)

    def reply(self) -> Reply:
        """Return the whole message."""
        read = self._reader
        if not read.is_whole:
            raise ConnectionError("the stream ended before the answer did")
        calls = [ToolRequest(call["id"], call["name"], call["arguments"]) for call in read.calls]
        parts = [_part(block) for block in read.blocks if block["type"] != "tool_use"]
        return Reply(
            message=Message.assistant(content_of(parts), tool_calls=calls),
            usage=read_usage(read.usage)[0],
            model=read.model,
            provider=self._provider,
            billed=billed_fields(read.usage or {}),
            finish_reason=read.finish_reason,
        )


def _part(block: Mapping[str, Any]) -> ContentPart:
    if block["type"] == "text":
        return ContentPart.of_text(block["text"])
    return ContentPart(type=block["type"], extra={key: value for key, value in block.items() if key != "type"})


class AnthropicClient(Client):
    """Sends requests through an `Anthropic` or `AsyncAnthropic` client, or its variants for clouds."""

    def answer(self, request: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Request a message."""
        return self._stream(self._client.messages.stream, self._arguments(request), AnthropicParser(self.provider))

    def _arguments(self, request: AgentRequest) -> dict[str, Any]:
        schema, instruction = object_schema(request.schema)
        system = "\n\n".join(text for text in (system_text(request), instruction) if text)
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": MAX_TOKENS,
            "messages": anthropic_messages(request.messages),
        }
        arguments |= {"system": system} if system else {}
        if request.tools:
            arguments["tools"] = [
                {"name": one.name, "description": one.description, "input_schema": dict(one.parameters)}
                for one in request.tools
            ]
        options = dict(request.options)
        if schema:
            from anthropic import transform_schema

            form = {"type": "json_schema", "schema": transform_schema(schema)}
            arguments["output_config"] = {**(options.pop("output_config", None) or {}), "format": form}
        metadata = options.pop("metadata", None)
        user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
        return arguments | options | ({"metadata": {"user_id": user}} if user else {})
