"""`integrations.openai_agents`: traces of the real SDK become sessions; its own models speak to a transport of the test."""

import asyncio
import json

import agents
import httpx2
import openai
import pytest
from agents import Agent, GuardrailFunctionOutput, InputGuardrail, RunConfig, Runner, function_tool
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from agents.tracing import generation_span, get_trace_provider, set_trace_processors
from agents.tracing.traces import TraceState, reattach_trace

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events
from sessionlog.cli import main
from sessionlog.events.usage import read_usage
from sessionlog.integrations import openai_agents as integration
from sessionlog.integrations.openai_agents import SessionLogProcessor
from sessionlog.messages.read import read_entries
from tests.integrations.wire import chat_chunk, sse

USAGE = {
    "input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 5},
    "output_tokens_details": {"reasoning_tokens": 10},
}  # fmt: skip
"""15 tokens of input that touched no cache."""
CHAT_USAGE = {
    "prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150, "prompt_tokens_details": {"cached_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 10},
}  # fmt: skip
MODEL = "gpt-5-2025-08-07"


def text_item(text):
    """An answer in the items of the Responses API."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def call_item(name, arguments, call_id="c1"):
    """A requested tool call."""
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}


def response_of(*output, request=None):
    """A response; the server repeats the instructions and the tools."""
    asked = request or {}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": "completed",
        "instructions": asked.get("instructions"), "tools": asked.get("tools", []), "tool_choice": "auto",
        "parallel_tool_calls": True, "temperature": 0.5, "output": list(output), "usage": USAGE,
    }  # fmt: skip


def events_of(text, response):
    """A stream: a delta for each word, and the response."""
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    for number, word in enumerate(text.split(" ")):
        yield {"type": "response.output_text.delta", "sequence_number": number, "delta": f"{word} ", **at}
    yield {"type": "response.completed", "sequence_number": 99, "response": response}


def client_of(reply):
    """A client whose answers are made by a function of the request: bytes are a stream, numbers are errors."""

    async def respond(request):
        asked = json.loads(request.content)
        made = reply(asked)
        if asyncio.iscoroutine(made):
            made = await made
        if isinstance(made, int):
            return httpx2.Response(made, json={"error": {"message": "no money left"}})
        if not isinstance(made, dict):
            return httpx2.Response(200, content=made, headers={"content-type": "text/event-stream"})
        return httpx2.Response(200, json=made)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
    return openai.AsyncOpenAI(api_key="k", http_client=http, max_retries=0)


def replies(*outputs):
    """A function that answers with these items, one list after the other; with a number, by an error."""
    rest = iter(outputs)

    def reply(asked):
        made = next(rest)
        if isinstance(made, int):
            return made
        response = response_of(*made, request=asked)
        if not asked.get("stream"):
            return response
        text = "".join(item["content"][0]["text"] for item in made if item["type"] == "message")
        return sse(*events_of(text, response), named=True)

    return reply


@function_tool(failure_error_function=lambda _, error: f"failed: {error}")
def weather(city: str) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"rain in {city}"


def agent_of(reply, **more):
    """An agent with a tool, on the SDK's own model."""
    model = OpenAIResponsesModel("gpt-5", client_of(reply))
    return Agent(**{"name": "forecaster", "instructions": "Be brief.", "tools": [weather], "model": model} | more)


def run(agent, question, **more):
    """Run an agent to its end."""
    return asyncio.run(Runner.run(agent, question, **more))


@pytest.fixture
def record(tmp_path):
    """Install a processor instead of the SDK's exporter."""
    kept = get_trace_provider()._multi_processor._processors

    def install(log=None, **options):
        processor = SessionLogProcessor(log, **options or ({} if log else {"directory": tmp_path}))
        agents.set_trace_processors([processor])
        return processor

    yield install
    set_trace_processors(list(kept))


def logged(folder):
    """The events of the only log, without those about the agents."""
    [path] = folder.glob("*.jsonl")
    return [(event.type, event.data) for event in read_events(path) if event.type != "progress"]


def of_type(folder, kind):
    """The payloads of one type in the only log."""
    [path] = folder.glob("*.jsonl")
    return [event.data for event in read_events(path) if event.type == kind]


