"""One client's connection to the proxy: its requests, one after another, each forwarded to the server of its route.

What comes is passed on at once, the pieces of a body and those of an answer. An answer is recorded before its last
bytes are passed on, so that the client's next request follows it in the log; reading it is bounded in bytes and time
(`integrations.http`), so that no answer is held up. Where the server breaks off, so does the proxy: a client never
reads the end of an answer that had none, and a server that is not there closes its connection.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from io import BufferedReader
from time import monotonic
from typing import Any

from sessionlog.integrations.http import MAX_BODY, Exchange
from sessionlog.proxy.recording import Recording, Unrecorded
from sessionlog.proxy.requests import (
    HOP_BY_HOP,
    OF_THE_MESSAGE,
    PIECE,
    ClientGone,
    RequestHead,
    RequestRefused,
    is_length,
    read_body,
    read_head,
)
from sessionlog.proxy.upstream import Connector, Upstream

DRAIN_BYTES = 8 << 20
"""Bytes of an answer that are read after its client has gone, for the usage at its end."""

FIRST_REQUEST_SECONDS = 10.0
"""How long a client may take for the head of its first request, which has the secret."""

_BODILESS = (204, 304)
_SWITCHING = 101
_LINE_END = re.compile(r"[\r\n]+")
_LINGER_SECONDS = 1.0
_LINGER_BYTES = 64 << 20


class Connection:
    """A client's connection, and those to the servers that it asks for.

    Args:
        client: The client's socket; `run` closes it.
        find: Returns the server of a request's target, and the path there; None for one that is not forwarded.
        connector: Makes the connections to servers.
        recording: Where requests to models are recorded.
    """

    def __init__(
        self,
        client: socket.socket,
        find: Callable[[str], tuple[Upstream, str] | None],
        connector: Connector,
        recording: Recording,
    ) -> None:
        self._client, self._find, self._connector, self._recording = client, find, connector, recording
        self._servers: dict[Upstream, HTTPConnection] = {}
        self._busy: socket.socket | None = None  # the server's, while a request is under way
        self._is_recorded = False
        self._opened_at = monotonic()
        self._is_authenticated = False
        self._left_at: float | None = None
        self._is_last = False

    def run(self) -> None:
        """Serve requests until one side closes its connection."""
        with self._client, self._client.makefile("rb") as stream, suppress(OSError):
            try:
                while not self._is_last and self._serve(stream):
                    pass
            except RequestRefused as refused:
                self._refuse(refused)
            finally:
                for server in self._servers.values():
                    server.close()

    @property
    def unauthenticated_seconds(self) -> float | None:
        """How long the client is connected without having sent the secret; None once it has, or has been cut off."""
        return None if self._is_authenticated or self._left_at is not None else monotonic() - self._opened_at

    def finish(self) -> None:
        """Serve no more requests than the one that is under way. From any thread."""
        self._is_last = True
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RD)
        if not self._is_recorded:
            self.abort()

    def abort(self) -> None:
        """Break off the request that is under way, as one that its client left. From any thread."""
        if self._left_at is None:
            self._left_at = monotonic()  # first: what the server's connection ends with is not the server's failure
        server = self._busy
        for one in (server, self._client):
            if one is not None:
                with suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)  # that of a TLS socket would confuse its reader

    def watch(self, drain_seconds: float) -> None:
        """Break off an answer so many seconds after its client has gone; at once if it is not recorded.

        A client that only ended its own side counts as gone as well: those of models never do. One that does not send
        the secret in time is cut off.
        """
        if (self.unauthenticated_seconds or 0.0) > FIRST_REQUEST_SECONDS:
            self.abort()
        if self._busy is None:
            return
        if self._left_at is None and _peek(self._client) == b"":
            self._left_at = monotonic()
        if self._left_at is not None and (not self._is_recorded or monotonic() - self._left_at > drain_seconds):
            self.abort()

    def _serve(self, stream: BufferedReader) -> bool:
        """Forward one request and its answer; return whether another request can follow."""
        head = read_head(stream)
        if head is None:
            return False
        began = monotonic()
        found = self._find(head.target)
        if found is None:
            raise RequestRefused(404, "there is no such route")
        self._is_authenticated = True
        if "websocket" in head.tokens("upgrade"):
            self._recording.refused.append(head.method)
            raise RequestRefused(426, "only HTTP/1.1 is recorded: use it without WebSocket")
        upstream, rest = found
        self._is_recorded = self._recording.is_recorded(head)
        try:
            server, body, failure = self._send(head, upstream, rest, stream)
            exchange = self._recording.begin(head, upstream.url(rest), body, began)
            return self._receive(head, server, exchange, failure)
        finally:
            self._busy = None

    def _send(
        self, head: RequestHead, upstream: Upstream, rest: str, stream: BufferedReader
    ) -> tuple[HTTPConnection | None, bytes, Exception | None]:
        """Forward a request; return the server's connection, the body if it is recorded, and what went wrong.

        The whole body is read even then: a server may answer before it has all of it.
        """
        server: HTTPConnection | None = None
        failure: Exception | None = None
        try:
            server = self._server(upstream)
            self._send_head(head, upstream, rest, server)
        except (OSError, HTTPException) as error:
            failure = error
        kept = bytearray()
        if "100-continue" in head.tokens("expect") and head.has_body:
            self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        for piece in read_body(head, stream):
            if self._is_recorded and len(kept) <= MAX_BODY:
                kept += piece
            failure = failure or _try_to_send(server, _chunk(piece) if head.length is None else piece)
        if head.length is None:
            failure = failure or _try_to_send(server, b"0\r\n\r\n")
        return server, bytes(kept), failure

    def _server(self, upstream: Upstream) -> HTTPConnection:
        """Return a connection to a server: the one of the last request if the server has not closed it."""
        server = self._servers.pop(upstream, None)
        if server is not None and (server.sock is None or _peek(server.sock) is not None):
            server.close()
            server = None
        if server is None:
            server = self._connector.connect(upstream)
            server.auto_open = 0  # a request is never sent twice
        self._servers[upstream] = server
        self._busy = server.sock
        return server

    def _send_head(self, head: RequestHead, upstream: Upstream, rest: str, server: HTTPConnection) -> None:
        target = self._connector.target(upstream, rest)
        server.putrequest(head.method, target, skip_host=True, skip_accept_encoding=True)
        server.putheader("Host", upstream.authority)
        for name, value in [*head.forwarded_headers(), *self._connector.proxy_headers(upstream)]:
            server.putheader(name, value)
        if head.length is None:
            server.putheader("Transfer-Encoding", "chunked")
        server.endheaders()

    def _receive(
        self,
        head: RequestHead,
        server: HTTPConnection | None,
        exchange: Exchange | Unrecorded,
        failure: Exception | None,
    ) -> bool:
        """Pass on the answer, if there is one, and record it; return whether another request can follow."""
        try:
            if server is None:
                raise failure or ConnectionError("no connection")
            pass_on = self._pass_on if head.takes_chunks else None  # those of HTTP/1.0 know no interim answers
            server.response_class = partial(_Answer, pass_on=pass_on)  # type: ignore[assignment] # called as a class is
            with closing(server.getresponse()) as response:
                return self._pass_answer(head, response, exchange)
        except (OSError, HTTPException) as error:
            if self._left_at is not None:
                exchange.end(GeneratorExit())
            else:
                exchange.fail(failure or _as_cut(error))
            if server is not None:
                server.close()
            return False

    def _pass_answer(self, head: RequestHead, response: HTTPResponse, exchange: Exchange | Unrecorded) -> bool:
        """Pass an answer on piece by piece; return whether another request can follow.

        When the client has gone, a recorded answer is read on: its end has the usage.
        """
        encoding = response.headers.get("content-encoding", "identity").lower()
        exchange.expect(response.status, response.headers.get("content-type", ""), encoding)
        has_body = head.method != "HEAD" and response.status not in _BODILESS
        is_open_ended = has_body and response.length is None
        in_chunks = is_open_ended and head.takes_chunks
        keeps_alive = head.keeps_alive and is_open_ended == in_chunks
        self._pass_on(_answer_head(response, is_open_ended=is_open_ended, in_chunks=in_chunks, keeps_alive=keeps_alive))
        drained = 0
        while piece := response.read1(PIECE):
            exchange.add(piece)
            if response.length == 0:
                exchange.end()
            if not self._pass_on(_chunk(piece) if in_chunks else piece):
                drained += len(piece)
                if drained > DRAIN_BYTES or not self._is_recorded:
                    raise ClientGone
        if response.length:
            raise IncompleteRead(b"", response.length)
        exchange.end(None if self._left_at is None else GeneratorExit())
        return (not in_chunks or self._pass_on(b"0\r\n\r\n")) and self._left_at is None and keeps_alive

    def _pass_on(self, data: bytes) -> bool:
        """Send bytes to the client; return whether it is still there."""
        if self._left_at is None:
            try:
                self._client.sendall(data)
            except OSError:
                self._left_at = monotonic()
        return self._left_at is None

    def _refuse(self, refused: RequestRefused) -> None:
        """Answer a request that is not forwarded, and close the connection once the client has read that."""
        body = f"sessionlog: {refused.reason}\n".encode()
        status = HTTPStatus(refused.status)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._client.sendall(head.encode() + body)
        self._client.shutdown(socket.SHUT_WR)
        self._client.settimeout(_LINGER_SECONDS)
        unread = _LINGER_BYTES
        while unread > 0 and (piece := self._client.recv(PIECE)):  # unread bytes would reset the connection
            unread -= len(piece)


class _Answer(HTTPResponse):
    """An answer of a server, read as far as its final status: http.client takes 102 and 103 for the answer itself.

    Interim answers are passed on as they come. That of 100 is not: the client was given its own, or never asked for it.

    Args:
        pass_on: Passes the head of an interim answer on; None for a client that must not get one.
    """

    def __init__(self, *args: Any, pass_on: Callable[[bytes], bool] | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pass_on = pass_on

    def begin(self) -> None:
        """Read the head.

        Raises:
            HTTPException: It is none, or one that the client could read in another way.
        """
        super().begin()
        while self.status < HTTPStatus.OK and self.status != _SWITCHING:
            if self._pass_on is not None:
                self._pass_on(_answer_head(self, is_open_ended=True, in_chunks=False, keeps_alive=True))
            self.headers = None  # type: ignore[assignment] # as before the first head: `begin` reads one then
            super().begin()
        lengths = {value.strip() for value in self.headers.get_all("content-length", ())}
        if len(lengths) > 1 or not all(map(is_length, lengths)):
            raise HTTPException("the length of the answer is no number")


def _answer_head(response: HTTPResponse, *, is_open_ended: bool, in_chunks: bool, keeps_alive: bool) -> bytes:
    """Return the head of an answer as the server sent it, but for what is about the connection."""
    named = {name.strip().lower() for value in response.headers.get_all("connection", ()) for name in value.split(",")}
    own = HOP_BY_HOP | (named - OF_THE_MESSAGE) | {"content-length"}
    lines = [f"HTTP/1.1 {response.status} {_one_line(response.reason)}"]
    lines += [f"{name}: {_one_line(value)}" for name, value in response.getheaders() if name.lower() not in own]
    if in_chunks:
        lines.append("Transfer-Encoding: chunked")
    elif not is_open_ended and (length := response.headers.get("content-length")):
        lines.append(f"Content-Length: {length.strip()}")
    if not keeps_alive:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _one_line(text: str) -> str:
    """Return a value without the ends of lines that a server has folded it with, which begin another header."""
    return _LINE_END.sub(" ", text)


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _try_to_send(server: HTTPConnection | None, data: bytes) -> Exception | None:
    try:
        if server is not None:
            server.send(data)
    except OSError as error:
        return error
    return None


def _as_cut(error: Exception) -> Exception:
    """Return an error as people read it: one of http.client's counts bytes."""
    if isinstance(error, IncompleteRead):
        return ConnectionResetError("the server closed the connection within its answer")
    return error


def _peek(sock: socket.socket) -> bytes | None:
    """Return the first byte that has come and was not read; empty at the connection's end, None if there is none."""
    try:
        return socket.socket.recv(sock, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""
