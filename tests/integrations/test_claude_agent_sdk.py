"""`integrations.claude_agent_sdk`: streams of stand-ins, and one test that holds the stand-ins against the real SDK.

The SDK has 397 MB, so it is in no extra: `pip install claude-agent-sdk` and `pytest -m slow` run that test.
"""

import asyncio
import dataclasses
import json
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pytest

from sessionlog import SessionLogger, aggregate_usage, check_logs, read_events, replay
from sessionlog.integrations import claude_agent_sdk
from sessionlog.integrations.claude_agent_sdk import record


@dataclass
class TextBlock:
    """A stand-in."""

    text: str


@dataclass
class ThinkingBlock:
    """A stand-in."""

    thinking: str
    signature: str


@dataclass
class ToolUseBlock:
    """A stand-in."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    """A stand-in."""

    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


@dataclass
class ServerToolUseBlock:
    """A stand-in."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ServerToolResultBlock:
    """A stand-in."""

    tool_use_id: str
    content: dict[str, Any]


@dataclass
class UserMessage:
    """A stand-in."""

    content: Any
    parent_tool_use_id: str | None = None


@dataclass
class AssistantMessage:
    """A stand-in."""

    content: list[Any]
    model: str
    parent_tool_use_id: str | None = None
    error: str | None = None
    usage: dict[str, Any] | None = None
    message_id: str | None = None
    stop_reason: str | None = None


@dataclass
class SystemMessage:
    """A stand-in."""

    subtype: str
    data: dict[str, Any]


@dataclass
class StreamEvent:
    """A stand-in."""

    uuid: str
    session_id: str
    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@dataclass
class ConversationResetMessage:
    """A stand-in."""

    new_conversation_id: str
    uuid: str
    session_id: str


@dataclass
class ResultMessage:
    """A stand-in."""

    subtype: str
    duration_ms: int
    duration_api_ms: int
    is_error: bool
    num_turns: int
    session_id: str
    stop_reason: str | None = None
    total_cost_usd: float | None = None
    usage: dict[str, Any] | None = None
    result: str | None = None
    model_usage: dict[str, Any] | None = None
    permission_denials: list[Any] | None = None
    errors: list[str] | None = None
    terminal_reason: str | None = None


STAND_INS = (
    TextBlock, ThinkingBlock, ToolUseBlock, ToolResultBlock, ServerToolUseBlock, ServerToolResultBlock, UserMessage,
    AssistantMessage, SystemMessage, StreamEvent, ConversationResetMessage, ResultMessage,
)  # fmt: skip
MODEL = "claude-opus-4-5"
INIT = SystemMessage("init", {"subtype": "init", "model": MODEL, "cwd": "/srv/app", "session_id": "c1"})
FIRST = {"input_tokens": 12, "output_tokens": 40, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 30}
SECOND = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 930, "cache_creation_input_tokens": 0}
BOTH = {"input_tokens": 17, "output_tokens": 47, "cache_read_input_tokens": 1830, "cache_creation_input_tokens": 30}


@pytest.fixture(autouse=True)
def _no_past():
    claude_agent_sdk._past.clear()


def assistant(*blocks, of="m1", usage=None, **more):
    """One of the messages of a response."""
    return AssistantMessage(list(blocks), MODEL, message_id=of, usage=usage, **more)


def result(total=0.25, session="c1", **more):
    """The last message of a run."""
    known = {"subtype": "success", "is_error": False, "result": "3 tests pass", "usage": BOTH}
    return ResultMessage(
        **{"duration_ms": 9, "duration_api_ms": 8, "num_turns": 2, "session_id": session, "total_cost_usd": total}
        | known | more
    )  # fmt: skip


def answered(call, content="3 passed", **more):
    """A tool's result."""
    return UserMessage([ToolResultBlock(call, content, **more)])


def run_with_tool(session="c1"):
    """A run of two responses, the first in three messages, and one tool."""
    start = dict(FIRST, output_tokens=1)
    return [
        dataclasses.replace(INIT, data=INIT.data | {"session_id": session}),
        assistant(ThinkingBlock("they want tests", "sig"), usage=start),
        assistant(TextBlock("Running the tests."), usage=start),
        assistant(ToolUseBlock("t1", "Bash", {"command": "pytest"}), usage=FIRST, stop_reason="tool_use"),
        answered("t1"),
        assistant(TextBlock("3 tests pass"), of="m2", usage=SECOND, stop_reason="end_turn"),
        result(session=session),
    ]


