"""A session holds a conversation with an agent."""

import threading
from contextlib import suppress

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.errors import AgentError, InvalidHistory, MissingField
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import ContentPart, Message
from tests.conversation.scripted import Scripted, calls, events, log_in, reply, said


def test_an_agent_hears_all_that_was_said():
    """The history, with the system's text first and the newest message last."""
    agent = Scripted("Nice to meet you!", "Alice.")
    session = Agent(agent, system="Be brief.").session("sid")
    session.run("My name is Alice")
    assert session.run("What's my name?").text == "Alice."
    assert said(agent.asked[1]) == [
        ("system", "Be brief."), ("user", "My name is Alice"), ("assistant", "Nice to meet you!"),
        ("user", "What's my name?"),
    ]  # fmt: skip
    assert said(session.messages) == [
        ("user", "My name is Alice"), ("assistant", "Nice to meet you!"),
        ("user", "What's my name?"), ("assistant", "Alice."),
    ]  # fmt: skip
    assert session.state == "complete"


def test_a_response_says_what_the_turn_came_to():
    """Text, messages, tokens, cost, model."""
    agent = Scripted(reply("Hello", model="m-1", cost_usd=0.25, finish_reason="stop"))
    response = Session(agent).run("Hi")
    assert (response.text, response.model, response.cost_usd, response.finish_reason) == ("Hello", "m-1", 0.25, "stop")
    assert (response.usage, response.usage_is_partial, response.requests) == (TokenUsage(input=10, output=2), False, 1)
    assert said(response.messages) == [("user", "Hi"), ("assistant", "Hello")]
    assert response.status == "success"
    assert response.duration_ms >= 0


def test_usage_adds_up_over_turns():
    """Seed 003's weakness: no usage or cost anywhere."""
    session = Session(Scripted(reply("1"), reply("2")))
    session.run("a")
    session.run("b")
    assert session.usage == TokenUsage(input=20, output=4)


def test_an_unknown_usage_is_not_zero():
    """An agent that says nothing of it makes it unknown; one that does for some answers, partial."""
    response = Session(Scripted("1")).run("a")
    assert (response.usage, response.usage_is_partial, response.cost_usd) == (None, True, None)
    agent = Agent(Scripted(calls(("said", {"messages": []})), reply("2", cost_usd=0.5)), tools=[said])
    response = agent.session().run("a")
    assert (response.usage, response.usage_is_partial, response.cost_usd) == (
        TokenUsage(input=10, output=2),
        True,
        None,
    )


def test_messages_can_be_given():
    """Seed 003's weakness: agent.session(messages=...) raised TypeError."""
    given = [Message.user("1"), Message.assistant("2")]
    session = Agent(Scripted("4")).session(messages=given)
    session.run("3")
    assert [message.text for message in session.messages] == ["1", "2", "3", "4"]


def test_the_callers_list_is_not_the_sessions():
    """Seed 003's weakness: the list that was given grew with the session."""
    given = [Message.user("1")]
    session = Session(Scripted("3"), messages=given)
    session.run("2")
    assert len(given) == 1
    given.clear()
    assert len(session.messages) == 3


@pytest.mark.parametrize("read", [lambda session: session.messages, Session.history])
def test_what_is_given_out_is_a_copy(read):
    """Nobody changes the history through it."""
    session = Session(Scripted("2"))
    session.run("1")
    read(session).clear()
    assert len(session.messages) == 2


def test_saved_messages_can_be_given():
    """As JSON has them."""
    session = Session(Scripted(), messages=[{"role": "user", "content": "1"}])
    assert said(session.messages) == [("user", "1")]


def test_a_tool_result_without_its_call_is_refused():
    """Before there is a session."""
    with pytest.raises(InvalidHistory, match=r"messages\[0\]: a tool result"):
        Session(Scripted(), messages=[Message.tool("ok", "c1")])


@pytest.mark.parametrize("name", ["session_id", "system", "agent", "settings", "usage", "state", "messages"])
def test_what_a_session_is_cannot_be_set(name):
    """Its id and the like are read-only."""
    with pytest.raises(AttributeError):
        setattr(Session(Scripted()), name, None)


