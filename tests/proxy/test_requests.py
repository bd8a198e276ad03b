"""`proxy.requests`: what a request is, and what is refused because two readers could understand it differently."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.proxy.requests import ClientGone, RequestRefused, read_body, read_head

HEAD = b"POST /s/r HTTP/1.1\r\nHost: x\r\n"


def read(raw):
    """(head, body, what follows) of bytes that are a request."""
    stream = io.BufferedReader(io.BytesIO(raw))
    head = read_head(stream)
    return head, b"".join(read_body(head, stream)), stream.read()


def test_a_request_with_a_length():
    """What follows is the next request's."""
    head, body, rest = read(b"\r\n" + HEAD + b"X-A:  1 \r\nx-a: \xfc\r\nContent-Length: 3\r\n\r\nabcGET")
    assert (head.method, head.target, head.length, head.keeps_alive) == ("POST", "/s/r", 3, True)
    assert head.headers == (("Host", "x"), ("X-A", "1"), ("x-a", "ü"), ("Content-Length", "3"))
    assert (body, rest) == (b"abc", b"GET")
    assert head.forwarded_headers()[-1] == ("Accept-Encoding", "identity")


def test_a_request_in_chunks():
    """With extensions and trailers, which are dropped."""
    sent = b'3;a="b"\r\nabc\r\n00A\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET'
    head, body, rest = read(HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + sent)
    assert (head.length, body, rest) == (None, b"abc0123456789", b"GET")


@pytest.mark.parametrize(("line", "keeps_alive", "takes_chunks"), [
    (b"GET / HTTP/1.1\r\n", True, True), (b"GET / HTTP/1.0\r\n", False, False),
    (b"GET / HTTP/1.1\r\nConnection: x, Close\r\n", False, True), (b"GET / HTTP/1.1\n", True, True),
])  # fmt: skip
def test_how_long_a_connection_lives(line, keeps_alive, takes_chunks):
    """As the client's version and headers have it."""
    head, body, _ = read(line + b"\r\n")
    assert (head.keeps_alive, head.takes_chunks, head.length, body) == (keeps_alive, takes_chunks, 0, b"")


@pytest.mark.parametrize(("raw", "status"), [
    (b"GET /\r\n\r\n", 400), (b"GET  / HTTP/1.1\r\n\r\n", 400), (b"GET / x HTTP/1.1\r\n\r\n", 400),
    (b"PRI * HTTP/2.0\r\n\r\n", 505), (b"GET / HTTP/11\r\n\r\n", 400), (b"G(T / HTTP/1.1\r\n\r\n", 400),
    (b"GET /\xff HTTP/1.1\r\n\r\n", 400), (b"GET /\x00 HTTP/1.1\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\n\n", 400),
    (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 431), (HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    (HEAD + b"X: 1\r\n" * 300 + b"\r\n", 431), (HEAD + b"X : 1\r\n\r\n", 400), (HEAD + b" folded\r\n\r\n", 400),
    (HEAD + b"X: a\x00b\r\n\r\n", 400), (HEAD + b"X: a\rb: c\r\n\r\n", 400), (HEAD + b"no colon\r\n\r\n", 400),
    (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400), (HEAD + b"Content-Length: -1\r\n\r\n", 400),
    (HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400), (HEAD + b"Content-Length: +3\r\n\r\n", 400),
    (HEAD + b"Content-Length: 3, 3\r\n\r\n", 400), (HEAD + b"Content-Length: 9999999999999999\r\n\r\n", 400),
    (HEAD + b"Content-Length:\r\n\r\n", 400), (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501), (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400), (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400), (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", 400),
    (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400), (HEAD + b"X: a\r\n folded: b\r\n\r\n", 400),
    (HEAD + b"X: a\r\r\n\r\n", 400), (HEAD + b"Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", 400),
    (HEAD + b"Connection: close\r\nConnection: te, host\r\n\r\n", 400),
    (HEAD + b"Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
], ids=range(37))  # fmt: skip
def test_what_could_be_read_in_two_ways_is_refused(raw, status):
    """With the status that is its own."""
    with pytest.raises(RequestRefused) as refused:
        read(raw)
    assert refused.value.status == status


@pytest.mark.parametrize("raw", [
    HEAD, HEAD + b"Content-Length: 3\r\n\r\nab", HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
])  # fmt: skip
def test_a_client_may_leave_anywhere(raw):
    """That is no request."""
    with pytest.raises(ClientGone):
        read(raw)


@pytest.mark.parametrize("raw", [b"", b"\r\n", b"GET / HT"])
def test_a_client_may_leave_before_a_request(raw):
    """Then there is none."""
    assert read_head(io.BufferedReader(io.BytesIO(raw))) is None


@given(st.lists(st.sampled_from([HEAD, b"\r\n", b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n", b"1\r\na\r\n", b"0\r\n"])
                | st.binary(max_size=6)))  # fmt: skip
def test_any_bytes_are_a_request_or_refused(pieces):
    """Nothing else is raised."""
    stream = io.BufferedReader(io.BytesIO(b"".join(pieces)))
    try:
        head = read_head(stream)
        body = b"" if head is None else b"".join(read_body(head, stream))
    except (RequestRefused, ClientGone):
        return
    assert head is None or head.length is None or len(body) == head.length
