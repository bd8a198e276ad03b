"""`integrations.http`: what clients of httpx and httpx2 send and receive, with the SDKs of OpenAI and Anthropic."""

import asyncio
import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anthropic
import httpx
import httpx2
import openai
import pytest

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events
from sessionlog.errors import NotRecorded
from sessionlog.integrations.http import Exchanges, RecordingTransport, record
from tests.integrations import wire

LIBRARIES = [httpx, httpx2]
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream; charset=utf-8"}


class Pieces:
    """A body that comes in small pieces, and may break off; for sync and async clients of either library."""

    def __init__(self, body, size=50, error=None):
        self.body, self.size, self.error, self.read = body, size, error, 0

    def __iter__(self):
        for start in range(0, len(self.body), self.size):
            self.read = start + self.size
            yield self.body[start : start + self.size]
        if self.error is not None:
            raise self.error

    async def __aiter__(self):
        for piece in self:
            yield piece

    def close(self):
        """Nothing to close."""

    async def aclose(self):
        """Nothing to close."""


def body_of(library, *args, **kwargs):
    """A stream on the bases that the library demands."""
    kind = type("Body", (Pieces, library.SyncByteStream, library.AsyncByteStream), {})
    return kind(*args, **kwargs)


def transport(library, answer, status=200, headers=JSON, **kwargs):
    """A transport that gives this answer to each request."""
    return library.MockTransport(
        lambda _: library.Response(status, headers=headers, stream=body_of(library, answer, **kwargs))
    )


def events_of(folder):
    """(type, data) of the events in the only log of a folder."""
    [path] = Path(folder).glob("*.jsonl")
    return [(event.type, event.data) for event in read_events(path)]


def response_of(folder):
    """The data of its only response."""
    [data] = [data for kind, data in events_of(folder) if kind == "llm.response"]
    return data


def send(library, name, folder, *, is_async=False, **changes):
    """Send a request of a format, read the whole answer, and return its bytes."""
    address, sent, answer, is_stream = wire.FORMATS[name]
    inner = transport(library, changes.pop("answer", answer), headers=SSE if is_stream else JSON, **changes)
    with SessionLogger(folder, "s", notify=lambda _: None) as log:
        if is_async:

            async def run():
                async with library.AsyncClient(transport=RecordingTransport(inner, log)) as client:
                    return (await client.post(address, json=sent)).content

            got = asyncio.run(run())
        else:
            with library.Client(transport=RecordingTransport(inner, log)) as client:
                got = client.post(address, json=sent).content
    assert log.health().ok, log.health()
    return got