async def stream(messages, error=None):
    """The messages, with a turn of the event loop before each; an exception is raised, a future awaited."""
    for message in messages:
        await asyncio.sleep(0)
        if isinstance(message, asyncio.Future):
            await message
        else:
            yield message
    if error is not None:
        raise error


def recorded(folder, messages, error=None, **options):
    """Record a stream in a session of its own; return the events of its log."""

    async def run():
        return [one async for one in record(stream(messages, error), directory=folder, **options)]

    got = asyncio.run(run())
    assert [id(one) for one in got] == [id(one) for one in messages]
    return events_of(folder)


def events_of(folder):
    """The events of the only log, which is well formed."""
    (path,) = folder.glob("*.jsonl")
    (check,) = check_logs(path)
    assert (check.damaged, check.notes) == (0, ())
    return list(read_events(path))


def of_type(events, kind):
    """The payloads of one type."""
    return [event.data for event in events if event.type == kind]


def usage_of(folder):
    """What reports count: requests, input, cache reads, cache writes, output."""
    row = aggregate_usage(folder).totals
    return row.requests, row.input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.output_tokens


def test_a_run_with_a_tool(tmp_path):
    """Messages of one id are one response; the result's tokens are not counted again, its cost is the session's."""
    events = recorded(tmp_path, run_with_tool(), prompt="run the tests")
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    start, asked, answer, call, again, last, end = (event.data for event in events)
    assert (start["prompt"], start["model"], start["provider"]) == ("run the tests", MODEL, "anthropic")
    assert (start["work_dir"], start["metadata"]) == ("/srv/app", {"claude_session": "c1"})
    assert asked["messages"] == [{"role": "user", "content": "run the tests"}]
    assert (answer["content"], answer["reasoning"]) == ("Running the tests.", "they want tests")
    assert answer["tool_calls"] == [{"id": "t1", "name": "Bash", "arguments": {"command": "pytest"}}]
    assert (answer["model"], answer["finish_reason"]) == (MODEL, "tool_use")
    assert (call["tool"], call["id"], call["output"]) == ("Bash", "t1", "3 passed")
    assert call["duration_ms"] >= 0
    assert again["earlier_messages"] == 1
    assert [message["role"] for message in again["messages"]] == ["assistant", "user"]
    assert last["latency_ms"] >= 0
    assert (end["status"], end["output"], end["cost_usd"], end["num_turns"]) == ("success", "3 tests pass", 0.25, 2)
    assert usage_of(tmp_path) == (2, 17, 1830, 30, 47)
    assert aggregate_usage(tmp_path).totals.known_nano == 250_000_000


def test_replay(tmp_path):
    """The log reads as the run went."""
    recorded(tmp_path, run_with_tool(), prompt="run the tests")
    [path] = tmp_path.glob("*.jsonl")
    text = "\n".join(replay(path))
    for line in (
        "run the tests",
        "they want tests",
        "Running the tests.",
        "Bash",
        "pytest",
        "3 passed",
        "3 tests pass",
    ):
        assert line in text
    assert text.index("Bash") < text.index("3 passed") < text.rindex("3 tests pass")


