"""Remote logs of a real S3 server on the loopback (moto's), with s3fs, through a proxy that throttles, cuts and lies."""

import os
import re
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sessionlog import aggregate_usage
from sessionlog.errors import LogNotReadable
from tests.files.test_remote import log_of

moto = pytest.importorskip("moto.server", reason="needs an environment with moto and s3fs: CONTRIBUTING.md")
pytest.importorskip("s3fs", reason="needs an environment with moto and s3fs: CONTRIBUTING.md")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of botocore, aiohttp and moto
]


class Proxy(BaseHTTPRequestHandler):
    """Hands requests to the server, and breaks as many answers for objects as `faults` has."""

    protocol_version = "HTTP/1.1"
    target = 0
    requests: list = []  # noqa: RUF012 - one per test, emptied by it
    sent: list = []  # noqa: RUF012 - the sizes of objects' answers
    faults: dict = {}  # noqa: RUF012

    def do_GET(self):
        """Answer a request for an object or a listing."""
        self._hand_over()

    do_HEAD = do_PUT = do_DELETE = do_POST = do_GET  # noqa: N815 - the names of the library

    def log_message(self, *_):
        """Print nothing."""

    def _hand_over(self):
        is_list = "list-type" in self.path or self.path.count("/") < 2
        is_object = self.command == "GET" and not is_list
        if self.command in {"GET", "HEAD"}:
            self.requests.append((self.command, "list" if is_list else self.path))
        if is_object and self._has("throttle"):
            return self._answer(503, b"<Error><Code>SlowDown</Code></Error>", {})
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = HTTPConnection("127.0.0.1", self.target)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        data, headers = answer.read(), {k: v for k, v in answer.getheaders() if k.lower() not in SKIPPED}
        if is_object and self._has("lie"):
            data = data[: len(data) // 2]
        size = int(answer.headers["Content-Length"]) if self.command == "HEAD" else len(data)
        cut = is_object and self._has("cut")
        self._answer(answer.status, data[: len(data) // 2] if cut else data, headers, size)
        if cut:
            self.close_connection = True
        return None

    def _answer(self, status, data, headers, size=None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if size is None else size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        if self.command == "GET" and "list-type" not in self.path and self.path.count("/") > 1:
            self.sent.append(len(data))

    def _has(self, fault):
        left = self.faults.get(fault, 0)
        self.faults[fault] = left - 1
        return left > 0


SKIPPED = {"content-length", "transfer-encoding", "connection", "date", "server"}


@pytest.fixture(scope="module")
def endpoint():
    """The proxy's URL before a fresh server."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    Proxy.target = server.get_host_and_port()[1]
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_port}"
    proxy.shutdown()
    server.stop()


@pytest.fixture
def bucket(endpoint, monkeypatch):
    """An empty bucket, by s3fs."""
    import s3fs

    for name, value in {"KEY_ID": "AKIATEST", "KEY": "secretsecret"}.items():
        monkeypatch.setenv(f"AWS_{'ACCESS' if name == 'KEY_ID' else 'SECRET_ACCESS'}_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr("sessionlog.files.remote_errors.FIRST_WAIT", 0.05)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    name = f"b{os.urandom(6).hex()}"
    system.mkdir(name)
    Proxy.faults.clear()
    Proxy.requests.clear()
    return system, name


def total(place, ledger):
    """Input tokens, problems, and the requests that they took."""
    Proxy.requests.clear()
    Proxy.sent.clear()
    report = aggregate_usage(place, ledger=ledger)
    return report.totals.input_tokens, list(map(str, report.problems)), list(Proxy.requests)


def print_figures(name, requests, sent):
    """Print what a report took, which `pytest -s` shows."""
    lists = sum(path == "list" for _, path in requests)
    print(f"{name}: {lists} listings, {len(requests) - lists} object requests, {sent} bytes of objects")


def test_first_unchanged_and_grown(bucket, tmp_path):
    """A first report gets each object; an unchanged place is listed alone; of a grown place one object is read."""
    system, name = bucket
    for number in range(30):
        system.pipe(f"{name}/team/a{number}.jsonl", log_of(100 + number))
    place, ledger = f"s3://{name}/team", str(tmp_path / "ledger.sqlite")
    first = total(place, ledger)
    print_figures("first run", first[2], sum(Proxy.sent))
    assert first[:2] == (sum(range(100, 130)), [])
    assert len([one for one in first[2] if one[1] != "list"]) == 30
    again = total(place, ledger)
    print_figures("unchanged run", again[2], sum(Proxy.sent))
    assert again[:2] == first[:2]
    assert {kind for _, kind in again[2]} == {"list"}
    assert len(again[2]) <= 2
    system.pipe(f"{name}/team/a0.jsonl", log_of(100, 1))
    grown = total(place, ledger)
    print_figures("one object grown", grown[2], sum(Proxy.sent))
    assert grown[0] == first[0] + 1
    assert {re.sub(r"\?.*", "", path) for _, path in grown[2] if path != "list"} == {f"/{name}/team/a0.jsonl"}


@pytest.mark.parametrize("fault", ["throttle", "cut", "lie"])
def test_faults_lose_nothing(bucket, tmp_path, fault):
    """Answers that are throttled, cut or too short are asked for again."""
    system, name = bucket
    for number in range(5):
        system.pipe(f"{name}/a{number}.jsonl", log_of(100, padding=1 << 20))
    Proxy.faults[fault] = 3
    assert total(f"s3://{name}", str(tmp_path / "ledger.sqlite"))[:2] == (500, [])


@pytest.mark.parametrize("fault", ["throttle", "cut", "lie"])
def test_lasting_faults_are_named(bucket, tmp_path, fault):
    """What stays broken is named by its URL and counted at the next report."""
    system, name = bucket
    ledger = str(tmp_path / "ledger.sqlite")
    system.pipe(f"{name}/a.jsonl", log_of(100))
    total(f"s3://{name}", ledger)
    system.pipe(f"{name}/b.jsonl", log_of(1))
    Proxy.faults[fault] = 10_000
    found, problems, _ = total(f"s3://{name}", ledger)
    assert found == 100
    assert [problem.startswith(f"s3://{name}/b.jsonl") for problem in problems] == [True]
    Proxy.faults.clear()
    assert total(f"s3://{name}", ledger)[:2] == (101, [])


def test_a_missing_bucket_is_no_empty_one(bucket):
    """A bucket that does not exist is an error or an empty report, never numbers."""
    try:
        assert aggregate_usage("s3://no-such-bucket-anywhere").totals.requests == 0
    except LogNotReadable as error:
        assert "no such bucket" in str(error)  # noqa: PT017 - both are right