@pytest.mark.parametrize("name", wire.FORMATS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_each_format_is_recorded(tmp_path, library, name, is_async):
    """Whole and as a stream: text, call, tokens in disjoint classes, model; the host gets each byte."""
    assert send(library, name, tmp_path, is_async=is_async) == wire.FORMATS[name][2]
    kinds = [kind for kind, _ in events_of(tmp_path)]
    assert kinds == ["session.start", "llm.request", "llm.response", "session.end"]
    request = events_of(tmp_path)[1][1]
    assert "What does a.py do?" in json.dumps(request["messages"])
    assert request["model"] in ("gpt-5", "claude-haiku-4-5", "gemini-2.5-pro")
    data = response_of(tmp_path)
    assert data["content"] == "Let me look."
    [call] = data["tool_calls"]
    arguments = call["arguments"]
    assert (call["name"], json.loads(arguments) if isinstance(arguments, str) else arguments) == (
        "read",
        {"path": "a.py"},
    )
    assert data["latency_ms"] > 0
    assert "partial" not in data
    assert "error" not in data
    [row] = aggregate_usage(tmp_path).rows
    written = 7 if "messages" in name else 0
    tokens = (row.input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.output_tokens)
    assert (row.requests, *tokens) == (1, 40, 60, written, 20)
    assert row.reasoning_tokens == (0 if "messages" in name else 5)
    assert [check.damage for check in check_logs(tmp_path)] == [()]


@pytest.mark.parametrize("name", [name for name in wire.FORMATS if "stream" in name])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_events_are_read_whatever_pieces_they_come_in(tmp_path, name, size):
    """Byte by byte, and all at once."""
    send(httpx2, name, tmp_path, size=size)
    assert response_of(tmp_path)["content"] == "Let me look."


@pytest.mark.parametrize("name", wire.FORMATS)
def test_a_packed_answer_is_unpacked(tmp_path, name):
    """The host gets it as the client unpacks it, the log the same."""
    address, sent, answer, is_stream = wire.FORMATS[name]
    headers = {**(SSE if is_stream else JSON), "content-encoding": "gzip"}
    with SessionLogger(tmp_path, "s") as log:
        inner = transport(httpx2, gzip.compress(answer), headers=headers)
        with httpx2.Client(transport=RecordingTransport(inner, log)) as client:
            assert client.post(address, json=sent).content == answer
    assert response_of(tmp_path)["content"] == "Let me look."


@pytest.mark.parametrize("name", [name for name in wire.FORMATS if "stream" in name])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
def test_a_stream_that_the_host_leaves_counts_as_far_as_it_came(tmp_path, library, name):
    """Marked partial; what was not sent is not made up."""
    address, sent, answer, _ = wire.FORMATS[name]
    with (
        SessionLogger(tmp_path, "s") as log,
        library.Client(transport=RecordingTransport(transport(library, answer, headers=SSE), log)) as client,
        client.stream("POST", address, json=sent) as response,
    ):
        seen = b""
        for piece in response.iter_raw():
            seen += piece
            if b"\n\n" in seen.partition(b"Let me ")[2]:
                break
    data = response_of(tmp_path)
    assert data["partial"] == "cancelled"
    assert data["content"] == "Let me "
    assert data["time_to_first_token_ms"] <= data["latency_ms"]
    assert aggregate_usage(tmp_path).totals.requests == 1


def test_a_stream_that_breaks_is_an_error_that_reaches_the_host(tmp_path):
    """With what came before it."""
    address, sent, answer, _ = wire.FORMATS["messages stream"]
    inner = transport(httpx2, answer[:1200], headers=SSE, error=httpx2.ReadError("connection reset"))
    with (
        SessionLogger(tmp_path, "s") as log,
        httpx2.Client(transport=RecordingTransport(inner, log)) as client,
        pytest.raises(httpx2.ReadError, match="reset"),
    ):
        client.post(address, json=sent)
    data = response_of(tmp_path)
    assert "connection reset" in data["error"]
    assert data["partial"] == "failed"


def test_no_connection_is_an_error(tmp_path):
    """The host gets its own exception."""

    def refuse(request):
        raise httpx2.ConnectError("refused", request=request)

    inner = RecordingTransport(httpx2.MockTransport(refuse), directory=tmp_path)
    with httpx2.Client(transport=inner) as client, pytest.raises(httpx2.ConnectError):
        client.post(wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1])
    assert response_of(tmp_path)["error"] == "ConnectError: refused"
    assert events_of(tmp_path)[-1][1]["status"] == "success"


@pytest.mark.parametrize(("name", "error", "text"), [
    ("chat", {"error": {"message": "bad key", "type": "invalid_request_error", "code": "x"}}, "401 invalid_request_error: bad key"),
    ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "401 overloaded_error: Overloaded"),
    ("gemini", {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}, "401 RESOURCE_EXHAUSTED: quota"),
    ("responses", "gateway", "401"),
])  # fmt: skip
def test_errors_of_the_provider_are_recorded(tmp_path, name, error, text):
    """Status, kind and message; no tokens."""
    answer = json.dumps(error).encode() if isinstance(error, dict) else error.encode()
    send(httpx2, name, tmp_path, answer=answer, status=401)
    assert response_of(tmp_path)["error"] == text
    [row] = aggregate_usage(tmp_path).rows
    assert (row.requests, row.failed_requests, row.total_tokens) == (1, 1, 0)


@pytest.mark.parametrize("address", [
    "https://api.openai.com/v1/embeddings", "https://api.openai.com/v1/completions", "https://api.openai.com/v1/models",
    "https://api.anthropic.com/v1/messages/count_tokens", "https://example.com/",
])  # fmt: skip
def test_other_requests_pass(tmp_path, address):
    """They are no requests to a model, and no file is made for them."""
    inner = RecordingTransport(transport(httpx2, b"{}"), directory=tmp_path)
    with httpx2.Client(transport=inner) as client:
        assert client.post(address, json={}).json() == {}
        assert client.get(wire.FORMATS["chat"][0]).status_code == 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[1, 2]", b'{"choices": 7}', b'{"choices": [{"message": []}], "usage": []}', b"\xff\xfe"],
)
@pytest.mark.parametrize("name", wire.FORMATS)
def test_any_answer_passes(tmp_path, name, answer):
    """Whatever a server sends, the host gets it, and nothing is an error of ours."""
    assert send(httpx2, name, tmp_path, answer=answer) == answer
    assert aggregate_usage(tmp_path).totals.requests == 1


