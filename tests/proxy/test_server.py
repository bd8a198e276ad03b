"""`proxy.server` and `proxy.connection`: what passes, what is recorded, and what a client gets when something breaks."""

import gzip
import json
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected

import anthropic
import openai
import pytest

from sessionlog import aggregate_usage, check_logs
from sessionlog.proxy.connection import Connection
from tests.integrations import wire
from tests.proxy.stub import ASKED, CHAT, CHAT_ASKED, JSON, MESSAGES, SSE, Proxied

EVENTS = [wire.sse(event, named=True) for event in wire.MESSAGE_EVENTS]
TEXT = next(number for number, event in enumerate(EVENTS, start=1) if b"Let me " in event)


def stream(handler, events=EVENTS):
    """A whole answer in server-sent events."""
    handler.begin()
    for event in [*events, b""]:
        handler.piece(event)


@pytest.mark.parametrize("name", wire.FORMATS)
def test_each_format_is_recorded(provider, proxied, name, tmp_path):
    """The client gets each byte, the log text, call, tokens, model and the provider's id of the answer."""
    address, sent, answer, is_stream = wire.FORMATS[name]
    path = "/" + address.split("/", 3)[3]
    provider.answer = lambda handler: stream(handler, [answer]) if is_stream else handler.reply(answer)
    assert proxied.post(path, sent) == (200, answer)
    [(_, asked, _, body)] = provider.requests
    assert (asked, json.loads(body)) == (path, sent)
    [data] = proxied.responses()
    assert data["content"] == "Let me look."
    assert data["tool_calls"][0]["name"] == "read"
    assert data["response_id"] in ("chatcmpl-1", "resp_1", "msg_1", "r1")
    assert "partial" not in data
    [row] = aggregate_usage(tmp_path).rows
    written = 7 if "messages" in name else 0
    counts = (row.input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.output_tokens)
    assert (row.requests, *counts) == (1, 40, 60, written, 20)
    assert [check.damage for check in check_logs(tmp_path)] == [()]


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "DELETE", "POST", "HEAD"])
def test_other_requests_pass_and_are_not_recorded(provider, proxied, method):
    """Lists of models, files, counts of tokens: with their query, headers, status and body."""
    provider.answer = lambda handler: handler.reply(b"\x00\xffrest", 207, {"X-One": "1", "Set-Cookie": "a=b"})
    with proxied.connection() as connection:
        connection.request(method, f"{proxied.path}/v1/files?a=%20&key=x", b"part", {"X-Mine": "ü".encode()})
        response = connection.getresponse()
        assert (response.status, response.getheader("x-one"), response.getheader("set-cookie")) == (207, "1", "a=b")
        assert response.read() == (b"" if method == "HEAD" else b"\x00\xffrest")
        assert response.getheader("content-length") == "6"
    [(asked, path, headers, body)] = provider.requests
    assert (asked, path, body) == (method, "/v1/files?a=%20&key=x", b"part")
    assert headers["x-mine"].encode("latin-1") == "ü".encode()
    assert proxied.responses() == []


def test_headers_about_a_connection_stay_on_it(provider, proxied):
    """The server is asked for an unpacked answer under its own name; the rest arrives as it was sent."""
    sent = {
        **JSON, "Connection": "keep-alive, x-hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "TE": "trailers",
        "Proxy-Authorization": "Basic eA==", "Accept-Encoding": "gzip, br;q=0.5", "Authorization": "Bearer k",
        "anthropic-beta": "one,two",
    }  # fmt: skip
    provider.answer = lambda handler: handler.reply(
        wire.MESSAGE, headers={**JSON, "Connection": "x-secret", "X-Secret": "1", "Keep-Alive": "x", "request-id": "r"}
    )
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), sent)
        response = connection.getresponse()
        response.read()
        assert {name.lower() for name, _ in response.getheaders()}.isdisjoint({"x-secret", "keep-alive", "connection"})
        assert response.getheader("request-id") == "r"
    [(_, _, headers, _)] = provider.requests
    kept = {name.lower(): value for name, value in headers.items()}
    assert {"x-hop", "keep-alive", "te", "proxy-authorization", "connection"}.isdisjoint(kept)
    assert kept["host"] == provider.url.removeprefix("http://")
    assert kept["accept-encoding"] == "identity"
    assert (kept["authorization"], kept["anthropic-beta"]) == ("Bearer k", "one,two")


def test_a_stream_passes_piece_by_piece(provider, proxied):
    """The server sends the next piece only after the client has the last one: with a buffer between, none would come."""
    seen = threading.Event()

    def answer(handler):
        handler.begin()
        for event in EVENTS:
            seen.clear()
            handler.piece(event)
            assert seen.wait(10), "the piece did not reach the client"
        handler.piece(b"")

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        response = connection.getresponse()
        assert response.getheader("content-type") == SSE["Content-Type"]
        for event in EVENTS:
            assert response.read1(65536) == event
            seen.set()
        assert response.read1(65536) == b""
    [data] = proxied.responses()
    assert 0 < data["time_to_first_token_ms"] <= data["latency_ms"]
    assert "partial" not in data


