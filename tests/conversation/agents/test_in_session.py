"""Clients in a session: it runs the tools, asks again after failures, and keeps what a broken stream has said."""

import asyncio

import httpx2
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from sessionlog.conversation import Agent, AgentError, ConversationSettings, Message, tool
from sessionlog.conversation.history.rules import is_valid
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from tests.conversation.agents.stub import Answer, Server, call_deltas, chat, message

NO_PAUSE = ConversationSettings(retry_initial_s=0, retry_jitter_s=0)
ONCE = ConversationSettings(retry_attempts=1)
CALLS = [{"type": "tool_use", "id": f"c{n}", "name": "add", "input": {"a": n, "b": 1}} for n in (1, 2)]
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
BOTH = pytest.mark.parametrize("is_async", [False, True])


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Sum(BaseModel):
    """A sum."""

    total: int


def says(provider, text, **more):
    """Make an answer of a text, and its usage of ten tokens in and seven out."""
    if provider == "anthropic":
        return message({"type": "text", "text": text}, usage={"input_tokens": 10}, output=7, **more)
    return chat(
        {"content": text[:2]},
        {"content": text[2:]},
        usage={"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17},
    )


def asks_for_tools(provider):
    """Make an answer that asks for two calls of a tool."""
    if provider == "anthropic":
        return message({"type": "text", "text": "well"}, *CALLS, stop="tool_use", usage={"input_tokens": 10})
    calls = call_deltas(*((call["id"], "add", f'{{"a": {call["input"]["a"]}, "b": 1}}') for call in CALLS))
    return chat({"content": "well"}, *calls, finish="tool_calls")


def broken(provider):
    """Make an answer that breaks after its first words."""
    answer = says(provider, "hello")
    answer.events[3 if provider == "anthropic" else 1 :] = [httpx2.ReadError("reset")]
    return answer


def client(server, provider, *, is_async=False):
    """Give the adapter of a provider's client."""
    return getattr(server, provider)(is_async=is_async)


@PROVIDERS
@BOTH
def test_the_session_runs_the_tools(provider, is_async):
    """Until there is an answer without calls; the next turn sends all of it."""
    server = Server(asks_for_tools(provider), says(provider, "five"), says(provider, "fine"))
    session = Agent(client(server, provider, is_async=is_async), "be kind", [add]).session()
    response = session.run("1+1, 2+1?")
    assert (response.text, response.requests) == ("five", 2)
    assert [one.role for one in response.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [(one.tool_call_id, one.text) for one in response.messages[2:4]] == [("c1", "2"), ("c2", "3")]
    assert session.run("and?").text == "fine"
    assert is_valid(session.messages)
    sent = server.requests[2]["messages"]
    assert len(sent) == (5 if provider == "anthropic" else 7)


@PROVIDERS
@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_what_passes_is_asked_again(provider, status):
    """The client's own attempts are off here; each attempt of the session's is in the log."""
    server = Server(Answer([b"{}"], status), httpx2.ConnectError("refused"), says(provider, "hello"))
    session = Agent(client(server, provider)).session(settings=NO_PAUSE)
    response = session.run("hi")
    assert (response.text, response.requests, len(server.requests)) == ("hello", 1, 3)


@PROVIDERS
def test_what_does_not_pass_is_an_error(provider):
    """The question is kept, the client's own error is the cause, and the next turn asks again."""
    server = Server(Answer([b'{"error": {"message": "no such model"}}'], 404), says(provider, "hello"))
    session = Agent(client(server, provider)).session(settings=NO_PAUSE)
    with pytest.raises(AgentError, match="NotFoundError") as raised:
        session.run("hi")
    assert raised.value.__cause__.status_code == 404
    assert session.messages == [Message.user("hi")]
    assert session.run("hi?").text == "hello"


@PROVIDERS
@BOTH
def test_what_a_broken_stream_has_said_is_kept(provider, is_async, tmp_path):
    """Marked, in the history and in the log; and it is sent back without the mark."""
    server = Server(broken(provider), says(provider, "again"))
    session = Agent(client(server, provider, is_async=is_async)).session(
        logger=SessionLogger(tmp_path, "s"), settings=ONCE
    )
    with pytest.raises(AgentError) as raised:
        session.run("hi")
    assert raised.value.partial == "he"
    assert session.messages[1:] == [Message.assistant("he", partial="failed")]
    assert session.run("go on").text == "again"
    session.close()
    sent = [one["role"] for one in server.requests[1]["messages"]]
    assert sent == ["user", "assistant", "user"]
    assert "partial" not in str(server.requests[1])
    answers = [event.data for event in read_events(tmp_path / "s.jsonl") if event.type == "llm.response"]
    assert [(one["content"], bool(one.get("error"))) for one in answers] == [("he", True), ("again", False)]


@PROVIDERS
def test_usage_of_every_request_is_counted(provider, tmp_path):
    """In the response, the session and the log."""
    server = Server(says(provider, "one"), says(provider, "two"))
    with Agent(client(server, provider)).session(logger=SessionLogger(tmp_path, "s")) as session:
        assert session.run("hi").usage == TokenUsage(input=10, output=7)
        session.run("and?")
        assert session.usage == TokenUsage(input=20, output=14)
    end = list(read_events(tmp_path / "s.jsonl"))[-1]
    assert (end.data["tokens"]["input"], end.data["tokens"]["output"]) == (20, 14)


@PROVIDERS
def test_a_structured_answer_is_parsed(provider):
    """By the session, as the client gives text."""
    server = Server(says(provider, '{"total": 3}'), says(provider, "[3]"))
    session = Agent(client(server, provider)).session()
    assert session.json("1+2?", schema=Sum).output == Sum(total=3)
    assert session.json("as a list").output == [3]


@BOTH
def test_in_a_loop(is_async):
    """Pieces come as they are made; several sessions answer at once."""

    async def turn(n):
        server = Server(asks_for_tools("openai"), says("openai", f"answer {n}"))
        session = Agent(client(server, "openai", is_async=is_async), tools=[add]).session()
        return [piece async for piece in session.stream_async("hi")]

    async def both():
        return await asyncio.gather(turn(1), turn(2))

    for n, pieces in enumerate(asyncio.run(both()), 1):
        assert [piece.type for piece in pieces] == [
            "text_delta", "tool_called", "tool_returned", "tool_called", "tool_returned", "text_delta", "text_delta", "done",
        ]  # fmt: skip
        assert pieces[-1].response.text == f"answer {n}"


def test_a_pydantic_ai_agent_with_a_real_client():
    """Its usage, its calls and its own system prompt, turn after turn."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    usage |= {"prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 5}}
    asks = chat({"content": "well"}, *call_deltas(("c1", "add", '{"a": 1, "b": 2}')), finish="tool_calls", usage=usage)
    server = Server(
        asks, chat({"content": "th"}, {"content": "ree"}, usage=usage), chat({"content": "bye"}, usage=usage)
    )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(openai_client=server.openai_client(is_async=True))
    agent = PydanticAgent(OpenAIChatModel("gpt-x", provider=provider), system_prompt="be kind")
    agent.tool_plain(add.function)
    session = Agent(agent).session()
    pieces = list(session.stream("1+2?"))
    assert [piece.type for piece in pieces] == [
        "text_delta", "tool_called", "tool_returned", "text_delta", "text_delta", "done",
    ]  # fmt: skip
    assert session.run("thanks").text == "bye"
    assert session.usage == TokenUsage(input=120, output=60, cache_read=180, reasoning=15)
    sent = server.requests[-1]["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert (sent[2]["tool_calls"][0]["id"], sent[3]["tool_call_id"]) == ("c1", "c1")


@BOTH
def test_a_stream_of_pydantic_ai_that_is_left_lets_go_of_the_model(is_async):
    """Nobody goes on paying for what nobody reads."""
    closed = []

    async def answer(messages, info):
        try:
            for n in range(1000):
                yield f"{n} "
                await asyncio.sleep(0.001)
        finally:
            closed.append(1)

    session = Agent(PydanticAgent(FunctionModel(stream_function=answer))).session()

    async def leave():
        async with session.stream_async("count") as stream:
            await anext(stream)

    if is_async:
        asyncio.run(leave())
    else:
        with session.stream("count") as stream:
            next(stream)
    assert closed == [1]
    assert session.messages[-1] == Message.assistant("0 ", partial="interrupted")


def test_an_agent_that_fails_between_its_tools_goes_on_from_there():
    """Its tools ran and are in the history: after a failure that passes, only the model is asked again."""
    ran, script = [], [ModelResponse(parts=[ToolCallPart("look", {}, "c1")]), ConnectionError("reset")]
    script += [ModelResponse(parts=[TextPart("seen")])]

    def answer(messages, info):
        given = script.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    agent = PydanticAgent(FunctionModel(answer))
    agent.tool_plain(name="look")(lambda: ran.append(1) or "x")
    session = Agent(agent).session(settings=NO_PAUSE)
    response = session.run("hi")
    assert (response.text, response.requests, ran) == ("seen", 2, [1])
    assert [one.role for one in session.messages] == ["user", "assistant", "tool", "assistant"]
