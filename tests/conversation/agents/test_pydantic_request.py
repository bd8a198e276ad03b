"""A run of a pydantic-ai agent goes on from the history: every message is there, with its ids, and so are options."""

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from sessionlog.conversation.agents.pydantic_ai import PydanticAI, model_messages
from sessionlog.conversation.turns.pieces import AgentRequest, Reply, ToolReturned
from sessionlog.conversation.turns.tool import tool
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from tests.conversation.agents.stub import pieces_of

PNG = ContentPart.of_image(b"png", "image/png")


class Listener:
    """A model that keeps what it is asked, and answers in turn."""

    def __init__(self, *parts):
        self.left = [list(one) for one in parts] or [[TextPart("ok")]]
        self.asked = []
        self.info = []

    def __call__(self, messages, info):
        self.asked.append(list(messages))
        self.info.append(info)
        return ModelResponse(parts=self.left.pop(0))

    @property
    def model(self):
        return FunctionModel(self)


def test_a_history_keeps_its_messages_and_ids():
    """What stands between two answers is one request; a result has the name of its tool, told or not."""
    calls = (ToolRequest("c1", "look", {"x": 1}), ToolRequest("c2", "look", "{broken"))
    history = [
        Message.user("hi"),
        Message.assistant("well", tool_calls=calls),
        Message.tool("one", "c1"),
        Message.tool("two", "c2", name="look"),
        Message.user("and?"),
        Message.assistant(),
        Message.assistant("done"),
    ]
    first, called, answered, last = model_messages(history)
    assert [type(part) for part in called.parts] == [TextPart, ToolCallPart, ToolCallPart]
    assert [(part.tool_call_id, part.args) for part in called.parts[1:]] == [("c1", {"x": 1}), ("c2", "{broken")]
    assert [(part.tool_name, part.tool_call_id) for part in answered.parts[:2]] == [("look", "c1"), ("look", "c2")]
    assert answered.parts[2].content == "and?"
    assert (first.parts[0].content, last.parts[0].content) == ("hi", "done")


def test_pictures_go_with_their_bytes_or_their_address():
    """Of users, tools and models; a picture in its own address is bytes."""
    shown = [
        "see", PNG, ContentPart.of_image_url("http://a/b.png"), ContentPart.of_image_url("data:image/png;base64,cG5n"),
        ContentPart(type="odd"),
    ]  # fmt: skip
    history = [Message.user(shown), Message.assistant(["drawn", PNG]), Message.tool([PNG], "c1", name="draw")]
    asked, said, result = model_messages(history)
    picture = BinaryContent(b"png", media_type="image/png")
    *shown, held, odd = asked.parts[0].content
    assert shown == ["see", picture, ImageUrl("http://a/b.png")]
    assert (held.data, held.media_type, odd) == (b"png", "image/png", "[odd]")
    assert said.parts == [TextPart("drawn"), FilePart(picture)]
    assert result.parts[0].content == [picture]


def test_what_a_run_adds_comes_back_as_it_was():
    """A second run sees the first one's answers, calls and results as pydantic-ai itself would keep them."""
    listener = Listener([TextPart("see"), ToolCallPart("draw", {}, "c1")], [TextPart("done")], [TextPart("yes")])
    agent = Agent(listener.model)

    @agent.tool_plain
    def draw() -> list[str | BinaryContent]:
        return ["here", BinaryContent(b"png", media_type="image/png")]

    history = [Message.user("draw")]
    for piece in pieces_of(PydanticAI(agent), AgentRequest(messages=history)):
        history += [piece.message] if isinstance(piece, Reply | ToolReturned) else []
    pieces_of(PydanticAI(agent), AgentRequest(messages=[*history, Message.user("again?")]))
    parts = [part for message in listener.asked[-1] for part in message.parts]
    assert [type(part) for part in parts] == [
        UserPromptPart, TextPart, ToolCallPart, ToolReturnPart, TextPart, UserPromptPart,
    ]  # fmt: skip
    assert (parts[2].tool_call_id, parts[3].tool_call_id, parts[3].tool_name) == ("c1", "c1", "draw")
    assert parts[3].content == ["here", BinaryContent(b"png", media_type="image/png")]


