"""`integrations.otel`: spans of the official instrumentations and of pydantic-ai become sessions."""

import asyncio
import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import anthropic
import httpx2
import openai
import pytest
from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode, use_span

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events
from sessionlog.cli import main
from sessionlog.errors import NotRecorded
from sessionlog.events.usage import read_usage
from sessionlog.integrations.otel import SessionLogSpanProcessor, session_id_of
from tests.integrations.wire import CHAT, CHAT_CHUNKS, MESSAGE, MESSAGE_EVENTS, RESPONSE, sse

OPENAI = {"input": 40, "output": 20, "cache_read": 60, "cache_write": 0, "reasoning": 5}
ANTHROPIC = {"input": 40, "output": 20, "cache_read": 60, "cache_write": 7, "reasoning": 0}
CALL = [{"id": "call_1", "name": "read", "arguments": {"path": "a.py"}}]
QUESTION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What does a.py do?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    ]},
    {"role": "tool", "tool_call_id": "c0", "content": "a.py"},
]  # fmt: skip


def answer(request):
    """What the server answers: an error for the model `bad`."""
    asked = json.loads(request.content)
    if asked["model"] == "bad":
        return httpx2.Response(429, json={"error": {"message": "no money left"}})
    whole, chunks = (MESSAGE, MESSAGE_EVENTS) if "messages" in request.url.path else (CHAT, CHAT_CHUNKS)
    if "responses" in request.url.path:
        whole = RESPONSE
    if asked.get("stream"):
        stream = sse(*chunks, named=whole is MESSAGE, done=whole is CHAT)
        return httpx2.Response(200, content=stream, headers={"content-type": "text/event-stream"})
    return httpx2.Response(200, json=whole)


def openai_client():
    """OpenAI's client; its server is in the test."""
    return openai.OpenAI(api_key="k", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def anthropic_client():
    """Anthropic's client; its server is in the test."""
    return anthropic.Anthropic(
        api_key="k", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(answer))
    )


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a processor, and the official instrumentations with it; returns the tracer."""
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    instrumentors = OpenAIInstrumentor(), AnthropicInstrumentor()

    def install(log=None, *, content="span_only", instrument=True, **options):
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", content)
        processor = SessionLogSpanProcessor(log, **options or ({} if log else {"directory": tmp_path}))
        spans, logs = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
        spans.add_span_processor(processor)
        logs.add_log_record_processor(processor)
        for one in instrumentors if instrument else ():
            one.instrument(tracer_provider=spans, logger_provider=logs)
        tracer = spans.get_tracer("app")
        tracer.processor, tracer.provider = processor, spans
        return tracer

    yield install
    for one in instrumentors:
        if one.is_instrumented_by_opentelemetry:
            one.uninstrument()


def logged(folder):
    """(type, data) of the events of the only log."""
    [path] = folder.glob("*.jsonl")
    return [(event.type, event.data) for event in read_events(path)]


def of_type(folder, kind):
    """The data of events of one type."""
    return [data for type_, data in logged(folder) if type_ == kind]


def counts(data):
    """The tokens of a response, without those that are no class of their own."""
    usage = read_usage(data["usage"])[0]
    return {name: getattr(usage, name) for name in OPENAI}


def totals(folder):
    """The report's totals, of logs without damage."""
    assert [check.damage for check in check_logs(str(folder)) if check.damage] == []
    return aggregate_usage(str(folder)).totals


