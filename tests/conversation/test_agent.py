"""An agent is something that answers, and remembers nothing."""

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.tool import tool
from tests.conversation.scripted import Scripted, ScriptedAsync, log_in


def answer(messages):
    """Say something."""
    return "yes"


@tool
async def slow():
    """Take time."""


def test_an_agent_is_what_it_was_given():
    """What it is told, what it may call, which model, what it is called."""
    agent = Agent(answer, "Be brief.", [slow], model="m-1", name="Bob")
    assert (agent.system, agent.tools, agent.model, agent.name) == ("Be brief.", (slow,), "m-1", "Bob")
    assert (agent.provider, agent.runs_tools) == (None, False)
    assert repr(agent) == "Agent(Bob, tools=[slow])"


def test_a_function_gives_its_name():
    """Where there is no other."""
    assert Agent(answer).name == "answer"
    assert repr(Agent(Scripted())) == "Agent(Function, tools=[])"


@pytest.mark.parametrize("name", ["system", "tools", "model", "name", "answers"])
def test_an_agent_does_not_change(name):
    """Its sessions count on it."""
    with pytest.raises(AttributeError):
        setattr(Agent(answer), name, "x")


def test_an_agent_needs_a_loop_where_it_or_a_tool_is_async():
    """Which `run` has to know before it begins."""
    assert not Agent(answer).is_async
    assert Agent(ScriptedAsync()).is_async
    assert Agent(answer, tools=[slow]).is_async


def test_an_object_with_answer_is_async_if_that_is():
    """Or if it says so."""

    class Own:
        """Answers by itself."""

        async def answer(self, ask):
            yield "x"

    agent = Own()
    assert Agent(agent).is_async
    agent.is_async = False
    assert not Agent(agent).is_async


def test_a_session_is_begun_with_all_that_it_takes(tmp_path):
    """The same as Session itself."""
    store, settings = MemoryStore(), ConversationSettings(retry_attempts=1)
    logger = log_in(tmp_path)
    session = Agent(answer, "Be brief.").session("s1", system="Be long.", store=store, logger=logger, settings=settings)
    session.run("a")
    assert (session.session_id, session.system, session.settings) == ("s1", "Be long.", settings)
    assert store.exists("s1")
    assert (tmp_path / "s1.jsonl").exists()
    session.close()


def test_sessions_do_not_hear_of_each_other():
    """One agent, many conversations."""
    agent = Agent(Scripted("1", "2"))
    first, second = agent.session(), agent.session()
    first.run("a")
    second.run("b")
    assert (len(first.messages), len(second.messages)) == (2, 2)