def test_an_answer_is_in_the_log_before_its_client_can_ask_again(provider, proxied):
    """With its last event, though the end of the body is still to come: what is asked next follows it."""
    go_on = threading.Event()

    def answer(handler):
        handler.begin()
        handler.piece(b"".join(EVENTS))
        assert go_on.wait(10)
        handler.piece(b"")

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        connection.getresponse().read1(1 << 20)
        assert [kind for kind, _ in proxied.events()][-1] == "llm.response"
        go_on.set()


@pytest.mark.parametrize("name", ["messages", "gemini list", "chat stream"])
def test_an_answer_is_recorded_before_its_last_bytes_pass(provider, proxied, monkeypatch, name):
    """Whether these are the last of a known length or the end of chunks."""
    address, sent, answer, is_stream = wire.FORMATS[name]
    provider.answer = lambda handler: stream(handler, [answer]) if is_stream else handler.reply(answer)
    pass_on, recorded = Connection._pass_on, []

    def watched(self, data):
        recorded.append(proxied.log.totals.responses)
        return pass_on(self, data)

    monkeypatch.setattr(Connection, "_pass_on", watched)
    assert proxied.post("/" + address.split("/", 3)[3], sent) == (200, answer)
    assert (recorded[0], recorded[-1]) == (0, 1)


@pytest.mark.parametrize("status", [400, 401, 413, 429, 500, 529])
def test_an_error_passes_as_it_is(provider, proxied, status):
    """And is recorded as a failed request."""
    error = {"type": "error", "error": {"type": "some_error", "message": "No."}}
    provider.answer = lambda handler: handler.reply(error, status, {**JSON, "retry-after": "7"})
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        response = connection.getresponse()
        assert (response.status, response.getheader("retry-after")) == (status, "7")
        assert json.loads(response.read()) == error
    [data] = proxied.responses()
    assert data["error"] == f"{status} some_error: No."


