"""A provider on the loopback interface, a proxy before it, and a client that speaks raw HTTP."""

import json
import socket
import sys
import threading
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from sessionlog import SessionLogger, read_events
from sessionlog.proxy.recording import Recording
from sessionlog.proxy.server import ProxyServer
from sessionlog.proxy.upstream import parse_upstream
from tests.integrations import wire

ASKED = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [wire.ASKED]}
CHAT_ASKED = {"model": "gpt-5", "messages": [wire.ASKED]}
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"


class Handler(BaseHTTPRequestHandler):
    """One connection to the stub."""

    protocol_version = "HTTP/1.1"

    def setup(self):
        """Count the connection."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.stub.connections += 1

    def answer(self):
        """Read the request, and let the test's function answer."""
        if "chunked" in self.headers.get("transfer-encoding", ""):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.stub.requests.append((self.command, self.path, self.headers, body))
        self.server.stub.answer(self)

    do_GET = do_POST = do_HEAD = do_OPTIONS = do_DELETE = answer  # noqa: N815 - the library's names

    def reply(self, body, status=200, headers=JSON):
        """Answer with a body of a known length."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin(self, status=200, headers=SSE, *, chunked=True):
        """Begin an answer whose length is not known."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        self.end_headers()

    def piece(self, data):
        """Send a chunk; an empty one is the end."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def cut(self):
        """Close the connection at once."""
        self.close_connection = True

    def log_message(self, *_):
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """The stub's server."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        """Report errors, but not those of clients that leave, which tests make."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Stub:
    """A provider whose answers a test gives.

    Attributes:
        requests: (method, path, headers, body) of each.
        connections: How many were made.
        answer: Called with the handler of a request.
    """

    def __init__(self):
        self.requests, self.connections = [], 0
        self.answer = lambda handler: handler.reply(wire.MESSAGE if handler.path == MESSAGES else wire.CHAT)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.stub = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
        self._thread.start()

    def close(self):
        """Stop it."""
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


class Proxied:
    """A proxy before a provider, and what it records.

    Attributes:
        url: The address of the route `api`.
        log: The logger of the session.
    """

    def __init__(self, folder, upstream, environment=None, **options):
        self.folder = folder
        self.log = SessionLogger(folder, "s", notify=lambda _: None)
        self.recording = Recording(self.log)
        self.server = ProxyServer(environment or {}, **options)
        self.server.start({"api": parse_upstream(upstream)}, self.recording)
        self.url = self.server.url("api")
        self.path = urlsplit(self.url).path
        self.address = ("127.0.0.1", urlsplit(self.url).port)

    def connection(self):
        """A connection of a client."""
        return closing(HTTPConnection(*self.address, timeout=20))

    def socket(self):
        """A connection for raw bytes."""
        return closing(socket.create_connection(self.address, timeout=20))

    def post(self, path=MESSAGES, body=ASKED, headers=JSON):
        """Send a request; return status and body of the answer."""
        with self.connection() as connection:
            sent = body if isinstance(body, bytes) else json.dumps(body)
            connection.request("POST", self.path + path, sent, headers)
            response = connection.getresponse()
            return response.status, response.read()

    def close(self, seconds=5.0):
        """End the session."""
        self.server.close(seconds)
        self.log.end()
        self.log.close()

    def events(self):
        """(type, data) of the events that were recorded."""
        return [(event.type, event.data) for event in read_events(self.folder / "s.jsonl")]

    def responses(self):
        """The data of the answers that were recorded."""
        self.close()
        assert self.log.health().ok, self.log.health()
        return [data for kind, data in self.events() if kind == "llm.response"]


@contextmanager
def stub():
    """A provider for a test."""
    made = Stub()
    try:
        yield made
    finally:
        made.close()