def assert_sound(folder):
    """`check` finds nothing at all."""
    for checked in check_logs(folder):
        assert (checked.damage, checked.notes) == ((), ())


def counted(folder):
    """(requests, failed, input, cache read, cache write, output, reasoning) of a folder."""
    row = aggregate_usage(folder).totals
    return (
        row.requests, row.failed_requests, row.input_tokens, row.cache_read_tokens, row.cache_write_tokens,
        row.output_tokens, row.reasoning_tokens,
    )  # fmt: skip


def test_a_run_with_a_tool(tmp_path, record, capsys):
    """A trace is the session; its requests, the tool and the result are in it, and it reads well."""
    record()
    agent = agent_of(replies([call_item("weather", {"city": "Bonn"})], [text_item("Take an umbrella.")]))
    assert run(agent, "Weather in Bonn?").final_output == "Take an umbrella."
    assert [kind for kind, _ in logged(tmp_path)] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    [end], [call] = of_type(tmp_path, "session.end"), of_type(tmp_path, "tool.call")
    assert (end["status"], end["output"]) == ("success", "Take an umbrella.")
    assert (call["tool"], call["input"], call["output"], call["id"]) == (
        "weather", {"city": "Bonn"}, "rain in Bonn", "c1",
    )  # fmt: skip
    first, second = of_type(tmp_path, "llm.response")
    assert first["tool_calls"] == [{"id": "c1", "name": "weather", "arguments": '{"city": "Bonn"}'}]
    assert (second["content"], second["model"], second["finish_reason"]) == ("Take an umbrella.", MODEL, "completed")
    assert second["latency_ms"] > 0
    request = of_type(tmp_path, "llm.request")[1]
    assert (request["model"], request["temperature"], request["tools"][0]["name"]) == (MODEL, 0.5, "weather")
    messages = [message for entry in read_entries(request["messages"]) for message in entry.messages]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[2].tool_calls[0].id == messages[3].tool_call_id == "c1"
    assert of_type(tmp_path, "progress") == [{"phase": "agent", "state": "start", "subject": "forecaster"}]
    assert_sound(tmp_path)
    assert counted(tmp_path) == (2, 0, 30, 200, 10, 60, 20)

    assert main(["replay", str(next(tmp_path.glob("*.jsonl"))), "--plain"]) == 0
    shown = capsys.readouterr().out
    for line in ("Weather in Bonn?", "weather", "rain in Bonn", "Take an umbrella."):
        assert line in shown


def test_a_stream(tmp_path, record):
    """The whole response is in the span at its end."""
    record()

    async def work():
        result = Runner.run_streamed(agent_of(replies([text_item("It rains.")])), "Hi")
        return [event.type async for event in result.stream_events()]

    assert "raw_response_event" in asyncio.run(work())
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert (response["content"], response["model"], end["status"]) == ("It rains.", MODEL, "success")
    assert "partial" not in response
    assert counted(tmp_path) == (1, 0, 15, 100, 5, 30, 10)
    assert_sound(tmp_path)


