"""What all provider clients share: request fields besides the messages, and the streamed answer.

A connection is closed as soon as the answer is no longer read.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from sessionlog.conversation.turns.pieces import AgentRequest, Piece, Reply
from sessionlog.messages.vendors import vendor_of


class StreamParser(Protocol):
    """Parses the stream of one answer."""

    def feed(self, event: Any) -> Iterable[Piece]:
        """Parse the next event of the stream, and yield the pieces in it."""
        ...

    def reply(self) -> Reply:
        """Return the whole answer.

        Raises:
            ConnectionError: The stream ended early.
        """
        ...


class Client:
    """A provider's client as a model adapter, sync or async as the client is."""

    runs_tools = False

    def __init__(self, client: Any, model: str) -> None:
        self.model: str | None = model
        self.provider = vendor_of(getattr(client, "base_url", None))
        self.is_async = hasattr(client, "__aenter__")
        self._client = client

    def _stream(
        self, method: Callable[..., Any], arguments: Mapping[str, Any], parser: StreamParser
    ) -> Iterator[Piece] | AsyncIterator[Piece]:
        """Open a stream, and yield its pieces, the whole answer last."""
        opened = partial(method, **filter_kwargs(method, arguments))
        return _stream_async(opened, parser) if self.is_async else _stream_sync(opened, parser)


def _stream_sync(opened: Callable[[], Any], parser: StreamParser) -> Iterator[Piece]:
    with opened() as stream:
        for event in stream:
            yield from parser.feed(event)
    yield parser.reply()


async def _stream_async(opened: Callable[[], Any], parser: StreamParser) -> AsyncIterator[Piece]:
    opening = opened()
    async with await opening if inspect.isawaitable(opening) else opening as stream:
        async for event in stream:
            for piece in parser.feed(event):
                yield piece
    yield parser.reply()


def filter_kwargs(method: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a client's method; those that it has no parameter for go into `extra_body`."""
    parameters = inspect.signature(method).parameters
    if "extra_body" not in parameters:
        return dict(arguments)
    given = {name: value for name, value in arguments.items() if name in parameters}
    body = {name: value for name, value in arguments.items() if name not in parameters}
    return given | ({"extra_body": {**(given.get("extra_body") or {}), **body}} if body else {})


Json = dict[str, Any]

_ONLY_JSON = "Answer with JSON and nothing else."


def system_text(request: AgentRequest) -> str:
    """Return the system text of a request: the session's, then the system messages of the history."""
    texts = [request.system or "", *(message.text for message in request.messages if message.role == "system")]
    return "\n\n".join(text for text in texts if text)


def object_schema(schema: Any) -> tuple[Json | None, str]:
    """Return a schema that a provider can enforce, or an instruction for the model; neither without a schema.

    Providers enforce objects only. An empty schema allows any JSON.
    """
    if schema is None:
        return None, ""
    json_schema = dict(schema) if isinstance(schema, Mapping) else _schema_of(schema)
    if json_schema.get("type") == "object" and json_schema.get("properties"):
        return json_schema, ""
    return None, f"{_ONLY_JSON} Its JSON schema: {json.dumps(json_schema)}" if json_schema else _ONLY_JSON


def _schema_of(kind: Any) -> Json:
    from pydantic import TypeAdapter

    return TypeAdapter(kind).json_schema()
