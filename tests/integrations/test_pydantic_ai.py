"""`integrations.pydantic_ai`: what agents ask of models and tools, with the library's own test doubles."""

import asyncio
import builtins
import subprocess
import sys
from decimal import Decimal
from importlib import import_module

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, ModelRetry, ToolReturn
from pydantic_ai.capabilities import ModelFallback, ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events, replay
from sessionlog.errors import MissingExtra, NotRecorded
from sessionlog.events.tokens import TokenUsage
from sessionlog.integrations import pydantic_ai as integration
from sessionlog.integrations.pydantic_ai import SessionLogCapability, read_tokens
from sessionlog.messages.message_json import message_to_dict
from sessionlog.messages.read import read_entry

CACHED = RequestUsage(
    input_tokens=100, cache_read_tokens=60, cache_write_tokens=20, output_tokens=10, output_reasoning_tokens=4
)


class City(BaseModel):
    """A structured output."""

    name: str
    people: int


def answers(*responses):
    """A model that gives these responses in order, each a text, a list of parts, or an error."""
    left = iter(responses)

    def answer(messages, info):
        given = next(left)
        if isinstance(given, Exception):
            raise given
        if isinstance(given, ModelResponse):
            return given
        parts = [TextPart(given)] if isinstance(given, str) else given
        return ModelResponse(parts=parts, usage=CACHED, finish_reason="stop")

    return FunctionModel(answer, model_name="double")


def streams(*pieces, error=None):
    """A model that streams these pieces, and then may fail; usage is the library's count of words."""

    async def stream(messages, info):
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)
        if error is not None:
            raise error

    return FunctionModel(stream_function=stream, model_name="double")


def recorded(folder, model, **kwargs):
    """An agent whose runs are recorded in a folder."""
    kwargs["capabilities"] = [*kwargs.get("capabilities", ()), SessionLogCapability(directory=folder)]
    return Agent(model, name="main", **kwargs)


def run(agent, prompt="?", **kwargs):
    """Run an agent in a loop that is closed afterwards; `run_sync` would keep its own."""
    return asyncio.run(agent.run(prompt, **kwargs))


def logs_of(folder):
    """The (type, data) of the events of each log in a folder, which is not damaged."""
    assert all(check.damaged == 0 and not check.notes for check in check_logs(folder))
    return [[(event.type, event.data) for event in read_events(path)] for path in sorted(folder.glob("*.jsonl"))]


def events_of(folder, kind):
    """The data of the events of a type in the only log of a folder."""
    [events] = logs_of(folder)
    return [data for found, data in events if found == kind]


def shown(folder):
    """The replay of the only log of a folder, as plain text."""
    [path] = folder.glob("*.jsonl")
    return "\n".join(replay(path))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (RequestUsage(input_tokens=100, output_tokens=10), TokenUsage(input=100, output=10)),
        (CACHED, TokenUsage(input=20, output=10, cache_read=60, cache_write=20, reasoning=4)),
        (RequestUsage(input_tokens=60, cache_read_tokens=60), TokenUsage(input=0, cache_read=60)),
        (
            RequestUsage(input_tokens=50, cache_write_tokens=30, cache_write_1h_tokens=10, output_tokens=1),
            TokenUsage(input=20, output=1, cache_write=30, cache_write_1h=10),
        ),
        (
            RequestUsage(input_tokens=9, input_audio_tokens=4, output_tokens=3, output_audio_tokens=2),
            TokenUsage(input=9, output=3),
        ),
        (
            RequestUsage(input_tokens=9, details={"reasoning_tokens": 2}, output_tokens=5),
            TokenUsage(input=9, output=5, reasoning=2),
        ),
        (RequestUsage(), None),
        (RequestUsage(unmeasured_requests=1), None),
    ],
)
def test_tokens_are_in_classes_that_do_not_overlap(usage, tokens):
    """The library's input includes cached tokens; a usage that the model has not reported is unknown, not zero."""
    assert read_tokens(usage) == tokens