def test_a_run_of_the_official_instrumentations_is_a_session(install, tmp_path, capsys):
    """A call with a tool call and a cache hit, a stream, an error, the Responses API, and another provider."""
    tracer = install()
    with tracer.start_as_current_span("fix the tests"):
        client = openai_client()
        client.chat.completions.create(model="gpt-5", messages=QUESTION, temperature=0.5, max_tokens=99)
        client.responses.create(model="gpt-5", input="And now?", instructions="Be brief.")
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="bad", messages=QUESTION)
        anthropic_client().messages.create(model="claude-haiku-4-5", max_tokens=9, messages=QUESTION[1:2])
    first, second, failed, other = of_type(tmp_path, "llm.response")
    assert [counts(one) for one in (first, second, other)] == [OPENAI, OPENAI, ANTHROPIC]
    assert (first["model"], first["requested_model"], first["provider"]) == ("gpt-5-2025-08-07", "gpt-5", "openai")
    assert (first["content"], first["tool_calls"], first["response_id"]) == ("Let me look.", CALL, "chatcmpl-1")
    assert first["finish_reason"] in ("tool_calls", "tool_call")
    assert "openai.RateLimitError: Error code: 429" in failed["error"]
    assert "usage" not in failed
    assert [part["type"] for part in other["message"]["content"]] == ["thinking", "text"]
    request = of_type(tmp_path, "llm.request")[0]
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "tool"]
    assert request["messages"][3] == {"role": "tool", "tool_call_id": "c0", "content": "a.py"}
    assert (request["temperature"], request["max_tokens"]) == (0.5, 99)
    assert of_type(tmp_path, "llm.request")[1]["messages"][0] == {"role": "system", "content": "Be brief."}
    [start] = of_type(tmp_path, "session.start")
    assert (start["prompt"], start["model"], start["provider"]) == ("What does a.py do?", "gpt-5", "openai")
    [end] = of_type(tmp_path, "session.end")
    assert (end["status"], end["output"]) == ("success", "Let me look.")
    sums = totals(tmp_path)
    assert (sums.sessions, sums.requests, sums.failed_requests) == (1, 4, 1)
    assert (sums.input_tokens, sums.cache_read_tokens, sums.cache_write_tokens, sums.output_tokens) == (120, 180, 7, 60)
    [path] = tmp_path.glob("*.jsonl")
    assert main(["replay", str(path), "--plain"]) == 0
    assert "What does a.py do?" in capsys.readouterr().out


def test_a_stream_has_its_time_to_the_first_chunk(install, tmp_path):
    """And the same counts as a whole answer."""
    install()
    list(openai_client().chat.completions.create(model="gpt-5", messages=QUESTION, stream=True))
    [response] = of_type(tmp_path, "llm.response")
    assert counts(response) == OPENAI
    assert 0 < response["time_to_first_token_ms"] <= response["latency_ms"]
    assert response["content"] == "Let me look."


def test_a_stream_that_is_left_is_one_request(install, tmp_path):
    """It has no counts, because the provider sends them last; the session ends all the same."""
    install()
    stream = openai_client().chat.completions.create(model="gpt-5", messages=QUESTION, stream=True)
    with stream:
        next(iter(stream))
    [response] = of_type(tmp_path, "llm.response")
    assert response.get("usage") is None
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"
    assert totals(tmp_path).requests == 1


@pytest.mark.parametrize(("mode", "has_content"), [("event_only", True), ("no_content", False)])
def test_messages_may_be_in_events_or_nowhere(install, tmp_path, mode, has_content):
    """The processor reads the events of the logger provider; the counts are the same."""
    install(content=mode)
    anthropic_client().messages.create(model="claude-haiku-4-5", max_tokens=9, messages=QUESTION[1:2])
    [response] = of_type(tmp_path, "llm.response")
    assert counts(response) == ANTHROPIC
    assert ("content" in response) == has_content
    assert ("messages" in of_type(tmp_path, "llm.request")[0]) == has_content


@pytest.fixture
def closed_loop():
    """pydantic-ai's `run_sync` leaves an event loop open."""
    yield
    with warnings.catch_warnings(), suppress(RuntimeError):
        warnings.simplefilter("ignore", DeprecationWarning)  # where there is no loop
        asyncio.get_event_loop().close()
    asyncio.set_event_loop(None)


