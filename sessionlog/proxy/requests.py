"""Requests of HTTP/1.1, read off a connection as strictly as a proxy has to (RFC 9112).

A request that the proxy and the server behind it could understand differently is refused, not mended: both a length and
chunks, two lengths, a length that is only for this connection, names with spaces, control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

PIECE = 64 << 10
"""Bytes of a body that are read at once, at most; what has come is never waited with."""

_MAX_LINE = 64 << 10
_MAX_HEADERS = 256
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(rb"[!-~]+")
_VERSION = re.compile(rb"HTTP/(\d)\.(\d)")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,15}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")

HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that are about one connection, not about the message (RFC 9110, 7.6.1)."""

OF_THE_MESSAGE = frozenset(
    {"content-encoding", "content-length", "content-type", "expect", "host", "transfer-encoding"}
)  # fmt: skip
"""Headers without which a message is read in another way: none may be dropped because `Connection` names it."""


RECORDED = "Sessionlog-Recorded"
"""The header of a request that a proxy of ours nearer to the client records."""


class RequestRefused(Exception):
    """A request that is not forwarded.

    Attributes:
        status: The status of the answer: 400, 431, 501, 505.
        reason: What is wrong, for the answer's body.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class ClientGone(ConnectionError):
    """The client closed its connection before the end of its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request without its body.

    Attributes:
        method: `POST`, …, as it was sent.
        target: The path and the query, as they were sent.
        headers: Names and values, in their order.
        length: Bytes of the body; None for one that comes in chunks.
        keeps_alive: Whether another request may follow on the connection.
        takes_chunks: Whether the client understands an answer in chunks, as those of HTTP/1.1 do.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    length: int | None
    keeps_alive: bool
    takes_chunks: bool

    def values(self, name: str) -> list[str]:
        """Return the values of a header; its name in lower case."""
        return [value for one, value in self.headers if one.lower() == name]

    def tokens(self, name: str) -> set[str]:
        """Return the members of a header that is a list, in lower case."""
        return {token.strip().lower() for value in self.values(name) for token in value.split(",")}

    @property
    def has_body(self) -> bool:
        """Whether anything follows the head."""
        return self.length != 0

    def forwarded_headers(self) -> list[tuple[str, str]]:
        """Return the headers for the next server, without those that are about this connection or that the proxy sets.

        The answer is asked for unpacked, because packed streams come in larger pieces and hide what is in them.
        """
        own = HOP_BY_HOP | self.tokens("connection") | {"host", "accept-encoding", "expect", RECORDED.lower()}
        return [*((name, value) for name, value in self.headers if name.lower() not in own), _UNPACKED]


_UNPACKED = ("Accept-Encoding", "identity")


def read_head(stream: BufferedReader) -> RequestHead | None:
    """Read a request up to its body; None if the client has closed the connection.

    Raises:
        RequestRefused: It is no request, or one that could be read in two ways.
    """
    line = _read_line(stream) or _read_line(stream)  # an empty line before a request is allowed
    if not line:
        return None
    method, target, minor = _request_line(line)
    headers = tuple(_read_headers(stream))
    head = RequestHead(method=method, target=target, headers=headers, length=0, keeps_alive=False, takes_chunks=False)
    asked = head.tokens("connection")
    if named := asked & OF_THE_MESSAGE:
        raise RequestRefused(400, f"the header {min(named)} is not about the connection")
    return RequestHead(
        method=method,
        target=target,
        headers=headers,
        length=_body_length(head),
        keeps_alive=minor > 0 and "close" not in asked,
        takes_chunks=minor > 0,
    )


def read_body(head: RequestHead, stream: BufferedReader) -> Iterator[bytes]:
    """Yield the pieces of a request's body as they come, without the framing of chunks.

    Raises:
        RequestRefused: A chunk has no size.
        ClientGone: The connection was closed before the end.
    """
    if head.length is not None:
        yield from _read_exactly(stream, head.length)
        return
    while size := _chunk_size(stream):
        yield from _read_exactly(stream, size)
        if _read_line(stream):
            raise RequestRefused(400, "a chunk is longer than its size")
    for _ in _read_headers(stream):  # trailers, which no server of models reads
        pass


def _request_line(line: bytes) -> tuple[str, str, int]:
    """Return method, target and the minor version of HTTP/1."""
    method, _, rest = line.partition(b" ")
    target, _, version = rest.partition(b" ")
    known = _VERSION.fullmatch(version)
    if not (_METHOD.fullmatch(method) and _TARGET.fullmatch(target) and known):
        raise RequestRefused(400, "this is no request of HTTP/1.1")
    if known[1] != b"1":
        raise RequestRefused(505, "only HTTP/1.1 is spoken here")
    return method.decode(), target.decode(), int(known[2])


def _read_headers(stream: BufferedReader) -> Iterator[tuple[str, str]]:
    for _ in range(_MAX_HEADERS):
        line = _read_line(stream)
        if line is None:
            raise ClientGone("the client closed the connection within a request")
        if not line:
            return
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not (colon and _METHOD.fullmatch(name) and _VALUE.fullmatch(value)):
            raise RequestRefused(400, "a header is no header")
        yield name.decode(), value.decode("latin-1")
    raise RequestRefused(431, f"there are more than {_MAX_HEADERS} headers")


def _body_length(head: RequestHead) -> int | None:
    codings, lengths = head.values("transfer-encoding"), head.values("content-length")
    if codings and lengths:
        raise RequestRefused(400, "a body has a length or chunks, not both")
    if codings:
        if [coding.lower() for coding in codings] != ["chunked"]:
            raise RequestRefused(501, "a body comes in chunks or with a length, in no other coding")
        return None
    if len(lengths) > 1 or not all(map(is_length, lengths)):
        raise RequestRefused(400, "the length of the body is no number")
    return int(lengths[0]) if lengths else 0


def is_length(text: str) -> bool:
    """Whether the value of `Content-Length` is one number."""
    return _LENGTH.fullmatch(text) is not None


def _chunk_size(stream: BufferedReader) -> int:
    line = _read_line(stream)
    if line is None:
        raise ClientGone("the client closed the connection within a body")
    size = line.partition(b";")[0].strip(b" \t")
    if not _SIZE.fullmatch(size):
        raise RequestRefused(400, "a chunk has no size")
    return int(size, 16)


def _read_exactly(stream: BufferedReader, count: int) -> Iterator[bytes]:
    while count:
        piece = stream.read1(min(count, PIECE))
        if not piece:
            raise ClientGone("the client closed the connection within a body")
        count -= len(piece)
        yield piece


def _read_line(stream: BufferedReader) -> bytes | None:
    """Return a line without its end; None at the end of the connection.

    Raises:
        RequestRefused: It is too long.
    """
    line = stream.readline(_MAX_LINE + 1)
    if not line.endswith(b"\n"):
        if len(line) > _MAX_LINE:
            raise RequestRefused(431, f"a line is longer than {_MAX_LINE} bytes")
        return None
    return line[:-1].removesuffix(b"\r")