def test_an_error_of_ours_never_reaches_the_host(tmp_path, monkeypatch):
    """It is counted."""
    monkeypatch.setattr("sessionlog.messages.answers.ChatCompletion.request_fields", None)
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    address, sent, answer, _ = wire.FORMATS["chat"]
    with log, httpx2.Client(transport=RecordingTransport(transport(httpx2, answer), log)) as client:
        assert client.post(address, json=sent).content == answer
    assert log.health().dropped_by == {"integration": 1}


def test_the_openai_client(tmp_path):
    """A conversation with a tool, a stream, and the responses API, through the real SDK."""
    answers = {
        "/v1/chat/completions": lambda sent: (
            (wire.sse(*wire.CHAT_CHUNKS, done=True), SSE)
            if sent.get("stream")
            else (json.dumps(wire.CHAT).encode(), JSON)
        ),
        "/v1/responses": lambda sent: (
            (wire.sse(*wire.RESPONSE_EVENTS, named=True), SSE)
            if sent.get("stream")
            else (json.dumps(wire.RESPONSE).encode(), JSON)
        ),
    }

    def answer(request):
        body, headers = answers[request.url.path](json.loads(request.content))
        return httpx2.Response(200, headers=headers, content=body)

    client = openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    with record(client, directory=tmp_path):
        done = client.chat.completions.create(model="gpt-5", messages=[wire.ASKED])
        assert done.choices[0].message.content == "Let me look."
        chunks = client.chat.completions.create(model="gpt-5", messages=[wire.ASKED], stream=True)
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Let me look."
        assert client.responses.create(model="gpt-5", input="What?").output_text == "Let me look."
        events = client.responses.create(model="gpt-5", input="What?", stream=True)
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Let me look."
    responses = [data for kind, data in events_of(tmp_path) if kind == "llm.response"]
    assert [data["content"] for data in responses] == ["Let me look."] * 4
    assert not any("partial" in data for data in responses)
    totals = aggregate_usage(tmp_path).totals
    assert (totals.requests, totals.input_tokens, totals.cache_read_tokens, totals.output_tokens) == (4, 160, 240, 80)
    assert events_of(tmp_path)[-1][0] == "session.end"
    assert aggregate_usage(tmp_path).rows[0].keys == {"provider": "openai", "model": "gpt-5"}


def test_attempts_of_the_sdk_are_requests(tmp_path):
    """Two overloads, then an answer: three requests, two of which failed."""
    statuses = iter([529, 529, 200])

    def answer(_):
        status = next(statuses)
        overload = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        return httpx2.Response(
            status, json=wire.MESSAGE if status == 200 else overload, headers={"retry-after-ms": "1"}
        )

    client = anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    with record(client, directory=tmp_path):
        done = client.messages.create(model="claude-haiku-4-5", max_tokens=9, messages=[wire.ASKED])
    assert done.content[1].text == "Let me look."
    [row] = aggregate_usage(tmp_path).rows
    assert (row.requests, row.failed_requests, row.output_tokens) == (3, 2, 20)