@pytest.mark.usefixtures("closed_loop")
def test_the_spans_of_a_framework_around_the_client_s_count_once(install, tmp_path):
    """pydantic-ai's own spans, with the official instrumentation of its client inside: two requests and a tool."""
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    tracer = install()
    last = {
        **CHAT,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Prints."}}],
    }
    answers = iter([{**CHAT, "id": "chatcmpl-0123456789"}, {**last, "id": "chatcmpl-9876543210"}])
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=next(answers))))
    client = openai.AsyncOpenAI(api_key="k", http_client=http)
    settings = InstrumentationSettings(tracer_provider=tracer.provider)
    agent = Agent(
        OpenAIChatModel("gpt-5", provider=OpenAIProvider(openai_client=client)),
        name="reader",
        capabilities=[Instrumentation(settings)],
    )

    @agent.tool_plain
    def read(path: str) -> str:
        """Read a file."""
        return f"print({path!r})"

    assert agent.run_sync("What does a.py do?").output == "Prints."
    first, second = of_type(tmp_path, "llm.response")
    assert [counts(first), counts(second)] == [OPENAI, OPENAI]
    assert (first["tool_calls"][0]["name"], second["content"]) == ("read", "Prints.")
    [tool] = of_type(tmp_path, "tool.call")
    assert (tool["tool"], tool["input"], tool["output"], tool["id"]) == (
        "read",
        {"path": "a.py"},
        "print('a.py')",
        "call_1",
    )
    [start] = of_type(tmp_path, "session.start")
    assert (start["metadata"], start["prompt"]) == ({"agent": "reader"}, "What does a.py do?")
    assert totals(tmp_path).requests == 2


def test_the_spans_of_an_agent_sdk_and_its_client_are_one_session(install, tmp_path, monkeypatch):
    """The official instrumentations of OpenAI's Agents SDK and of its client: a workflow, an agent, a tool, two calls."""
    import agents
    from agents.tracing import get_trace_provider, set_trace_processors
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    from tests.integrations.test_openai_agents import agent_of, call_item, response_of, run, text_item

    kept = get_trace_provider()._multi_processor._processors
    tracer, instrumentor = install(), OpenAIAgentsInstrumentor()
    outputs = iter([call_item("weather", {"city": "Bonn"}), text_item("Rain.")])
    numbers = iter(range(10))
    set_trace_processors([])
    instrumentor.instrument(tracer_provider=tracer.provider)
    try:
        agent = agent_of(lambda asked: {**response_of(next(outputs), request=asked), "id": f"resp_{next(numbers):016}"})
        assert run(agent, "Weather?").final_output == "Rain."
    finally:
        instrumentor.uninstrument()
        agents.set_trace_processors(list(kept))
    responses, [tool] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "tool.call")
    assert [(counts(one)["input"], counts(one)["cache_read"]) for one in responses] == [(15, 100), (15, 100)]
    assert (tool["tool"], tool["input"], tool["output"], tool["id"]) == (
        "weather",
        {"city": "Bonn"},
        "rain in Bonn",
        "c1",
    )
    assert not any("agent" in one for one in (*responses, tool))
    [start] = of_type(tmp_path, "session.start")
    assert (start["prompt"], start["metadata"]) == ("Weather?", {"agent": "forecaster"})
    assert totals(tmp_path).success_sessions == 1


def begin(tracer, *, kind=SpanKind.CLIENT, tokens=(100, 20), **attributes):
    """Begin a span of a call of a model; `response__id` stands for `gen_ai.response.id`."""
    fields = {"operation__name": "chat", "provider__name": "anthropic", "request__model": "claude-haiku-4-5"}
    if tokens:
        fields |= {"usage__input_tokens": tokens[0], "usage__output_tokens": tokens[1]}
    named = {f"gen_ai.{name.replace('__', '.')}": value for name, value in (fields | attributes).items()}
    return tracer.start_span("chat", kind=kind, attributes=named)


def chat(tracer, **more):
    """The same as a context."""
    return use_span(begin(tracer, **more), end_on_exit=True)