def test_the_system_text_is_the_agents_unless_given():
    """An empty one is one."""
    agent = Agent(Scripted("", ""), system="Be brief.")
    assert agent.session().system == "Be brief."
    assert agent.session(system="Be long.").system == "Be long."
    assert agent.session(system="").system == ""
    assert Session(Scripted()).system is None


def test_an_id_is_a_new_uuid_unless_given():
    """Each session has its own."""
    first, second = Session(Scripted()), Session(Scripted())
    assert len(first.session_id) == 36
    assert first.session_id != second.session_id
    assert Session(Scripted(), "mine").session_id == "mine"


def test_options_reach_an_agent_that_takes_them():
    """Those that were given, 0 too; None is not given."""
    agent = Scripted("", "")
    session = Session(agent)
    session.run("a", temperature=0, max_tokens=None, metadata={"k": 1}, top_p=0.5)
    session.run("b")
    assert agent.options == [{"temperature": 0, "metadata": {"k": 1}, "top_p": 0.5}, {}]


def test_options_stay_away_from_an_agent_that_does_not():
    """A plain function of the messages is an agent."""

    def agent(messages, max_tokens=7):
        return f"{len(messages)} {max_tokens}"

    assert Session(agent).run("a", temperature=1, max_tokens=8).text == "1 8"
    assert Session(lambda messages: messages[-1].text).run("a", temperature=1).text == "a"


@pytest.mark.parametrize(
    ("given", "content"),
    [
        ("text", "text"),
        (Message.user("text", name="Ann"), "text"),
        (["look", ContentPart.of_image(b"1")], (ContentPart.of_text("look"), ContentPart.of_image(b"1"))),
        (ContentPart.of_text("text"), (ContentPart.of_text("text"),)),
    ],
)
def test_what_is_said_is_a_text_a_message_or_pieces(given, content):
    """Each in the history as it was said."""
    session = Session(Scripted(""))
    session.run(given)
    assert session.messages[0].content == content


@pytest.mark.parametrize("given", [7, b"bytes", {"role": "user"}, object()])
def test_anything_else_is_a_wrong_call(given):
    """Before the turn begins."""
    session = Session(Scripted(""))
    with pytest.raises(TypeError, match=f"input is {type(given).__name__}; it is a text"):
        session.run(given)
    assert session.messages == []


def test_an_agent_may_go_on_without_a_word():
    """After messages were added."""
    agent = Scripted("3")
    session = Session(agent)
    session.add_message("user", "1", name="Ann")
    session.add_message(Message.user("2"))
    assert session.run().text == "3"
    assert said(agent.asked[0]) == [("user", "1"), ("user", "2")]
    assert session.messages[0].name == "Ann"


def test_undo_takes_the_newest_turn_back():
    """The user's message and all that followed."""
    session = Session(Scripted("2", "4"))
    session.run("1")
    session.run("3")
    assert said(session.undo()) == [("user", "3"), ("assistant", "4")]
    assert said(session.messages) == [("user", "1"), ("assistant", "2")]
    session.undo()
    assert session.undo() == []


def test_clear_forgets_the_history_only():
    """The id, the system's text, and what was used stay."""
    session = Session(Scripted(reply("2"), "4"), "sid", "Be brief.")
    session.run("1")
    session.clear()
    assert session.usage == TokenUsage(input=10, output=2)
    assert session.to_dict() == {"session_id": "sid", "system": "Be brief.", "messages": []}
    assert session.state == "new"
    assert session.run("3").text == "4"


def test_a_fork_goes_its_own_way():
    """For alternative planning: neither hears of the other any more."""
    session = Session(Scripted("2", "4", "6"), "sid", "Be brief.", settings=ConversationSettings(retry_attempts=1))
    session.run("1")
    fork = session.fork("fork-id")
    fork.run("3")
    assert said(fork.messages)[:2] == said(session.messages)
    assert (len(session.messages), len(fork.messages)) == (2, 4)
    assert (fork.session_id, fork.system, fork.agent) == ("fork-id", "Be brief.", session.agent)
    assert (fork.settings, fork.usage) == (session.settings, TokenUsage())
    assert len(session.fork().session_id) == 36