def test_the_agents_own_system_prompt_is_there_in_every_turn():
    """No history of ours holds it; the session's text and the agent's instructions come beside it."""
    listener = Listener([TextPart("a")], [TextPart("b")])
    agent = Agent(listener.model, system_prompt="be kind", instructions="be brief")
    history = [Message.system("be sure"), Message.user("hi")]
    pieces_of(PydanticAI(agent), AgentRequest(messages=history, system="be quick"))
    pieces_of(
        PydanticAI(agent),
        AgentRequest(messages=[*history, Message.assistant("a"), Message.user("and?")], system="be quick"),
    )
    for asked, info in zip(listener.asked, listener.info, strict=True):
        prompts = [part.content for one in asked for part in one.parts if isinstance(part, SystemPromptPart)]
        assert prompts == ["be kind"]
        assert [info.instructions.count(text) for text in ("be brief", "be quick", "be sure")] == [1, 1, 1]


def test_options_are_settings_of_the_model_or_arguments_of_the_run():
    """One that is neither is refused by name."""
    listener = Listener()
    agent = Agent(listener.model, deps_type=str)
    seen = []

    @agent.instructions
    def told(context: RunContext[str]) -> str:
        seen.append((context.deps, context.metadata))
        return "x"

    options = {"temperature": 0.5, "max_tokens": 9, "model_settings": {"seed": 1, "temperature": 1.0}, "deps": "d"}
    pieces_of(PydanticAI(agent), AgentRequest(messages=[Message.user("hi")], options={**options, "metadata": {"a": 1}}))
    assert listener.info[0].model_settings == {"temperature": 0.5, "max_tokens": 9, "seed": 1}
    assert seen[0] == ("d", {"a": 1})
    with pytest.raises(TypeError, match="nonsense"):
        pieces_of(PydanticAI(agent), AgentRequest(messages=[Message.user("hi")], options={"nonsense": 1}))


def test_the_sessions_own_tools_are_the_agents_too():
    """Plain and async, with pictures; whatever goes wrong in one is its result."""

    @tool
    def draw(size: int) -> ContentPart:
        """Draw something."""
        return ContentPart.of_image(b"x" * size, "image/png")

    @tool
    async def fail() -> str:
        raise KeyError("gone")

    calls = [ToolCallPart("draw", {"size": 2}, "c1"), ToolCallPart("fail", {}, "c2"), ToolCallPart("own", {}, "c3")]
    listener = Listener(calls, [TextPart("done")])
    agent = Agent(listener.model)
    agent.tool_plain(name="own")(lambda: "mine")
    pieces = pieces_of(PydanticAI(agent), AgentRequest(messages=[Message.user("hi")], tools=(draw, fail)))
    returned = {piece.request.id: piece for piece in pieces if isinstance(piece, ToolReturned)}
    assert returned["c1"].message.content == (ContentPart.of_image(b"xx", "image/png"),)
    assert returned["c2"].error == "KeyError: 'gone'"
    assert returned["c3"].message.text == "mine"
    described = {one.name: one.description for one in listener.info[0].function_tools}
    assert described["draw"] == "Draw something."


def test_a_history_that_ends_with_results_is_gone_on_with():
    """As after a failure between a tool and the next answer: nothing runs twice."""
    listener = Listener([TextPart("done")])
    history = [Message.user("hi"), Message.assistant(tool_calls=[ToolRequest("c1", "look")]), Message.tool("x", "c1")]
    pieces = pieces_of(PydanticAI(Agent(listener.model)), AgentRequest(messages=history))
    assert [type(piece) for piece in pieces] == [Reply]
    assert [type(one) for one in listener.asked[0]] == [ModelRequest, ModelResponse, ModelRequest]