@pytest.mark.parametrize("is_inside", [True, False])
def test_the_server_s_span_of_a_request_counts_once(install, tmp_path, is_inside):
    """Whether it is inside the client's or beside it; another request of the server counts."""
    tracer = install(instrument=False)
    server = tracer.provider.get_tracer("com.anthropic.claude-platform")
    response_id = "msg_0123456789abcdef"
    with tracer.start_as_current_span("run"):
        with chat(tracer, response__id=response_id) as span:
            if is_inside:
                begin(server, kind=SpanKind.SERVER, response__id=response_id).end()
            started = span.start_time
        if not is_inside:
            late = server.start_span("chat", kind=SpanKind.SERVER, start_time=started + 1)
            late.set_attributes({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-haiku-4-5",
                "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20,
            })  # fmt: skip
            late.end(started + 2)
        with chat(server, kind=SpanKind.SERVER, response__id="msg_fedcba9876543210"):
            pass
    assert len(of_type(tmp_path, "llm.response")) == 2


def test_a_call_around_several_requests_sums_them_up(install, tmp_path):
    """The inner ones are the requests: a retry of a client counts, too."""
    tracer = install(instrument=False)
    inner = tracer.provider.get_tracer("client")
    with chat(tracer, tokens=(300, 40)):
        with chat(inner, tokens=(200, 20)):
            pass
        with chat(inner, tokens=(100, 20)):
            pass
        with chat(inner, tokens=None) as failed:
            failed.set_status(Status(StatusCode.ERROR, "overloaded"))
    responses = of_type(tmp_path, "llm.response")
    assert [one.get("usage", {}).get("input") for one in responses] == [200, 100, None]
    assert responses[2]["error"] == "overloaded"


def test_the_calls_that_are_compared_are_few(install, tmp_path, monkeypatch):
    """Each is known by its id and by its tokens; the oldest are forgotten."""
    monkeypatch.setattr("sessionlog.integrations.otel._MOST_COMPARED", 3)
    tracer = install(instrument=False)
    with tracer.start_as_current_span("run") as run:
        trace = tracer.processor._open[run.get_span_context().span_id].trace
        for number in range(6):
            begin(tracer, tokens=(number, 1), response__id=f"msg_0123456789abcde{number}").end()
            assert len(trace.calls) <= 3
        begin(tracer, tokens=(5, 1), response__id="msg_0123456789abcde5").end()
    assert len(of_type(tmp_path, "llm.response")) == 6


def test_names_of_earlier_conventions_are_read(install, tmp_path):
    """And an input that leaves the cache out is taken as it is."""
    tracer = install(instrument=False)
    with tracer.start_as_current_span("run"):
        old = {"system": "openai", "usage__prompt_tokens": 90, "usage__completion_tokens": 9}
        begin(tracer, tokens=None, usage__cache_creation__input_tokens=30, **old).end()
        begin(tracer, tokens=(10, 9), usage__cache_read_input_tokens=50).end()
    usages = [counts(one) for one in of_type(tmp_path, "llm.response")]
    assert [(one["input"], one["cache_read"], one["cache_write"]) for one in usages] == [(60, 0, 30), (10, 50, 0)]


def test_agents_and_workflows_repeat_the_sum_of_their_calls(install, tmp_path):
    """They are no requests; a sub-agent's calls and tools have its name, and a failed run its error."""
    tracer = install(instrument=False)

    def invoke(agent):
        fields = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, "gen_ai.usage.input_tokens": 100}
        return tracer.start_as_current_span(f"invoke_agent {agent}", attributes=fields)

    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "ask",
        "gen_ai.tool.call.arguments": '{"q": 1}',
    }

    def run():
        with invoke("outer"):
            begin(tracer).end()
            with suppress(ValueError), invoke("inner"), tracer.start_as_current_span("t", attributes=tool):
                begin(tracer).end()
                raise ValueError("no")
            raise LookupError("lost")

    with pytest.raises(LookupError):
        run()
    assert [one.get("agent") for one in of_type(tmp_path, "llm.response")] == [None, "inner"]
    [call] = of_type(tmp_path, "tool.call")
    assert (call["tool"], call["input"], call["error"], call["agent"]) == ("ask", {"q": 1}, "ValueError: no", "inner")
    [end] = of_type(tmp_path, "session.end")
    assert (end["status"], end["error"]) == ("error", "LookupError: lost")
    assert totals(tmp_path).requests == 2