@pytest.mark.parametrize(("upstream", "error"), [
    ("http://127.0.0.1:{closed}", "ConnectionRefusedError"), ("http://no-such-host.invalid", "gaierror"),
    (f"http://{'x' * 70}.invalid", "OSError"), ("https://127.0.0.1:{open}", "SSLError"),
])  # fmt: skip
def test_a_server_that_is_not_there_closes_the_connection(provider, tmp_path, monkeypatch, upstream, error):
    """The client has an error of the connection, no answer that the provider never gave."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        ports = {"closed": closed.getsockname()[1], "open": provider.server.server_port}
    find = socket.getaddrinfo

    def getaddrinfo(host, *rest, **more):
        if host == "no-such-host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return find(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    proxied = Proxied(tmp_path, upstream.format(**ports))
    with pytest.raises(RemoteDisconnected):
        proxied.post()
    [data] = proxied.responses()
    assert data["error"].startswith(f"{error}: ")
    assert [kind for kind, _ in proxied.events()] == ["session.start", "llm.request", "llm.response", "session.end"]


def test_a_stream_that_the_server_cuts_is_cut(provider, proxied):
    """Never ended cleanly; what came counts, with the error."""

    def answer(handler):
        handler.begin()
        for event in EVENTS[:TEXT]:
            handler.piece(event)
        handler.cut()

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        with pytest.raises(IncompleteRead):
            connection.getresponse().read()
    [data] = proxied.responses()
    assert data["error"] == "ConnectionResetError: the server closed the connection within its answer"
    assert (data["partial"], data["content"]) == ("failed", "Let me ")
    assert data["usage"]["cache_read"] == 60


def test_a_body_that_is_shorter_than_its_length_is_cut(provider, proxied):
    """The client reads that bytes are missing."""
    provider.answer = lambda handler: (handler.reply(b"{}", headers={"Content-Length": "99"}), handler.cut())
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        with pytest.raises(IncompleteRead):
            connection.getresponse().read()
    [data] = proxied.responses()
    assert "within its answer" in data["error"]


def test_a_connection_that_is_reset_is_an_error(provider, proxied):
    """Before any answer."""

    def answer(handler):
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.cut()

    provider.answer = answer
    with pytest.raises((RemoteDisconnected, ConnectionResetError)):
        proxied.post()
    [data] = proxied.responses()
    assert data["error"].startswith(("ConnectionResetError", "RemoteDisconnected"))


def test_the_sdks_of_providers_work_behind_it(provider, proxied):
    """Plain and streamed; a server that is not there is the error of a connection for both."""
    mine = {"api_key": "k", "max_retries": 0}
    provider.answer = stream
    with (
        anthropic.Anthropic(base_url=proxied.url, **mine) as client,
        client.messages.stream(model="claude-haiku-4-5", max_tokens=9, messages=[wire.ASKED]) as streamed,
    ):
        assert "".join(streamed.text_stream) == "Let me look."
        assert streamed.get_final_message().usage.cache_read_input_tokens == 60
    provider.answer = lambda handler: handler.reply(wire.RESPONSE)
    with openai.OpenAI(base_url=f"{proxied.url}/v1", **mine) as client:
        assert client.responses.create(model="gpt-5", input="What does a.py do?").output_text == "Let me look."
    provider.answer = lambda handler: handler.cut()
    with anthropic.Anthropic(base_url=proxied.url, **mine) as client, pytest.raises(anthropic.APIConnectionError):
        client.messages.create(model="claude-haiku-4-5", max_tokens=9, messages=[wire.ASKED])
    with openai.OpenAI(base_url=f"{proxied.url}/v1", **mine) as client, pytest.raises(openai.APIConnectionError):
        client.responses.create(model="gpt-5", input="x")
    assert [data.get("content") for data in proxied.responses()] == ["Let me look."] * 2 + [None] * 2


def leave(proxied, until=b"Let me "):
    """Send a request, read the answer as far as a text, and close the connection."""
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        response, seen = connection.getresponse(), b""
        while until not in seen:
            seen += response.read1(65536)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # as a kill does


def test_an_answer_is_read_on_when_its_client_has_gone(provider, proxied):
    """The usage at its end is recorded; it is whole, so nothing marks it partial."""
    has_left = threading.Event()

    def answer(handler):
        handler.begin()
        for number, event in enumerate(EVENTS, start=1):
            handler.piece(event)
            assert number < TEXT or has_left.wait(10)
        handler.piece(b"")

    provider.answer = answer
    leave(proxied)
    has_left.set()
    [data] = proxied.responses()
    assert (data["content"], data["usage"]["output"]) == ("Let me look.", 20)
    assert "partial" not in data
    assert "error" not in data


def test_reading_on_has_an_end(provider, tmp_path):
    """An answer that does not come in time counts as far as it came, and its connection is closed."""
    proxied = Proxied(tmp_path, provider.url, drain_seconds=0.04)
    is_gone = threading.Event()

    def answer(handler):
        handler.begin()
        for event in EVENTS[:TEXT]:
            handler.piece(event)
        handler.connection.settimeout(10)
        assert handler.connection.recv(1) == b""
        is_gone.set()
        handler.cut()

    provider.answer = answer
    leave(proxied)
    assert is_gone.wait(10)
    [data] = proxied.responses()
    assert (data["partial"], data["content"], data["usage"]["cache_read"]) == ("cancelled", "Let me ", 60)
    assert "error" not in data


def test_a_request_that_the_proxy_breaks_off_at_its_end_is_cancelled(provider, proxied):
    """The server has not failed: the command ended before an answer began."""
    has_come, may_go = threading.Event(), threading.Event()

    def answer(handler):
        has_come.set()
        may_go.wait(10)
        handler.cut()

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        assert has_come.wait(10)
        proxied.server.close()
    may_go.set()
    [data] = proxied.responses()
    assert data["partial"] == "cancelled"
    assert "error" not in data


def test_reading_on_is_bounded_in_bytes(provider, tmp_path, monkeypatch):
    """A server that never stops is left."""
    monkeypatch.setattr("sessionlog.proxy.connection.DRAIN_BYTES", 1 << 16)
    proxied = Proxied(tmp_path, provider.url)
    is_gone = threading.Event()

    def answer(handler):
        handler.begin()
        handler.piece(b"".join(EVENTS[:TEXT]))
        try:
            while True:
                handler.piece(b": filling\n" * 1000 + b"\n")
        except OSError:
            is_gone.set()
            handler.cut()

    provider.answer = answer
    leave(proxied)
    assert is_gone.wait(10)
    [data] = proxied.responses()
    assert data["partial"] == "cancelled"


def test_nothing_is_read_on_that_is_not_recorded(provider, tmp_path):
    """The server's connection is closed as soon as that is noticed."""
    proxied = Proxied(tmp_path, provider.url, drain_seconds=0.04)
    is_gone = threading.Event()

    def answer(handler):
        handler.begin()
        handler.connection.settimeout(10)
        assert handler.connection.recv(1) == b""
        is_gone.set()
        handler.cut()

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("GET", f"{proxied.path}/v1/events")
        connection.getresponse()
    assert is_gone.wait(10)
    proxied.close()


