"""An Anthropic client as an agent: messages, streamed. Sync clients answer sync, async ones async.

A client makes two more attempts of its own for each that the session makes and records, unless it has `max_retries=0`.
Of `metadata`, only `user_id` has a place there. Without `max_tokens` an answer is of at most 4,096 tokens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from sessionlog.conversation.agents.anthropic_answer import AnthropicAnswer
from sessionlog.conversation.agents.relay import Client
from sessionlog.conversation.agents.spelling import anthropic_messages, object_schema, system_text
from sessionlog.conversation.turns.pieces import Ask, Piece

MAX_TOKENS = 4096


class AnthropicClient(Client):
    """Asks an `Anthropic` or `AsyncAnthropic` client, or one of its kin for a cloud."""

    def answer(self, ask: Ask) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Ask for a message."""
        return self._relay(self._client.messages.stream, self._request(ask), AnthropicAnswer(self.provider))

    def _request(self, ask: Ask) -> dict[str, Any]:
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
        told = options.pop("metadata", None)
        user = told.get("user_id") if isinstance(told, Mapping) else None
        return request | options | ({"metadata": {"user_id": user}} if user else {})
