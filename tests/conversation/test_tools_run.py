"""Tools run, and what is said of them enters the history."""

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.conversation.state import CUT_OFF, NOT_RUN
from sessionlog.errors import AgentError, InvalidHistory
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.scripted import Scripted, calls, said


def test_tools_run_and_enter_the_history():
    """Seed 003's weaknesses: tool exchanges never entered it, and the user's words were gone after the first round."""

    def add(a: int, b: int) -> int:
        return a + b

    agent = Scripted(calls(("add", {"a": 1, "b": 2})), "It is 3.")
    session = Session(Agent(agent, tools=[add]))
    response = session.run("1 + 2?")
    whole = [("user", "1 + 2?"), ("assistant", ""), ("tool", "3"), ("assistant", "It is 3.")]
    assert said(session.messages) == whole
    assert said(agent.asked[1]) == whole[:3]
    assert said(response.messages) == whole
    assert response.requests == 2
    assert session.messages[2].tool_call_id == "c1"


def test_an_agent_is_told_of_its_tools():
    """Where its signature takes them."""
    agent = Scripted("")
    Session(Agent(agent, tools=[said])).run("a")
    assert [tool.name for tool in agent.options[0]["tools"]] == ["said"]


def test_a_tool_that_fails_says_so_to_the_model():
    """And never raises; nor does one that is not there."""

    def fail():
        raise ValueError("no such file")

    agent = Scripted(calls(("fail", {}), ("fial", {}), ("fail", {"x": 1})), "Sorry.")
    session = Session(Agent(agent, tools=[fail]))
    assert session.run("a").text == "Sorry."
    assert [message.text for message in session.messages if message.role == "tool"] == [
        "ERROR: ValueError: no such file",
        "ERROR: LookupError: there is no tool 'fial'; there are fail",
        "ERROR: TypeError: fail: got an unexpected keyword argument 'x'; it takes no arguments",
    ]


def test_what_a_failure_says_of_itself_may_fail_too():
    """A tool's is the call's result all the same; an agent's is named."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def fail():
        raise Mute

    def agent(messages):
        raise Mute

    session = Session(Agent(Scripted(calls(("fail", {})), "Sorry."), tools=[fail]))
    assert session.run("a").text == "Sorry."
    assert session.messages[2].text == "ERROR: Mute: [unprintable]"
    with pytest.raises(AgentError, match=r"the agent failed: Mute: \[unprintable\]; the question is kept"):
        Session(agent).run("a")


def test_without_tools_a_turn_ends_with_its_calls_open():
    """Whoever runs them adds the results and lets the agent go on."""
    agent = Scripted(calls(("f", {})), "Done.")
    session = Session(agent)
    response = session.run("a")
    assert response.message.tool_calls == (ToolRequest("c1", "f", {}),)
    session.add_message("tool", "7", tool_call_id="c1")
    assert session.run().text == "Done."
    assert said(agent.asked[1]) == [("user", "a"), ("assistant", ""), ("tool", "7")]


def test_calls_that_nobody_answers_are_closed_before_the_next_turn():
    """Seed 003's weakness: a response that ended in tool calls left an orphan call, which no model takes."""
    agent = Scripted(calls(("f", {}), ("g", {})), "I see.")
    session = Session(agent)
    session.run("a")
    session.add_message("tool", "7", tool_call_id="c2")
    session.run("b")
    assert said(agent.asked[1]) == [("user", "a"), ("assistant", ""), ("tool", "7"), ("tool", NOT_RUN), ("user", "b")]
    assert session.messages[3].partial == "interrupted"
    assert NOT_RUN != CUT_OFF


def test_a_model_that_only_asks_for_tools_is_stopped():
    """After so many rounds; what it did is kept."""
    agent = Scripted(*(calls(("said", {"messages": []})) for _ in range(3)), "At last.")
    session = Session(Agent(agent, tools=[said]), settings=ConversationSettings(max_tool_rounds=2))
    with pytest.raises(AgentError, match="max_tool_rounds is 2"):
        session.run("a")
    assert [message.role for message in session.messages] == ["user", *["assistant", "tool"] * 2, "assistant"]
    assert session.run("b").text == "At last."


def test_a_result_that_nobody_waits_for_is_refused():
    """By name, and the history is as it was; the calls that are open are named."""
    session = Session(Scripted(calls(("f", {}))))
    with pytest.raises(InvalidHistory, match="'c1'; open calls: none"):
        session.add_message("tool", "7", tool_call_id="c1")
    session.run("a")
    with pytest.raises(InvalidHistory, match="'c2'; open calls: c1"):
        session.add_message("tool", "7", tool_call_id="c2")
    assert len(session.messages) == 2


def test_a_message_that_goes_on_closes_the_calls_before_it():
    """So that the history stays one that a model takes."""
    session = Session(Scripted(calls(("f", {}))))
    session.run("a")
    session.add_message("user", "b")
    assert said(session.messages) == [("user", "a"), ("assistant", ""), ("tool", NOT_RUN), ("user", "b")]


def test_a_history_of_somebodys_own_is_sent_as_a_valid_one():
    """Calls that were never answered are left out; the history itself stays as it was given."""
    given = [Message.user("a"), Message.assistant("Well.", tool_calls=[ToolRequest("c1", "f")]), Message.user("b")]
    agent = Scripted("Yes.")
    session = Session(agent, messages=given)
    session.run("c")
    assert agent.asked[0][1] == Message.assistant("Well.")
    assert session.messages[:3] == given
