"""A provider's client that is opened by its name, when it is asked first."""

import asyncio
import sys

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.errors import MissingExtra
from tests.conversation.agents.stub import Server, chat


@pytest.fixture
def opened(monkeypatch):
    """The clients that were opened; they ask a provider inside the process."""
    import openai

    clients, make = [], openai.OpenAI

    def client():
        server = Server(*(chat({"role": "assistant", "content": "hello"}) for _ in range(3)))
        clients.append(server)
        with monkeypatch.context() as patch:
            patch.setattr(openai, "OpenAI", make)
            return server.openai_client()

    monkeypatch.setattr(openai, "OpenAI", client)
    return clients


def test_a_client_is_opened_by_the_first_question(opened):
    """And stays open."""
    agent = Agent(provider="openai", model="gpt-x")
    assert (opened, agent.provider, agent.model) == ([], "openai", "gpt-x")
    session = agent.session()
    assert session.run("hi").text == "hello"
    assert session.run("hi").text == "hello"
    assert len(opened) == 1
    assert asyncio.run(agent.session().run_async("hi")).text == "hello"


def test_what_cannot_be_opened_is_named(monkeypatch):
    """A provider that nobody knows, a model that is missing, an agent beside it, a library that is not installed."""
    with pytest.raises(ValueError, match="no client is known for 'nobody'; there are openai, anthropic"):
        Agent(provider="nobody", model="m")
    with pytest.raises(TypeError, match="needs a model"):
        Agent(provider="openai")
    with pytest.raises(TypeError, match="leave out the agent"):
        Agent(lambda messages: "x", provider="openai", model="m")
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtra, match="pip install anthropic"):
        list(Agent(provider="anthropic", model="m").adapter.answer(None))
