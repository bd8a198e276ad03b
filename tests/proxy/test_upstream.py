"""`proxy.upstream`: addresses of servers, certificates, and the proxies between."""

import base64
import json
import re
import socket
import ssl
import subprocess
import threading
from contextlib import suppress

import pytest

from sessionlog.errors import InvalidSettings
from sessionlog.proxy.upstream import Connector, parse_upstream
from tests.integrations import wire
from tests.proxy.stub import ASKED, MESSAGES, Proxied


@pytest.mark.parametrize(("text", "rest", "path"), [
    ("https://api.anthropic.com", "/v1/messages", "/v1/messages"),
    ("https://api.anthropic.com", "/messages", "/v1/messages"),
    ("https://api.anthropic.com/v1", "/messages", "/messages"),
    ("https://gateway.example", "/messages", "/messages"),
])  # fmt: skip
def test_the_ai_sdk_asks_anthropic_where_it_would_have_asked(text, rest, path):
    """It takes ANTHROPIC_BASE_URL to end with /v1, Anthropic's SDKs do not."""
    assert parse_upstream(text).real_path(rest) == path


@pytest.mark.parametrize(("text", "url", "authority"), [
    ("https://api.openai.com/v1", "https://api.openai.com/v1/x", "api.openai.com"),
    ("https://api.openai.com:443/v1/", "https://api.openai.com/v1/x", "api.openai.com"),
    ("http://localhost:8000", "http://localhost:8000/x", "localhost:8000"),
    ("HTTP://[::1]:81/a/b", "http://[::1]:81/a/b/x", "[::1]:81"),
])  # fmt: skip
def test_a_base_url_is_a_server(text, url, authority):
    """With the port of its scheme, and a path before each request's."""
    upstream = parse_upstream(text)
    assert (upstream.url("/x"), upstream.authority) == (url, authority)


@pytest.mark.parametrize("text", [
    "", "api.openai.com", "ftp://x", "https://", "https://x:99999", "https://x:y", "https://[x", "https://user:pw@x/v1",
    "https://x/v1?a=b", "https://x/v1#a", "https://x/a b", "https://x/\u00fc", "https://x/\r\nHost: y",
])  # fmt: skip
def test_what_is_no_base_url_is_refused(text):
    """By name, and without the password that may be in it."""
    with pytest.raises(InvalidSettings) as refused:
        parse_upstream(text)
    assert "pw" not in str(refused.value)


PROXY = "http://127.0.0.1:1"


@pytest.mark.parametrize(("environment", "url", "proxied"), [
    ({}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY}, "https://a.b.com", True),
    ({"https_proxy": PROXY}, "https://a.b.com", True),
    ({"https_proxy": "127.0.0.1:1"}, "https://a.b.com", True),
    ({"HTTP_PROXY": PROXY}, "https://a.b.com", False),
    ({"ALL_PROXY": PROXY}, "https://a.b.com", True),
    ({"ALL_PROXY": "socks5://127.0.0.1:1"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "NO_PROXY": "x, .b.com"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "b.com"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "a.b.com:443"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "a.b.com:8443"}, "https://a.b.com", True),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "*.b.com"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "*"}, "https://a.b.com", False),
    ({"HTTPS_PROXY": PROXY, "no_proxy": "xb.com,,b.co"}, "https://a.b.com", True),
    ({"HTTP_PROXY": PROXY}, "http://localhost:8000", False),
    ({"HTTP_PROXY": PROXY}, "http://127.0.0.1:8000", False),
    ({"HTTP_PROXY": PROXY}, "http://a.b.com", True),
])  # fmt: skip
def test_which_servers_are_behind_a_proxy(environment, url, proxied):
    """As the environment has it; this machine never is."""
    assert (Connector(environment)._proxy_of(parse_upstream(url)) is not None) is proxied


def test_a_plain_server_behind_a_proxy(provider, tmp_path):
    """The proxy gets the whole address and its own password, which the log does not have."""
    environment = {"HTTP_PROXY": provider.url.replace("://", "://me:corp%20pw@")}
    proxied = Proxied(tmp_path, "http://api.example.com/base", environment)
    assert proxied.post()[0] == 200
    [(_, path, headers, _)] = provider.requests
    assert path == f"http://api.example.com/base{MESSAGES}"
    assert headers["host"] == "api.example.com"
    assert headers["proxy-authorization"] == f"Basic {base64.b64encode(b'me:corp pw').decode()}"
    [data] = proxied.responses()
    assert data["provider"] == "example"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of localhost that signs itself, with its key."""
    folder = tmp_path_factory.mktemp("certificate")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        capture_output=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("there is no openssl")
    return folder


@pytest.fixture
def secure(provider, certificate):
    """The provider, behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    provider.server.socket = context.wrap_socket(provider.server.socket, server_side=True)
    provider.url = f"https://localhost:{provider.server.server_port}"
    provider.server.handle_error = lambda *_: None  # a client that does not trust it
    return provider


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"])
def test_a_certificate_that_the_environment_trusts(secure, certificate, tmp_path, monkeypatch, variable):
    """Whichever program the variable is for; connections are used again."""
    path = str(certificate / "cert.pem")
    monkeypatch.setenv(variable, path)
    proxied = Proxied(tmp_path, secure.url, {variable: path})
    with proxied.connection() as connection:
        for _ in range(2):
            connection.request("POST", f"{proxied.path}{MESSAGES}", json.dumps(ASKED))
            assert json.loads(connection.getresponse().read()) == wire.MESSAGE
    assert len(proxied.responses()) == 2
    assert secure.connections == 1


def test_a_certificate_that_nothing_trusts(secure, tmp_path):
    """The connection is closed, and the log has the reason."""
    proxied = Proxied(tmp_path, secure.url, {"NODE_EXTRA_CA_CERTS": "/no/such/file"})
    with pytest.raises(ConnectionError):
        proxied.post()
    [data] = proxied.responses()
    assert data["error"].startswith("SSLCertVerificationError: ")
    assert secure.requests == []


def test_a_secure_server_behind_a_proxy(secure, certificate, tmp_path, monkeypatch):
    """Through a tunnel: the proxy between reads nothing of it."""
    asked = []
    listener = socket.create_server(("127.0.0.1", 0))

    def tunnel():
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", secure.server.server_port)) as server:
            asked.append(client.recv(65536))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=copy, args=(server, client))
            back.start()
            copy(client, server)
            back.join()

    def copy(source, target):
        while data := source.recv(65536):
            target.sendall(data)
        with suppress(OSError):  # the other side has gone already
            target.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=tunnel, daemon=True)
    thread.start()
    environment = {
        "HTTPS_PROXY": f"http://me:pw@127.0.0.1:{listener.getsockname()[1]}",
        "NODE_EXTRA_CA_CERTS": str(certificate / "cert.pem"),
    }
    connector = Connector(environment)
    upstream = parse_upstream(secure.url)
    monkeypatch.setattr("sessionlog.proxy.upstream._THIS_MACHINE", re.compile("nowhere"))
    connection = connector.connect(upstream)
    connection.request("POST", connector.target(upstream, MESSAGES), json.dumps(ASKED))
    assert json.loads(connection.getresponse().read()) == wire.MESSAGE
    connection.close()
    thread.join(10)
    listener.close()
    assert asked[0].startswith(f"CONNECT localhost:{secure.server.server_port} HTTP/1.".encode())
    assert base64.b64encode(b"me:pw") in asked[0]
    assert b"messages" not in asked[0]
