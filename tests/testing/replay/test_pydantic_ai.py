"""A replay as a model of pydantic-ai: an agent with tools is recorded once, and runs again from its log."""

import asyncio

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from sessionlog import SessionLogger
from sessionlog.errors import ReplayMiss
from sessionlog.integrations.pydantic_ai import SessionLogCapability
from sessionlog.testing import ReplayModel
from tests.testing.replay.logs import session, user, write

USAGE = RequestUsage(input_tokens=100, cache_read_tokens=60, output_tokens=10, output_reasoning_tokens=4)
PROMPT = "What does a.py do?"


class City(BaseModel):
    """A structured output."""

    name: str
    people: int


def make_agent(model, runs, **options):
    """An agent with two tools, one of which refuses its first call; `runs` lists what they were called with."""
    agent = Agent(model, instructions="Be brief.", **options)

    @agent.tool_plain
    def read(path: str) -> dict[str, str]:
        """Read a file."""
        runs.append(path)
        return {"text": f"print({path!r})"}

    @agent.tool_plain
    def search(words: str) -> list[str]:
        """Search for words."""
        runs.append(words)
        if len(runs) == 1:
            raise ModelRetry("one word alone")
        return ["a.py"]

    return agent


def scripted(*responses):
    """A model that gives these responses; each is a list of parts."""
    left = iter(responses)
    return FunctionModel(
        lambda messages, info: ModelResponse(parts=next(left), usage=USAGE, finish_reason="stop"), model_name="double"
    )


TURNS = (
    [ThinkingPart("A file."), TextPart("Let me look."), ToolCallPart("search", {"words": "two words"}, "c1")],
    [ToolCallPart("search", {"words": "print"}, "c2"), ToolCallPart("read", '{"path": "b.py"}', "c3")],
    [ToolCallPart("read", {"path": "a.py"}, "c4")],
    [TextPart("It prints its name.")],
)


def run(agent, prompt=PROMPT, **options):
    """Run an agent in a loop of its own."""
    return asyncio.run(agent.run(prompt, **options))


@pytest.fixture
def recorded(tmp_path):
    """The result of a run that was recorded, and its log."""
    with SessionLogger(tmp_path, "fix") as log:
        result = run(make_agent(scripted(*TURNS), [], capabilities=[SessionLogCapability(log)]))
    return result, tmp_path / "fix.jsonl"


def test_an_agent_runs_again_from_its_log(recorded):
    """Its tools run, also after a retry; output, usage and messages are those of the recorded run."""
    result, log = recorded
    runs = []
    with ReplayModel(log, strict_end=True) as replay:
        again = run(make_agent(replay.pydantic_ai(), runs))
    assert (again.output, again.usage) == (result.output, result.usage)
    assert runs == ["two words", "print", "b.py", "a.py"]
    assert [[part.part_kind for part in message.parts] for message in again.all_messages()] == [
        [part.part_kind for part in message.parts] for message in result.all_messages()
    ]
    assert again.all_messages()[1].model_name == "double"


def test_a_log_can_be_replayed_any_number_of_times(recorded):
    """A run of another agent in the meantime changes nothing: its calls have other ids."""
    for _ in range(2):
        assert run(make_agent(ReplayModel(recorded[1]).pydantic_ai(), [])).output == "It prints its name."


def test_a_changed_prompt_fails_with_the_difference(recorded):
    """Before any tool runs."""
    runs = []
    with pytest.raises(ReplayMiss) as miss:
        run(make_agent(ReplayModel(recorded[1]).pydantic_ai(), runs), "What does b.py do?")
    assert str(miss.value).splitlines()[1:3] == [
        "  nearest is recording 1 of 4: 'What does a.py do?'",
        "  messages[0].content: recorded 'What does a.py do?' · sent 'What does b.py do?'",
    ]
    assert runs == []


