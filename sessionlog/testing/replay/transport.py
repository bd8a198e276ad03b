"""ReplayTransport: gives clients of httpx and httpx2 the recorded answers, in the format of the API that they ask.

Nothing is sent. A request that is none to a model is a miss, too.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from sessionlog.errors import ReplayMiss
from sessionlog.integrations.http import endpoint_of, library_of, read_body
from sessionlog.messages.answer_bodies import write_answer, write_error, write_events, write_stream
from sessionlog.messages.answers import AnswerReader, AnthropicMessage, Fields
from sessionlog.messages.json_value import json_text
from sessionlog.testing.replay.matcher import Matcher
from sessionlog.testing.replay.recording import Recording
from sessionlog.testing.replay.request import read_request

_STATUS = re.compile(r"([45]\d\d)\b[\s:]*|.*?\bstatus_code: ([45]\d\d)\b", re.DOTALL)
_NO_RECORDING = 404
_NO_STATUS = 500
_SOON = {"retry-after-ms": "1"}
"""SDKs try again after so long; they would wait for half a second."""


class ReplayTransport:
    """A transport of httpx or httpx2, sync and async, that answers from a replay."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def handle_request(self, request: Any) -> Any:
        """Return the recorded answer.

        Raises:
            TransportError: The recording is an error of the connection: the client library's class of that name.
        """
        if request.method == "POST":
            request.read()
        response = self._answer(request)
        return self._matcher.rules.live.handle_request(request) if response is None else response

    async def handle_async_request(self, request: Any) -> Any:
        """Return the recorded answer; raises what `handle_request` raises."""
        if request.method == "POST":
            await request.aread()
        response = self._answer(request)
        return await self._matcher.rules.live.handle_async_request(request) if response is None else response

    def close(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Nothing is open."""

    def _answer(self, request: Any) -> Any:
        """Return the response to a request; None if the live transport of a fork answers."""
        library, url = library_of(request), str(request.url)
        kind, _, model = endpoint_of(url)
        if kind is None or request.method != "POST":
            miss = self._matcher.miss(f"{request.method} {_place(url)} is no request to a model; nothing is sent")
            return _missed(library, kind, miss)
        given = read_body(request)
        body = given if isinstance(given, dict) else {}
        fields = kind.request_fields(body)
        try:
            recording = self._matcher.find(read_request({"model": model, **fields}))
        except ReplayMiss as miss:
            return _missed(library, kind, miss)
        if recording is None:
            return None
        if recording.error:
            return _failed(library, recording.error)
        return _answered(library, kind, recording, url, body)


def _place(url: str) -> str:
    """Return an address for people: without a password and a query, which may be a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _answered(library: ModuleType, kind: type[AnswerReader], recording: Recording, url: str, body: Fields) -> Any:
    """Return an answer whole, or as a stream if the request asks for one: Gemini's has another address."""
    address = urlsplit(url)
    is_gemini_stream = address.path.endswith(":streamGenerateContent")
    if is_gemini_stream and "alt=sse" not in address.query.split("&"):
        return _json(library, 200, list(write_events(kind, recording.answer)))
    if is_gemini_stream or body.get("stream") is True:
        options = body.get("stream_options")
        has_usage = isinstance(options, dict) and options.get("include_usage") is True
        content = write_stream(kind, recording.answer, has_usage=has_usage)
        return library.Response(200, headers={"content-type": "text/event-stream"}, content=content)
    return _json(library, 200, write_answer(kind, recording.answer))


def _failed(library: ModuleType, error: str) -> Any:
    """Return a recorded error with its HTTP status; raise it if it is one of the connection."""
    name, _, text = error.partition(": ")
    kind = getattr(library, name, None)
    if isinstance(kind, type) and issubclass(kind, library.TransportError):
        raise kind(text)
    status, text = split_status(error)
    return _json(library, status or _NO_STATUS, write_error(text, status or _NO_STATUS), _SOON)


def split_status(error: str) -> tuple[int | None, str]:
    """Return the HTTP status that an error's text names, None for none, and the text without a leading status."""
    found = _STATUS.match(error)
    if found is None:
        return None, error
    return int(found[1] or found[2]), error[found.end() :] if found[1] else error


def _missed(library: ModuleType, kind: type[AnswerReader] | None, miss: ReplayMiss) -> Any:
    """Return a miss as an error with its text, which is not repeated by SDKs."""
    if kind is AnthropicMessage:  # its SDK quotes JSON, so that lines would run together
        return library.Response(_NO_RECORDING, headers={"content-type": "text/plain"}, content=str(miss).encode())
    return _json(library, _NO_RECORDING, write_error(f"replay_miss: {miss}", _NO_RECORDING))


def _json(library: ModuleType, status: int, body: Any, headers: dict[str, str] | None = None) -> Any:
    headers = {"content-type": "application/json"} | (headers or {})
    return library.Response(status, headers=headers, content=json_text(body, compact=True).encode())
