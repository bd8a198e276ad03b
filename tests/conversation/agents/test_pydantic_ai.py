"""A pydantic-ai agent as an agent: every request to its model is an answer, its tools are told, its output is kept."""

import asyncio

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, NativeOutput
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import BinaryContent, ImageUrl, ModelResponse, TextPart, ToolReturn
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from sessionlog.conversation.agents.pydantic_ai import PydanticAI, usage_of
from sessionlog.conversation.turns.pieces import AgentRequest, NextRequest, Reply, TextDelta, ToolCalled, ToolReturned
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from tests.conversation.agents.stub import pieces_of

ASK = AgentRequest(messages=[Message.user("hi")])


class City(BaseModel):
    """A city."""

    name: str
    size: int


def scripted(*answers):
    """Make a model that streams one answer after the other: texts, and calls as (name, arguments, id)."""
    left = list(answers)

    async def answer(messages, info):
        for n, bit in enumerate(left.pop(0)):
            if isinstance(bit, Exception):
                raise bit
            yield bit if isinstance(bit, str) else {n: DeltaToolCall(bit[0], bit[1], tool_call_id=bit[2])}

    return FunctionModel(stream_function=answer, model_name="scripted")


def responding(*responses):
    """Make a model that gives whole responses."""
    left = list(responses)
    return FunctionModel(lambda messages, info: left.pop(0), model_name="scripted")


def test_text_comes_as_it_is_made():
    """Then the whole answer, with its own usage."""
    *texts, reply = pieces_of(PydanticAI(Agent(scripted(["he", "llo"]))), ASK)
    assert texts == [TextDelta("he"), TextDelta("llo")]
    assert reply.message == Message.assistant("hello")
    assert (reply.model, reply.provider, reply.has_output) == ("scripted", "function", False)
    assert reply.usage.output > 0


def test_tools_are_told_between_the_answers():
    """Each answer is one Reply; an Asking stands before each further request; ids are the model's."""
    calls = [("lookup", '{"word": "a"}', "c1"), ("count", '{"n": 2}', "c2")]
    agent = Agent(scripted(["let me see", *calls], ["done"]))

    @agent.tool_plain
    async def lookup(word: str) -> str:
        await asyncio.sleep(0.002)
        return word * 3

    @agent.tool_plain
    def count(n: int) -> dict[str, int]:
        return {"n": n}

    pieces = pieces_of(PydanticAI(agent), ASK)
    kinds = [type(piece) for piece in pieces]
    assert kinds == [
        TextDelta,
        Reply,
        ToolCalled,
        ToolCalled,
        ToolReturned,
        ToolReturned,
        NextRequest,
        TextDelta,
        Reply,
    ]
    asked = (ToolRequest("c1", "lookup", {"word": "a"}), ToolRequest("c2", "count", {"n": 2}))
    assert pieces[1].message == Message.assistant("let me see", tool_calls=asked)
    assert (pieces[2].request, pieces[3].request) == asked
    returned = {piece.request.id: piece for piece in pieces[4:6]}
    assert returned["c1"].message == Message.tool("aaa", "c1", name="lookup")
    assert returned["c2"].message == Message.tool('{"n":2}', "c2", name="count")
    assert returned["c1"].duration_ms >= 2
    assert pieces[1].usage is not pieces[-1].usage


def test_a_model_that_cannot_stream_is_asked_for_the_whole():
    """Its answer is one Reply."""
    agent = Agent(responding(ModelResponse(parts=[TextPart("hello")])))
    assert [type(piece) for piece in pieces_of(PydanticAI(agent), ASK)] == [Reply]


def test_usage_is_told_in_classes_that_do_not_overlap():
    """There, input holds what the cache has; a response without usage has none."""
    told = RequestUsage(
        input_tokens=100, cache_read_tokens=60, cache_write_tokens=10, cache_write_1h_tokens=4, output_tokens=20,
        output_reasoning_tokens=5,
    )  # fmt: skip
    agent = Agent(responding(ModelResponse(parts=[TextPart("hello")], usage=told)))
    expected = TokenUsage(input=30, output=20, cache_read=60, cache_write=10, reasoning=5, cache_write_1h=4)
    assert pieces_of(PydanticAI(agent), ASK)[-1].usage == expected
    assert usage_of(RequestUsage()) is None
    assert usage_of(RequestUsage(unmeasured_requests=1)) is None


def test_a_tool_that_asks_to_be_called_again_is_an_error_that_the_model_is_told():
    """So is one that it calls wrongly."""
    agent = Agent(scripted([("look", "{}", "c1")], [("look", '{"word": "a"}', "c2")], ["done"]), retries=5)

    @agent.tool_plain
    def look(word: str) -> str:
        raise ModelRetry("not that")

    returned = [piece for piece in pieces_of(PydanticAI(agent), ASK) if isinstance(piece, ToolReturned)]
    assert "word" in returned[0].error
    assert (returned[1].error, returned[1].message.text) == ("not that", "ERROR: not that")


def test_a_tool_that_raises_ends_the_run():
    """What was told before is told; the error is the tool's."""
    agent = Agent(scripted(["well", ("look", "{}", "c1")]))

    @agent.tool_plain
    def look() -> str:
        raise KeyError("gone")

    told = []

    async def listen():
        async for piece in PydanticAI(agent).answer(ASK):
            told.append(type(piece))

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(listen())
    assert told == [TextDelta, Reply, ToolCalled]