def test_a_cancelled_call_is_no_error(install, tmp_path):
    """It is partial, and a cancelled run is a cancelled session."""
    tracer = install(instrument=False)

    def run():
        with tracer.start_as_current_span("run") as run, chat(tracer, tokens=None) as span:
            for one in (run, span):
                one.set_attribute("error.type", "asyncio.exceptions.CancelledError")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run()
    [response] = of_type(tmp_path, "llm.response")
    assert (response["partial"], response.get("error")) == ("cancelled", None)
    assert of_type(tmp_path, "session.end")[0]["status"] == "cancelled"


def test_a_conversation_is_one_session_over_its_traces(install, tmp_path):
    """Its log has its id; traces beside each other and after each other continue it."""
    tracer = install(instrument=False)
    first = begin(tracer, conversation__id="talk-1")
    second = tracer.start_span("run", context={}, attributes={"gen_ai.conversation.id": "talk-1"})
    first.end()
    second.end()
    begin(tracer, conversation__id="talk-1").end()
    assert [path.name for path in tmp_path.iterdir()] == ["talk-1.jsonl"]
    sums = totals(tmp_path)
    assert (sums.sessions, sums.requests, sums.input_tokens) == (1, 2, 200)


def test_an_id_that_is_no_file_name_is_hashed():
    """A conversation's id may be the user's text."""
    assert session_id_of("a-1") == "a-1"
    assert session_id_of("../../etc/passwd").startswith("conversation-")
    assert session_id_of("a b") != session_id_of("a c")


def test_apps_without_models_leave_no_logs(install, tmp_path):
    """Their spans pass, and so do spans that began before the processor was there."""
    tracer = install(instrument=False)
    with tracer.start_as_current_span("GET /"), tracer.start_as_current_span("SELECT"):
        pass
    late = TracerProvider(shutdown_on_exit=False)
    span = late.get_tracer("app").start_span("chat", attributes={"gen_ai.operation.name": "chat"})
    late.add_span_processor(tracer.processor)
    span.end()
    assert list(tmp_path.iterdir()) == []


def test_a_given_logger_takes_all_traces(install, tmp_path):
    """Its owner ends it."""
    with SessionLogger(tmp_path, "mine") as log:
        tracer = install(log, instrument=False)
        for _ in range(2):
            begin(tracer).end()
        tracer.processor.shutdown()
        log.llm_response("still open")
    assert totals(tmp_path).requests == 3
    with pytest.raises(TypeError, match="leave out provider"):
        SessionLogSpanProcessor(log, provider="openai")


def test_shutdown_closes_what_has_not_ended(install, tmp_path):
    """These sessions count as unfinished."""
    tracer = install(instrument=False)
    with tracer.start_as_current_span("run"):
        begin(tracer).end()
        tracer.processor.shutdown()
    assert of_type(tmp_path, "session.end")[0]["status"] == "closed"


def test_a_child_that_ends_after_its_trace_is_in_the_session(install, tmp_path):
    """A stream may be read after the span around its beginning has ended."""
    tracer = install(instrument=False)
    with tracer.start_as_current_span("run"):
        begin(tracer).end()
        late = begin(tracer)
    assert of_type(tmp_path, "session.end") == []
    late.end()
    assert len(of_type(tmp_path, "llm.response")) == 2
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"


