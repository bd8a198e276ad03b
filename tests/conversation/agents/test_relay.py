"""Streams are closed by whoever stops listening; requests fit the client; addresses name who serves them."""

import asyncio

import pytest

from sessionlog.conversation.agents.client import filter_kwargs
from sessionlog.conversation.turns.pieces import AgentRequest, TextDelta
from sessionlog.messages.message import Message
from sessionlog.messages.vendors import vendor_of
from tests.conversation.agents.stub import Server, chat, message

ASK = AgentRequest(messages=[Message.user("hi")])


@pytest.mark.parametrize("make", ["openai", "anthropic"])
def test_a_connection_is_closed_by_who_stops_listening(make):
    """Half an answer is enough to know that the rest is not wanted."""
    answer = (
        chat({"content": "one"}, {"content": "two"}) if make == "openai" else message({"type": "text", "text": "ab"})
    )
    pieces = getattr(Server(answer), make)().answer(ASK)
    assert isinstance(next(pieces), TextDelta)
    assert not answer.is_closed
    pieces.close()
    assert answer.is_closed


@pytest.mark.parametrize("make", ["openai", "anthropic"])
def test_an_async_connection_too(make):
    """In the same way."""
    answer = (
        chat({"content": "one"}, {"content": "two"}) if make == "openai" else message({"type": "text", "text": "ab"})
    )

    async def listen():
        pieces = getattr(Server(answer), make)(is_async=True).answer(ASK)
        first = await anext(pieces)
        await pieces.aclose()
        return first

    assert isinstance(asyncio.run(listen()), TextDelta)
    assert answer.is_closed


def test_what_a_client_has_no_parameter_for_goes_into_the_body():
    """So an option of a provider needs no newer client."""

    def create(*, model, extra_body=None):
        raise AssertionError

    assert filter_kwargs(create, {"model": "m"}) == {"model": "m"}
    assert filter_kwargs(create, {"model": "m", "top_k": 3}) == {"model": "m", "extra_body": {"top_k": 3}}
    given = {"model": "m", "top_k": 3, "extra_body": {"seed": 1}}
    assert filter_kwargs(create, given) == {"model": "m", "extra_body": {"seed": 1, "top_k": 3}}


def test_a_client_that_takes_anything_is_given_anything():
    """A wrapper around a client may hide what it takes."""
    assert filter_kwargs(lambda **request: request, {"model": "m", "top_k": 3}) == {"model": "m", "top_k": 3}


@pytest.mark.parametrize(
    ("address", "vendor"),
    [
        ("https://api.openai.com/v1/", "openai"),
        ("https://my-place.openai.azure.com/openai/", "azure"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.x.ai/v1", "x-ai"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "aws"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "google"),
        ("https://llm.foo.co.uk/v1", "foo"),
        ("https://foo.com.au/v1", "foo"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "aws"),
        ("https://co.ai/v1", "co"),
        ("https://api.openai.com./v1", "openai"),
        ("http://localhost:11434/v1", "localhost"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1"),
        ("http://[::1]:8000/v1", "::1"),
        ("", None),
        (None, None),
    ],
)
def test_an_address_names_who_serves_it(address, vendor):
    """As price lists call them; one's own machine is no vendor."""
    assert vendor_of(address) == vendor
