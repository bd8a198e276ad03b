"""A pydantic-ai agent over three turns: tracker, snapshot, table and CSV agree with the log and with the run's usage."""

import asyncio
import csv
import io
import json
import re
from dataclasses import replace

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, Tool, ToolReturn
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset
from rich.console import Console

from sessionlog.context import (
    UsageTracker,
    extract_context_snapshot,
    extract_full_context_snapshot,
    get_agent_context_snapshot,
    get_step_history,
    list_available_tools,
    register_agent,
    to_csv,
    unregister_agent,
)
from sessionlog.context.snapshots.tools import tools_of_agent
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from tests.context.agents import INSTRUCTIONS, PROMPTS, SYSTEM, function_agent, plain_agent, record, run_turns


class Recorded:
    """An agent's three turns, and their log."""

    def __init__(self, agent, folder):
        self.agent = agent
        self.results = run_turns(agent)
        self.messages = self.results[-1].all_messages()
        with SessionLogger(folder, "three-turns", model="test", provider="acme") as log:
            record(log, agent, self.messages)
            self.path = log.path

    def totals(self):
        """What the runs say that they used, together."""
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests", "tool_calls")
        return {name: sum(getattr(result.usage, name) for result in self.results) for name in names}


@pytest.fixture(params=[plain_agent, function_agent])
def recorded(request, tmp_path):
    """TestModel and FunctionModel."""
    return Recorded(request.param(), tmp_path)


def totals_of(usage):
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests", "tool_calls")
    return {name: getattr(usage, name) for name in names}


def test_the_tracker_agrees_with_the_runs_and_the_log(recorded):
    """Recorded while it ran or rebuilt from the log: the same turns, cached tokens included."""
    live = UsageTracker()
    for result in recorded.results:
        live.start_turn()
        live.record_turn(result.usage)
    rebuilt = UsageTracker.from_log(recorded.path)
    assert totals_of(live.get_session_usage()) == recorded.totals()
    assert totals_of(rebuilt.get_session_usage()) == recorded.totals()
    assert live.get_session_usage().turns == rebuilt.get_session_usage().turns == len(PROMPTS)
    assert totals_of(rebuilt.get_turn_usage()) == totals_of(live.get_turn_usage()) == totals_of(
        recorded.results[-1].usage
    )  # fmt: skip


def test_the_log_keeps_disjoint_classes_of_the_same_sums(recorded):
    """What the log calls input, read and written adds up to the runs' inclusive input."""
    total = TokenUsage()
    for event in read_events(recorded.path):
        assert isinstance(event, Event)
        if event.type == "llm.response":
            total += read_usage(event.data["usage"])[0]
    told = recorded.totals()
    assert (total.prompt, total.output) == (told["input_tokens"], told["output_tokens"])
    assert (total.cache_read, total.cache_write) == (told["cache_read_tokens"], told["cache_write_tokens"])


def test_three_kinds_of_history_give_one_snapshot(recorded):
    """Live messages, their JSON, and the log: equal counts of everything, equal steps, equal turns."""
    stored = json.loads(ModelMessagesTypeAdapter.dump_json(recorded.messages))
    live = extract_context_snapshot(recorded.agent, "a", message_history=recorded.messages).to_dict()
    kept = extract_context_snapshot(recorded.agent, "a", message_history=stored).to_dict()
    logged = extract_context_snapshot(agent_id="a", log=recorded.path).to_dict()
    assert kept == live
    assert live["sessionUsage"]["durationSeconds"] == pytest.approx(logged["sessionUsage"]["durationSeconds"])
    for said in (live, logged):
        for message in said["messages"]:  # a log knows when a request was sent, not when each message came
            del message["timestamp"]
        for usage in (said["turnUsage"], said["sessionUsage"]):
            del usage["durationSeconds"]
    assert logged.pop("modelInputTokens") == recorded.messages[-1].usage.input_tokens
    assert logged.pop("modelOutputTokens") == recorded.messages[-1].usage.output_tokens
    for name in ("notInMessages", "contextTokens", "contextPercentage"):  # these are made from what is reported
        logged.pop(name, None)
    assert logged.items() <= live.items()