def chat_reply(asked):
    """An answer of chat completions, whole or as a stream."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    if any(message["role"] == "tool" for message in asked["messages"]):
        delta = {"role": "assistant", "content": "Take an umbrella."}
    else:
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    if not asked.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": delta}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
        return {**head, "choices": [choice], "usage": CHAT_USAGE}
    if delta.get("tool_calls"):
        delta = {**delta, "tool_calls": [{"index": 0, **call}]}
    return sse(chat_chunk(delta), chat_chunk({}, "stop", usage=CHAT_USAGE), done=True)


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_completions(tmp_path, record, streamed):
    """Generation spans: their output is a message, or with a stream the response that the SDK makes of it."""
    record()
    agent = agent_of(None, model=OpenAIChatCompletionsModel("gpt-5", client_of(chat_reply)))

    async def work():
        if not streamed:
            return (await Runner.run(agent, "Weather in Bonn?")).final_output
        result = Runner.run_streamed(agent, "Weather in Bonn?")
        async for _ in result.stream_events():
            pass
        return result.final_output

    assert asyncio.run(work()) == "Take an umbrella."
    first, second = of_type(tmp_path, "llm.response")
    assert first["tool_calls"] == [{"id": "c1", "name": "weather", "arguments": '{"city": "Bonn"}'}]
    assert (second["content"], second["model"]) == ("Take an umbrella.", "gpt-5")
    [call], request = of_type(tmp_path, "tool.call"), of_type(tmp_path, "llm.request")[1]
    assert call["id"] == "c1"
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "tool"]
    assert counted(tmp_path) == (2, 0, 40, 200, 0, 60, 20)
    assert_sound(tmp_path)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_of_the_model_is_the_hosts(tmp_path, record, streamed):
    """It passes unchanged, and is in the response and in the end."""
    record()
    agent = agent_of(replies(429))

    async def work():
        if not streamed:
            await Runner.run(agent, "Hi")
        async for _ in Runner.run_streamed(agent, "Hi").stream_events():
            pass

    with pytest.raises(openai.RateLimitError):
        asyncio.run(work())
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert "no money left" in response["error"]
    assert (end["status"], "no money left" in end["error"]) == ("error", True)
    assert counted(tmp_path)[:2] == (1, 1)
    assert_sound(tmp_path)


def test_an_error_of_a_tool(tmp_path, record):
    """It is in tool.call with the text that the model gets, as the SDK redacts a handled one; the run succeeds."""
    record()
    agent = agent_of(replies([call_item("weather", {"city": "Atlantis"})], [text_item("It does not exist.")]))
    run(agent, "Weather in Atlantis?")
    [call], [end] = of_type(tmp_path, "tool.call"), of_type(tmp_path, "session.end")
    assert call["error"].startswith("Error running tool (non-fatal)")
    assert call["output"] == "failed: no such city"
    assert (end["status"], "error" in end) == ("success", False)
    assert_sound(tmp_path)


def test_an_error_of_a_tool_that_ends_the_run(tmp_path, record):
    """A tool without `failure_error_function`."""
    record()

    @function_tool(failure_error_function=None)
    def broken() -> str:
        """Always broken."""
        raise LookupError("no such thing")

    agent = agent_of(replies([call_item("broken", {})]), tools=[broken])
    with pytest.raises(agents.UserError, match="no such thing"):
        run(agent, "Hi")
    [call], [end] = of_type(tmp_path, "tool.call"), of_type(tmp_path, "session.end")
    assert "no such thing" in call["error"]
    assert (end["status"], "no such thing" in end["error"]) == ("error", True)
    assert_sound(tmp_path)


def test_an_error_outside_of_spans(tmp_path, record):
    """The host's own code in the trace; an exception that it was handling already is not an error of the trace."""
    record()
    with pytest.raises(LookupError), agents.trace("work"):
        raise LookupError("a host's error")
    [end] = of_type(tmp_path, "session.end")
    assert (end["status"], end["error"]) == ("error", "LookupError: a host's error")
    next(tmp_path.glob("*.jsonl")).unlink()
    try:
        {}["earlier"]
    except KeyError:
        with agents.trace("work"):
            pass
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"


def test_a_cancelled_call(tmp_path, record):
    """The response is partial, and the session is cancelled."""
    record()

    async def work():
        asked = asyncio.Event()

        async def forever(_):
            asked.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(Runner.run(agent_of(forever), "Hi"))
        await asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(work())
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert (response["partial"], "error" in response, end["status"]) == ("cancelled", False, "cancelled")
    assert_sound(tmp_path)


def test_a_cancelled_stream(tmp_path, record):
    """Spans do not hold the pieces of a stream that does not end: the response has no text."""
    record()

    async def hanging():
        yield sse(next(events_of("one two", {})), named=True)
        await asyncio.Event().wait()

    async def work():
        result = Runner.run_streamed(agent_of(lambda _: hanging()), "Count")
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                result.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(work())
    [response], [end] = of_type(tmp_path, "llm.response"), of_type(tmp_path, "session.end")
    assert (response["partial"], response.get("content")) == ("cancelled", None)
    assert end["status"] == "cancelled"
    assert_sound(tmp_path)