def test_hundreds_of_requests_at_once(tmp_path):
    """Two hundred tasks with a logger each, and fifty threads on one: nothing is lost, nothing mixed."""

    def answer(request):
        asked = json.loads(request.content)["messages"][0]["content"]
        message = {"role": "assistant", "content": f"answer to {asked}"}
        return httpx2.Response(
            200, json={**wire.CHAT, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        )

    async def task(number):
        inner = RecordingTransport(httpx2.MockTransport(answer), directory=tmp_path / "tasks", session_id=f"s{number}")
        async with httpx2.AsyncClient(transport=inner) as client:
            for turn in range(3):
                sent = {"model": "gpt-5", "messages": [{"role": "user", "content": f"{number}.{turn}"}]}
                await client.post(wire.FORMATS["chat"][0], json=sent)

    async def all_tasks():
        await asyncio.gather(*map(task, range(200)))

    asyncio.run(all_tasks())
    for number in range(200):
        events = [*read_events(tmp_path / f"tasks/s{number}.jsonl")]
        contents = [event.data["content"] for event in events if event.type == "llm.response"]
        assert contents == [f"answer to {number}.{turn}" for turn in range(3)]
    with SessionLogger(tmp_path / "threads", "s") as log:
        inner = RecordingTransport(httpx2.MockTransport(answer), log)
        with httpx2.Client(transport=inner) as client, ThreadPoolExecutor(50) as pool:
            sent = [{"model": "gpt-5", "messages": [{"role": "user", "content": str(n)}]} for n in range(500)]
            list(pool.map(lambda one: client.post(wire.FORMATS["chat"][0], json=one), sent))
    contents = [data["content"] for kind, data in events_of(tmp_path / "threads") if kind == "llm.response"]
    assert sorted(contents) == sorted(f"answer to {n}" for n in range(500))


def test_what_is_no_client_is_refused(tmp_path):
    """With a sentence."""
    with pytest.raises(TypeError, match="str is no client of httpx or httpx2"):
        record("https://api.openai.com", directory=tmp_path)


def by_model(folder):
    """(provider, model) → (requests, input tokens)."""
    rows = aggregate_usage(folder).rows
    return {(row.keys["provider"], row.keys["model"]): (row.requests, row.input_tokens) for row in rows}


def test_requests_beside_each_other_keep_their_model_and_provider(tmp_path):
    """One logger, two providers, both requests before both answers."""

    async def answer(request):
        await asyncio.sleep(0.01)
        is_chat = "completions" in request.url.path
        return httpx2.Response(200, json=wire.CHAT if is_chat else wire.MESSAGE)

    async def run(log):
        inner = RecordingTransport(httpx2.MockTransport(answer), log)
        async with httpx2.AsyncClient(transport=inner) as client:
            await asyncio.gather(
                *(client.post(wire.FORMATS[n][0], json=wire.FORMATS[n][1]) for n in ("chat", "messages"))
            )

    with SessionLogger(tmp_path, "s") as log:
        asyncio.run(run(log))
    assert by_model(tmp_path) == {("openai", "gpt-5"): (1, 40), ("anthropic", "claude-haiku-4-5"): (1, 40)}


@pytest.mark.parametrize("name", [name for name in wire.FORMATS if "stream" in name])
def test_a_packed_stream_that_is_left_counts_as_far_as_it_came(tmp_path, name):
    """It is unpacked piece by piece."""
    address, sent, answer, _ = wire.FORMATS[name]
    headers = {**SSE, "content-encoding": "gzip"}
    inner = transport(httpx2, gzip.compress(answer), headers=headers, size=10)
    with (
        SessionLogger(tmp_path, "s") as log,
        httpx2.Client(transport=RecordingTransport(inner, log)) as client,
        client.stream("POST", address, json=sent) as response,
    ):
        assert next(response.iter_lines())
    assert response_of(tmp_path)["partial"] == "cancelled"
    send(httpx2, name, tmp_path / "whole", answer=answer)


def test_a_packed_stream_is_whole_where_the_sdk_stops_at_its_last_event(tmp_path):
    """It closes the connection at `[DONE]`."""
    headers = {**SSE, "content-encoding": "gzip"}
    inner = transport(httpx2, gzip.compress(wire.FORMATS["chat stream"][2]), headers=headers)
    client = openai.OpenAI(api_key="k", http_client=httpx2.Client(transport=inner))
    with record(client, directory=tmp_path):
        assert len([*client.chat.completions.create(model="gpt-5", messages=[wire.ASKED], stream=True)]) == 7
    assert (response_of(tmp_path)["content"], "partial" in response_of(tmp_path)) == ("Let me look.", False)
    assert aggregate_usage(tmp_path).totals.cache_read_tokens == 60


def test_a_session_of_its_own_begins_once(tmp_path):
    """Whatever threads send the first requests."""
    inner = RecordingTransport(transport(httpx2, wire.FORMATS["chat"][2]), directory=tmp_path)
    start = threading.Barrier(8)

    def one(client):
        start.wait()
        client.post(wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1])

    with httpx2.Client(transport=inner) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(one, [client] * 8))
    kinds = [kind for kind, _ in events_of(tmp_path)]
    assert (kinds.count("session.start"), kinds.count("llm.response"), kinds.count("session.end")) == (1, 8, 1)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
