"""An OpenAI client as an agent, sync and async, against a provider inside the process."""

import httpx2
import pytest
from pydantic import BaseModel

from sessionlog.conversation.agents.openai import OpenAIClient
from sessionlog.conversation.turns.pieces import AgentRequest, Reply, TextDelta
from sessionlog.conversation.turns.tool import tool
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.agents.stub import Answer, Server, call_deltas, chat, pieces_of

BOTH = pytest.mark.parametrize("is_async", [False, True])
ASK = AgentRequest(messages=[Message.user("hi")], system="be kind")
USAGE = {
    "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 5},
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
    """Then the whole answer, with its usage in classes that do not overlap."""
    server = Server(chat({"role": "assistant", "content": ""}, {"content": "he"}, {"content": "llo"}, usage=USAGE))
    *texts, reply = pieces_of(server.openai(is_async=is_async), ASK)
    assert texts == [TextDelta("he"), TextDelta("llo")]
    assert reply == Reply(
        message=Message.assistant("hello"),
        usage=TokenUsage(input=30, output=20, cache_read=60, cache_write=10, reasoning=5),
        model="gpt-x-2026",
        provider="openai",
        finish_reason="stop",
    )


@BOTH
def test_calls_of_tools_are_put_together(is_async):
    """Each from its bits, with its id; arguments by name."""
    calls = call_deltas(("c1", "add", '{"a": 1, "b": 2}'), ("c2", "add", "oops"))
    server = Server(chat({"content": "let me see"}, *calls, finish="tool_calls"))
    reply = pieces_of(server.openai(is_async=is_async), AgentRequest(messages=[Message.user("1+2?")], tools=(add,)))[-1]
    assert reply.message.text == "let me see"
    assert reply.message.tool_calls == (ToolRequest("c1", "add", {"a": 1, "b": 2}), ToolRequest("c2", "add", "oops"))
    assert (reply.finish_reason, reply.usage) == ("tool_calls", None)
    told = server.requests[0]["tools"][0]["function"]
    assert (told["name"], told["description"], told["parameters"]["required"]) == (
        "add",
        "Add two numbers.",
        ["a", "b"],
    )


def test_calls_without_ids_or_with_one_index_stay_apart():
    """Some servers number every call 0, others give no ids."""
    same = [
        {"tool_calls": [{"index": 0, "id": one, "function": {"name": "add", "arguments": text}}]}
        for one, text in (("c1", '{"a": 1}'), ("c2", '{"a": 2}'))
    ]
    nameless = [{"tool_calls": [{"index": n, "function": {"name": "add", "arguments": "{}"}}]} for n in (0, 1)]
    server = Server(chat(*same, finish="tool_calls"), chat(*nameless, finish="tool_calls"))
    client = server.openai()
    assert [call.arguments for call in pieces_of(client, ASK)[-1].message.tool_calls] == [{"a": 1}, {"a": 2}]
    made = [call.id for call in pieces_of(client, ASK)[-1].message.tool_calls]
    assert len(set(made)) == 2
    assert all(made)


def test_the_request_is_what_was_asked_for():
    """System text, options by OpenAI's names, usage, and nothing that was not given."""
    server = Server(chat({"content": "x"}))
    options = {"temperature": 0.5, "max_tokens": 9, "metadata": {"a": "b"}, "repetition_penalty": 1.1}
    pieces_of(server.openai(), AgentRequest(messages=ASK.messages, system="be kind", options=options))
    assert server.requests == [
        {
            "model": "gpt-x",
            "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.5,
            "max_completion_tokens": 9,
            "metadata": {"a": "b"},
            "repetition_penalty": 1.1,
        }
    ]


def test_another_server_knows_the_older_name_of_max_tokens():
    """And is told as who serves it."""
    server = Server(chat({"content": "x"}, usage={**USAGE, "cost": 0.002}))
    client = server.openai(base_url="https://openrouter.ai/api/v1")
    reply = pieces_of(client, AgentRequest(messages=ASK.messages, options={"max_tokens": 9}))[-1]
    assert server.requests[0]["max_tokens"] == 9
    assert (client.provider, reply.provider, reply.cost_usd) == ("openrouter", "openrouter", 0.002)


def test_a_structured_answer_is_asked_for_by_its_schema():
    """Where it is no object's, the model is told."""
    server = Server(chat({"content": "{}"}), chat({"content": "[]"}))
    client = server.openai()
    pieces_of(client, AgentRequest(messages=ASK.messages, schema=City))
    pieces_of(client, AgentRequest(messages=ASK.messages, schema={}))
    form = server.requests[0]["response_format"]
    assert (form["type"], form["json_schema"]["name"]) == ("json_schema", "City")
    assert "response_format" not in server.requests[1]
    assert server.requests[1]["messages"][0]["content"] == "Answer with JSON and nothing else."


def test_of_several_answers_the_first_is_heard():
    """They come bit by bit between each other; a chunk may have none at all."""
    server = Server(chat({"content": "one"}))
    other = server.answers[0].events[0].replace(b'"index": 0', b'"index": 1').replace(b"one", b"two")
    nothing = b'data: {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": null}\n\n'
    server.answers[0].events[1:1] = [other, nothing]
    assert pieces_of(server.openai(), AgentRequest(messages=ASK.messages, options={"n": 2}))[-1].message.text == "one"


def test_a_refusal_is_said():
    """It is what the model answered."""
    server = Server(chat({"refusal": "I "}, {"refusal": "won't"}))
    assert pieces_of(server.openai(), ASK)[-1].message.text == "I won't"


@BOTH
@pytest.mark.parametrize(("status", "kind"), [(429, "RateLimitError"), (500, "InternalServerError")])
def test_what_goes_wrong_is_raised_as_the_client_raises_it(is_async, status, kind):
    """With the status and the headers that say whether to ask again, and when."""
    import openai

    server = Server(Answer([b'{"error": {"message": "slow down"}}'], status, {"retry-after": "7"}))
    with pytest.raises(getattr(openai, kind), match="slow down") as raised:
        pieces_of(server.openai(is_async=is_async), ASK)
    assert raised.value.status_code == status
    assert raised.value.response.headers["retry-after"] == "7"


@BOTH
def test_a_stream_that_breaks_is_an_error(is_async):
    """Whether the connection says so or just ends."""
    import openai

    broken = chat({"content": "he"}, finish=None)
    broken.events.append(httpx2.ReadError("reset"))
    server = Server(broken, chat({"content": "he"}, finish=None))
    client = server.openai(is_async=is_async)
    with pytest.raises(openai.APIConnectionError):
        pieces_of(client, ASK)
    with pytest.raises(ConnectionError, match="ended before the answer did"):
        pieces_of(client, ASK)


def test_an_error_in_the_stream_is_raised():
    """Some providers answer 200 and fail later."""
    import openai

    server = Server(Answer([b'data: {"error": {"message": "overloaded"}}\n\n']))
    with pytest.raises(openai.APIError, match="overloaded"):
        pieces_of(server.openai(), ASK)


def test_usage_that_makes_no_sense_is_never_negative():
    """Gateways report caches in many ways."""
    import openai

    told = openai.types.CompletionUsage.model_validate(
        {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6, "prompt_tokens_details": {"cached_tokens": 9}}
    )
    assert read_usage(told)[0] == TokenUsage(input=0, output=1, cache_read=9)


def test_it_says_what_it_is():
    """Before it is asked."""
    import openai

    client = OpenAIClient(openai.OpenAI(api_key="k"), "gpt-x")
    assert (client.model, client.provider, client.runs_tools, client.is_async) == ("gpt-x", "openai", False, False)
    assert OpenAIClient(openai.AsyncOpenAI(api_key="k"), "gpt-x").is_async