def test_the_snapshot_agrees_with_the_runs(recorded):
    """Its session is the runs' usage, its last turn the last run's; instructions and prompts are counted once."""
    snapshot = extract_context_snapshot(recorded.agent, "a", message_history=recorded.messages)
    assert totals_of(snapshot.session_usage) == recorded.totals()
    assert totals_of(snapshot.turn_usage) == totals_of(recorded.results[-1].usage)
    assert snapshot.session_usage.turns == len(PROMPTS)
    assert snapshot.system_prompts == (SYSTEM, INSTRUCTIONS)
    assert [tool.name for tool in snapshot.tools] == ["read", "grep"]
    assert [m.content for m in snapshot.messages if m.role == "user"] == list(PROMPTS)
    assert sum(child["value"] for child in snapshot.to_dict()["distribution"]["children"]) == snapshot.total_tokens


def test_the_table_shows_the_same_numbers(recorded):
    """Turns, tool calls, steps and tokens of the session are those of the runs."""
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(extract_context_snapshot(log=recorded.path).to_table())
    session = out.getvalue().split("SESSION")[1]
    shown = dict(re.findall(r"│\s+([A-Z][\w ]*?)\s+│\s+(\d+)\s+│", session))
    told = recorded.totals()
    expected = {
        "Turns": len(PROMPTS), "Tool Calls": told["tool_calls"], "Steps": told["requests"],
        "Total Input": told["input_tokens"], "Total Output": told["output_tokens"],
    } | ({"Cached Input": told["cache_read_tokens"]} if told["cache_read_tokens"] else {})  # fmt: skip
    assert shown == {name: str(value) for name, value in expected.items()}


def test_the_csv_has_a_row_for_every_request(recorded):
    """Its sums are the runs', its turns are real, its durations and times those of the messages."""
    rows = list(csv.DictReader(io.StringIO(to_csv(get_step_history(recorded.path)))))
    told = recorded.totals()
    assert len(rows) == told["requests"]
    assert sum(int(row["Input_Tokens"]) for row in rows) == told["input_tokens"]
    assert sum(int(row["Output_Tokens"]) for row in rows) == told["output_tokens"]
    turns = [f"turn_{n:02d}" for n, result in enumerate(recorded.results, 1) for _ in range(result.usage.requests)]
    assert [row["Turn_ID"] for row in rows] == turns
    calls = [name for row in rows if row["Tool_Name"] != "Response" for name in row["Tool_Name"].split(", ")]
    assert len(calls) == told["tool_calls"]
    assert all(row["Duration_ms"].isdigit() and row["Timestamp"].endswith("Z") for row in rows)
    assert {row["Session_ID"] for row in rows} == {"three-turns"}
    live = UsageTracker(session_id="three-turns")
    for result in recorded.results:
        live.record_steps_from_snapshot(
            extract_context_snapshot(recorded.agent, "a", message_history=result.all_messages())
        )
    assert live.to_csv() == to_csv(get_step_history(recorded.path))


def test_runs_recorded_alone_make_the_same_csv(recorded):
    """A history of each run's own messages continues the steps of the ones before."""
    live = UsageTracker(session_id="three-turns")
    for result in recorded.results:
        live.record_steps_from_snapshot(extract_context_snapshot(message_history=result.new_messages()))
    assert live.to_csv() == to_csv(get_step_history(recorded.path))


def test_the_full_snapshot_knows_the_tools(recorded):
    """Functions with their schemas and source, and the call that a result answers."""
    full = extract_full_context_snapshot(recorded.agent, "a", message_history=recorded.messages, env={})
    assert full.model_name is not None
    assert [(tool.name, tool.source_type, tool.is_async) for tool in full.tools] == [
        ("read", "function", False), ("grep", "function", False),
    ]  # fmt: skip
    assert all("def " in (tool.source_code or "") for tool in full.tools)
    assert full.tools[0].parameters_schema["required"] == ["path"]
    results = [message for message in full.messages if message.is_tool_result]
    assert {message.tool_name for message in results} == {"read", "grep"}
    assert full.total_tokens == full.to_dict()["tokenSummary"]["total"]