def test_a_changed_tool_fails_with_the_difference(recorded):
    """A result that differs, and a definition that does."""
    replay = ReplayModel(recorded[1])
    agent = make_agent(replay.pydantic_ai(), ["not the first call"])
    with pytest.raises(ReplayMiss, match=r"messages\[2\].content: recorded 'one word alone' · sent 'a.py'"):
        run(agent)
    agent = make_agent(ReplayModel(recorded[1]).pydantic_ai(), [])

    @agent.tool_plain
    def write(path: str) -> None:
        """Write a file."""

    with pytest.raises(ReplayMiss, match=r"tools.write: recorded nothing · sent {.description.: .Write a file"):
        run(agent)


def test_settings_and_the_model_s_name_are_compared(tmp_path):
    """The name only if it is given: a replay stands in for any model."""
    with SessionLogger(tmp_path, "s") as log:
        agent = Agent(scripted([TextPart("hello")]), capabilities=[SessionLogCapability(log)])
        run(agent, "hi", model_settings={"temperature": 0.0})
    path = tmp_path / "s.jsonl"

    def ask(*name, **settings):
        return run(Agent(ReplayModel(path).pydantic_ai(*name)), "hi", model_settings=settings).output

    assert ask(temperature=0) == ask("double", temperature=0) == ask("test:double", temperature=0) == "hello"
    with pytest.raises(ReplayMiss, match=r"parameters.temperature: recorded 0 · sent 0.7"):
        ask(temperature=0.7)
    with pytest.raises(ReplayMiss, match="model: recorded 'double' · sent 'gpt-5'"):
        ask("openai:gpt-5", temperature=0)


def test_streams_give_the_recorded_answers(recorded):
    """`run_stream_events` sees the tools' calls and the text in pieces, with the recorded usage at the end."""

    async def stream(agent):
        pieces, output = [], None
        async with agent.run_stream_events(PROMPT) as events:
            async for event in events:
                if isinstance(event, PartStartEvent | PartDeltaEvent):
                    piece = getattr(event, "part", None) or event.delta
                    pieces.append(
                        getattr(piece, "content", None) or getattr(piece, "content_delta", piece.__class__.__name__)
                    )
                output = getattr(event, "result", output)
        return pieces, output

    with ReplayModel(recorded[1], strict_end=True) as replay:
        pieces, result = asyncio.run(stream(make_agent(replay.pydantic_ai(), [])))
    assert (result.output, result.usage) == (recorded[0].output, recorded[0].usage)
    called = ["ToolCallPart"] * 4
    assert pieces == ["A ", "file.", "Let ", "me ", "look.", *called, "It ", "prints ", "its ", "name."]


def test_a_recorded_stream_is_replayed(tmp_path):
    """Recorded from a stream, given to a run without one."""

    async def answer(messages, info):
        if len(messages) == 1:
            yield {0: DeltaToolCall(name="read", json_args='{"path": "a.py"}', tool_call_id="c1")}
        else:
            yield "It "
            yield "prints."

    async def stream(agent):
        async with agent.run_stream(PROMPT) as result:
            return await result.get_output()

    with SessionLogger(tmp_path, "s") as log:
        agent = make_agent(FunctionModel(stream_function=answer), [], capabilities=[SessionLogCapability(log)])
        assert asyncio.run(stream(agent)) == "It prints."
    with ReplayModel(tmp_path / "s.jsonl", strict_end=True) as replay:
        assert run(make_agent(replay.pydantic_ai(), [])).output == "It prints."


def test_a_structured_output_is_replayed(tmp_path):
    """It is a tool call, whose definition is in the log."""
    with SessionLogger(tmp_path, "s") as log:
        model = TestModel(custom_output_args={"name": "Rome", "people": 3})
        first = run(Agent(model, output_type=City, capabilities=[SessionLogCapability(log)]), "Which city?")
    with ReplayModel(tmp_path / "s.jsonl", strict_end=True) as replay:
        again = run(Agent(replay.pydantic_ai(), output_type=City), "Which city?")
    assert again.output == first.output == City(name="Rome", people=3)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (ModelHTTPError(429, "double", body="slow down"), ModelHTTPError, 429),
        (ModelAPIError("double", "no connection"), ModelAPIError, None),
    ],
)
def test_a_recorded_error_is_raised_again(tmp_path, error, kind, status):
    """With its status, whichever way it was recorded."""

    def fail(messages, info):
        raise error

    with SessionLogger(tmp_path, "s") as log, pytest.raises(kind):
        run(Agent(FunctionModel(fail), capabilities=[SessionLogCapability(log)]), "hi")
    with pytest.raises(kind) as raised:
        run(Agent(ReplayModel(tmp_path / "s.jsonl").pydantic_ai()), "hi")
    assert getattr(raised.value, "status_code", None) == status