def test_a_body_that_the_host_streams_is_its_own(tmp_path, library):
    """It is not read before it is sent; its errors are the host's; the answer is recorded."""

    def broken():
        yield b"{"
        raise LookupError("a bug of the host")

    def whole():
        yield json.dumps(wire.FORMATS["chat"][1]).encode()

    def answer(request):
        request.read()
        return library.Response(200, content=wire.FORMATS["chat"][2])

    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log, library.Client(transport=RecordingTransport(library.MockTransport(answer), log)) as client:
        with pytest.raises(LookupError, match="a bug of the host"):
            client.post(wire.FORMATS["chat"][0], content=broken())
        assert client.post(wire.FORMATS["chat"][0], content=whole()).status_code == 200
    assert log.health().ok
    assert aggregate_usage(tmp_path).totals.output_tokens == 20


@pytest.mark.parametrize("sent", [b"--x", b'{"messages": "\\ud83d"}', b"[]", b""])
def test_a_body_that_is_no_request_has_an_answer_all_the_same(tmp_path, sent):
    """What came back counts."""
    inner = transport(httpx2, wire.FORMATS["chat"][2])
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log, httpx2.Client(transport=RecordingTransport(inner, log)) as client:
        client.post(wire.FORMATS["chat"][0], content=sent)
    assert aggregate_usage(tmp_path).totals.output_tokens == 20


@pytest.mark.parametrize("name", wire.FORMATS)
def test_json_is_read_as_clients_read_it(tmp_path, name):
    """Halves of letters, NaN, and a byte order mark."""
    answer = b"\xef\xbb\xbf" + wire.FORMATS[name][2].replace(b"look.", b"\\ud83d")
    answer = answer.replace(b'"usage"', b'"logprobs": NaN, "usage"').replace(
        b'"usageMetadata"', b'"x": NaN, "usageMetadata"'
    )
    send(httpx2, name, tmp_path, answer=answer)
    assert response_of(tmp_path)["content"].startswith("Let me")
    assert aggregate_usage(tmp_path).totals.output_tokens == 20


def test_a_secret_in_an_error_is_not_recorded(tmp_path):
    """Errors of headers quote them."""

    def refuse(request):
        raise httpx2.LocalProtocolError(f"Illegal header value b'{request.headers['authorization']}\\n'")

    client = httpx2.Client(transport=RecordingTransport(httpx2.MockTransport(refuse), directory=tmp_path))
    with client, pytest.raises(httpx2.LocalProtocolError):
        client.post(wire.FORMATS["chat"][0], json={}, headers={"authorization": "Bearer corp-5up3r-s3cr3t"})
    assert "5up3r" not in next(tmp_path.glob("*.jsonl")).read_text()
    assert response_of(tmp_path)["error"].startswith("LocalProtocolError: Illegal header value")


def test_a_client_is_recorded_once(tmp_path):
    """A copy of an SDK's client shares its connections."""
    http = httpx2.Client(transport=transport(httpx2, wire.FORMATS["chat"][2]))
    client = openai.OpenAI(api_key="k", http_client=http)
    with SessionLogger(tmp_path, "s") as log:
        record(record(client, log).with_options(timeout=5), log)
        client.chat.completions.create(model="gpt-5", messages=[wire.ASKED])
        with pytest.raises(ValueError, match="recorded already"):
            record(client, SessionLogger(tmp_path, "other"))
    assert aggregate_usage(tmp_path).totals.requests == 1


def test_a_redirect_is_no_answer(tmp_path):
    """The request that follows has one."""

    def answer(request):
        if request.url.path.endswith("/"):
            return httpx2.Response(200, content=wire.FORMATS["chat"][2])
        return httpx2.Response(307, headers={"location": f"{wire.FORMATS['chat'][0]}/"})

    inner = RecordingTransport(httpx2.MockTransport(answer), directory=tmp_path)
    with httpx2.Client(transport=inner, follow_redirects=True) as client:
        assert client.post(wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1]).status_code == 200
    assert aggregate_usage(tmp_path).totals.requests == 1


def test_an_answer_that_nobody_reads_counts(tmp_path):
    """When the client is closed, at the latest."""
    client = httpx2.Client(transport=RecordingTransport(transport(httpx2, b"x", headers=SSE), directory=tmp_path))
    sent = client.send(client.build_request("POST", wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1]), stream=True)
    client.close()
    sent.close()
    assert [kind for kind, _ in events_of(tmp_path)][-2:] == ["llm.response", "session.end"]
    assert response_of(tmp_path)["partial"] == "cancelled"