def test_a_run_that_ends_does_not_wait_for_answers_without_end(provider, proxied):
    """What has come of them is recorded."""
    go_on = threading.Event()

    def answer(handler):
        handler.begin()
        handler.piece(b"".join(EVENTS[:TEXT]))
        go_on.wait(10)

    provider.answer = answer
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
        connection.getresponse().read1(65536)
        began = time.monotonic()
        proxied.close(0.05)
        assert time.monotonic() - began < 5
        go_on.set()
    [data] = proxied.responses()
    assert data["content"] == "Let me "
    assert "partial" in data


def test_many_requests_at_once(provider, proxied, tmp_path):
    """Fifty clients, each with three requests on its connection: nothing lost, nothing mixed."""
    provider.answer = lambda handler: handler.reply(
        {**wire.CHAT, "id": json.loads(provider_body(handler))["user"], "model": "gpt-5"}
    )
    provider_body = lambda handler: next(  # noqa: E731
        body for _, path, headers, body in provider.requests if headers is handler.headers
    )

    def client(number):
        got = []
        with proxied.connection() as connection:
            for turn in range(3):
                name = f"c{number}-{turn}"
                connection.request("POST", f"{proxied.path}{CHAT}", json.dumps({**CHAT_ASKED, "user": name}), JSON)
                got.append(json.loads(connection.getresponse().read())["id"] == name)
        return all(got)

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(client, range(50)))
    assert provider.connections == 50
    ids = [data["response_id"] for data in proxied.responses()]
    assert sorted(ids) == sorted(f"c{number}-{turn}" for number in range(50) for turn in range(3))
    assert aggregate_usage(tmp_path).totals.requests == 150


def test_a_connection_serves_one_request_after_another(provider, proxied):
    """On one connection to the server as well; a server that closes its own gets a new one."""
    with proxied.connection() as connection:
        for number in range(4):
            if number == 2:
                provider.answer = lambda handler: (handler.reply(wire.MESSAGE), handler.cut())
            connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED), JSON)
            assert connection.getresponse().read()
            time.sleep(0.01 * (number == 2))  # the server's close is on its way
    assert provider.connections == 2
    assert len(proxied.responses()) == 4