def test_a_session_survives_saving_as_json():
    """What is read is the same."""
    session = Session(Scripted("2"), "sid", "Be brief.")
    session.run(["1", ContentPart.of_image(b"\x00\xff")])
    read = Session.from_dict(session.to_dict(), Scripted("4"))
    assert read.to_dict() == session.to_dict()
    assert read.messages == session.messages
    read.run("3")
    assert len(session.messages) == 2


def test_pictures_survive_saving():
    """Seed 003's weakness: the bytes of a picture were lost in to_dict."""
    session = Session(Scripted("A dot."))
    session.run(["look", ContentPart.of_image(b"\x89PNG", "image/png")])
    part = Session.from_dict(session.to_dict(), Scripted()).messages[0].content[1]
    assert (part.data, part.media_type) == (b"\x89PNG", "image/png")


def test_the_dict_has_exactly_the_seeds_keys():
    """With null where there is nothing."""
    session = Session(Scripted("2"), "sid")
    session.run("1")
    assert session.to_dict() == {
        "session_id": "sid",
        "system": None,
        "messages": [
            {"role": "user", "content": "1", "name": None, "tool_call_id": None, "tool_calls": None},
            {"role": "assistant", "content": "2", "name": None, "tool_call_id": None, "tool_calls": None},
        ],
    }


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        ([], InvalidHistory, "an object, not list"),
        ({}, MissingField, "messages"),
        ({"messages": {}}, InvalidHistory, "messages"),
        ({"messages": [{"role": "user"}]}, MissingField, r"messages\[0\].*content"),
        ({"messages": [{"content": ""}]}, MissingField, r"messages\[0\].*role"),
        ({"messages": [{"role": "robot", "content": ""}]}, InvalidHistory, r"messages\[0\].*unknown role 'robot'"),
        (
            {"messages": [{"role": "tool", "content": "", "tool_call_id": "x"}]},
            InvalidHistory,
            r"messages\[0\].*tool result",
        ),
        ({"messages": [], "system": 7}, InvalidHistory, "system: int"),
        ({"messages": [], "session_id": 7}, InvalidHistory, "session_id: 7"),
        ({"messages": [], "state": "lost"}, InvalidHistory, "state: 'lost'"),
        ({"messages": [], "state": []}, InvalidHistory, "state"),
        ({"messages": [], "schema": "sessionlog.session/9"}, InvalidHistory, "schema: 'sessionlog.session/9'"),
        ({"messages": [], "token_usage": {"input": -1}}, InvalidHistory, "token_usage"),
        ({"messages": [], "start_time": "yesterday"}, InvalidHistory, "start_time"),
        ({"messages": [], "settings": {"retry_attempts": -1}}, InvalidHistory, "settings"),
    ],
)
def test_a_saved_session_of_the_wrong_shape_is_refused(data, error, said):
    """What is wrong, and where."""
    with pytest.raises(error, match=said):
        Session.from_dict(data, Scripted())


def test_a_saved_session_without_an_id_gets_a_new_one():
    """As a copy that somebody wrote by hand."""
    assert len(Session.from_dict({"messages": []}, Scripted()).session_id) == 36


def test_structured_output():
    """`json` asks for it, and reads it."""
    agent = Scripted('```json\n{"n": 1}\n```', "[1, 2]", "7")
    session = Session(agent)
    assert session.json("a").output == {"n": 1}
    assert session.json("b", schema=list[int], temperature=1).output == [1, 2]
    assert session.json("c", schema={"type": "integer"}).output == 7
    assert agent.options == [{"schema": {}}, {"schema": list[int], "temperature": 1}, {"schema": {"type": "integer"}}]


def test_output_that_an_agent_has_read_itself_is_taken():
    """Also where it is nothing."""
    agent = Scripted(reply("three", output=3, has_output=True), reply("none", output=None, has_output=True))
    session = Session(agent)
    assert [session.json("a", schema=int).output, session.json("b").output] == [3, None]


