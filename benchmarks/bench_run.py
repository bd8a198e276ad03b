"""What the recording proxy adds to a request, and how fast a stream passes through it: beside the same server, direct.

    pip install '.[test]' && python benchmarks/bench_run.py

A server in a process of its own, a client in this one, the proxy in a third; direct and recorded requests take turns, and
the fastest of each count. Connections are kept, as SDKs keep them.
"""

import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import print_table
from sessionlog import SessionLogger
from sessionlog.proxy.recording import Recording
from sessionlog.proxy.server import ProxyServer
from sessionlog.proxy.upstream import parse_upstream

REQUESTS, STREAMS, ROUNDS, MEGABYTES, EVENTS = 400, 40, 5, 100, 2000
THINKING = 0.02
"""Seconds before the first event of a stream; a model takes longer. The request is recorded meanwhile."""
ASKED = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "word " * 2000}] * 10}
ANSWER = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "It prints a table."}], "usage": {"input_tokens": 900, "output_tokens": 12},
}  # fmt: skip
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}
EVENT = f"event: content_block_delta\ndata: {json.dumps(DELTA)}\n\n".encode()
PIECE = b"x" * 65536


def serve(listener):
    """Answer requests by their paths, a connection at a time in a thread each."""
    import threading

    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(client,), daemon=True).start()


def answer(client):
    """Answer the requests of one connection."""
    stream = client.makefile("rb")
    while line := stream.readline():
        length = 0
        while (header := stream.readline()) != b"\r\n":
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        stream.read(length)
        if b"/bytes" in line:
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MEGABYTES << 20))
            for _ in range((MEGABYTES << 20) // len(PIECE)):
                client.sendall(PIECE)
        elif b"beta=stream" in line:
            time.sleep(THINKING)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(EVENTS):
                client.sendall(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
                if number == 0:
                    time.sleep(THINKING)
            client.sendall(b"0\r\n\r\n")
        else:
            body = json.dumps(ANSWER).encode()
            client.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )


def record(folder, upstream, pipe):
    """Run the proxy until the pipe is closed."""
    with SessionLogger(folder) as log:
        server = ProxyServer({})
        server.start({"api": parse_upstream(upstream)}, Recording(log))
        pipe.send(server.url("api"))
        pipe.poll(None)
        server.close()


class Client:
    """A client with a connection that it keeps."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.path, self.connection = parts.path, HTTPConnection(parts.hostname, parts.port)
        self.body = json.dumps(ASKED)

    def first_byte(self, path="/v1/messages"):
        """Seconds to the first byte of an answer, and to its end."""
        began = time.perf_counter()
        self.connection.request("POST", self.path + path, self.body, {"content-type": "application/json"})
        response = self.connection.getresponse()
        response.read1(1)
        first = time.perf_counter() - began
        while response.read1(1 << 16):
            pass
        response.close()
        return first, time.perf_counter() - began


def main():
    """Measure in turn, and print a table."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    upstream = f"http://127.0.0.1:{listener.getsockname()[1]}"
    fork = multiprocessing.get_context("fork")
    fork.Process(target=serve, args=(listener,), daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        ours, theirs = fork.Pipe()
        fork.Process(target=record, args=(folder, upstream, theirs), daemon=True).start()
        theirs.close()
        direct, recorded = Client(upstream), Client(ours.recv())
        rows = []
        for name, path, count, unit in (
            ("100 kB asked, not recorded, first byte", "/v1/messages/count_tokens", REQUESTS, "ms"),
            ("100 kB asked and answered at once, first byte", "/v1/messages", REQUESTS, "ms"),
            (
                f"100 kB asked, a stream after {THINKING * 1000:.0f} ms, first byte",
                "/v1/messages?beta=stream",
                STREAMS,
                "ms",
            ),
            (f"stream of {EVENTS} events, whole", "/v1/messages?beta=stream", STREAMS, "ms"),
            (f"{MEGABYTES} MB, not recorded", "/v1/files/bytes", ROUNDS, "MB/s"),
        ):
            which = 0 if "first" in name else 1
            times = [(direct.first_byte(path)[which], recorded.first_byte(path)[which]) for _ in range(count)]
            before, after = (min(column) for column in zip(*times, strict=True))
            shown = [MEGABYTES / one if unit == "MB/s" else one * 1000 for one in (before, after)]
            rows.append(
                [
                    name,
                    unit,
                    *(f"{one:.2f}" for one in shown),
                    f"{after / before:.2f}",
                    f"{(after - before) * 1000:.2f}",
                ]
            )
        ours.close()
    print_table(["", "", "direct", "recorded", "ratio of times", "added ms"], rows)
    print(f"{os.cpu_count()} cores")


if __name__ == "__main__":
    main()
