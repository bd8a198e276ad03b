"""Records what an HTTP client sends to models and receives from them: any SDK on httpx or httpx2, sync or async.

    client = OpenAI()
    record(client, log)

The requests of OpenAI (chat completions, responses), Anthropic, Gemini and servers that speak one of these are
recognised by their path; all others pass. An attempt is one request, as it is for the provider: an SDK repeats failed
ones. A stream goes to the host piece by piece; one that the host leaves early is recorded as far as it came, and one
whose last event came is recorded then: what the host sends next follows it in the log.

The host waits while an answer is read, so that has limits: MAX_BODY bytes unpacked, the parser's MAX_VALUES values, and
the time of MAX_SECONDS and MAX_SHARE. What exceeds one passes unread: the answer is recorded as far as it was read, and
the loss counted as a failure of ours. A request that exceeds one of the first two is recorded without its messages.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache, partial
from time import monotonic, thread_time
from types import ModuleType
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakSet

from sessionlog.errors import NotRecorded
from sessionlog.integrations.runs import Guard, Runs
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.tool_timer import is_cancellation
from sessionlog.messages.answers import AnswerReader, error_text, model_in, reader_of
from sessionlog.messages.server_sent_events import EventStreamParser, parse_json
from sessionlog.messages.vendors import vendor_of

_Client = TypeVar("_Client")
MAX_BODY = 64 << 20
"""Bytes of a body that are read, unpacked: twice what the largest provider takes."""
MAX_SECONDS, MAX_SHARE = 1.0, 0.05
"""Processor time for reading one answer: so many seconds, and this share of the time since its request began.

The 128,000 events of a long answer take 0.8 s to read, and a model minutes to send.
"""
_PIECE = 64 << 10
"""Bytes of an answer that are unpacked and read before its limits are checked."""
_SHORTEST_SECRET = 6
_CREDENTIAL = re.compile(r"auth|key|token|secret|cookie|password|signature", re.IGNORECASE)
_SCHEMES = ("basic", "bearer", "digest")
_PACKED = ("identity", "gzip", "deflate")
"""Codings of bodies that are read piece by piece."""
_LAST_EVENT = b"data: [DONE]"  # of a stream of chat completions


def record(client: _Client, log: SessionLogger | None = None, **options: Any) -> _Client:
    """Record what a client sends and receives from now on; return the client.

    Args:
        client: A client of httpx or httpx2, or of an SDK that has one: `OpenAI`, `AsyncOpenAI`, `Anthropic`, ….
        log: The logger; without one the client has a session of its own, which ends when the client is closed.
        options: Arguments of `SessionLogger` for that session.

    Raises:
        TypeError: The client has no transport of httpx or httpx2.
        ValueError: The client is recorded already, by another logger.
    """
    http: Any = client if hasattr(client, "_transport") else getattr(client, "_client", None)
    if not hasattr(http, "_transport"):
        raise TypeError(f"{type(client).__name__} is no client of httpx or httpx2, and has none")
    if isinstance(http._transport, RecordingTransport):  # noqa: SLF001 - as below
        if log is None or http._transport.log is not log:  # noqa: SLF001
            raise ValueError(f"{type(client).__name__}, or the client that it is a copy of, is recorded already")
        return client
    recorder = partial(RecordingTransport, exchanges=Exchanges(log, options))
    http._transport = recorder(http._transport)  # noqa: SLF001 - a client that is made has no other place for it
    mounts = getattr(http, "_mounts", {})
    for pattern, transport in mounts.items():
        mounts[pattern] = transport and recorder(transport)
    return client


class RecordingTransport:
    """A transport of httpx or httpx2 that records the requests to models which go through another one.

    Args:
        transport: The other one, sync or async: `httpx2.HTTPTransport()`.
        log: As for `record`.
        options: As for `record`.
    """

    def __init__(
        self, transport: Any, log: SessionLogger | None = None, *, exchanges: Exchanges | None = None, **options: Any
    ) -> None:
        self._transport = transport
        self._exchanges = exchanges or Exchanges(log, options)
        self.log = self._exchanges.log

    def handle_request(self, request: Any) -> Any:
        """Send a request; the transport's exceptions pass."""
        exchange = self._exchanges.begin(request)
        if exchange is None:
            return self._transport.handle_request(request)
        with exchange.watched(request.headers):
            response = self._transport.handle_request(request)
        return exchange.follow(response, is_async=False)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; the transport's exceptions pass."""
        exchange = self._exchanges.begin(request)
        if exchange is None:
            return await self._transport.handle_async_request(request)
        with exchange.watched(request.headers):
            response = await self._transport.handle_async_request(request)
        return exchange.follow(response, is_async=True)

    def close(self) -> None:
        """Close the transport, and end the session unless a logger was given."""
        with closing(self._exchanges):
            self._transport.close()

    async def aclose(self) -> None:
        """Close the transport, and end the session unless a logger was given."""
        with closing(self._exchanges):
            await self._transport.aclose()

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        with closing(self._exchanges):
            self._transport.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        with closing(self._exchanges):
            await self._transport.__aexit__(*error)