def test_sub_agents_are_replayed_with_their_agent(tmp_path):
    """Both ask the same replay; the log has both conversations."""

    def build(main, helper, **options):
        inner = Agent(helper, name="helper")
        outer = Agent(main, name="main", **options)

        @outer.tool_plain
        async def delegate(task: str) -> str:
            """Ask the helper."""
            return (await inner.run(task)).output

        return outer, inner

    with SessionLogger(tmp_path, "s") as log:
        capability = SessionLogCapability(log)
        model = scripted([ToolCallPart("delegate", {"task": "count"}, "c1")], [TextPart("There are 3.")])
        outer = Agent(model, name="main", capabilities=[capability])
        inner = Agent(scripted([TextPart("3")]), name="helper", capabilities=[capability])

        @outer.tool_plain
        async def delegate(task: str) -> str:
            """Ask the helper."""
            return (await inner.run(task)).output

        assert run(outer, "How many?").output == "There are 3."
    with ReplayModel(tmp_path / "s.jsonl", strict_end=True) as replay:
        model = replay.pydantic_ai()
        assert run(build(model, model)[0], "How many?").output == "There are 3."


def test_a_log_of_another_library_serves_the_agent(tmp_path):
    """Recorded by an OpenAI client on the wire, asked again by an agent with the same tool."""
    agent = Agent(
        ReplayModel(session(tmp_path)).pydantic_ai(), instructions="Be brief.", model_settings={"temperature": 0}
    )

    @agent.tool_plain
    def read(path: str) -> str:
        """Read."""
        return '{"text": "print(1)", "lines": 1}'

    with pytest.raises(ReplayMiss, match=r"tools.read.description: recorded 'Read' · sent 'Read.'"):
        run(agent)
    lenient = ReplayModel(session(tmp_path / "b"), ignore=("tools",)).pydantic_ai()
    assert run(agent, model=lenient).output == "It prints 1."


def test_a_fork_continues_with_a_model(recorded):
    """Runs and streams; the real model gets what is not in the log."""
    forked = ReplayModel(recorded[1]).fork(at=3, model=scripted([TextPart("Enough.")]))
    assert run(make_agent(forked.pydantic_ai(), [])).output == "Enough."

    async def stream(agent):
        async with agent.run_stream(PROMPT) as result:
            return await result.get_output()

    async def enough(messages, info):
        yield "Enough, "
        yield "streamed."

    path = recorded[1]
    forked = ReplayModel(path).fork(at=1, model=FunctionModel(stream_function=enough))
    assert asyncio.run(stream(make_agent(forked.pydantic_ai(), []))) == "Enough, streamed."


def test_an_edited_step_goes_on_with_a_model(recorded):
    """The agent is given another answer, and a model continues from there."""
    edited = ReplayModel(recorded[1]).edit(2, tool_calls=[{"name": "read", "arguments": {"path": "c.py"}}])
    runs = []
    agent = make_agent(edited.fork(at=3, model=scripted([TextPart("c.py prints, too.")])).pydantic_ai(), runs)
    assert (run(agent).output, runs) == ("c.py prints, too.", ["two words", "c.py"])


def test_an_answer_without_a_provider_has_the_name_of_its_model(tmp_path):
    """What the log does not have is not invented."""
    model = ReplayModel(write(tmp_path, [user("hi")], {"content": "hello", "model": "m"})).pydantic_ai()
    assert (model.model_name, model.system) == ("m", "")
    response = run(Agent(model), "hi").all_messages()[-1]
    assert (response.model_name, response.provider_name, response.finish_reason) == ("m", None, "stop")