def test_a_model_whose_generator_is_left(tmp_path, record):
    """Its span may end after the trace: it is recorded with the trace, once."""
    record()
    model = OpenAIResponsesModel("gpt-5", client_of(replies([text_item("one two")])))

    async def work():
        with agents.trace("work"):
            stream = model.stream_response(
                None, "Count", agents.ModelSettings(), [], None, [], agents.ModelTracing.ENABLED,
                previous_response_id=None, conversation_id=None, prompt=None,
            )  # fmt: skip
            await anext(stream)
        await stream.aclose()

    asyncio.run(work())
    assert [kind for kind, _ in logged(tmp_path)] == ["session.start", "llm.request", "llm.response", "session.end"]
    assert of_type(tmp_path, "llm.response")[0]["partial"] == "cancelled"
    assert_sound(tmp_path)


def test_runs_beside_each_other_do_not_mix(tmp_path, record):
    """Twenty at once with one processor: each session has its own question, answer and tool."""
    processor = record()

    async def reply(asked):
        await asyncio.sleep(0)
        question, last = asked["input"][0]["content"], asked["input"][-1]
        if last.get("type") == "function_call_output":
            return response_of(text_item(f"answer to {question}: {last['output']}"))
        return response_of(call_item("weather", {"city": question}, f"call-{question}"))

    async def work():
        agent = agent_of(reply)
        return await asyncio.gather(*(Runner.run(agent, f"q{n}") for n in range(20)))

    assert [result.final_output for result in asyncio.run(work())] == [
        f"answer to q{n}: rain in q{n}" for n in range(20)
    ]
    seen = set()
    for path in tmp_path.glob("*.jsonl"):
        events = [event for event in read_events(path) if event.type != "progress"]
        question = events[1].data["messages"][-1]["content"]
        seen.add(question)
        assert [event.type for event in events] == [
            "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
        ]  # fmt: skip
        assert (events[3].data["input"], events[3].data["id"]) == ({"city": question}, f"call-{question}")
        assert events[-1].data["output"] == f"answer to {question}: rain in {question}"
    assert seen == {f"q{n}" for n in range(20)}
    assert_sound(tmp_path)
    assert counted(tmp_path) == (40, 0, 600, 4000, 200, 1200, 400)
    assert processor._traces == {}


def test_several_runs_of_one_trace_with_a_handoff_and_a_guardrail(tmp_path, record):
    """One session; agents, handoffs and guardrails that were triggered are events of the type `progress`."""
    record()
    second = agent_of(replies([text_item("I am the second.")]), name="second")
    first = agent_of(replies([call_item("transfer_to_second", {})]), name="first", handoffs=[second])
    guard = InputGuardrail(lambda *_: GuardrailFunctionOutput(None, tripwire_triggered=True), name="no questions")

    def work():
        with agents.trace("work"):
            run(first, "Hi")
            run(agent_of(replies([text_item("")]), input_guardrails=[guard]), "Hi")

    with pytest.raises(agents.InputGuardrailTripwireTriggered):
        work()
    shown = [(data["phase"], data["subject"]) for data in of_type(tmp_path, "progress")]
    assert shown[:3] == [("agent", "first"), ("handoff", "second"), ("agent", "second")]
    assert ("guardrail", "no questions") in shown
    [end] = of_type(tmp_path, "session.end")
    assert (end["status"], "no questions" in end["error"]) == ("error", True)
    assert_sound(tmp_path)


def test_a_run_that_is_resumed(tmp_path, record):
    """The SDK reports no start and no end of its trace: a session ends with the outermost span."""
    processor = record()
    with reattach_trace(TraceState(trace_id="trace_1", workflow_name="work")), agents.agent_span("forecaster"):
        data = {"input": [{"role": "user", "content": "Hi"}], "model": "gpt-5", "usage": USAGE}
        with generation_span(output=[{"role": "assistant", "content": "Hello."}], **data):
            assert [kind for kind, _ in logged(tmp_path)] == ["session.start", "llm.request"]
    assert [kind for kind, _ in logged(tmp_path)] == ["session.start", "llm.request", "llm.response", "session.end"]
    assert of_type(tmp_path, "llm.response")[0]["content"] == "Hello."
    assert processor._traces == {}
    assert_sound(tmp_path)


