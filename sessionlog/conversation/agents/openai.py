"""An OpenAI client as an agent: chat completions, streamed. Sync clients answer sync, async ones async.

A client makes two more attempts of its own for each that the session makes and records, unless it has `max_retries=0`.
Whatever speaks this protocol can be asked with `OpenAI(base_url=...)`; who serves it is told by the address.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from sessionlog.conversation.agents.openai_answer import OpenAIAnswer
from sessionlog.conversation.agents.relay import Client
from sessionlog.conversation.agents.spelling import object_schema, openai_messages
from sessionlog.conversation.turns.pieces import Ask, Piece

_NAMES_COMPLETION = {"openai", "azure"}
"""Where newer models refuse `max_tokens`; others know no other name."""


class OpenAIClient(Client):
    """Asks an `OpenAI` or `AsyncOpenAI` client."""

    def answer(self, ask: Ask) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Ask for a chat completion."""
        return self._relay(self._client.chat.completions.create, self._request(ask), OpenAIAnswer(self.provider))

    def _request(self, ask: Ask) -> dict[str, Any]:
        schema, told = object_schema(ask.schema)
        messages = [*([{"role": "system", "content": told}] if told else ()), *openai_messages(ask)]
        request: dict[str, Any] = {"model": self.model, "messages": messages, "stream": True}
        request["stream_options"] = {"include_usage": True}
        if ask.tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {"name": one.name, "description": one.description, "parameters": dict(one.parameters)},
                }
                for one in ask.tools
            ]
        if schema:
            named = {"name": str(schema.get("title", "answer")), "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        options = dict(ask.options)
        if "max_tokens" in options and self.provider in _NAMES_COMPLETION:
            options["max_completion_tokens"] = options.pop("max_tokens")
        return request | options
