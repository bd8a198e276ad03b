"""An Anthropic client as an agent, sync and async, against a provider inside the process."""

import httpx2
import pytest
from pydantic import BaseModel

from sessionlog.conversation.agents.anthropic import AnthropicClient
from sessionlog.conversation.turns.pieces import AgentRequest, Reply, TextDelta
from sessionlog.conversation.turns.tool import tool
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from tests.conversation.agents.stub import Answer, Server, message, pieces_of

BOTH = pytest.mark.parametrize("is_async", [False, True])
ASK = AgentRequest(messages=[Message.user("hi")], system="be kind")
USAGE = {
    "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10,
    "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 6},
    "output_tokens_details": {"thinking_tokens": 3},
}  # fmt: skip


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class City(BaseModel):
    """A city."""

    name: str


@BOTH
def test_text_comes_as_it_is_made(is_async):
    """Then the whole answer, with its usage: input is outside of the cache there already."""
    server = Server(message({"type": "text", "text": "hello"}, usage=USAGE))
    *texts, reply = pieces_of(server.anthropic(is_async=is_async), ASK)
    assert texts == [TextDelta("he"), TextDelta("llo")]
    assert reply == Reply(
        message=Message.assistant("hello"),
        usage=TokenUsage(input=11, output=7, cache_read=60, cache_write=10, reasoning=3, cache_write_1h=4),
        model="claude-x-2026",
        provider="anthropic",
        finish_reason="end_turn",
    )


@BOTH
def test_calls_of_tools_and_thoughts_are_kept(is_async):
    """Thoughts go back as they were: with tools, the provider wants them."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    called = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1, "b": 2}}
    first = message(thought, {"type": "text", "text": "well"}, called, stop="tool_use")
    server = Server(first, message({"type": "text", "text": "3"}))
    client = server.anthropic(is_async=is_async)
    asked = [Message.user("1+2?")]
    reply = pieces_of(client, AgentRequest(messages=asked, tools=(add,)))[-1]
    assert reply.message.tool_calls == (ToolRequest("t1", "add", {"a": 1, "b": 2}),)
    assert reply.message.text == "well"
    assert reply.message.content[0] == ContentPart(type="thinking", extra={"thinking": "hm", "signature": "sig"})
    pieces_of(client, AgentRequest(messages=[*asked, reply.message, Message.tool("3", "t1")], tools=(add,)))
    told, answered = server.requests[1]["messages"][1:]
    assert told["content"] == [thought, {"type": "text", "text": "well"}, called]
    assert answered["content"][0]["tool_use_id"] == "t1"
    assert server.requests[0]["tools"][0]["input_schema"]["required"] == ["a", "b"]


def test_the_request_is_what_was_asked_for():
    """Options that the client has no parameter for are sent all the same."""
    server = Server(message({"type": "text", "text": "x"}))
    options = {"temperature": 0.5, "metadata": {"user_id": "u", "ticket": 7}, "top_k": 3}
    pieces_of(server.anthropic(), AgentRequest(messages=ASK.messages, system="be kind", options=options))
    assert server.requests == [
        {
            "model": "claude-x",
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "system": "be kind",
            "stream": True,
            "temperature": 0.5,
            "top_k": 3,
            "metadata": {"user_id": "u"},
        }
    ]


def test_metadata_that_the_provider_has_no_place_for_stays_here():
    """Whatever it is."""
    server = Server(message({"type": "text", "text": "x"}), message({"type": "text", "text": "x"}))
    client = server.anthropic()
    for metadata in ({"ticket": 7}, "ticket 7"):
        pieces_of(client, AgentRequest(messages=ASK.messages, options={"metadata": metadata}))
    assert [request.get("metadata") for request in server.requests] == [None, None]


def test_a_structured_answer_is_asked_for_by_its_schema():
    """Beside other settings of the output; where it is no object's, the model is told."""
    server = Server(message({"type": "text", "text": "{}"}), message({"type": "text", "text": "[]"}))
    client = server.anthropic()
    options = {"max_tokens": 5, "output_config": {"effort": "low"}}
    pieces_of(client, AgentRequest(messages=ASK.messages, schema=City, options=options))
    pieces_of(client, AgentRequest(messages=ASK.messages, schema=list[int], system="be kind"))
    config = server.requests[0]["output_config"]
    assert (config["effort"], config["format"]["schema"]["additionalProperties"]) == ("low", False)
    assert server.requests[0]["max_tokens"] == 5
    assert server.requests[1]["system"].startswith("be kind\n\nAnswer with JSON")
    assert "output_config" not in server.requests[1]


@BOTH
@pytest.mark.parametrize(("status", "kind"), [(429, "RateLimitError"), (500, "InternalServerError")])
def test_what_goes_wrong_is_raised_as_the_client_raises_it(is_async, status, kind):
    """With the status and the headers that say whether to ask again, and when."""
    import anthropic

    body = b'{"type": "error", "error": {"type": "x", "message": "slow down"}}'
    server = Server(Answer([body], status, {"retry-after": "7"}))
    with pytest.raises(getattr(anthropic, kind), match="slow down") as raised:
        pieces_of(server.anthropic(is_async=is_async), ASK)
    assert raised.value.status_code == status
    assert raised.value.response.headers["retry-after"] == "7"


@BOTH
def test_a_stream_that_breaks_is_an_error(is_async):
    """Whether the connection says so or just ends."""
    broken = message({"type": "text", "text": "hello"}, stop=None)
    broken.events.append(httpx2.ReadError("reset"))
    server = Server(broken, message({"type": "text", "text": "hello"}, stop=None), Answer([]))
    client = server.anthropic(is_async=is_async)
    with pytest.raises(httpx2.ReadError):
        pieces_of(client, ASK)
    for _ in range(2):
        with pytest.raises(ConnectionError, match="ended before the answer did"):
            pieces_of(client, ASK)


def test_an_error_in_the_stream_is_raised():
    """An overloaded provider says so in the middle of an answer."""
    import anthropic

    answer = message({"type": "text", "text": "hello"}, stop=None)
    answer.events.append(
        b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'
    )
    with pytest.raises(anthropic.APIStatusError, match="busy"):
        pieces_of(Server(answer).anthropic(), ASK)


def test_it_says_what_it_is():
    """Before it is asked."""
    import anthropic

    client = AnthropicClient(anthropic.Anthropic(api_key="k"), "claude-x")
    assert (client.model, client.provider, client.runs_tools, client.is_async) == (
        "claude-x",
        "anthropic",
        False,
        False,
    )
    assert AnthropicClient(anthropic.AsyncAnthropic(api_key="k"), "claude-x").is_async