def test_a_client_that_waits_for_permission_gets_it(provider, proxied):
    """`Expect: 100-continue` is answered before the body; the server is not asked."""
    body = json.dumps(ASKED).encode()
    with proxied.socket() as client:
        head = (
            f"POST {proxied.path}{MESSAGES} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        client.sendall(head.encode())
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert client.makefile("rb").read().startswith(b"HTTP/1.1 200 OK\r\n")
    [(_, _, headers, received)] = provider.requests
    assert received == body
    assert headers["expect"] is None


@pytest.mark.parametrize("in_chunks", [False, True], ids=["length", "chunks"])
def test_a_large_body_passes(provider, proxied, tmp_path, in_chunks):
    """20 MB, and it is recorded."""
    text = "x" * (20 << 20)
    sent = json.dumps({**ASKED, "messages": [{"role": "user", "content": text}]}).encode()
    pieces = (sent[at : at + 300_000] for at in range(0, len(sent), 300_000)) if in_chunks else sent
    with proxied.connection() as connection:
        connection.request("POST", f"{proxied.path}{MESSAGES}", pieces, JSON, encode_chunked=in_chunks)
        assert connection.getresponse().status == 200
    [(_, _, headers, body)] = provider.requests
    assert body == sent
    assert headers["transfer-encoding"] == ("chunked" if in_chunks else None)
    proxied.close()
    assert text.encode() in (tmp_path / "s.jsonl").read_bytes()


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_packed_request_is_recorded(provider, proxied, packing):
    """It arrives packed."""
    sent = json.dumps(ASKED).encode()
    packed = gzip.compress(sent) if packing == "gzip" else zstd_compress(sent)
    proxied.post(body=packed, headers={**JSON, "Content-Encoding": packing})
    assert provider.requests[0][3] == packed
    assert len(proxied.responses()) == 1
    assert proxied.events()[1][1]["messages"] == [wire.ASKED]


def zstd_compress(data):
    """Pack as Codex does."""
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd.compress(data)


def test_an_answer_that_is_packed_all_the_same_is_read(provider, proxied):
    """A server may ignore what it was asked; the client gets the packed bytes."""
    packed = gzip.compress(json.dumps(wire.MESSAGE).encode())
    provider.answer = lambda handler: handler.reply(packed, headers={**JSON, "Content-Encoding": "gzip"})
    assert proxied.post() == (200, packed)
    [data] = proxied.responses()
    assert data["content"] == "Let me look."


def test_a_body_of_unknown_form_passes(provider, proxied):
    """It is counted as an error of ours; the answer is recorded."""
    assert proxied.post(body=b"\xff not json")[0] == 200
    assert proxied.post(body=b"[1]")[0] == 200
    proxied.close()
    assert [kind for kind, _ in proxied.events()].count("llm.response") == 2


def test_an_answer_of_unknown_length_passes_until_its_end(provider, proxied):
    """In chunks to clients that understand them, else up to the end of the connection."""

    def answer(handler):
        handler.begin(headers=JSON, chunked=False)
        handler.wfile.write(json.dumps(wire.MESSAGE).encode())
        handler.cut()

    provider.answer = answer
    assert json.loads(proxied.post()[1]) == wire.MESSAGE
    with proxied.socket() as client:
        body = json.dumps(ASKED).encode()
        client.sendall(f"POST {proxied.path}{MESSAGES} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        head, _, rest = client.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert json.loads(rest) == wire.MESSAGE
    assert len(proxied.responses()) == 2


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body(provider, proxied, status):
    """The connection goes on."""
    provider.answer = lambda handler: (handler.send_response(status), handler.end_headers())
    with proxied.connection() as connection:
        for _ in range(2):
            connection.request("GET", f"{proxied.path}/v1/models")
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")
    assert provider.connections == 1


def raw_answer(*lines, body=b"{}"):
    """An answer of these lines, which the library of the stub would not send."""
    return lambda handler: handler.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


def exchange_raw(proxied, method="POST", path=MESSAGES, version="1.1"):
    """Send a request; return the bytes of its whole answer."""
    body = json.dumps(ASKED)
    head = f"{method} {proxied.path}{path} HTTP/{version}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with proxied.socket() as client:
        client.sendall(f"{head}{body}".encode())
        return client.makefile("rb").read()


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_an_interim_answer_is_not_the_answer(provider, proxied, status):
    """It passes at once, without what is about the connection; 100 was given or not asked for. The connection goes on."""
    has_passed = threading.Event()

    def answer(handler):
        interim = raw_answer(f"HTTP/1.1 {status} Wait", "Link: </a>", "Connection: x-hop", "X-Hop: 1", body=b"")
        interim(handler)
        interim(handler)
        assert status == 100 or has_passed.wait(10)
        handler.reply(wire.MESSAGE)

    provider.answer = answer
    interim = f"HTTP/1.1 {status} Wait\r\nLink: </a>\r\n\r\n".encode() * 2 * (status != 100)
    with proxied.socket() as client:
        stream = client.makefile("rb")
        for _ in range(2):
            body = json.dumps(ASKED)
            client.sendall(
                f"POST {proxied.path}{MESSAGES} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            assert stream.read(len(interim)) == interim
            has_passed.set()
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
            rest = b"".join(iter(stream.readline, b"\r\n"))
            length = len(json.dumps(wire.MESSAGE))
            assert f"Content-Length: {length}\r\n".encode() in rest
            assert json.loads(stream.read(length)) == wire.MESSAGE
    assert provider.connections == 1
    assert [data["content"] for data in proxied.responses()] == ["Let me look."] * 2


def test_a_client_of_http_1_0_gets_no_interim_answer(provider, proxied):
    """It would take it for the answer."""
    provider.answer = lambda handler: (raw_answer("HTTP/1.1 103 Hints", body=b"")(handler), handler.reply(wire.MESSAGE))
    assert exchange_raw(proxied, version="1.0").startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("lines", [
    ["Connection: content-length, content-type", "Content-Type: application/json", "Content-Length: 2"],
    ["Content-Length: 2", "Content-Length: 2"], ["Content-Length:  2 \t"], ["Connection: x", "Connection: X-Hop", "X-Hop: 1", "Content-Length: 2"],
])  # fmt: skip
def test_an_answer_has_its_length_once(provider, proxied, lines):
    """Whatever its server counts among the headers of the connection, and in however many lines it has sent it."""
    provider.answer = raw_answer("HTTP/1.1 200 OK", *lines)
    head, _, body = exchange_raw(proxied).partition(b"\r\n\r\n")
    assert (head.count(b"Content-Length: 2"), body) == (1, b"{}")
    assert (b"Content-Type: application/json" in head) is ("Content-Type: application/json" in lines)
    assert b"hop" not in head.lower()


@pytest.mark.parametrize("lines", [
    ["Content-Length: 2", "Content-Length: 3"], ["Content-Length: 2, 2"], ["Content-Length: +2"], ["Content-Length:"],
    ["Transfer-Encoding: chunked", "Content-Length: 2", "Content-Length: 3"],
])  # fmt: skip
def test_an_answer_whose_length_could_be_read_in_two_ways_is_none(provider, proxied, lines):
    """The connection is closed, as for a server that broke off, and the log has the reason."""
    provider.answer = raw_answer("HTTP/1.1 200 OK", *lines)
    assert exchange_raw(proxied) == b""
    [data] = proxied.responses()
    assert data["error"] == "HTTPException: the length of the answer is no number"


def test_no_end_of_a_line_within_an_answers_head_is_passed_on(provider, proxied):
    """Neither in a reason nor in a folded value, where some readers find another header; other characters stay."""
    provider.answer = raw_answer("HTTP/1.1 200 O\rX-A: 1", "X-B: \xc3\x85 one\r\n two", "Content-Length: 2")
    head, _, body = exchange_raw(proxied).partition(b"\r\n\r\n")
    lines = [b"HTTP/1.1 200 O X-A: 1", b"X-B: \xc3\x85 one  two", b"Content-Length: 2", b"Connection: close"]
    assert (head.split(b"\r\n"), body) == (lines, b"{}")


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Host", "content-encoding"])
def test_a_header_of_the_message_is_not_dropped_for_the_connection(provider, proxied, name):
    """Without its length the body would be read as the next request, which the proxy has not seen."""
    hidden = "GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
    head = (
        f"POST {proxied.path}{MESSAGES} HTTP/1.1\r\nHost: x\r\nConnection: x, {name}\r\nContent-Length: {len(hidden)}"
    )
    assert refused(proxied, f"{head}\r\n\r\n{hidden}".encode()) == 400
    assert provider.requests == []


def refused(proxied, raw):
    """Send bytes; return the status of the answer, None for none."""
    with proxied.socket() as client:
        client.sendall(raw)
        client.shutdown(socket.SHUT_WR)
        answer = client.makefile("rb").read()
    return int(answer.split()[1]) if answer else None


@pytest.mark.parametrize("path", [
    "/v1/messages", "/", "*", "/wrong/api/v1/messages", "/{secret}", "/{secret}/", "/{secret}/other/v1/messages",
    "/api/v1/messages", "http://127.0.0.1/{secret}/api/v1/messages", "//{secret}/api/v1/messages", "/{secret}%2Fapi/x",
])  # fmt: skip
def test_without_the_secret_nothing_is_forwarded(provider, proxied, path):
    """Other users of the machine can reach the port, and no more."""
    secret = proxied.path.split("/")[1]
    assert refused(proxied, f"POST {path.format(secret=secret)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) == 404
    assert provider.requests == []


@pytest.mark.parametrize("at", [0, 7, 8, 15, 16, 31])
def test_the_whole_secret_is_compared(provider, proxied, at):
    """With one other character it is another one, wherever that is; so is a part of it, or one that is longer."""
    secret = proxied.path.split("/")[1]
    other = "0" if secret[at] != "0" else "1"
    for wrong in (f"{secret[:at]}{other}{secret[at + 1 :]}", secret[: at + 1] if at < 31 else f"{secret}0"):
        assert refused(proxied, f"GET /{wrong}/api/v1/models HTTP/1.1\r\nHost: x\r\n\r\n".encode()) == 404
    assert provider.requests == []


@pytest.mark.parametrize("begun", [b"", b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "within a head"])
def test_a_client_without_the_secret_is_cut_off_in_time(provider, tmp_path, monkeypatch, begun):
    """But a connection whose requests had it may be idle for as long as it likes."""
    monkeypatch.setattr("sessionlog.proxy.connection.FIRST_REQUEST_SECONDS", 0.1)
    proxied = Proxied(tmp_path, provider.url, drain_seconds=0.04)
    with proxied.connection() as known, proxied.socket() as silent:
        known.request("GET", f"{proxied.path}/v1/models")
        known.getresponse().read()
        silent.sendall(begun)
        assert silent.recv(1) == b""
        known.request("POST", proxied.path + MESSAGES, json.dumps(ASKED), JSON)
        assert known.getresponse().read() == json.dumps(wire.MESSAGE).encode()
    assert len(proxied.responses()) == 1


def test_idle_connections_do_not_keep_the_command_out(provider, proxied, monkeypatch):
    """Of those without the secret the oldest is closed for each new one; those with it stay."""
    monkeypatch.setattr("sessionlog.proxy.server._MAX_UNAUTHENTICATED", 4)
    monkeypatch.setattr("sessionlog.proxy.server._UNAUTHENTICATED_SECONDS", 0.01)
    with proxied.connection() as known, ExitStack() as opened:
        known.request("GET", f"{proxied.path}/v1/models")
        known.getresponse().read()
        idle = [opened.enter_context(proxied.socket()) for _ in range(20)]
        assert proxied.post()[0] == 200
        assert [one.recv(1) for one in idle[:16]] == [b""] * 16
        known.request("GET", f"{proxied.path}/v1/models")
        assert known.getresponse().status == 200
    assert len(proxied.responses()) == 1


def test_a_burst_of_connections_is_served_whole(provider, proxied, monkeypatch):
    """A program that opens more connections than may be without the secret, and then sends on all, loses none."""
    monkeypatch.setattr("sessionlog.proxy.server._MAX_UNAUTHENTICATED", 4)
    monkeypatch.setattr("sessionlog.proxy.server._UNAUTHENTICATED_SECONDS", 10)
    with ExitStack() as opened:
        connections = [opened.enter_context(proxied.connection()) for _ in range(20)]
        for connection in connections:
            connection.connect()
        for connection in connections:
            connection.request("GET", f"{proxied.path}/v1/models")
        assert [connection.getresponse().status for connection in connections] == [200] * 20


def test_a_websocket_is_refused_as_clients_expect_it(provider, proxied):
    """426: they go on with HTTP; it is counted. An offer of HTTP/2, as Java's client makes, is passed over."""
    head = f"GET {proxied.path}/v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "
    assert refused(proxied, f"{head}websocket\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()) == 426
    assert proxied.recording.refused == ["GET"]
    assert provider.requests == []
    assert refused(proxied, f"{head}h2c\r\n\r\n".encode()) == 200
    assert provider.requests[0][2]["upgrade"] is None


@pytest.mark.parametrize("prefix", ["/nobody", "{path}"], ids=["stranger", "client"])
def test_a_refused_request_with_a_large_body_still_reads_its_answer(proxied, prefix):
    """The connection is not reset while the client sends."""
    target = prefix.format(path=proxied.path)
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nContent-Length: 8000000\r\n\r\n"
    assert refused(proxied, head.encode() + b"x" * 8_000_000) in (404, 426)


def test_a_client_that_leaves_within_its_request_is_no_request(provider, proxied):
    """The provider never had all of it."""
    with proxied.socket() as client:
        client.sendall(f"POST {proxied.path}{MESSAGES} HTTP/1.1\r\nContent-Length: 100\r\n\r\n{{".encode())
    proxied.close()
    assert [kind for kind, _ in proxied.events()] in ([], ["session.end"], ["session.start", "session.end"])


def test_a_server_may_answer_before_it_has_the_body(provider, proxied):
    """Its answer passes, though the rest of the body could not be sent."""

    def answer(handler):
        handler.reply({"error": {"type": "too_large", "message": "No."}}, 413, {**JSON, "Connection": "close"})
        handler.cut()

    provider.answer = answer
    sent = {**ASKED, "messages": [{"role": "user", "content": "x" * 100_000}]}
    assert proxied.post(body=sent)[0] == 413
    [data] = proxied.responses()
    assert data["error"] == "413 too_large: No."


SECRETS = {
    "Authorization": "Bearer corp-5up3r-s3cr3t-one",
    "x-api-key": "corp-5up3r-s3cr3t-two",
    "x-goog-api-key": "corp-5up3r-s3cr3t-three",
    "Cookie": "session=corp-5up3r-s3cr3t-four",
    "X-Custom": "corp-5up3r-s3cr3t-five",
}
QUERY = "corp-5up3r-s3cr3t-six"
KNOWN = "sk-ant-api03-" + "Ab1" * 30


@pytest.mark.parametrize("echo", [False, True], ids=["answered", "quoted in an error"])
def test_p17_no_secret_reaches_the_log(provider, proxied, tmp_path, echo):
    """Planted in headers and the query, and quoted in an error; one of a known shape in the body too."""

    def answer(handler):
        if not echo:
            handler.reply(wire.MESSAGE)
            return
        quoted = " ".join([*(handler.headers[name] for name in SECRETS if name != "X-Custom"), handler.path, KNOWN])
        handler.reply({"error": {"type": "authentication_error", "message": f"invalid: {quoted}"}}, 401)

    provider.answer = answer
    asked = {**ASKED, "messages": [{"role": "user", "content": f"my key is {KNOWN}"}]}
    proxied.post(f"{MESSAGES}?beta=true&key={QUERY}", asked, {**JSON, **SECRETS})
    assert provider.requests[0][2]["x-api-key"] == SECRETS["x-api-key"]
    assert KNOWN in provider.requests[0][3].decode()
    [data] = proxied.responses()
    assert ("authentication_error: invalid" in data.get("error", "")) is echo
    text = (tmp_path / "s.jsonl").read_text()
    assert "5up3r" not in text
    assert KNOWN not in text
    assert proxied.path.split("/")[1] not in text


def bomb(size, unit=b"[],"):
    """A gzip file of so many bytes unpacked: a JSON list of lists."""
    return gzip.compress(b"[" + unit * (size // len(unit)) + b"[]]", 1)


@pytest.fixture
def small(monkeypatch):
    """Limits of 1 MiB and 1,000 values, in place of 64 and a million."""
    monkeypatch.setattr("sessionlog.integrations.http.MAX_BODY", 1 << 20)
    monkeypatch.setattr("sessionlog.messages.server_sent_events.MAX_VALUES", 1000)


PACKED = {**JSON, "Content-Encoding": "gzip"}
LARGE = [
    (bomb(2 << 20, b" "), PACKED, "an answer of more than 1 MiB"), (b" " * (2 << 20), JSON, "an answer of more than 1 MiB"),
    (bomb(6000), PACKED, "more than 1,000 values"), (b"data: {}\n\n" * 200_000, SSE, "an answer of more than 1 MiB"),
    (b"data: [" + b"[]," * 2000 + b"1]\n\n", SSE, "more than 1,000 values"), (b"[" + b'"a",' * 1200 + b"1]", JSON, "more than 1,000"),
]  # fmt: skip


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("body", "headers", "cause"), LARGE, ids=range(len(LARGE)))
def test_an_answer_that_would_take_too_much_passes_unread(provider, proxied, body, headers, cause):
    """Each byte of it; the log has a partial answer, and the loss is counted once and named. The next is recorded."""
    provider.answer = lambda handler: handler.reply(body, headers=headers)
    assert proxied.post() == (200, body)
    provider.answer = lambda handler: handler.reply(wire.MESSAGE)
    assert proxied.post()[0] == 200
    proxied.close()
    large, next_one = [data for kind, data in proxied.events() if kind == "llm.response"]
    assert (large["partial"], large.get("content"), next_one["content"]) == ("interrupted", None, "Let me look.")
    health = proxied.log.health()
    assert health.dropped_by == {"integration": 1}
    assert cause in health.last_error


def test_an_answer_that_takes_long_to_read_passes_unread(provider, proxied, monkeypatch):
    """As far as it was read it is recorded; the client has all of it."""
    monkeypatch.setattr("sessionlog.integrations.http.MAX_SECONDS", -99.0)
    provider.answer = stream
    assert proxied.post() == (200, b"".join(EVENTS))
    proxied.close()
    [data] = [data for kind, data in proxied.events() if kind == "llm.response"]
    assert (data["partial"], data["model"]) == ("interrupted", wire.MESSAGE["model"])
    assert proxied.log.health().dropped_by == {"integration": 1}
    assert "an answer that took 0.0 s to read up to here" in proxied.log.health().last_error


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("packing", [None, "gzip", "zstd"])
@pytest.mark.parametrize("unit", [b"[],", b" " * 1000], ids=["values", "bytes"])
def test_a_request_that_would_take_too_much_is_recorded_without_its_messages(provider, proxied, packing, unit):
    """It is counted and named; its answer is recorded."""
    body = b'{"model":"claude-haiku-4-5","messages":[' + unit * (1 + (2 << 20) // len(unit)) + b"[]]}"
    packed = {None: bytes, "gzip": gzip.compress, "zstd": zstd_compress}[packing](body)
    assert proxied.post(body=packed, headers={**JSON, **({"Content-Encoding": packing} if packing else {})})[0] == 200
    proxied.close()
    [asked] = [data for kind, data in proxied.events() if kind == "llm.request"]
    [data] = [data for kind, data in proxied.events() if kind == "llm.response"]
    assert "messages" not in asked
    assert data["content"] == "Let me look."
    assert proxied.log.health().dropped_by == {"integration": 1}
    assert "more than 1" in proxied.log.health().last_error


def test_p01_an_error_of_ours_ends_no_request(provider, proxied, monkeypatch):
    """The request passes unrecorded, and the error is counted."""
    monkeypatch.setattr("sessionlog.integrations.http.Exchanges.open", lambda *_, **__: 1 / 0)
    assert proxied.post()[0] == 200
    proxied.close()
    assert proxied.log.health().dropped_by == {"integration": 1}


def test_p01_a_log_that_cannot_be_written_ends_no_request(provider, tmp_path):
    """Each event is counted as lost."""
    (tmp_path / "file").write_text("")
    proxied = Proxied(tmp_path / "file", provider.url)
    assert proxied.post()[0] == 200
    proxied.close()
    assert proxied.log.health().dropped >= 2
    assert proxied.log.health().written == 0


def test_an_error_of_the_proxy_itself_ends_one_connection(provider, proxied, monkeypatch):
    """It is counted, and the others go on."""
    with monkeypatch.context() as patch:
        patch.setattr("sessionlog.proxy.connection._answer_head", lambda *_: 1 / 0)
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            proxied.post("/v1/models")
    assert proxied.post()[0] == 200
    proxied.close()
    assert proxied.log.health().dropped_by == {"integration": 1}


def test_the_port_is_on_the_loopback_interface_alone(proxied):
    """Other machines cannot reach it."""
    assert proxied.server._listener.getsockname()[0] == "127.0.0.1"
    assert proxied.url.startswith("http://127.0.0.1:")
    assert len(proxied.path.split("/")[1]) == 32


def test_a_closed_proxy_answers_no_more(provider, proxied):
    """Idle connections are closed."""
    with proxied.connection() as connection:
        connection.request("GET", f"{proxied.path}/v1/models")
        connection.getresponse().read()
        proxied.close()
        assert connection.sock.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection(*proxied.address).connect()
