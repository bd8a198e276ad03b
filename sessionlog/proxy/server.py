"""The recording proxy: an HTTP/1.1 server on the loopback interface, a thread for each connection.

Its addresses begin with a secret of this run, `http://127.0.0.1:PORT/SECRET/ROUTE`: other users of the machine can
reach the port, and are refused. Connections that have not sent the secret are few and short, so that they leave file
descriptors for the command's.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from hmac import compare_digest
from threading import Event, Thread
from time import monotonic

from sessionlog.locks import RLock
from sessionlog.proxy.connection import Connection
from sessionlog.proxy.recording import Recording
from sessionlog.proxy.upstream import Connector, Upstream

DRAIN_SECONDS = 30.0
"""How long an answer is read after its client has gone, for the usage at its end."""

_HOST = "127.0.0.1"
_BACKLOG = 512
_WATCH_SECONDS = 1.0
_JOIN_SECONDS = 1.0
_PAUSE_SECONDS = 0.05
_MAX_UNAUTHENTICATED = 128
"""Connections that have not sent the secret: half of the 256 files that macOS lets a process open; Linux has 1,024."""
_UNAUTHENTICATED_SECONDS = 0.5
"""How long the oldest of so many stays: time enough for a program that opens hundreds and then sends on each."""


class ProxyServer:
    """A proxy that listens as soon as it is made, and serves from `start` to `close`.

    Args:
        environment: Variables for proxies and certificates on the way to the servers.
        drain_seconds: How long an answer is read after its client has gone.

    Raises:
        OSError: There is no port.
    """

    def __init__(self, environment: Mapping[str, str], *, drain_seconds: float = DRAIN_SECONDS) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=_BACKLOG)
        self._secret = os.urandom(16).hex()
        self._connector = Connector(environment)
        self._drain_seconds = drain_seconds
        self._routes: Mapping[str, Upstream] = {}
        self._recording: Recording | None = None
        self._lock = RLock()
        self._open: dict[Connection, Thread] = {}
        self._is_closing = Event()
        self._threads: list[Thread] = []

    @property
    def authority(self) -> str:
        """Its host and port."""
        return f"{_HOST}:{self._listener.getsockname()[1]}"

    def url(self, route: str) -> str:
        """Return the address that stands for a route's server."""
        return f"http://{self.authority}/{self._secret}/{route}"

    def start(self, routes: Mapping[str, Upstream], recording: Recording) -> None:
        """Serve requests for these servers, in threads of its own."""
        self._routes, self._recording = routes, recording
        self._threads = [
            Thread(target=self._accept, args=(recording,), name="sessionlog-proxy", daemon=True),
            Thread(target=self._watch, name="sessionlog-proxy-watch", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self, seconds: float = 0.0) -> None:
        """Take no more requests, and read recorded answers that are under way for so many seconds at most.

        What has come of the others by then is recorded, marked partial.
        """
        deadline = monotonic() + seconds
        self._stop_listening()
        with self._lock:
            connections = dict(self._open)
        for connection in connections:
            connection.finish()
        for thread in connections.values():
            thread.join(max(0.0, deadline - monotonic()))
        for connection, thread in connections.items():
            connection.abort()
            thread.join(_JOIN_SECONDS)
        if self._recording is not None:
            self._recording.close()

    def _stop_listening(self) -> None:
        self._is_closing.set()
        if self._threads:
            with suppress(OSError):  # to wake the thread that waits for a connection
                socket.create_connection(self._listener.getsockname(), timeout=_JOIN_SECONDS).close()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._listener.close()

    def _accept(self, recording: Recording) -> None:
        while not self._is_closing.is_set():
            self._limit_unauthenticated()
            try:
                client, _ = self._listener.accept()
            except OSError:  # too many open files, or a client that has gone already
                self._is_closing.wait(_PAUSE_SECONDS)
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(client, self._find, self._connector, recording)
            thread = Thread(target=self._serve, args=(connection, recording), name="sessionlog-client", daemon=True)
            with self._lock:
                self._open[connection] = thread
            try:
                thread.start()
            except RuntimeError:  # no more threads
                self._forget(connection)
                client.close()

    def _limit_unauthenticated(self) -> None:
        """Wait until one more connection without the secret may come, and close the oldest when its time is over."""
        while not self._is_closing.is_set():
            with self._lock:
                waits = [(one, seconds) for one in self._open if (seconds := one.unauthenticated_seconds) is not None]
            if len(waits) < _MAX_UNAUTHENTICATED:
                return
            oldest, seconds = waits[0]
            if seconds > _UNAUTHENTICATED_SECONDS:
                oldest.abort()
            else:
                self._is_closing.wait(_PAUSE_SECONDS)

    def _serve(self, connection: Connection, recording: Recording) -> None:
        try:
            connection.run()
        except Exception as error:  # noqa: BLE001 - an error of ours ends one connection, and is counted
            recording.count_failure(error)
        finally:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            self._open.pop(connection, None)

    def _watch(self) -> None:
        """Look for clients that have gone, from time to time."""
        while not self._is_closing.wait(min(_WATCH_SECONDS, self._drain_seconds / 4)):
            with self._lock:
                connections = list(self._open)
            for connection in connections:
                connection.watch(self._drain_seconds)

    def _find(self, target: str) -> tuple[Upstream, str] | None:
        """Return the server of a target `/SECRET/ROUTE/PATH`, and the path; None if there is none."""
        path, question, query = target.partition("?")
        _, secret, name, *_ = [*path.split("/"), "", ""]
        upstream = self._routes.get(name) if compare_digest(secret, self._secret) else None
        if upstream is None:
            return None
        return upstream, f"{upstream.real_path(path[len(secret) + len(name) + 2 :])}{question}{query}"
