"""An Anthropic client as an agent: messages, streamed. Sync clients answer sync, async ones async.

A client makes two more attempts of its own for each that the session makes and records, unless it has `max_retries=0`.
Of `metadata`, only `user_id` has a place there. Without `max_tokens` an answer is of at most 4,096 tokens.
The client puts the message together; what it holds besides text and tool calls, as thinking, is kept and sent back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from sessionlog.conversation.agents.client import Client, object_schema, system_text
from sessionlog.conversation.turns.pieces import AgentRequest, Piece, Reply, TextDelta
from sessionlog.events.usage import read_usage
from sessionlog.messages.message import ContentPart, Message, ToolRequest, content_of
from sessionlog.messages.wire import anthropic_messages

MAX_TOKENS = 4096


class AnthropicParser:
    """Hears one message."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._message: Any = None

    def feed(self, event: Any) -> Iterator[Piece]:
        """Take an event of `messages.stream`."""
        if event.type == "text" and event.text:
            yield TextDelta(event.text)
        elif event.type == "message_stop":
            self._message = event.message

    def reply(self) -> Reply:
        """Give the whole message."""
        answered = self._message
        if answered is None:
            raise ConnectionError("the stream ended before the answer did")
        calls = [
            ToolRequest(block.id, block.name, block.input) for block in answered.content if block.type == "tool_use"
        ]
        parts = [_part(block) for block in answered.content if block.type != "tool_use"]
        return Reply(
            message=Message.assistant(content_of(parts), tool_calls=calls),
            usage=read_usage(answered.usage)[0],
            model=answered.model,
            provider=self._provider,
            finish_reason=answered.stop_reason,
        )


def _part(block: Any) -> ContentPart:
    if block.type == "text":
        return ContentPart.of_text(block.text)
    return ContentPart(type=block.type, extra={key: value for key, value in block.to_dict().items() if key != "type"})


class AnthropicClient(Client):
    """Asks an `Anthropic` or `AsyncAnthropic` client, or one of its kin for a cloud."""

    def answer(self, ask: AgentRequest) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Ask for a message."""
        return self._stream(self._client.messages.stream, self._request(ask), AnthropicParser(self.provider))

    def _request(self, ask: AgentRequest) -> dict[str, Any]:
        schema, wanted = object_schema(ask.schema)
        system = "\n\n".join(text for text in (system_text(ask), wanted) if text)
        request: dict[str, Any] = {
            "model": self.model,
            "max_tokens": MAX_TOKENS,
            "messages": anthropic_messages(ask.messages),
        }
        request |= {"system": system} if system else {}
        if ask.tools:
            request["tools"] = [
                {"name": one.name, "description": one.description, "input_schema": dict(one.parameters)}
                for one in ask.tools
            ]
        options = dict(ask.options)
        if schema:
            from anthropic import transform_schema  # noqa: PLC0415 - whose client this is

            form = {"type": "json_schema", "schema": transform_schema(schema)}
            request["output_config"] = {**(options.pop("output_config", None) or {}), "format": form}
        metadata = options.pop("metadata", None)
        user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
        return request | options | ({"metadata": {"user_id": user}} if user else {})