def test_the_registry_follows_an_agent(recorded):
    """What is recorded request by request is what the runs say."""
    recorder = register_agent("coder", recorded.agent)
    try:
        for result in recorded.results:
            recorder.begin_turn()
            for message in result.new_messages():
                if message.kind == "response":
                    names = [part.tool_name for part in message.parts if part.part_kind == "tool-call"]
                    recorder.record_request(message.usage, tool_names=names, timestamp=message.timestamp)
        recorder.keep_messages(recorded.messages)
        snapshot = get_agent_context_snapshot("coder")
        assert snapshot is not None
        assert totals_of(snapshot.session_usage) == recorded.totals()
        assert snapshot.session_usage.turns == len(PROMPTS)
        assert snapshot.total_tokens == extract_context_snapshot(log=recorded.path).total_tokens
    finally:
        unregister_agent("coder")


def test_available_tools_are_listed(recorded):
    """By name, description and schema, as the seed's callers expect them; nothing is awaited for local tools."""
    listing = list_available_tools(recorded.agent)
    with pytest.raises(StopIteration) as done:
        listing.send(None)
    assert [(name, description) for name, description, _ in done.value.value] == [
        ("read", "Read a file."), ("grep", "Count a word."),
    ]  # fmt: skip


class Answer(BaseModel):
    """A structured answer."""

    number: int


def test_structured_answers_are_turns_too():
    """As many turns, requests and tool calls as the runs made; calls of the output tool are none, also when stored."""
    agent = Agent(TestModel(), output_type=Answer)

    @agent.tool_plain
    def look() -> ToolReturn:
        return ToolReturn(return_value="ok", content=["This is what I saw."])

    results = run_turns(agent)
    history = results[-1].all_messages()
    for kept in (history, json.loads(ModelMessagesTypeAdapter.dump_json(history))):
        used = extract_context_snapshot(agent, "a", message_history=kept).session_usage
        assert used.turns == len(PROMPTS)
        assert used.requests == sum(result.usage.requests for result in results)
        assert used.tool_calls == sum(result.usage.tool_calls for result in results)


def _toolset():
    tools = FunctionToolset()

    @tools.tool_plain
    def read(path: str) -> str:
        """Read a file."""
        return path

    @tools.tool_plain
    def grep(word: str) -> str:
        """Count a word."""
        return word

    return tools


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tools: tools.prefixed("p"),
        lambda tools: tools.renamed({"lire": "read"}),
        lambda tools: tools.filtered(lambda ctx, tool: tool.name == "read"),
        lambda tools: tools.prefixed("p").filtered(lambda ctx, tool: tool.name == "p_read"),
        lambda tools: tools.filtered(lambda ctx, tool: "path" in tool.parameters_json_schema["properties"]).prefixed("p"),
        lambda tools: tools.prepared(lambda ctx, listed: [replace(tool, description="Other.") for tool in listed[:1]]),
        lambda tools: tools.approval_required(),
    ],
)  # fmt: skip
def test_wrapped_tools_are_those_that_the_model_is_told_of(wrap):
    """By name, description and schema: prefixed, renamed, filtered, prepared."""
    told = []

    def answer(messages, info):
        told.extend((tool.name, tool.description, tool.parameters_json_schema) for tool in info.function_tools)
        return ModelResponse(parts=[TextPart("ok")])

    agent = Agent(FunctionModel(answer), toolsets=[wrap(_toolset())])
    with asyncio.Runner() as runner:
        runner.run(agent.run("Go"))
        assert runner.run(list_available_tools(agent)) == told


def test_tools_that_ask_first_say_so():
    """Whoever wraps them."""
    agent = Agent(TestModel(), toolsets=[_toolset().approval_required()])
    assert [tool.requires_approval for tool in tools_of_agent(agent)] == [True, True]


async def _later(ctx, tool):
    return True


@pytest.mark.parametrize("ask", [lambda ctx, tool: ctx.deps.is_admin, _later])
def test_a_filter_that_cannot_be_asked_is_told(ask):
    """One that looks at the run, or awaits: its tools are listed."""
    agent = Agent(TestModel(), toolsets=[_toolset().filtered(ask)])
    assert [tool.name for tool in tools_of_agent(agent)] == ["read", "grep"]


def test_a_tool_that_is_made_anew_for_each_run_is_told():
    """As it is defined; what it will be then is not known."""

    async def prepare(ctx, tool):
        return None

    agent = Agent(TestModel(), tools=[Tool(_later, prepare=prepare)])
    assert [tool.name for tool in tools_of_agent(agent)] == ["_later"]