def test_pieces_may_be_given_as_clients_spell_them():
    """Whoever has them for an OpenAI client need not spell them anew; what is none is named by its place."""
    session = Session(Scripted("A cat."))
    session.run(
        ["What is", {"type": "text", "text": " this?"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}]
    )
    said = session.messages[0]
    assert (said.text, said.content[2].image_url) == ("What is this?", "http://x/y")
    with pytest.raises(InvalidHistory, match=r"input\[1\]"):
        session.run(["and", 5])


def test_what_an_agent_has_read_itself_is_held_to_a_json_schema():
    """It may have read another thing than was asked for; the answer stays in the history."""
    session = Session(Scripted(reply("3", output=3, has_output=True), reply("x", output="x", has_output=True)))
    assert session.json("How many?", schema={"type": "integer"}).output == 3
    with pytest.raises(AgentError, match="'x' is not of type 'integer'"):
        session.json("How many?", schema={"type": "integer"})
    assert session.messages[-1].text == "x"


def test_output_of_another_shape_is_an_error_and_kept():
    """So the model can be told."""
    session = Session(Scripted("three"))
    with pytest.raises(AgentError, match="not JSON"):
        session.json("a")
    assert said(session.messages) == [("user", "a"), ("assistant", "three")]
    assert session.state == "complete"


def test_a_long_history_is_cut_before_the_question():
    """And the response says so."""
    agent = Scripted(*["word " * 40] * 9)
    settings = ConversationSettings(max_conversation_tokens=200, truncation_keep_recent=2)
    session = Session(agent, settings=settings)
    cut = [session.run(f"{n} " + "word " * 40).truncation for n in range(4)]
    assert cut[0] is None
    assert any(cut)
    assert session.conversation.message_count < 8
    assert session.messages[-2].text.startswith("3 ")


def test_cutting_can_be_left_to_the_caller():
    """Then a history grows as it grows."""
    settings = ConversationSettings(max_conversation_tokens=50, truncation_keep_recent=0, auto_truncate=False)
    session = Session(Scripted(*["word " * 40] * 3), settings=settings)
    assert [session.run("word " * 40).truncation for _ in range(3)] == [None] * 3


class _AskingLock:
    """A turn lock that begins a turn in the moment in which it is released first."""

    def __init__(self, session):
        self.lock, self.session, self.refused = threading.Lock(), session, []

    def acquire(self, blocking=True):
        return self.lock.acquire(blocking)

    def release(self):
        self.lock.release()
        session, self.session = self.session, None
        if session is not None:
            try:
                session.run("late")
            except RuntimeError as error:
                self.refused.append(str(error))


def test_no_turn_begins_while_a_session_is_being_closed(tmp_path):
    """Its lock is kept until session.end is written and the log is closed."""
    agent = Scripted("1", "2")
    session = Session(agent, logger=log_in(tmp_path))
    session.run("a")
    session._busy = lock = _AskingLock(session)
    session.close()
    assert len(agent.asked) == 1
    assert ["is closed" in refused for refused in lock.refused] == [True]
    assert events(tmp_path)[-1][0] == "session.end"


def test_no_turn_begins_between_a_cancelled_turn_and_the_end_of_its_session(tmp_path):
    """A block that is left during a turn closes the session with that turn."""

    def agent(messages):
        yield "1"
        with suppress(ValueError), session:
            raise ValueError
        yield "2"

    session = Session(agent, logger=log_in(tmp_path))
    session._busy = lock = _AskingLock(session)
    assert session.run("a").status == "cancelled"
    assert ["is closed" in refused for refused in lock.refused] == [True]
    assert events(tmp_path)[-1][0] == "session.end"


def test_a_closed_session_asks_nobody():
    """What it knows can still be read."""
    with Session(Scripted("2")) as session:
        session.run("1")
    assert len(session.messages) == 2
    with pytest.raises(RuntimeError, match="is closed"):
        session.run("3")
    with pytest.raises(RuntimeError, match="is closed"):
        session.clear()
    session.close()