def test_an_error_of_ours_does_not_keep_a_connection(tmp_path, monkeypatch):
    """Also where it reaches the host."""
    closed = []
    monkeypatch.setattr(Pieces, "close", lambda _: closed.append(1))
    monkeypatch.setattr("sessionlog.messages.answers.ChatCompletion.response_fields", None)
    log = SessionLogger(tmp_path, "s", on_error="raise", notify=lambda _: None)
    client = httpx2.Client(transport=RecordingTransport(transport(httpx2, b"{}"), log))
    with pytest.raises(NotRecorded), client.stream("POST", wire.FORMATS["chat"][0], json={}):
        pass
    assert closed == [1]


def test_a_body_that_is_not_packed_as_it_says_still_counts(tmp_path):
    """Without its tokens, and with a failure in health()."""
    headers = {**JSON, "content-encoding": "gzip"}
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    client = httpx2.Client(transport=RecordingTransport(transport(httpx2, b"plain", headers=headers), log))
    with log, client, client.stream("POST", wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1]) as response:
        assert b"".join(response.iter_raw()) == b"plain"
    assert aggregate_usage(tmp_path).totals.requests == 1
    assert log.health().dropped_by == {"integration": 1}


@pytest.mark.parametrize("packing", ["identity", "gzip"])
@pytest.mark.parametrize("headers", [JSON, SSE], ids=["whole", "stream"])
def test_a_body_with_more_bytes_than_are_read_passes(tmp_path, monkeypatch, headers, packing):
    """Packed zeros of any size take no memory; the host gets each byte, and the loss is counted once."""
    monkeypatch.setattr("sessionlog.integrations.http.MAX_BODY", 1 << 20)
    answer = wire.FORMATS["chat stream"][2] + bytes(4 << 20) + b"\n\n" + wire.FORMATS["chat stream"][2]
    sent = gzip.compress(answer) if packing == "gzip" else answer
    inner = transport(httpx2, sent, headers={**headers, "content-encoding": packing}, size=100_000)
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log, httpx2.Client(transport=RecordingTransport(inner, log)) as client:
        assert client.post(wire.FORMATS["chat"][0], json=wire.FORMATS["chat"][1]).content == answer
    assert response_of(tmp_path).get("content") == ("Let me look." if headers is SSE else None)
    assert log.health().dropped_by == {"integration": 1}
    assert "an answer of more than 1 MiB" in log.health().last_error


def test_an_error_that_calls_itself_a_stream(tmp_path):
    """Its body is JSON."""
    error = json.dumps({"error": {"type": "rate_limit_error", "message": "slow down"}}).encode()
    send(httpx2, "chat stream", tmp_path, answer=error, status=429)
    assert response_of(tmp_path)["error"] == "429 rate_limit_error: slow down"


def test_a_stream_is_recorded_with_its_last_event(tmp_path):
    """Before the host has the end of the body: what it sends next follows in the log."""
    for name in ("messages stream", "responses stream", "chat stream"):
        address, sent, answer, _ = wire.FORMATS[name]
        log = SessionLogger(tmp_path / name, "s")
        exchange = Exchanges(log, {}).open(address, lambda sent=sent: sent)
        exchange.expect(200, SSE["content-type"])
        exchange.add(answer[:-20])
        assert log.totals.responses == 0
        exchange.add(answer[-20:])
        assert log.totals.responses == 1
        exchange.end()
        log.close()
        assert response_of(tmp_path / name)["usage"]["output"] == 20


@pytest.mark.parametrize("status", [200, 401])
def test_p17_an_answer_that_quotes_a_credential(tmp_path, status):
    """In an error of the provider: values of headers and of the query; words such as `Bearer` stay."""
    error = {"error": {"type": "auth", "message": "no Bearer in corp-5up3r-s3cr3t, corp-5up3r-query"}}
    log = SessionLogger(tmp_path, "s")
    with httpx2.Client(
        transport=RecordingTransport(transport(httpx2, json.dumps(error).encode(), status), log)
    ) as client:
        headers = {"authorization": "Bearer corp-5up3r-s3cr3t"}
        client.post(f"{wire.FORMATS['chat'][0]}?api_key=corp-5up3r-query", json={}, headers=headers)
    log.close()
    assert response_of(tmp_path)["error"].endswith("auth: no Bearer in [credential], [credential]")