class Exchanges:
    """The requests to models that one client makes.

    Args:
        log: The logger; None for a session of the client's own.
        options: Arguments of `SessionLogger` for that session.
    """

    def __init__(self, log: SessionLogger | None, options: dict[str, Any]) -> None:
        self.log = log
        self._runs = Runs(log, options)
        self._open: WeakSet[Exchange] = WeakSet()

    def begin(self, request: Any) -> Exchange | None:
        """Record a request of httpx or httpx2; None if it is not to a model."""
        if request.method != "POST":
            return None
        return self.open(str(request.url), lambda: read_body(request), headers=request.headers.items())

    def open(
        self,
        address: str,
        body: Callable[[], Any],
        *,
        headers: Iterable[tuple[str, str]] = (),
        began: float | None = None,
    ) -> Exchange | None:
        """Record the request whose body the function returns; None if it is not to a model.

        A body that cannot be read is counted as a failure of ours; the answer is recorded all the same. Nothing of the
        headers is recorded, nor of the address but the provider and the model; errors that quote their credentials are
        recorded without these.

        Args:
            address: The URL of the provider's server.
            body: Returns the body as the JSON value that it is.
            headers: Names and values of the request's headers.
            began: When the request began, on the monotonic clock; now by default.
        """
        kind, provider, model = endpoint_of(address)
        if kind is None:
            return None
        log = self._runs.begin(self, provider=provider, model=model)
        fields: dict[str, Any] = {}
        with Guard(log):
            fields = kind.request_fields(body())
        asked = fields.get("model") or model
        with Guard(log):
            log.llm_request(fields.pop("messages", None), **fields | {"model": asked})
        exchange = Exchange(log, kind(), {"provider": provider, "requested_model": asked}, began=began)
        with Guard(log):
            exchange.credentials = _credentials(address, headers)
        self._open.add(exchange)
        return exchange

    def close(self) -> None:
        """Record what has come of answers that are still open, and end the session of the client's own."""
        for exchange in list(self._open):
            exchange.end(GeneratorExit())
        self._runs.end(self)


