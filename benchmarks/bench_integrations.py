"""What integrations cost their hosts, beyond writing the events: a call with and without one, in turn.

    pip install '.[test]' && python benchmarks/bench_integrations.py

The logger of these calls makes its events and writes none. The fastest of many rounds counts.
"""

import sys
import tempfile
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

import anthropic
import httpx2
import orjson
from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import GenericFakeChatModel
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from benchmarks.measure import print_table
from sessionlog import SessionLogger
from sessionlog.integrations.anthropic import SessionLogMiddleware
from sessionlog.integrations.http import RecordingTransport
from sessionlog.integrations.langchain import SessionLogHandler
from sessionlog.integrations.otel import SessionLogSpanProcessor
from sessionlog.integrations.pydantic_ai import SessionLogCapability

ROUNDS, CALLS, CHUNKS = 30, 20, 1000
ASKED = {"model": "gpt-5", "messages": [{"role": "user", "content": "What does a.py do?"}] * 10}
USAGE = {"prompt_tokens": 900, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 512}}
CHAT = "https://api.openai.com/v1/chat/completions"


class Unwritten(SessionLogger):
    """A logger that writes nothing."""

    def emit(self, type, data=None):  # noqa: A002 - as the logger's
        return True


class Body(httpx2.SyncByteStream):
    """A body in pieces."""

    def __init__(self, pieces):
        self.pieces = pieces

    def __iter__(self):
        return iter(self.pieces)


def server(pieces, kind):
    """A transport that always gives this answer."""
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"content-type": kind}, stream=Body(pieces)))


def chat(log, pieces, kind, asked):
    """A function that sends a request with httpx2 and reads the answer."""
    inner = server(pieces, kind)
    client = httpx2.Client(transport=inner if log is None else RecordingTransport(inner, log))
    return lambda: client.post(CHAT, json=asked).content


def plain_chat(log):
    """A whole answer."""
    message = {"role": "assistant", "content": "It prints a table."}
    answer = {
        "id": "1",
        "model": "gpt-5",
        "usage": USAGE,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    return chat(log, [orjson.dumps(answer)], "application/json", ASKED)


def streamed_chat(log):
    """An answer in a thousand chunks."""
    chunk = {
        "id": "1",
        "model": "gpt-5",
        "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}],
    }
    pieces = [b"data: " + orjson.dumps(chunk) + b"\n\n"] * CHUNKS
    return chat(log, pieces, "text/event-stream", {**ASKED, "stream": True})


def messages(log):
    """Anthropic's client."""
    answer = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "It prints a table."}], "usage": {"input_tokens": 900, "output_tokens": 12},
    }  # fmt: skip
    http = httpx2.Client(transport=server([orjson.dumps(answer)], "application/json"))
    middleware = [] if log is None else [SessionLogMiddleware(log)]
    client = anthropic.Anthropic(api_key="test", http_client=http, middleware=middleware)
    return lambda: client.messages.create(model="claude-haiku-4-5", max_tokens=99, messages=ASKED["messages"])


def langchain(log):
    """LangChain's fake model."""
    model = GenericFakeChatModel(messages=iter(lambda: "It prints a table.", None))
    handlers = [] if log is None else [SessionLogHandler(log)]
    return lambda: model.invoke("What does a.py do?", config={"callbacks": CallbackManager(handlers)})


def pydantic_ai(log):
    """A run of pydantic-ai's test model: one request."""
    agent = Agent(TestModel(call_tools=[]), capabilities=[] if log is None else [SessionLogCapability(log)])
    return lambda: agent.run_sync("What does a.py do?")


SPAN = {
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
    "gen_ai.response.id": "chatcmpl-0123456789abcdef", "gen_ai.response.model": "gpt-5-2025-08-07",
    "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 12, "gen_ai.usage.cache_read.input_tokens": 512,
}  # fmt: skip
"""Of a call whose messages are not captured."""


def spans(log):
    """A span of a call of a model in an open trace."""
    provider = TracerProvider(shutdown_on_exit=False)
    if log is not None:
        provider.add_span_processor(SessionLogSpanProcessor(log))
    tracer = provider.get_tracer("bench")
    run = tracer.start_as_current_span("run")
    run.__enter__()

    def call():
        number = time.perf_counter_ns()
        span = tracer.start_span("chat gpt-5", attributes={**SPAN, "gen_ai.response.id": f"chatcmpl-{number:020}"})
        span.end()

    call.run = run
    return call


def other_spans(log):
    """A span that has nothing to do with models."""
    provider = TracerProvider(shutdown_on_exit=False)
    if log is not None:
        provider.add_span_processor(SessionLogSpanProcessor(log))
    tracer = provider.get_tracer("bench")
    return lambda: tracer.start_span("SELECT", attributes={"db.system": "postgresql"}).end()


def microseconds(call):
    """The time of a call, of some in a row."""
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1e6


def main():
    """Measure in turn, and print a table."""
    hosts = {
        "httpx2, chat completion": (plain_chat, 1), f"httpx2, per chunk of {CHUNKS}": (streamed_chat, CHUNKS),
        "anthropic": (messages, 1), "langchain": (langchain, 1), "pydantic_ai, a run": (pydantic_ai, 1),
        "otel, a span of a model": (spans, 1), "otel, any other span": (other_spans, 1),
    }  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        for name, (host, parts) in hosts.items():
            alone, recorded = host(None), host(Unwritten(folder))
            times = [(microseconds(alone), microseconds(recorded)) for _ in range(ROUNDS)]
            before, after = (min(column) / parts for column in zip(*times, strict=True))
            rows.append([name, f"{before:.1f}", f"{after:.1f}", f"{after - before:.1f}"])
    print_table(["", "alone µs", "recorded", "difference"], rows)


if __name__ == "__main__":
    main()