def test_a_run_with_a_tool(tmp_path):
    """Each request is written before its response, with its prompt, settings and tools."""
    agent = recorded(
        tmp_path,
        answers([ThinkingPart("add"), ToolCallPart("add", {"a": 1, "b": 2}, "c1")], "three"),
        instructions="Be brief.",
        model_settings={"temperature": 0.5, "stop_sequences": ["x"], "extra_headers": {"authorization": "k"}},
    )

    @agent.tool_plain
    def add(a: int, b: int) -> dict[str, int]:
        """Add."""
        return {"sum": a + b}

    assert run(agent, "1 + 2?").output == "three"
    [events] = logs_of(tmp_path)
    assert [kind for kind, _ in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    start, first, response, tool, second, last, end = (data for _, data in events)
    assert (start["model"], start["provider"], start["prompt"]) == ("double", "function", "1 + 2?")
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 2?"}
    assert first["messages"] == [system, user]
    assert (first["model"], first["temperature"], first["stop"]) == ("double", 0.5, ["x"])
    assert "extra_headers" not in first
    assert (first["tools"][0]["name"], first["tools"][0]["description"]) == ("add", "Add.")
    assert set(first["tools"][0]["parameters"]["properties"]) == {"a", "b"}
    call = {"id": "c1", "name": "add", "arguments": {"a": 1, "b": 2}}
    assert response["tool_calls"] == [call]
    assert response["message"]["content"] == [{"type": "thinking", "text": "add"}]
    assert response["latency_ms"] > 0
    assert (tool["tool"], tool["id"], tool["input"], tool["output"]) == ("add", "c1", {"a": 1, "b": 2}, {"sum": 3})
    assert 0 < tool["duration_ms"] < 5000
    result = {"role": "tool", "content": '{"sum":3}', "name": "add", "tool_call_id": "c1"}
    assert second["messages"] == [system, user, response["message"], result]
    assert (last["content"], last["model"], last["provider"], last["finish_reason"]) == (
        "three", "double", "function", "stop",
    )  # fmt: skip
    assert (end["status"], end["output"]) == ("success", "three")
    [row] = aggregate_usage(tmp_path).rows
    tokens = (row.input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.output_tokens, row.reasoning_tokens)
    assert (row.requests, *tokens) == (2, 40, 120, 40, 20, 8)
    text = shown(tmp_path)
    for line in ("you ▸ 1 + 2?", "system ▸ Be brief.", "thinking ▸ add", '{"a":1,"b":2}', '│ {"sum":3}', "three"):
        assert text.count(line) == 1, line
    assert "2 requests · 1 tool ·" in text


def test_the_cost_that_the_library_knows(tmp_path):
    """It is kept, but no recorded cost: mostly it is an estimate of the library's own price list."""
    usage = RequestUsage(input_tokens=5, output_tokens=1, cost=Decimal("0.25"))
    run(recorded(tmp_path, answers(ModelResponse(parts=[TextPart("x")], usage=usage))))
    [response] = events_of(tmp_path, "llm.response")
    assert response["pydantic_ai_cost_usd"] == 0.25
    assert "cost_usd" not in response
    assert aggregate_usage(tmp_path).totals.known_nano is None


@pytest.mark.parametrize("way", ["run_stream", "run_stream_events", "iter", "event_stream_handler"])
def test_a_stream(tmp_path, way):
    """However it is read, there is one response, with all of it."""
    agent = recorded(tmp_path, streams("one ", "two ", "three"))

    async def drive():
        if way == "run_stream":
            async with agent.run_stream("count") as result:
                assert [piece async for piece in result.stream_text(delta=True, debounce_by=None)] == [
                    "one ", "two ", "three",
                ]  # fmt: skip
        elif way == "run_stream_events":
            async with agent.run_stream_events("count") as events:
                assert len([event async for event in events if isinstance(event, PartDeltaEvent)]) == 2
        elif way == "iter":
            async with agent.iter("count") as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for _ in stream:
                                pass
        else:

            async def handle(ctx, events):
                async for _ in events:
                    pass

            await agent.run("count", event_stream_handler=handle)

    asyncio.run(drive())
    [events] = logs_of(tmp_path)
    assert [kind for kind, _ in events] == ["session.start", "llm.request", "llm.response", "session.end"]
    data = events[2][1]
    assert (data["content"], data["usage"]["output"], data["model"]) == ("one two three", 3, "double")
    assert "partial" not in data
    assert (events[3][1]["status"], events[3][1]["output"]) == ("success", "one two three")
    assert aggregate_usage(tmp_path).totals.requests == 1


@pytest.mark.parametrize("way", ["task", "break", "cancel", "close"])
def test_a_cancelled_stream(tmp_path, way):
    """What was received is recorded, whoever ends it."""
    agent = recorded(tmp_path, streams("one ", "two ", "three"))

    async def pieces():
        async with agent.run_stream("count") as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                if way == "cancel":
                    await result.cancel()
                    return
                yield piece
                if way == "break":
                    break

    async def drive():
        received = pieces()
        if way in ("break", "cancel"):
            async for _ in received:
                pass
        elif way == "close":
            await anext(received)
            await received.aclose()
        else:

            async def read():
                async for _ in received:
                    asyncio.current_task().cancel()

            task = asyncio.create_task(read())
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(drive())
    [data] = events_of(tmp_path, "llm.response")
    assert (data["content"], data["partial"], data["usage"]["output"]) == ("one ", "cancelled", 1)
    assert "error" not in data
    assert events_of(tmp_path, "session.end")[0]["status"] == "cancelled"
    assert aggregate_usage(tmp_path).totals.output_tokens == 1


def test_a_cancelled_request(tmp_path):
    """One that is not streamed has nothing to keep."""

    async def drive():
        asked = asyncio.Event()

        async def wait(messages, info):
            asked.set()
            await asyncio.sleep(10)

        task = asyncio.create_task(recorded(tmp_path, FunctionModel(wait, model_name="double")).run("?"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(drive())
    [data] = events_of(tmp_path, "llm.response")
    assert data["partial"] == "cancelled"
    assert not data.keys() & {"error", "content", "usage"}


def test_an_error_of_the_model(tmp_path):
    """It passes unchanged, and ends the session."""
    error = RuntimeError("overloaded")
    with pytest.raises(RuntimeError) as caught:
        run(recorded(tmp_path, answers(error)))
    assert caught.value is error
    [data] = events_of(tmp_path, "llm.response")
    assert (data["error"], data["model"]) == ("RuntimeError: overloaded", "double")
    assert events_of(tmp_path, "session.end")[0]["status"] == "error"
    assert aggregate_usage(tmp_path).totals.failed_requests == 1
    assert "RuntimeError: overloaded" in shown(tmp_path)


@pytest.mark.parametrize("pieces", [(), ("one ", "two ")])
def test_an_error_in_a_stream(tmp_path, pieces):
    """What came before it is kept."""
    error = RuntimeError("lost")
    agent = recorded(tmp_path, streams(*pieces, error=error))

    async def drive():
        async with agent.run_stream("count") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pass

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(drive())
    assert caught.value is error
    [data] = events_of(tmp_path, "llm.response")
    assert data["error"] == "RuntimeError: lost"
    assert (data.get("content"), data.get("partial")) == (("one two ", "failed") if pieces else (None, None))


def test_an_error_of_a_tool(tmp_path):
    """It passes unchanged, with the call that it ended."""
    agent, error = recorded(tmp_path, answers([ToolCallPart("read", '{"path": "a"}', "c1")])), OSError("no disk")

    @agent.tool_plain
    def read(path: str) -> str:
        raise error

    with pytest.raises(OSError, match="no disk") as caught:
        run(agent)
    assert caught.value is error
    [tool] = events_of(tmp_path, "tool.call")
    assert (tool["tool"], tool["input"], tool["error"]) == ("read", {"path": "a"}, "OSError: no disk")
    assert events_of(tmp_path, "session.end")[0]["error"] == "OSError: no disk"
    assert "OSError: no disk" in shown(tmp_path)


def test_retries(tmp_path):
    """A tool that asks for another try, wrong arguments, an unknown tool, and two outputs that are not valid."""
    responses = [
        [ToolCallPart("double", {"n": "many"}, "c1"), ToolCallPart("triple", {"n": 1}, "c2")],
        [ToolCallPart("double", {"n": -1}, "c3")],
        "Paris",
        [ToolCallPart("final_result", {"name": "Paris"}, "c4")],
        [ToolCallPart("final_result", {"name": "Paris", "people": 2}, "c5")],
    ]
    agent = recorded(tmp_path, answers(*responses), output_type=City, retries=5)

    @agent.tool_plain
    def double(n: int) -> int:
        raise ModelRetry("give a positive number")

    assert run(agent).output == City(name="Paris", people=2)
    tools = {data["id"]: data for data in events_of(tmp_path, "tool.call")}
    assert list(tools) == ["c1", "c2", "c3", "c4"]
    assert tools["c1"]["error"].startswith("ValidationError: 1 validation error for double")
    assert tools["c1"]["input"] == {"n": "many"}
    assert tools["c2"]["error"].startswith("Unknown tool name: 'triple'.")
    assert tools["c3"]["error"] == "ModelRetry: give a positive number"
    assert '"Field required"' in tools["c4"]["error"]
    assert (tools["c4"]["tool"], tools["c4"]["input"]) == ("final_result", {"name": "Paris"})
    assert events_of(tmp_path, "session.end")[0]["output"] == '{"name": "Paris", "people": 2}'
    text = shown(tmp_path)
    for line in ("validation error for double", "Unknown tool name", "ModelRetry: give a positive", "Field required"):
        assert text.count(line) == 1, line
    assert "Invalid JSON" in text  # the text that was no output
    assert "5 requests · 4 tools (4 failed)" in text


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [("double", {"n": "many"}, "ValidationError"), ("triple", {}, "Unknown tool"), ("final_result", {}, "people")],
)
def test_the_last_of_too_many_retries(tmp_path, name, arguments, error):
    """No request follows it; it is recorded all the same, once."""
    calls = [[ToolCallPart(name, arguments, f"c{n}")] for n in range(3)]
    agent = recorded(tmp_path, answers(*calls), output_type=City, retries=1)

    @agent.tool_plain
    def double(n: int) -> int:
        return n

    with pytest.raises(UnexpectedModelBehavior):
        run(agent)
    tools = events_of(tmp_path, "tool.call")
    assert [tool["id"] for tool in tools] == ["c0", "c1"]
    assert all(error in tool["error"] for tool in tools)


def test_models_that_failed_before_the_one_that_answered(tmp_path):
    """Each is a response with its error, for a FallbackModel and for the capability."""
    down = ModelHTTPError(503, "double", "down")
    run(recorded(tmp_path / "1", FallbackModel(answers(down), answers("fine"))))
    with pytest.raises(ExceptionGroup):
        run(recorded(tmp_path / "2", FallbackModel(answers(down), answers(down))))
    run(recorded(tmp_path / "3", answers(down), capabilities=[ModelFallback(answers("fine"))]))
    found = [
        [data.get("error", data.get("content")) for data in events_of(tmp_path / name, "llm.response")]
        for name in "123"
    ]
    error = "ModelHTTPError: status_code: 503, model_name: double, body: down"
    assert found == [[error, "fine"], [error, error], [error, "fine"]]
    assert aggregate_usage(tmp_path / "1").totals.failed_requests == 1


def test_what_other_capabilities_change(tmp_path):
    """The request is as the model gets it, wherever this one stands in the list."""
    agent = Agent(
        answers("x"),
        capabilities=[
            SessionLogCapability(directory=tmp_path),
            ProcessHistory(lambda messages: [ModelRequest(parts=[UserPromptPart("cut")])]),
        ],
    )
    run(agent, "a long story")
    assert events_of(tmp_path, "llm.request")[0]["messages"] == [{"role": "user", "content": "cut"}]


def test_what_tools_return(tmp_path):
    """Models and files of pydantic become JSON; a call that waits for an approval is written when it is made."""
    calls = [ToolCallPart(name, {}, name) for name in ("city", "picture", "wrapped", "nothing", "strange", "drop")]
    agent = recorded(tmp_path, answers(calls), output_type=[str, DeferredToolRequests])
    png = BinaryContent(b"\x89PNG\xff\xfe", media_type="image/png")
    for name, value in {
        "city": City(name="Paris", people=2),
        "picture": ["see", png],
        "wrapped": ToolReturn("value", content="more"),
        "nothing": None,
        "strange": 1 + 2j,
    }.items():
        agent.tool_plain(_returning(value, name))

    @agent.tool_plain(requires_approval=True)
    def drop() -> str:
        return "dropped"

    asked = run(agent)
    assert [call.tool_name for call in asked.output.approvals] == ["drop"]
    outputs = {data["tool"]: data.get("output") for data in events_of(tmp_path, "tool.call")}
    assert outputs == {
        "city": {"name": "Paris", "people": 2},
        "picture": ["see", {"type": "binary", "media_type": "image/png", "data": png.base64}],
        "wrapped": "value",
        "nothing": None,
        "strange": "1+2j",
    }


def _returning(value, name):
    def tool():
        return value

    tool.__name__ = name
    return tool


def test_runs_of_sub_agents_are_in_the_session_of_the_root(tmp_path):
    """Marked with the agent's name; the usage of all is counted once."""
    helper = Agent(answers([ToolCallPart("look", {}, "h1")], "found"), name="helper",
                   capabilities=[SessionLogCapability(directory=tmp_path / "unused")])  # fmt: skip
    agent = recorded(tmp_path, answers([ToolCallPart("ask", {"question": "where?"}, "c1")], "there"))

    @helper.tool_plain
    def look() -> str:
        return "seen"

    @agent.tool_plain
    async def ask(question: str) -> str:
        return (await helper.run(question)).output

    run(agent, "go")
    agents = [(kind, data.get("agent")) for kind, data in logs_of(tmp_path)[0]]
    assert agents == [
        ("session.start", None), ("llm.request", None), ("llm.response", None), ("llm.request", "helper"),
        ("llm.response", "helper"), ("tool.call", "helper"), ("llm.request", "helper"), ("llm.response", "helper"),
        ("tool.call", None), ("llm.request", None), ("llm.response", None), ("session.end", None),
    ]  # fmt: skip
    assert not (tmp_path / "unused").exists()
    assert aggregate_usage(tmp_path).totals.requests == 4
    assert "sub-agent helper" in shown(tmp_path)
    helper_alone = Agent(answers("alone"), capabilities=[SessionLogCapability(directory=tmp_path / "own")])
    run(helper_alone)
    assert "agent" not in events_of(tmp_path / "own", "llm.response")[0]


def test_sub_agents_with_a_given_logger(tmp_path):
    """The same logger: they are marked; another one has them as runs of its own."""
    with SessionLogger(tmp_path, "a") as log, SessionLogger(tmp_path, "b") as other:
        same, apart = (
            Agent(answers("x"), name="same", capabilities=[SessionLogCapability(one)]) for one in (log, other)
        )
        agent = Agent(answers([ToolCallPart("ask", {})], "y"), capabilities=[SessionLogCapability(log)])

        @agent.tool_plain
        async def ask() -> str:
            return (await same.run("?")).output + (await apart.run("?")).output

        assert run(agent).output == "y"
    first, second = logs_of(tmp_path)
    assert [data.get("agent") for kind, data in first if kind == "llm.response"] == [None, "same", None]
    assert [data.get("agent") for kind, data in second if kind == "llm.response"] == [None]


def test_many_runs_at_once(tmp_path):
    """Nothing is mixed: 20 runs, 20 sessions."""

    async def answer(messages, info):
        await asyncio.sleep(0)
        prompt = messages[0].parts[0].content
        parts = [ToolCallPart("echo", {"text": prompt})] if len(messages) == 1 else [TextPart(f"answer to {prompt}")]
        return ModelResponse(parts=parts, usage=CACHED)

    agent = recorded(tmp_path, FunctionModel(answer, model_name="double"))

    @agent.tool_plain
    async def echo(text: str) -> str:
        await asyncio.sleep(0)
        return text

    async def drive():
        await asyncio.gather(*(agent.run(f"question {n}") for n in range(20)))

    asyncio.run(drive())
    logs = logs_of(tmp_path)
    assert len(logs) == 20
    for events in logs:
        prompt = events[0][1]["prompt"]
        assert [kind for kind, _ in events] == [
            "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
        ]  # fmt: skip
        assert events[3][1]["output"] == prompt
        assert events[-1][1]["output"] == f"answer to {prompt}"
    totals = aggregate_usage(tmp_path).totals
    assert (totals.sessions, totals.requests, totals.input_tokens, totals.cache_read_tokens) == (20, 40, 800, 2400)


def test_a_given_logger_has_all_runs(tmp_path):
    """Its owner ends it; runs that continue a history send the whole of it."""
    with SessionLogger(tmp_path, "s") as log:
        agent = Agent(answers("one", "two"), capabilities=[SessionLogCapability(log)])
        first = run(agent, "a")
        run(agent, "b", message_history=first.all_messages())
    kinds = [kind for kind, _ in logs_of(tmp_path)[0]]
    assert kinds == ["session.start", *["llm.request", "llm.response"] * 2, "session.end"]
    assert [message["content"] for message in events_of(tmp_path, "llm.request")[1]["messages"]] == ["a", "one", "b"]


@pytest.mark.parametrize("place", ["_tool_fields", "read_tokens", "_jsonable", "_plain_messages", "_milliseconds"])
def test_an_error_of_its_own_stays_with_the_logger(tmp_path, monkeypatch, place):
    """The run has the same result; health() has the cause."""

    def fail(*_, **__):
        raise LookupError("no such field")

    monkeypatch.setattr(integration, place, fail)
    with SessionLogger(tmp_path, "s", notify=lambda _: None) as log:
        agent = Agent(TestModel(), capabilities=[SessionLogCapability(log)])

        @agent.tool_plain
        def add(a: int) -> int:
            return a

        assert run(agent).output == '{"add":0}'
    lost = {"_tool_fields": 2, "read_tokens": 2, "_jsonable": 1, "_plain_messages": 4, "_milliseconds": 3}[place]
    assert log.health().dropped_by == {"integration": lost}
    assert log.health().last_error == "integration: no such field"


def test_errors_reach_a_host_that_asked_for_them(tmp_path, monkeypatch):
    """`on_error="raise"`."""
    monkeypatch.delattr(integration, "read_tokens")
    agent = Agent(TestModel(), capabilities=[SessionLogCapability(directory=tmp_path, on_error="raise",
                                                                  notify=lambda _: None)])  # fmt: skip
    with pytest.raises(NotRecorded, match="read_tokens"):
        run(agent)


@pytest.mark.parametrize(
    "message",
    [
        ModelRequest(parts=[]),
        ModelRequest(parts=[SystemPromptPart("s"), UserPromptPart("u")]),
        ModelRequest(parts=[UserPromptPart("u"), UserPromptPart("v")]),
        ModelRequest(parts=[UserPromptPart("u"), ToolReturnPart("t", "r", "1")]),
        ModelRequest(parts=[UserPromptPart(["u", ImageUrl("https://a.example/b.png")])]),
        ModelRequest(parts=[ToolReturnPart("t", "r", "1"), ToolReturnPart("t", "r", "2"), UserPromptPart("u")]),
        ModelRequest(parts=[ToolReturnPart("t", {"a": 1}, "1")]),
        ModelRequest(parts=[ToolReturnPart("t", "no", "1", outcome="denied")]),
        ModelResponse(parts=[]),
        ModelResponse(parts=[TextPart("a")]),
        ModelResponse(parts=[TextPart("a"), TextPart("b")]),
        ModelResponse(parts=[TextPart("a"), ToolCallPart("t", '{"a": 1}', "1"), ToolCallPart("t", None, "2")]),
        ModelResponse(parts=[ToolCallPart("t", '{"a": ', "1")]),
        ModelResponse(parts=[ThinkingPart("a"), TextPart("b")]),
        ModelResponse(parts=[FilePart(BinaryContent(b"a", media_type="image/png"))]),
    ],
)
def test_the_short_way_converts_as_the_long_one(message):
    """It leaves to that what it does not know."""
    made = integration._plain_messages(message)
    assert made is None or made == [message_to_dict(one) for one in read_entry(message).messages]


def test_wrong_options_are_errors_of_the_call(tmp_path):
    """Not of the first run."""
    with pytest.raises(TypeError):
        SessionLogCapability(directory=tmp_path, colour="red")
    with pytest.raises(TypeError, match="directory"):
        SessionLogCapability(SessionLogger(tmp_path), directory=tmp_path)


def test_without_the_library(monkeypatch):
    """One sentence says what to install."""
    monkeypatch.delitem(sys.modules, integration.__name__)
    monkeypatch.setattr(builtins, "__import__", _import_without(builtins.__import__))
    with pytest.raises(MissingExtra, match="pydantic-ai is not installed: pip install pydantic-ai-slim"):
        import_module(integration.__name__)


def _import_without(real):
    def find(name, *args, **kwargs):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name="pydantic_ai")
        return real(name, *args, **kwargs)

    return find


def test_sessionlog_does_not_import_it():
    """Only who names this module has the library loaded."""
    code = "import sessionlog, sys; sys.exit('pydantic_ai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