def test_spans_that_never_end_keep_few_sessions_open(install, tmp_path, monkeypatch):
    """Else a host that leaves streams unread would have no file descriptors left; a late call has a session again."""
    monkeypatch.setattr("sessionlog.integrations.otel._MOST_LATE", 3)
    tracer = install(instrument=False)
    late = []
    for number in range(10):
        with tracer.start_as_current_span("GET /"):
            begin(tracer, tokens=(number, 1)).end()
            late.append(begin(tracer, tokens=(100, number)))
    ended = [path for path in tmp_path.iterdir() if '"session.end"' in path.read_text()]
    assert len(ended) == 7
    for span in late:
        span.end()
    sums = totals(tmp_path)
    assert (sums.requests, sums.success_sessions, sums.unfinished_sessions) == (20, 17, 0)


ROUND_TRIP = [
    {"type": "tool_call", "id": "w1", "name": "web_search", "arguments": {"query": "weather"}},
    {"type": "tool_call_response", "id": "w1", "response": "rain"},
]


@pytest.mark.parametrize(
    ("parts", "content"), [([*ROUND_TRIP, {"type": "text", "content": "It rains."}], "It rains."), (ROUND_TRIP, None)]
)
def test_an_answer_with_a_tool_of_the_provider_is_recorded(install, tmp_path, parts, content):
    """The provider runs such tools itself, so that calls and results are in the answer; the results are not its text."""
    tracer = install(instrument=False)
    span = begin(tracer, tokens=(40, 20))
    span.set_attribute("gen_ai.output.messages", json.dumps([{"role": "assistant", "parts": parts}]))
    span.end()
    [response] = of_type(tmp_path, "llm.response")
    assert (response.get("content"), counts(response)["output"]) == (content, 20)
    assert [call["name"] for call in response["tool_calls"]] == ["web_search"]


@pytest.mark.parametrize(
    ("reasons", "found"), [(["length"], "length"), ("length", "length"), ([], None), ("", None), (5, None)]
)
def test_a_finish_reason_may_have_any_shape(install, tmp_path, reasons, found):
    """A text for a list, or nothing that can be read; messages without a reason of their own do not hide it."""
    tracer = install(instrument=False)
    span = begin(tracer)
    span.set_attribute("gen_ai.response.finish_reasons", reasons)
    span.set_attribute(
        "gen_ai.output.messages", '[{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]'
    )
    span.end()
    [response] = of_type(tmp_path, "llm.response")
    assert (response["content"], response.get("finish_reason")) == ("Hi", found)


class Hostile(str):
    """A text whose methods fail."""

    __slots__ = ()

    def rpartition(self, *_):
        raise LookupError("hostile")


@pytest.mark.parametrize("on_error", ["count", "raise"])
def test_errors_stay_with_the_logger(install, tmp_path, on_error):
    """They are counted; a host that asked for them gets them."""
    log = SessionLogger(tmp_path, "s", on_error=on_error, notify=lambda _: None)
    tracer = install(log, instrument=False)
    span = begin(tracer)
    span._attributes._dict["gen_ai.request.model"] = Hostile("gpt-5")
    if on_error == "raise":
        with pytest.raises(NotRecorded, match="hostile"):
            span.end()
    else:
        span.end()
        assert log.health().dropped_by == {"integration": 1}


def test_traces_of_many_threads_do_not_mix(install, tmp_path):
    """Each has its own session, and all of its calls; a hook that begins spans of its own does not block."""
    tracer = install(instrument=False, directory=tmp_path, redact=lambda text: tracer.start_span("hook").end() or text)

    def run(number):
        with tracer.start_as_current_span(f"run {number}"):
            for _ in range(5):
                begin(tracer, tokens=(number, 1)).end()

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(run, range(1, 21)))
    found = [[read_usage(data["usage"])[0].input for type_, data in events if type_ == "llm.response"]
             for events in ([(e.type, e.data) for e in read_events(path)] for path in tmp_path.glob("*.jsonl"))]  # fmt: skip
    assert sorted(found) == [[number] * 5 for number in range(1, 21)]
    assert totals(tmp_path).success_sessions == 20
