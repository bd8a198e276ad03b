"""A provider inside the process: the real clients talk to it through a transport that opens no socket.

Tests import the clients where they need them: they take 100 MB and seconds of each worker, most of which need none.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from sessionlog.conversation.agents.anthropic import AnthropicClient
from sessionlog.conversation.agents.openai import OpenAIClient
from sessionlog.conversation.turns.pieces import AgentRequest


@dataclass
class Answer:
    """What the provider answers to one request; an exception among the events breaks the stream there."""

    events: list[Any] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    is_closed: bool = False


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The bytes of an answer, for both kinds of clients."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        for event in self._answer.events:
            if isinstance(event, Exception):
                raise event
            yield event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self:
            yield event

    def close(self) -> None:
        self._answer.is_closed = True

    async def aclose(self) -> None:
        self.close()


class Server:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        self.requests.append(json.loads(request.content))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        headers = {
            "content-type": "text/event-stream" if answer.status == 200 else "application/json",
            **answer.headers,
        }
        return httpx2.Response(answer.status, headers=headers, stream=Body(answer))

    def openai(self, *, is_async: bool = False, **settings: Any) -> OpenAIClient:
        """Give an adapter around a real client that talks to this server."""
        return OpenAIClient(self.openai_client(is_async=is_async, **settings), "gpt-x")

    def openai_client(self, *, is_async: bool = False, **settings: Any) -> Any:
        """Give the client itself."""
        import openai

        make = openai.AsyncOpenAI if is_async else openai.OpenAI
        return make(api_key="k", http_client=self._http(is_async), **{"max_retries": 0, **settings})

    def anthropic(self, *, is_async: bool = False, **settings: Any) -> AnthropicClient:
        """Give an adapter around a real client that talks to this server."""
        import anthropic

        make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        client = make(api_key="k", http_client=self._http(is_async), **{"max_retries": 0, **settings})
        return AnthropicClient(client, "claude-x")

    def _http(self, is_async: bool) -> Any:
        async def respond(request: httpx2.Request) -> httpx2.Response:
            return self.respond(request)

        if is_async:
            return httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        return httpx2.Client(transport=httpx2.MockTransport(self.respond))


def pieces_of(adapter: Any, ask: AgentRequest) -> list[Any]:
    """Take all pieces of an answer, in a loop where it needs one."""

    async def collect() -> list[Any]:
        return [piece async for piece in adapter.answer(ask)]

    return asyncio.run(collect()) if adapter.is_async else list(adapter.answer(ask))


def chat(
    *deltas: dict[str, Any], finish: str | None = "stop", usage: dict[str, Any] | None = None, **fields: Any
) -> Answer:
    """Make a streamed chat completion, as OpenAI writes it."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x-2026", **fields}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    if finish is not None:
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        chunks.append({**head, "choices": [], "usage": usage})
    end = [b"data: [DONE]\n\n"] if finish is not None else []
    return Answer([f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + end)


def call_deltas(*calls: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Make the deltas of tool calls, each of id, name and arguments, the arguments in two bits."""
    deltas = []
    for index, (call_id, name, arguments) in enumerate(calls):
        half = len(arguments) // 2
        first = {"name": name, "arguments": arguments[:half]}
        deltas.append({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": first}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
    return deltas


def message(
    *blocks: dict[str, Any], stop: str | None = "end_turn", usage: dict[str, Any] | None = None, output: int = 7
) -> Answer:
    """Make a streamed message, as Anthropic writes it; texts come in two bits."""
    told = {"input_tokens": 11, "output_tokens": 1, **(usage or {})}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x-2026", "content": [], "usage": told}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}}
    ]
    for index, block in enumerate(blocks):
        events += _block(index, block)
    if stop is not None:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events += [
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}},
            {"type": "message_stop"},
        ]
    return Answer([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events])


def _block(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    start, deltas = dict(block), []
    if block["type"] == "text":
        half = len(block["text"]) // 2
        start["text"] = ""
        deltas = [{"type": "text_delta", "text": text} for text in (block["text"][:half], block["text"][half:])]
    elif block["type"] == "tool_use":
        start["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    elif block["type"] == "thinking":
        start |= {"thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    told = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [
        {"type": "content_block_start", "index": index, "content_block": start}, *told,
        {"type": "content_block_stop", "index": index},
    ]  # fmt: skip
