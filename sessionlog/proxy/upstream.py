"""The servers behind the proxy: their addresses, and connections to them as the command itself would have made them.

Certificates are checked, against the files of certificates too that the environment names for one program or another;
proxies of the environment are used, so that whoever reaches a provider through one still does.
"""

from __future__ import annotations

import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import SplitResult, unquote, urlsplit

from sessionlog.errors import InvalidSettings
from sessionlog.proxy.requests import RECORDED

_PORTS = {"http": 80, "https": 443}
_CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Single programs' files of certificates; OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR itself."""
_THIS_MACHINE = re.compile(r"localhost|127\..*|::1")
_KEEPALIVE_SECONDS = 60
OUTER_PROXY = "SESSIONLOG_RUN_PROXY"
"""The variable with the host and port of the proxy of the run that a command is a part of."""
_ANTHROPIC = "api.anthropic.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The server that a route leads to.

    Attributes:
        scheme: `http` or `https`.
        host: Its name or address.
        port: Its port.
        path: What comes before the path of a request, without a slash at its end.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host, and the port if it is not the usual one: what the header `Host` has."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def real_path(self, rest: str) -> str:
        """Return a path below the server's as it is there, for one that a client has made of the proxy's address.

        Anthropic's SDKs add `/v1/messages` to ANTHROPIC_BASE_URL, older ones of the AI SDK only `/messages`; where that
        variable was not set, each asks https://api.anthropic.com/v1/messages.
        """
        return f"/v1{rest}" if self.host == _ANTHROPIC and not self.path and rest.startswith("/messages") else rest

    def url(self, rest: str) -> str:
        """Return the whole address of a path below the server's."""
        return f"{self.scheme}://{self.authority}{self.path}{rest}"


def parse_upstream(text: str) -> Upstream:
    """Return the server at a base URL: `https://api.openai.com/v1`.

    Raises:
        InvalidSettings: It is no URL of a server, or one with a user, a query or a fragment, which would be lost.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise InvalidSettings(f"{text!r} is no URL: {error}") from error
    if url.scheme not in _PORTS or not url.hostname:
        raise InvalidSettings(f"{text!r} is no URL of a server; give one like https://api.openai.com/v1")
    if url.username or url.query or url.fragment or not (text.isascii() and text.isprintable()) or " " in text:
        raise InvalidSettings(f"the URL of {url.hostname} has more than a scheme, a host, a port and a path")
    return Upstream(
        scheme=url.scheme, host=url.hostname, port=port or _PORTS[url.scheme], path=url.path.rstrip("/")
    )  # fmt: skip


class Connector:
    """Makes connections to upstream servers.

    Args:
        environment: The variables for proxies and certificates.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def connect(self, upstream: Upstream) -> HTTPConnection:
        """Return a connection to a server, or to the proxy before it, that is open.

        Raises:
            OSError: There is none: refused, an unknown name, a certificate that is not trusted.
        """
        connection = self._connection(upstream)
        try:
            connection.connect()
        except UnicodeError as error:  # of a label that is too long
            raise OSError(f"{upstream.host[:80]} is no name of a host") from error
        _keep_alive(connection.sock)
        return connection

    def target(self, upstream: Upstream, rest: str) -> str:
        """Return what a request's first line names: the path, or for a proxy without a tunnel the whole address."""
        proxied = upstream.scheme == "http" and self._proxy_of(upstream) is not None
        return upstream.url(rest) if proxied else f"{upstream.path}{rest}"

    def proxy_headers(self, upstream: Upstream) -> list[tuple[str, str]]:
        """Return the headers for a proxy without a tunnel, and for that of a run which this one is a part of."""
        if upstream.authority == self._environment.get(OUTER_PROXY):
            return [(RECORDED, "yes")]
        proxy = self._proxy_of(upstream) if upstream.scheme == "http" else None
        return [*_authorization(proxy).items()] if proxy is not None else []

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """What certificates are checked with; loading those of the system takes some 20 ms."""
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        for name in _CERTIFICATES:
            if path := self._environment.get(name):
                with suppress(OSError):  # it is another program's variable; that one reports a file that is missing
                    context.load_verify_locations(cafile=path)
        return context

    def _connection(self, upstream: Upstream) -> HTTPConnection:
        proxy = self._proxy_of(upstream)
        at = (upstream.host, upstream.port) if proxy is None else (str(proxy.hostname), proxy.port or 80)
        if upstream.scheme == "http":
            return HTTPConnection(*at)
        connection = HTTPSConnection(*at, context=self._context)
        if proxy is not None:
            connection.set_tunnel(upstream.host, upstream.port, _authorization(proxy))
        return connection

    def _proxy_of(self, upstream: Upstream) -> SplitResult | None:
        """Return the proxy that the environment names for a server; None without one, and for this machine."""
        text = self._variable(f"{upstream.scheme}_proxy") or self._variable("all_proxy")
        if not text or _THIS_MACHINE.fullmatch(upstream.host):
            return None
        members = self._variable("no_proxy").split(",")
        if any(_matches(upstream, member.strip()) for member in members if member.strip()):
            return None
        proxy = urlsplit(text if "://" in text else f"http://{text}")
        return proxy if proxy.scheme == "http" and proxy.hostname else None  # SOCKS: most agents pass it by, too

    def _variable(self, name: str) -> str:
        return self._environment.get(name) or self._environment.get(name.upper()) or ""


def _matches(upstream: Upstream, name: str) -> bool:
    """Whether a member of NO_PROXY names a server: `*`, a host, a domain with or without a dot, each with a port."""
    host, colon, port = name.rpartition(":")
    if colon and port.isdigit() and int(port) != upstream.port:
        return False
    name = (host if colon and port.isdigit() else name).lower().removeprefix("*").removeprefix(".")
    return not name or upstream.host == name or upstream.host.endswith(f".{name}")


def _keep_alive(sock: socket.socket) -> None:
    """Keep an idle connection open while a model thinks: routers forget those on which nothing is sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)


def _authorization(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}
