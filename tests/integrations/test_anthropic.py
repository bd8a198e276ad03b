"""`integrations.anthropic`: the real client with our middleware, against a transport of the test."""

import asyncio
import json

import anthropic
import httpx2
import pytest

from sessionlog import SessionLogger, aggregate_usage, read_events
from sessionlog.integrations.anthropic import SessionLogMiddleware
from tests.integrations import wire

ASKED = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [wire.ASKED]}


def server(status=200):
    """A transport that answers as Anthropic does; in small pieces where a stream is asked for."""

    def answer(request):
        if status != 200:
            error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            return httpx2.Response(status, json=error)
        if json.loads(request.content).get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())
        return httpx2.Response(200, json=wire.MESSAGE)

    return httpx2.MockTransport(answer)


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A stream of events in pieces of 100 bytes."""

    def __iter__(self):
        sent = wire.FORMATS["messages stream"][2]
        yield from (sent[start : start + 100] for start in range(0, len(sent), 100))

    async def __aiter__(self):
        for piece in self:
            yield piece


def client_of(folder, status=200, **options):
    """A client with the middleware, and its logger."""
    log = SessionLogger(folder, "s", notify=lambda _: None)
    http = httpx2.Client(transport=server(status))
    middleware = [SessionLogMiddleware(log)]
    return anthropic.Anthropic(api_key="k", http_client=http, middleware=middleware, max_retries=0, **options), log


def responses(folder):
    """The data of the responses in the log."""
    return [event.data for event in read_events(folder / "s.jsonl") if event.type == "llm.response"]


def test_messages_and_streams_are_recorded(tmp_path):
    """Text, thinking, calls and tokens of both."""
    client, log = client_of(tmp_path)
    with log:
        assert client.messages.create(**ASKED).content[1].text == "Let me look."
        with client.messages.stream(**ASKED) as stream:
            assert "".join(stream.text_stream) == "Let me look."
            assert stream.get_final_message().usage.output_tokens == 20
    for data in responses(tmp_path):
        assert (data["content"], data["model"]) == ("Let me look.", "claude-haiku-4-5-20251001")
        assert data["message"]["content"][0] == {"type": "thinking", "thinking": "A file."}
        assert data["tool_calls"] == [{"id": "toolu_1", "name": "read", "arguments": {"path": "a.py"}}]
        assert "partial" not in data
    totals = aggregate_usage(tmp_path).totals
    assert (totals.requests, totals.input_tokens, totals.cache_read_tokens, totals.cache_write_tokens) == (
        2,
        80,
        120,
        14,
    )
    assert log.health().ok


def test_the_async_client(tmp_path):
    """Also left in the middle of a stream."""

    async def run(log):
        http = httpx2.AsyncClient(transport=server())
        client = anthropic.AsyncAnthropic(api_key="k", http_client=http, middleware=[SessionLogMiddleware(log)])
        assert (await client.messages.create(**ASKED)).stop_reason == "tool_use"
        async with client.messages.stream(**ASKED) as stream:
            async for text in stream.text_stream:
                assert text == "Let me "
                break

    with SessionLogger(tmp_path, "s") as log:
        asyncio.run(run(log))
    whole, left = responses(tmp_path)
    assert whole["content"] == "Let me look."
    assert (left["content"], left["partial"]) == ("Let me ", "cancelled")


def test_errors_reach_the_host_and_the_log(tmp_path):
    """The client's own exception, and the provider's words."""
    client, log = client_of(tmp_path, status=529)
    with log, pytest.raises(anthropic.InternalServerError):
        client.messages.create(**ASKED)
    [data] = responses(tmp_path)
    assert data["error"] == "529 overloaded_error: Overloaded"


def test_an_error_of_ours_never_reaches_the_host(tmp_path, monkeypatch):
    """It is counted."""
    monkeypatch.setattr("sessionlog.messages.answers.AnthropicMessage.response_fields", None)
    client, log = client_of(tmp_path)
    with log:
        assert client.messages.create(**ASKED).content[1].text == "Let me look."
    assert log.health().dropped_by == {"integration": 1}


def test_a_session_of_its_own(tmp_path):
    """It ends when the middleware is closed."""
    middleware = SessionLogMiddleware(directory=tmp_path, session_id="s")
    http = httpx2.Client(transport=server())
    anthropic.Anthropic(api_key="k", http_client=http, middleware=[middleware]).messages.create(**ASKED)
    middleware.close()
    assert [event.type for event in read_events(tmp_path / "s.jsonl")][-1] == "session.end"
    assert aggregate_usage(tmp_path).rows[0].keys == {"provider": "anthropic", "model": "claude-haiku-4-5"}


class Cache(anthropic.Middleware):
    """Answers in place of the server, as the client allows it."""

    def handle(self, request, call_next):
        """Return a message."""
        return anthropic.types.Message.model_validate(wire.MESSAGE)


def test_another_middleware_may_answer(tmp_path):
    """The host gets what that one returned; nothing was sent, so nothing was used."""
    with SessionLogger(tmp_path, "s") as log:
        client = anthropic.Anthropic(api_key="k", middleware=[SessionLogMiddleware(log), Cache()])
        assert client.messages.create(**ASKED).content[1].text == "Let me look."
    assert responses(tmp_path)[0]["partial"] == "cancelled"
    assert aggregate_usage(tmp_path).totals.total_tokens == 0
