"""What cannot be meant is refused at once, in words, and leaves a history that can be read again."""

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session
from sessionlog.conversation.state import NOT_RUN
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.pieces import Reply, ToolReturned
from sessionlog.errors import AgentError, InvalidHistory, SessionNotSaved
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.scripted import Scripted, calls, log_in, reply, said


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"session_id": MemoryStore()}, TypeError, r"session_id is MemoryStore; it is a text; a store .* store=…"),
        ({"session_id": 5}, TypeError, "session_id is int"),
        ({"session_id": ""}, ValueError, "session_id is empty; leave it out"),
        ({"system": 5}, TypeError, "system is int; it is a text"),
        ({"store": "x.db"}, TypeError, r"store is str; it has save, load, .* as FileStore"),
        ({"store": MemoryStore}, TypeError, "store is the class MemoryStore"),
        ({"logger": "x"}, TypeError, r"logger is str; it is a SessionLogger: logger=SessionLogger\(\)"),
        ({"settings": {}}, TypeError, r"settings is dict; it is ConversationSettings\(...\)"),
        ({"messages": [{"role": "user", "content": ""}, {"role": "user"}]}, InvalidHistory, r"messages\[1\]: no 'cont"),
    ],
)
def test_a_wrong_part_is_named_at_once(given, error, words):
    """With what is meant instead; not by the first turn."""
    with pytest.raises(error, match=words):
        Agent(Scripted()).session(**given)


def test_a_wrong_part_of_an_agent_is_named_at_once():
    """A function alone is no list of tools, and a number no text."""
    with pytest.raises(TypeError, match=r"tools is function; it is a list of functions: tools=\[my_function\]"):
        Agent(Scripted(), tools=test_a_wrong_part_is_named_at_once)
    with pytest.raises(TypeError, match="tools is str"):
        Agent(Scripted(), tools="ls")
    with pytest.raises(TypeError, match="system is int"):
        Agent(Scripted(), 5)
    with pytest.raises(TypeError, match=r"Agent\.__init__\(\) got an unexpected keyword argument 'temperature'"):
        Agent(Scripted(), temperature=0.3)


def test_a_wrong_part_of_a_reply_is_named():
    """Where it is made."""
    with pytest.raises(TypeError, match=r"Reply\(message=...\) is str; it is a Message: Message.assistant\(text\)"):
        Reply(message="ok")
    with pytest.raises(TypeError, match=r"Reply\(usage=...\) is dict; it is a TokenUsage"):
        Reply(message=Message.assistant("ok"), usage={"input": 1})


def test_a_fork_has_an_id_of_its_own():
    """Two sessions of one id would be one."""
    session = Session(Scripted("2"), "s1")
    session.run("1")
    with pytest.raises(ValueError, match="'s1' is this session's own id"):
        session.fork("s1")
    with pytest.raises(TypeError, match="session_id is int"):
        session.fork(5)


@pytest.mark.parametrize("message", [Message.system("x"), Message.assistant("x")])
def test_a_turn_begins_with_what_a_user_says(message):
    """What others say is added, and the agent goes on from there."""
    session = Session(Scripted("2"))
    with pytest.raises(ValueError, match=f"of role '{message.role}'; .* add_message"):
        session.run(message)
    assert session.messages == []


def test_a_tools_result_answers_the_call_that_waits_for_it():
    """A call beside it that nobody has answered is closed, and the agent goes on."""
    agent = Scripted(calls(("f", {}), ("g", {})), "Done.")
    session = Session(agent, store=MemoryStore())
    session.run("a")
    response = session.run(Message.tool("42", "c2"))
    assert said(agent.asked[1]) == [("user", "a"), ("assistant", ""), ("tool", "42"), ("tool", NOT_RUN)]
    assert said(response.messages) == [("tool", "42"), ("tool", NOT_RUN), ("assistant", "Done.")]


def test_a_tools_result_that_no_call_waits_for_is_refused():
    """Before the agent is asked; the history can be loaded again."""
    store = MemoryStore()
    session = Session(Scripted("1"), "s1", store=store)
    session.run("a")
    with pytest.raises(InvalidHistory, match="no open call has the id 'x'; open calls: none"):
        session.run(Message.tool("42", "x"))
    assert (len(session.messages), session.state) == (2, "complete")
    assert len(Session.load("s1", Scripted(), store).messages) == 2


def test_there_is_nothing_to_answer_yet():
    """No model takes an empty history."""
    with pytest.raises(ValueError, match="nothing to answer yet"):
        Session(Scripted("1")).run()


@pytest.mark.parametrize(
    "message", [Message.tool("7", "z"), Message("tool", "7", tool_call_id=None), Message.assistant("7")]
)
def test_a_result_that_nobody_asked_for_is_the_agents_failure(tmp_path, message):
    """It is named, and the history can be loaded, and gone on with."""
    store = MemoryStore()
    agent = Scripted([ToolReturned(ToolRequest("z", "f", {}), message), reply("1")], reply("2"))
    session = Session(agent, "s1", store=store, logger=log_in(tmp_path))
    with pytest.raises(AgentError, match=r"a result of 'f' that no answer|role 'assistant'"):
        session.run("a")
    assert said(session.messages) == [("user", "a")]
    assert Session.load("s1", agent, store).messages == session.messages
    assert session.run("b").text == "2"


def test_what_could_not_be_loaded_again_is_not_saved():
    """What is stored stays; the error says what to do."""
    store = MemoryStore()
    session = Session(Scripted("1"), "s1", store=store)
    session.run("a")
    session.conversation.add_message(Message.tool("42", "x"))
    with pytest.raises(SessionNotSaved, match=r"nothing could load it again: messages\[2\]: .* undo\(\) removes"):
        session.save()
    assert len(store.load("s1")["messages"]) == 2
    session.undo()
    assert store.load("s1")["messages"] == []


def test_a_tool_cannot_change_what_it_was_asked(tmp_path):
    """The history has what the model asked for."""

    def pop_all(items: list, more: dict) -> str:
        items.clear()
        more["x"] = 1
        return "done"

    asked = {"items": [1, 2], "more": {"y": []}}
    agent = Scripted(calls(("pop_all", asked)), "Done.")
    session = Agent(agent, tools=[pop_all]).session(logger=log_in(tmp_path))
    session.run("a")
    assert asked == {"items": [1, 2], "more": {"y": []}}
    assert agent.asked[1][1].tool_calls[0].arguments == asked


def test_a_wrong_call_is_named_as_the_caller_wrote_it():
    """Not after the class that the method happens to be in."""
    session = Session(Scripted("2"))
    with pytest.raises(TypeError, match=r"^Session\.run\(\) takes"):
        session.run("1", 0.5)
    with pytest.raises(TypeError, match=r"^Session\.undo\(\) takes"):
        session.undo(2)


def test_a_session_says_what_it_is():
    """Shortly."""
    session = Session(Scripted("2"), "s1")
    session.run("1")
    assert repr(session) == f"Session('s1', {session.agent!r}, 2 messages, complete)"