@pytest.mark.parametrize(
    ("usages", "counts"),
    [
        ([FIRST], (12, 900, 30, 40)),
        ([dict(FIRST, output_tokens=1), FIRST], (12, 900, 30, 40)),
        ([FIRST, None], (12, 900, 30, 40)),
        ([{"input_tokens": 3, "output_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": 0}}], (3, 0, 0, 2)),
        ([{"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 7}], (0, 7, 0, 0)),
    ],
)
def test_the_last_usage_is_the_whole(tmp_path, usages, counts):
    """Input tokens do not include the cached ones."""
    blocks = [assistant(TextBlock("a"), usage=usage) for usage in usages]
    recorded(tmp_path, [INIT, *blocks, result()])
    assert usage_of(tmp_path) == (1, *counts)


def test_a_block_after_the_first_result(tmp_path):
    """Fast tools answer before a response is complete: it stays one request, and its tokens are all counted."""
    start = dict(FIRST, output_tokens=1)
    messages = [
        INIT,
        assistant(ToolUseBlock("t1", "Read", {"path": "a"}), usage=start),
        answered("t1", "A"),
        assistant(ToolUseBlock("t2", "Read", {"path": "b"}), usage=FIRST),
        answered("t2", "B"),
        assistant(TextBlock("done"), of="m2", usage=SECOND),
        result(),
    ]
    events = recorded(tmp_path, messages, prompt="read")
    assert [call["output"] for call in of_type(events, "tool.call")] == ["A", "B"]
    assert usage_of(tmp_path) == (2, 17, 1830, 30, 47)
    assert of_type(events, "llm.request")[-1]["messages"][0]["content"][0]["id"] == "t2"


def test_sub_agents(tmp_path):
    """Their events are the session's, and name the sub-agent; the conversation does not have them."""
    task = {"subagent_type": "Explore", "prompt": "find it"}
    inner = {"parent_tool_use_id": "t1"}
    messages = [
        INIT,
        assistant(ToolUseBlock("t1", "Task", task), usage=FIRST),
        UserMessage([TextBlock("find it")], **inner),
        assistant(ToolUseBlock("t2", "Grep", {"pattern": "x"}), of="s1", usage=SECOND, **inner),
        UserMessage([ToolResultBlock("t2", "a.py")], **inner),
        assistant(TextBlock("in a.py"), of="s2", usage=SECOND, **inner),
        answered("t1", "in a.py"),
        assistant(TextBlock("It is in a.py"), of="m2", usage=SECOND),
        result(),
    ]
    events = recorded(tmp_path, messages, prompt="where?")
    assert [event.type for event in events].count("session.start") == 1
    answers = of_type(events, "llm.response")
    assert [answer.get("agent") for answer in answers] == [None, "Explore", "Explore", None]
    assert [(call["tool"], call.get("agent")) for call in of_type(events, "tool.call")] == [
        ("Grep", "Explore"),
        ("Task", None),
    ]
    assert usage_of(tmp_path)[0] == 4
    [path] = tmp_path.glob("*.jsonl")
    assert "Explore" in "\n".join(replay(path))


def test_a_sub_agent_in_the_background(tmp_path):
    """It goes on after the result of its call."""
    messages = [
        INIT,
        assistant(ToolUseBlock("t1", "Agent", {"subagent_type": "Explore"}), usage=FIRST),
        answered("t1", "started"),
        assistant(TextBlock("found"), of="s1", usage=SECOND, parent_tool_use_id="t1"),
        assistant(TextBlock("It runs"), of="m2", usage=SECOND),
        result(),
    ]
    events = recorded(tmp_path, messages, prompt="look")
    answers = [(answer.get("content"), answer.get("agent")) for answer in of_type(events, "llm.response")]
    assert answers == [(None, None), ("It runs", None), ("found", "Explore")]
    assert usage_of(tmp_path)[0] == 3


def test_a_tool_of_the_provider(tmp_path):
    """It runs within a response: its call follows the response."""
    messages = [
        INIT,
        assistant(ServerToolUseBlock("w1", "web_search", {"query": "x"}), usage=FIRST),
        assistant(ServerToolResultBlock("w1", {"type": "e", "error_code": "unavailable"}), usage=FIRST),
        assistant(TextBlock("no web"), usage=FIRST),
        result(),
    ]
    events = recorded(tmp_path, messages)
    assert [event.type for event in events][1:4] == ["llm.request", "llm.response", "tool.call"]
    assert of_type(events, "llm.response")[0]["content"] == "no web"
    assert "unavailable" in of_type(events, "tool.call")[0]["error"]
    assert usage_of(tmp_path)[0] == 1


def test_an_error_of_a_tool(tmp_path):
    """It is the call's error; the run goes on."""
    messages = run_with_tool()
    messages[4] = answered("t1", [{"type": "text", "text": "no such file"}], is_error=True)
    events = recorded(tmp_path, messages)
    assert of_type(events, "tool.call")[0]["error"] == "no such file"
    assert of_type(events, "session.end")[0]["status"] == "success"


def test_an_error_of_the_model(tmp_path):
    """The agent reports it as a message of no model, then as an error result, then the SDK raises."""
    messages = [
        INIT,
        AssistantMessage([TextBlock("API Error: 429")], "<synthetic>", error="rate_limit", usage={"input_tokens": 0}),
        result(0.0, is_error=True, result="API Error: 429", usage=None),
    ]
    with pytest.raises(LookupError, match="exit code 1"):
        recorded(tmp_path, messages, error=LookupError("exit code 1"), prompt="hi")
    events = events_of(tmp_path)
    [answer] = of_type(events, "llm.response")
    assert answer["error"] == "rate_limit: API Error: 429"
    assert "usage" not in answer
    assert "model" not in answer
    [end] = of_type(events, "session.end")
    assert (end["status"], end["error"]) == ("error", "API Error: 429")
    assert aggregate_usage(tmp_path).totals.failed_requests == 1


def test_a_notice_of_the_agent_is_no_response(tmp_path):
    """It has the model `<synthetic>` and no error."""
    recorded(tmp_path, [INIT, AssistantMessage([TextBlock("No response requested.")], "<synthetic>"), result()])
    assert of_type(events_of(tmp_path), "llm.response") == []


def test_a_stream_that_breaks(tmp_path):
    """What was received is kept, and the session failed."""
    with pytest.raises(LookupError):
        recorded(tmp_path, [INIT, assistant(TextBlock("Half"), usage=FIRST)], LookupError("lost"), prompt="hi")
    events = events_of(tmp_path)
    [answer] = of_type(events, "llm.response")
    assert (answer["content"], answer["partial"], answer["error"]) == ("Half", "failed", "LookupError: lost")
    assert of_type(events, "session.end")[0]["status"] == "error"


def test_a_stream_that_does_not_begin(tmp_path):
    """The prompt was not answered."""
    with pytest.raises(LookupError):
        recorded(tmp_path, [], LookupError("no agent"), prompt="hi")
    assert [event.type for event in events_of(tmp_path)] == [
        "session.start", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip


def piece(text):
    """A part of a block."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return StreamEvent("u", "c1", delta)


def test_parts_of_blocks_are_not_counted(tmp_path):
    """Their block comes whole."""
    messages = [INIT, piece("Hel"), piece("lo"), assistant(TextBlock("Hello"), usage=FIRST), result()]
    events = recorded(tmp_path, messages, prompt="hi")
    assert [answer["content"] for answer in of_type(events, "llm.response")] == ["Hello"]
    assert usage_of(tmp_path) == (1, 12, 900, 30, 40)


def test_a_cancelled_stream(tmp_path):
    """What was received until then is recorded, and the SDK's stream is closed, too."""
    closed = []

    async def endless():
        try:
            for message in (INIT, assistant(TextBlock("One. "), usage=FIRST), piece("Tw"), piece("o")):
                yield message
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def consume():
        async for _ in record(endless(), prompt="count", directory=tmp_path):
            pass

    async def run():
        task = asyncio.create_task(consume())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed == [True]

    asyncio.run(run())
    events = events_of(tmp_path)
    [answer] = of_type(events, "llm.response")
    assert (answer["content"], answer["partial"]) == ("One. Two", "cancelled")
    assert "error" not in answer
    assert of_type(events, "session.end")[0]["status"] == "cancelled"


@pytest.mark.parametrize(("seen", "status"), [(2, "cancelled"), (7, "success")])
def test_a_host_that_leaves_the_stream(tmp_path, seen, status):
    """After the result it has all of it."""

    async def run():
        messages = record(stream(run_with_tool()), directory=tmp_path)
        for _ in range(seen):
            await anext(messages)
        await messages.aclose()

    asyncio.run(run())
    assert of_type(events_of(tmp_path), "session.end")[0]["status"] == status


def test_an_interrupted_run(tmp_path):
    """`client.interrupt()` ends the turn with a result."""
    messages = [INIT, piece("Ha"), result(terminal_reason="aborted_streaming", is_error=True, result=None)]
    events = recorded(tmp_path, messages, prompt="hi")
    assert [(one["content"], one["partial"]) for one in of_type(events, "llm.response")] == [("Ha", "cancelled")]
    assert of_type(events, "session.end")[0]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("totals", "costs"), [([0.1, 0.3], [0.1, 0.2]), ([0.3, 0.1], [0.3, 0.1]), ([0.1, None], [0.1, None])]
)
def test_the_cost_of_a_run_is_what_the_total_grew_by(tmp_path, totals, costs):
    """The agent's total runs on over the responses of a client; a new process begins at 0."""
    ends = []
    for number, total in enumerate(totals):
        messages = [INIT, assistant(TextBlock("a"), of=f"m{number}", usage=FIRST), result(total)]
        ends += of_type(recorded(tmp_path / str(number), messages), "session.end")
    assert [end.get("cost_usd") for end in ends] == costs


def test_several_runs_in_one_stream(tmp_path):
    """Each has an end with its cost; the session has the sum."""
    more = [INIT, assistant(TextBlock("more"), of="m3", usage=SECOND), result(0.4)]
    events = recorded(tmp_path, [*run_with_tool(), *more], prompt="run the tests")
    assert [end["cost_usd"] for end in of_type(events, "session.end")] == [0.25, 0.15]
    assert usage_of(tmp_path) == (3, 22, 2760, 30, 54)
    assert aggregate_usage(tmp_path).totals.known_nano == 400_000_000


def test_a_cleared_conversation(tmp_path):
    """The next request holds all of it, and the running total begins at 0."""
    reset = ConversationResetMessage("c2", "u", "c1")
    more = [assistant(TextBlock("anew"), of="m3", usage=SECOND), result(0.3)]
    events = recorded(tmp_path, [*run_with_tool(), reset, *more], prompt="run the tests")
    assert [end["cost_usd"] for end in of_type(events, "session.end")] == [0.25, 0.3]
    assert "earlier_messages" not in of_type(events, "llm.request")[-1]


def test_a_compaction(tmp_path):
    """It is an event, and the next request does not continue the one before."""
    compact = SystemMessage("compact_boundary", {"compact_metadata": {"trigger": "auto", "pre_tokens": 9000}})
    messages = run_with_tool()
    messages[5:5] = [compact, UserMessage("Summary: tests ran")]
    events = recorded(tmp_path, messages, prompt="run the tests")
    assert of_type(events, "compaction.end") == [{"success": True, "tokens_before": 9000, "strategy": "auto"}]
    assert "earlier_messages" not in of_type(events, "llm.request")[-1]


def test_the_turns_of_a_client_in_one_log(tmp_path):
    """A given logger has the results as progress events, without costs; the second turn continues the first."""

    async def run():
        with SessionLogger(tmp_path, "s") as log:
            async for _ in record(stream(run_with_tool()), log, prompt="run the tests"):
                pass
            turn = [INIT, assistant(TextBlock("Yes"), of="m3", usage=SECOND), result(0.4)]
            async for _ in record(stream(turn), log, prompt="all of them?"):
                pass

    asyncio.run(run())
    events = events_of(tmp_path)
    assert len(of_type(events, "session.end")) == 1
    assert [one["total_cost_usd"] for one in of_type(events, "progress")] == [0.25, 0.4]
    request = of_type(events, "llm.request")[-1]
    assert (request["earlier_messages"], len(request["messages"])) == (3, 2)
    assert usage_of(tmp_path) == (3, 22, 2760, 30, 54)


def test_runs_beside_each_other(tmp_path):
    """Twenty at once: each has its own log."""

    async def one(number):
        return [
            message
            async for message in record(
                stream(run_with_tool(f"c{number}")),
                prompt=f"task {number}",
                directory=tmp_path,
                session_id=f"s{number}",
            )
        ]

    async def run():
        return await asyncio.gather(*map(one, range(20)))

    assert [len(messages) for messages in asyncio.run(run())] == [7] * 20
    for number in range(20):
        events = list(read_events(tmp_path / f"s{number}.jsonl"))
        assert len(events) == 7
        assert events[0].data["metadata"] == {"claude_session": f"c{number}"}
        assert events[1].data["messages"][0]["content"] == f"task {number}"
    assert all(check.damaged == 0 for check in check_logs(tmp_path))
    assert usage_of(tmp_path) == (40, 340, 36_600, 600, 940)
    assert aggregate_usage(tmp_path).totals.known_nano == 20 * 250_000_000


def test_a_failure_of_the_integration(tmp_path, monkeypatch):
    """The host gets its messages; health() counts what is missing."""

    def fail(block):
        raise LookupError("no such block")

    monkeypatch.setattr(claude_agent_sdk, "_block", fail)
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    messages = run_with_tool()

    async def run():
        return [message async for message in record(stream(messages), log)]

    with log:
        assert asyncio.run(run()) == messages
        health = log.health()
    assert health.dropped_by == {"integration": 5}
    assert health.last_error == "integration: no such block"


def test_messages_of_other_versions_pass(tmp_path):
    """Unknown classes are left out; an older SDK's messages lack the later fields."""

    class RateLimitEvent:
        """Unknown."""

    @dataclass
    class Old:
        """An AssistantMessage of 0.0.20."""

        content: list[Any]
        model: str
        parent_tool_use_id: str | None = None

    Old.__name__ = "AssistantMessage"
    events = recorded(
        tmp_path, [RateLimitEvent(), Old([TextBlock("a")], MODEL), Old([TextBlock("b")], MODEL), result()]
    )
    assert [answer["content"] for answer in of_type(events, "llm.response")] == ["a", "b"]


def test_wrong_options_are_errors_of_the_call(tmp_path):
    """Not of the first message."""
    with pytest.raises(TypeError):
        record(stream([]), directory=tmp_path, colour="red")
    with pytest.raises(TypeError, match="directory"):
        record(stream([]), SessionLogger(tmp_path), directory=tmp_path)


@pytest.mark.slow
def test_the_real_sdk(tmp_path):
    """The stand-ins have fields of the real classes, and a real query over a transport of ours is recorded."""
    sdk = pytest.importorskip("claude_agent_sdk")
    for stand_in in STAND_INS:
        real = {one.name for one in dataclasses.fields(getattr(sdk, stand_in.__name__))}
        assert {one.name for one in dataclasses.fields(stand_in)} <= real, stand_in

    class Wire(sdk.Transport):
        """An agent that answers `initialize`, then sends the lines of a run."""

        def __init__(self):
            self.sent = asyncio.Queue()

        async def connect(self):
            pass

        async def write(self, data):
            for line in data.splitlines():
                request = json.loads(line)
                if request["type"] == "control_request":
                    reply = {"subtype": "success", "request_id": request["request_id"], "response": {}}
                    await self.sent.put({"type": "control_response", "response": reply})
                elif request["type"] == "user":
                    for one in WIRE:
                        await self.sent.put(one)
                    await self.sent.put(None)

        async def read_messages(self):
            while (message := await self.sent.get()) is not None:
                yield message

        async def close(self):
            pass

        def is_ready(self):
            return True

        async def end_input(self):
            pass

    async def run():
        real = record(sdk.query(prompt="run the tests", transport=Wire()), prompt="run the tests", directory=tmp_path)
        return [type(message).__name__ async for message in real]

    assert asyncio.run(run()) == [
        "SystemMessage", "StreamEvent", "AssistantMessage", "AssistantMessage", "UserMessage", "AssistantMessage",
        "ResultMessage",
    ]  # fmt: skip
    events = events_of(tmp_path)
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    assert usage_of(tmp_path) == (2, 17, 1830, 30, 47)
    assert aggregate_usage(tmp_path).totals.known_nano == 250_000_000


def wire_message(kind, of, usage, *content):
    """A message as the agent's process sends it."""
    inner = {"role": kind, "content": list(content)} | (
        {"id": of, "model": MODEL, "usage": usage} if kind == "assistant" else {}
    )
    return {"type": kind, "message": inner, "parent_tool_use_id": None, "session_id": "c1", "uuid": "u"}


WIRE = (
    {"type": "system", "subtype": "init", "model": MODEL, "cwd": "/srv/app", "session_id": "c1"},
    {"type": "stream_event", "uuid": "u", "session_id": "c1", "event": {"type": "message_start"}},
    wire_message("assistant", "m1", FIRST, {"type": "thinking", "thinking": "they want tests", "signature": "s"}),
    wire_message("assistant", "m1", FIRST, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}),
    wire_message("user", None, None, {"type": "tool_result", "tool_use_id": "t1", "content": "3 passed"}),
    wire_message("assistant", "m2", SECOND, {"type": "text", "text": "3 tests pass"}),
    {
        "type": "result", "subtype": "success", "duration_ms": 9, "duration_api_ms": 8, "is_error": False,
        "num_turns": 2, "session_id": "c1", "total_cost_usd": 0.25, "usage": BOTH, "result": "3 tests pass",
    },
)  # fmt: skip


def test_a_part_of_a_block_costs_little(tmp_path):
    """Microseconds: a stream has thousands of them."""
    parts = [piece("word ")] * 5000

    async def consume(messages):
        start = perf_counter()
        async for _ in messages:
            pass
        return perf_counter() - start

    async def parts_of():
        for one in parts:
            yield one

    async def run():
        plain = min([await consume(parts_of()) for _ in range(3)])
        with SessionLogger(tmp_path, "s") as log:
            return min([await consume(record(parts_of(), log)) for _ in range(3)]) - plain

    assert asyncio.run(run()) / len(parts) < 50e-6  # measured: 2; a busy machine may take its time