def test_a_tools_pictures_are_in_its_result():
    """With their bytes; so is what it tells the model beside."""
    agent = Agent(scripted([("draw", "{}", "c1"), ("show", "{}", "c2")], ["done"]))

    @agent.tool_plain
    def draw() -> list[str | BinaryContent]:
        return ["here", BinaryContent(b"png", media_type="image/png")]

    @agent.tool_plain
    def show() -> ToolReturn[dict[str, int]]:
        return ToolReturn({"n": 1}, content=["look", ImageUrl("http://a/b.png")])

    pieces = pieces_of(PydanticAI(agent), ASK)
    returned = {piece.request.id: piece.message.content for piece in pieces if isinstance(piece, ToolReturned)}
    assert returned["c1"] == (ContentPart.of_text("here"), ContentPart.of_image(b"png", "image/png"))
    shown = (ContentPart.of_text('{"n":1}'), ContentPart.of_text("look"), ContentPart.of_image_url("http://a/b.png"))
    assert returned["c2"] == shown


@pytest.mark.parametrize("wanted", [City, NativeOutput(City)])
def test_a_structured_answer_is_the_models_text_and_its_output(wanted):
    """Whether the model hands it to an output tool or writes it; a call of an output tool is no tool call."""
    said = '{"name": "Rome", "size": 3}'
    script = [said] if isinstance(wanted, NativeOutput) else [("final_result", said, "c1")]
    reply = pieces_of(PydanticAI(Agent(scripted(script))), AgentRequest(messages=ASK.messages, schema=wanted))[-1]
    assert (reply.output, reply.has_output) == (City(name="Rome", size=3), True)
    assert reply.message == Message.assistant(said)


def test_a_structured_answer_may_be_asked_for_by_json_schema():
    """Then it is an object of JSON."""
    schema = City.model_json_schema()
    agent = Agent(scripted([("final_result", '{"name": "Rome", "size": 3}', "c1")]))
    reply = pieces_of(PydanticAI(agent), AgentRequest(messages=ASK.messages, schema=schema))[-1]
    assert reply.output == {"name": "Rome", "size": 3}


def test_any_json_is_asked_for_in_words():
    """There is no type for it; an agent with a type of its own keeps it."""
    ask = AgentRequest(messages=ASK.messages, schema={})
    reply = pieces_of(PydanticAI(Agent(scripted(["[1]"]))), ask)[-1]
    assert (reply.message.text, reply.has_output) == ("[1]", False)
    typed = Agent(scripted([("final_result", '{"name": "Rome", "size": 3}', "c1")]), output_type=City)
    assert pieces_of(PydanticAI(typed), ask)[-1].output == City(name="Rome", size=3)


def test_a_structured_answer_beside_tools_comes_with_their_results():
    """One answer of the model is one Reply, also where it asks for tools and answers at once."""
    agent = Agent(scripted([("look", "{}", "c1"), ("final_result", '{"name": "Rome", "size": 3}', "c2")]))
    agent.tool_plain(name="look")(lambda: "seen")
    pieces = pieces_of(PydanticAI(agent), AgentRequest(messages=ASK.messages, schema=City))
    assert [type(piece) for piece in pieces] == [TextDelta, Reply, ToolCalled, ToolReturned]
    assert (pieces[1].output, [call.id for call in pieces[1].message.tool_calls]) == (City(name="Rome", size=3), ["c1"])


def test_an_answer_that_does_not_fit_is_told_before_the_next_one():
    """It was an answer of the model, and cost something; also where there is no next one."""
    wrong, right = [("final_result", text, "c1") for text in ('{"name": "Rome"}', '{"name": "Rome", "size": 3}')]
    ask = AgentRequest(messages=ASK.messages, schema=City)
    pieces = pieces_of(PydanticAI(Agent(scripted([wrong], [right]))), ask)
    assert [type(piece) for piece in pieces] == [TextDelta, Reply, NextRequest, TextDelta, Reply]
    assert [piece.has_output for piece in pieces if isinstance(piece, Reply)] == [False, True]

    told = []

    async def listen():
        async for piece in PydanticAI(Agent(scripted([wrong]), retries=0)).answer(ask):
            told.append(piece)

    with pytest.raises(UnexpectedModelBehavior):
        asyncio.run(listen())
    assert told[-1].message.text == '{"name": "Rome"}'


def test_a_model_that_fails_is_an_error_after_what_it_said():
    """As the model raises it."""
    told = []

    async def listen():
        async for piece in PydanticAI(Agent(scripted(["he", OSError("reset")]))).answer(ASK):
            told.append(piece)

    with pytest.raises(OSError, match="reset"):
        asyncio.run(listen())
    assert told == [TextDelta("he")]


def test_the_test_model_runs_every_tool():
    """The one that comes with pydantic-ai."""
    agent = Agent(TestModel())
    agent.tool_plain(name="one")(lambda: "1")
    agent.tool_plain(name="two")(lambda: "2")
    pieces = pieces_of(PydanticAI(agent), ASK)
    assert sum(isinstance(piece, ToolReturned) for piece in pieces) == 2
    assert pieces[-1].message.text == '{"one":"1","two":"2"}'


def test_it_says_what_it_is():
    """As far as the agent says before it runs."""
    adapter = PydanticAI(Agent(scripted()))
    assert (adapter.model, adapter.provider, adapter.runs_tools, adapter.is_async) == (
        "scripted",
        "function",
        True,
        True,
    )
    named = PydanticAI(Agent("anthropic:claude-x", defer_model_check=True))
    assert (named.model, named.provider) == ("claude-x", "anthropic")
    assert (PydanticAI(Agent()).model, PydanticAI(Agent()).provider) == (None, None)


def test_a_model_alone_is_no_agent():
    """The message says what makes one of it."""
    with pytest.raises(TypeError, match=r"TestModel is no pydantic-ai agent.*Agent\(model\)"):
        PydanticAI(TestModel())
