"""What was given is asked by the adapter for its kind, chosen without importing anybody's client."""

import subprocess
import sys

import pytest

from sessionlog.conversation.agents.base import find_adapter
from sessionlog.conversation.agents.function import Function


def answer(messages):
    """Say something."""
    return "yes"


class Own:
    """Answers by itself."""

    def answer(self, ask):
        """Give pieces."""


def test_a_function_is_asked_as_one():
    """So is anything that can be called."""
    assert isinstance(find_adapter(answer), Function)
    assert find_adapter(answer, "m-1").model == "m-1"


def test_an_object_with_answer_is_asked_itself():
    """It is its own adapter."""
    own = Own()
    assert find_adapter(own) is own


@pytest.mark.parametrize("home", ["openai", "anthropic"])
def test_a_client_needs_a_model(home):
    """It serves many."""
    client = type("Client", (), {"__module__": f"{home}._client"})()
    with pytest.raises(TypeError, match=f"client of {home}.*model="):
        find_adapter(client)


def test_clients_and_agents_have_their_adapters():
    """By the module of their types, of a base of it also."""
    anthropic = pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")
    pydantic_ai = pytest.importorskip("pydantic_ai")

    class Mine(openai.OpenAI):
        """Somebody's own."""

    found = [
        find_adapter(Mine(api_key="x"), "m"), find_adapter(openai.AsyncOpenAI(api_key="x"), "m"),
        find_adapter(anthropic.Anthropic(api_key="x"), "m"), find_adapter(pydantic_ai.Agent("test")),
    ]  # fmt: skip
    assert [type(one).__name__ for one in found] == ["OpenAIClient", "OpenAIClient", "AnthropicClient", "PydanticAI"]


@pytest.mark.parametrize("agent", ["gpt", None, 7, Own, object()])
def test_anything_else_is_named_with_what_is_accepted(agent):
    """A wrong call."""
    with pytest.raises(TypeError, match=r"is no agent; an agent is a function f\(messages\)"):
        find_adapter(agent)


def test_no_client_is_imported_for_a_function():
    """A program without them does not pay for them."""
    program = (
        "import sys; from sessionlog.conversation import Session; Session(lambda messages: 'x').run('a');"
        "print(sorted({'openai', 'anthropic', 'pydantic', 'pydantic_ai', 'sqlite3'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