def test_data_that_the_host_redacts_is_not_in_the_log(tmp_path, record):
    """`trace_include_sensitive_data=False`: the counts remain, and the error's text is the SDK's."""
    record()
    config = RunConfig(trace_include_sensitive_data=False)
    run(agent_of(replies([text_item("secret answer")])), "secret question", run_config=config)
    assert counted(tmp_path) == (1, 0, 15, 100, 5, 30, 10)
    with pytest.raises(openai.RateLimitError):
        run(agent_of(replies(429)), "secret question", run_config=config)
    for path in tmp_path.glob("*.jsonl"):
        text = path.read_text()
        assert "secret" not in text
        assert "no money" not in text
    assert_sound(tmp_path)


def test_thoughts_and_refusals(tmp_path, record):
    """The summary of the reasoning is in `message`; a refusal is the answer's text."""
    record()
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A crime."}]}
    refusal = {**text_item(""), "content": [{"type": "refusal", "refusal": "No."}]}
    model = OpenAIResponsesModel("gpt-5", client_of(replies([reasoning, refusal])))
    with agents.trace("work"):
        asyncio.run(model.get_response(
            None, "Hi", agents.ModelSettings(), [], None, [], agents.ModelTracing.ENABLED,
            previous_response_id=None, conversation_id=None, prompt=None,
        ))  # fmt: skip
    [response] = of_type(tmp_path, "llm.response")
    assert response["content"] == "No."
    assert response["message"]["content"] == [{"type": "thinking", "text": "A crime."}, {"type": "text", "text": "No."}]
    assert_sound(tmp_path)


def test_a_given_logger_has_all_traces(tmp_path, record):
    """Its owner ends it, also after an error of a trace."""
    with SessionLogger(tmp_path, "s") as log:
        processor = record(log)
        run(agent_of(replies([text_item("one")])), "Hi")
        with pytest.raises(LookupError), agents.trace("work"):
            raise LookupError
        run(agent_of(replies([text_item("two")])), "Hi")
        processor.shutdown()
    kinds = [kind for kind, _ in logged(tmp_path)]
    assert kinds == ["session.start", *["llm.request", "llm.response"] * 2, "session.end"]
    assert of_type(tmp_path, "session.end")[0]["status"] == "success"


def test_shutdown_closes_what_is_open(tmp_path, record):
    """The session counts as unfinished."""
    processor = record()
    trace = agents.trace("work")
    trace.start()
    processor.force_flush()
    processor.shutdown()
    trace.finish()
    assert of_type(tmp_path, "session.end")[0]["status"] == "closed"


def test_a_failure_of_the_integration_stays_in_it(tmp_path, record, monkeypatch):
    """The host's result is the same; health() has the cause."""

    def broken(*_):
        raise LookupError("a field that is gone")

    monkeypatch.setattr(integration, "_response_fields", broken)
    monkeypatch.setattr(integration, "_parsed", broken)
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log:
        record(log)
        agent = agent_of(replies([call_item("weather", {"city": "Bonn"})], [text_item("Take an umbrella.")]))
        assert run(agent, "Hi").final_output == "Take an umbrella."
    assert log.health().dropped_by == {"integration": 3}


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (USAGE, {"input": 15, "output": 30, "cache_read": 100, "cache_write": 5, "reasoning": 10}),
        ({**USAGE, "requests": 1}, {"input": 15, "output": 30, "cache_read": 100, "cache_write": 5, "reasoning": 10}),
        ({"requests": 1, "input_tokens": 7, "output_tokens": 3, "total_tokens": 10}, {"input": 7, "output": 3}),
        ({"input_tokens": 7, "input_tokens_details": {"cached_tokens": 9}}, {"input": 7, "cache_read": 9}),
        ({"input_tokens": 7, "input_tokens_details": None, "output_tokens": None}, {"input": 7}),
    ],
)
def test_token_classes_are_disjoint(usage, counts):
    """The input of spans includes what was cached."""
    assert read_usage(usage)[0].to_dict().items() >= counts.items()