class Exchange:
    """One request to a model, and what comes back.

    Attributes:
        credentials: Secrets of the request, which an error may quote.
    """

    def __init__(
        self, log: SessionLogger, reader: AnswerReader, asked: Mapping[str, Any], *, began: float | None = None
    ) -> None:
        self._log, self._reader, self._asked = log, reader, asked
        self.credentials: tuple[str, ...] = ()
        self._began = monotonic() if began is None else began
        self._first: float | None = None
        self._status = 200
        self._events: EventStreamParser | None = None
        self._body = bytearray()
        self._size, self._seconds = 0, 0.0  # of what was read
        self._unpack: Callable[[bytes], Iterable[bytes]] = _pieces  # piece by piece
        self._decode: Callable[[bytes], bytes] = bytes  # all at once
        self._is_unreadable = False
        self._has_ended = False

    def follow(self, response: Any, *, is_async: bool) -> Any:
        """Return the response, whose body is read on its way to the host."""
        with Guard(self._log):
            self._expect(response, is_async=is_async)
        return response

    def _expect(self, response: Any, *, is_async: bool) -> None:
        if response.is_closed:  # read already, as the answers of test doubles are
            self.expect(response.status_code)
            self.add(response.content)
            self.end()
            return
        encoding = response.headers.get("content-encoding", "identity").lower()
        if encoding not in _PACKED:
            kept = {"content-encoding": encoding}
            self._decode = lambda body: bytes(type(response)(200, headers=kept, content=body).content)
        self.expect(response.status_code, response.headers.get("content-type", ""), encoding)
        if self._has_ended:
            return
        response.stream = _streams(library_of(response))[is_async](response.stream, self)

    def expect(self, status: int, content_type: str = "", encoding: str = "identity") -> None:
        """Prepare for the body of an answer with this status and these headers."""
        self._status = status
        if 300 <= status < 400:  # another request follows
            self._has_ended = True
            return
        if encoding in ("gzip", "deflate"):
            self._unpack = partial(_unpack, zlib.decompressobj(zlib.MAX_WBITS | 32))
        is_stream = content_type.startswith("text/event-stream") and encoding in _PACKED and status < 400
        self._events = EventStreamParser() if is_stream else None

    def add(self, piece: bytes) -> None:
        """Read a piece of the body; with the last event of a stream the answer is recorded."""
        if self._is_unreadable:
            return
        has_ended = False
        self._is_unreadable = True
        with Guard(self._log):
            for part in self._unpack(piece):
                self._read(part)
            has_ended = self._events is not None and (self._reader.has_ended or piece.rstrip().endswith(_LAST_EVENT))
            self._is_unreadable = False
        if has_ended:
            self.end()

    def _read(self, part: bytes) -> None:
        """Read unpacked bytes of the body.

        Raises:
            ValueError: They are more than is read.
        """
        self._size += len(part)
        if self._size > MAX_BODY:
            raise ValueError(f"an answer of more than {MAX_BODY >> 20} MiB")
        if self._events is None:
            self._body += part
            return
        self._feed(self._events.feed(part))
        if self._first is None and self._reader.has_begun:
            self._first = monotonic()

    def _feed(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Read events.

        Raises:
            ValueError: That takes longer than an answer may.
        """
        began = thread_time() - self._seconds
        for event in events:
            self._reader.feed(event)
            self._check_time(thread_time() - began)
        self._check_time(thread_time() - began)

    def _check_time(self, seconds: float) -> None:
        self._seconds = seconds
        if seconds > MAX_SECONDS + MAX_SHARE * (monotonic() - self._began):
            raise ValueError(f"an answer that took {seconds:.1f} s to read up to here")

    def fail(self, error: BaseException, headers: Mapping[str, str] | None = None) -> None:
        """Record an error of the host, which comes before any of ours; it may quote a header, which may be a secret."""
        text = f"{type(error).__name__}: {error}"
        with suppress(NotRecorded):
            with Guard(self._log):
                for sent in (headers or {}).values():
                    text = _without(text, _parts(sent), "[header]")
            self.end(error, text)

    @contextmanager
    def watched(self, headers: Mapping[str, str] | None = None) -> Iterator[None]:
        """Record an error of the host that is raised in the context, and let it pass."""
        try:
            yield
        except BaseException as error:
            self.fail(error, headers)
            raise

    def end(self, error: BaseException | None = None, text: str | None = None) -> None:
        """Record the answer: whole, failed, or as far as it came."""
        if self._has_ended:
            return
        self._has_ended = True
        now = monotonic()
        with Guard(self._log):
            self._read_rest()
        with Guard(self._log):
            fields = self._reader.response_fields()
            if self._first is not None:
                fields["time_to_first_token_ms"] = round((self._first - self._began) * 1000, 3)
            if error is not None and not is_cancellation(error):
                fields["error"] = text or error
            if self._status >= 400:
                fields["error"] = f"{self._status} {fields.get('error') or ''}".rstrip()
            if isinstance(fields.get("error"), str):
                fields["error"] = _without(fields["error"], self.credentials, "[credential]")
            if not self._reader.is_whole and not fields.get("error"):
                fields["partial"] = "cancelled" if error is not None else "interrupted"
            elif fields.get("error") and self._reader.has_begun:
                fields["partial"] = "failed"
            latency_ms = round((now - self._began) * 1000, 3)
            self._log.llm_response(**{**self._asked, **fields, "latency_ms": latency_ms})

    def _read_rest(self) -> None:
        """Read what was not a stream of events."""
        if self._is_unreadable:
            return
        if self._events is not None:
            self._feed(self._events.finish())
            return
        text = self._decode(bytes(self._body)).lstrip()
        if text.startswith((b"data:", b"event:", b":")):
            events = EventStreamParser()
            for part in _pieces(text):
                self._feed(events.feed(part))
            self._feed(events.finish())
            return
        found = parse_json(text) if text else None
        if isinstance(found, list):  # Gemini streams a list where no events are asked for
            self._feed(event for event in found if isinstance(event, dict))
        elif isinstance(found, dict) and self._status < 400:
            self._reader.read(found)
        elif isinstance(found, dict):
            self._reader.error = error_text(found)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield bytes in pieces that are read at once."""
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def _unpack(unpacker: Any, data: bytes) -> Iterator[bytes]:
    """Yield packed bytes unpacked, in pieces that are read at once: 64 KiB may be packed zeros of 64 MiB."""
    has_more = True
    while has_more and not unpacker.eof:
        part = unpacker.decompress(data, _PIECE)
        data = unpacker.unconsumed_tail
        yield part
        has_more = bool(data) or len(part) == _PIECE


def _credentials(address: str, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return what may be a secret of a request: values of headers and of the query whose names look like one's."""
    given = [*headers, *parse_qsl(urlsplit(address).query)]
    parts = [part for name, value in given if _CREDENTIAL.search(name) for part in _parts(value)]
    return tuple(part for part in parts if part.lower() not in _SCHEMES)


def _parts(value: str) -> tuple[str, ...]:
    """Return a header's value, and the words of one like `Bearer KEY`."""
    return value.strip(), *value.split()


def _without(text: str, parts: Iterable[str], mark: str) -> str:
    """Return a text with each of these parts replaced; what is too short for a secret stays."""
    for part in parts:
        text = text.replace(part, mark) if len(part) >= _SHORTEST_SECRET else text
    return text


def library_of(value: object) -> ModuleType:
    """Return httpx or httpx2, whichever a request or a response is of."""
    homes = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return sys.modules[next(home for home in homes if home in ("httpx", "httpx2"))]


@lru_cache(256)
def endpoint_of(url: str) -> tuple[type[AnswerReader] | None, str | None, str | None]:
    """Return the reader of an address's answers, the provider, and the model that it names."""
    path = urlsplit(url).path
    return reader_of(path), vendor_of(url), model_in(path)


def parse_body(body: bytes) -> Any:
    """Return the body of a request as the JSON value that it is; {} for what is none.

    Raises:
        ValueError: It is more than is read.
    """
    if len(body) > MAX_BODY:
        raise ValueError(f"a request of more than {MAX_BODY >> 20} MiB")
    return parse_json(body) or {}


def read_body(request: Any) -> Any:
    """Return the body of a request; {} for one that the host sends as a stream, which is its own to read."""
    try:
        return parse_body(request.content)
    except Exception as error:
        if type(error).__name__ == "RequestNotRead":
            return {}
        raise


@cache
def _streams(library: ModuleType) -> tuple[Callable[[Any, Exchange], Any], Callable[[Any, Exchange], Any]]:
    """Return the classes of followed streams, sync and async, on the bases that a library demands of a body."""

    class SyncStream(library.SyncByteStream):  # type: ignore[misc, name-defined] # a class of httpx or httpx2
        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream, self._exchange = stream, exchange

        def __iter__(self) -> Iterator[bytes]:
            with self._exchange.watched():
                for piece in self._stream:
                    self._exchange.add(piece)
                    yield piece
            self._exchange.end()

        def close(self) -> None:
            try:
                self._exchange.end(GeneratorExit())
            finally:
                self._stream.close()

    class AsyncStream(library.AsyncByteStream):  # type: ignore[misc, name-defined] # a class of httpx or httpx2
        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream, self._exchange = stream, exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with self._exchange.watched():
                async for piece in self._stream:
                    self._exchange.add(piece)
                    yield piece
            self._exchange.end()

        async def aclose(self) -> None:
            try:
                self._exchange.end(GeneratorExit())
            finally:
                await self._stream.aclose()

    return SyncStream, AsyncStream
