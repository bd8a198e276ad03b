"""Whatever happens to a turn, what was said is kept, and the next turn goes on from there."""

import threading

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.state import CUT_OFF
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.pieces import NextRequest, Reply, TextDelta, ToolReturned
from sessionlog.errors import AgentError, NotRecorded, SessionNotSaved, StaleSession
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.scripted import Scripted, calls, events, log_in, reply, said, types

AT_ONCE = ConversationSettings(retry_initial_s=0, retry_jitter_s=0)
"""Failures are tried again without a pause."""


def test_a_failed_turn_keeps_the_question():
    """It is sent again, as it is, with the next one."""
    agent = Scripted(ValueError("no"), "Yes.")
    session = Session(agent)
    with pytest.raises(AgentError, match=r"the agent failed: ValueError: no; the question is kept") as caught:
        session.run("a")
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.partial, caught.value.attempts) == ("", 1)
    assert said(session.messages) == [("user", "a")]
    assert session.state == "failed"
    session.run("b")
    assert said(agent.asked[1]) == [("user", "a"), ("user", "b")]
    assert session.state == "complete"


@pytest.mark.parametrize("resumed", [False, True])
def test_who_asks_a_failed_question_again_does_not_send_it_twice(tmp_path, resumed):
    """It is in the history already; the log has one turn. Asked once more after its answer, it is a new question."""
    agent = Scripted(ValueError("no"), "Yes.", "Yes!")
    session = Session(agent, logger=log_in(tmp_path))
    with pytest.raises(AgentError):
        session.run("a")
    if resumed:
        path = session.path
        session.close()
        session = Session.resume(path, agent)
    response = session.run("a")
    assert said(agent.asked[1]) == said(agent.asked[0]) == [("user", "a")]
    assert said(response.messages) == said(session.messages) == [("user", "a"), ("assistant", "Yes.")]
    assert find_logged_session(session.path).turns == 1
    session.run("a")
    assert [role for role, _ in said(agent.asked[2])] == ["user", "assistant", "user"]
    assert list(find_logged_session(session.path).messages) == session.messages


def test_a_fork_of_a_failed_session_does_not_send_the_question_twice_either():
    """Nor does a tool's result that is given again, or a question that was cancelled before its answer."""
    agent = Scripted(ValueError("no"), "Yes.")
    session = Session(agent)
    with pytest.raises(AgentError):
        session.run("a")
    fork = session.fork()
    fork.run("a")
    assert said(fork.messages) == [("user", "a"), ("assistant", "Yes.")]

    agent = Scripted(calls(("look", {})), ValueError("no"), KeyboardInterrupt(), "Seen.")
    session, result = Session(agent), Message.tool("a house", "c1", name="look")
    session.run("What is it?")
    for error in (AgentError, KeyboardInterrupt):
        with pytest.raises(error):
            session.run(result)
    session.run(result)
    assert [role for role, _ in said(session.messages)] == ["user", "assistant", "tool", "assistant"]


def test_the_same_words_put_in_by_hand_are_no_failed_question():
    """They are asked again."""
    agent = Scripted(ValueError("no"), "Yes.")
    session = Session(agent)
    with pytest.raises(AgentError):
        session.run("go on")
    session.add_message("user", "yes")
    session.run("yes")
    assert said(session.messages) == [("user", "go on"), ("user", "yes"), ("user", "yes"), ("assistant", "Yes.")]


class RunsItsTools:
    """An agent that runs a tool, asks its model again, and fails."""

    runs_tools, model, provider = True, None, None

    def __init__(self):
        self.runs = 0

    def answer(self, request):
        self.runs += 1
        yield Reply(message=calls(("look", {})))
        yield ToolReturned(ToolRequest("c1", "look", {}), Message.tool("x", "c1", name="look"))
        yield NextRequest()
        raise ConnectionError("cut")


def test_an_agent_that_runs_its_tools_is_not_tried_again_for_ever():
    """Its model's requests are numbered anew, and the attempts are counted all the same."""
    agent = RunsItsTools()
    session = Session(agent, settings=ConversationSettings(retry_attempts=3, retry_initial_s=0, retry_jitter_s=0))
    with pytest.raises(AgentError, match="cut"):
        session.run("a")
    assert agent.runs == 3


def test_a_failed_turn_keeps_what_was_said():
    """Seed 001's partial recovery: marked in the history, and sent on without the mark."""
    agent = Scripted(["It ", "is", ValueError("no")], "Yes.")
    session = Session(agent)
    with pytest.raises(AgentError, match="the partial answer is kept") as caught:
        session.run("a")
    assert caught.value.partial == "It is"
    assert session.messages[-1] == Message.assistant("It is", partial="failed")
    session.run("b")
    assert agent.asked[1][1] == Message.assistant("It is")


def test_an_empty_answer_is_not_sent_on():
    """No provider takes one."""
    agent = Scripted("", "Yes.")
    session = Session(agent)
    session.run("a")
    session.run("b")
    assert said(session.messages)[1] == ("assistant", "")
    assert said(agent.asked[1]) == [("user", "a"), ("user", "b")]


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        (None, r"gave None; an answer is a text"),
        (7, r"gave int \(7\); an answer is"),
        (b"bytes", "gave bytes"),
        ({"role": "assistant"}, "gave dict"),
        ([None], "gave None; a piece is a text"),
        ([3.5], r"gave float \(3\.5\); a piece is"),
        (Message.user("me"), "role 'user'"),
        ([Message.tool("7", "c1")], "role 'tool'"),
    ],
)
def test_an_odd_answer_is_named(odd, named):
    """Whatever a function gives, the turn fails in words."""
    session = Session(Scripted(odd, "Yes."))
    with pytest.raises(AgentError, match=named):
        session.run("a")
    assert said(session.messages) == [("user", "a")]
    assert session.run("b").text == "Yes."


def test_a_long_odd_answer_is_named_shortly():
    """Not quoted at length."""
    with pytest.raises(AgentError) as caught:
        Session(Scripted({"x": "y" * 1000})).run("a")
    assert len(str(caught.value)) < 250


def test_transient_errors_are_tried_again():
    """Seed 001's retry."""
    session = Session(Scripted(ConnectionError("1"), TimeoutError("2"), "Yes."), settings=AT_ONCE)
    assert session.run("a").text == "Yes."
    assert said(session.messages) == [("user", "a"), ("assistant", "Yes.")]


def test_others_are_not():
    """Seed 001's retry is for transient errors only."""
    agent = Scripted(ValueError("1"), "Yes.")
    with pytest.raises(AgentError):
        Session(agent, settings=AT_ONCE).run("a")
    assert len(agent.asked) == 1


def test_attempts_are_counted(tmp_path):
    """In the error, and in the log, where each is a request with its failure."""
    agent = Scripted(*(ConnectionError(str(n)) for n in range(1, 5)))
    session = Session(agent, logger=log_in(tmp_path), settings=AT_ONCE)
    with pytest.raises(AgentError, match="failed after 4 attempts: ConnectionError: 4") as caught:
        session.run("a")
    assert caught.value.attempts == 4
    assert types(tmp_path) == ["session.start", *["llm.request", "llm.response"] * 4]
    found = [data for type_, data in events(tmp_path) if type_ == "llm.response"]
    assert [data["error"] for data in found] == [f"ConnectionError: {n}" for n in range(1, 5)]
    assert [data.get("attempt_index") for data in found] == [None, 2, 3, 4]


def test_what_was_shown_is_not_said_again():
    """An answer that breaks off is not tried again: its beginning was passed on."""
    agent = Scripted(["It is", ConnectionError("cut")], "It is 7.")
    with pytest.raises(AgentError, match="failed: ConnectionError: cut"):
        Session(agent, settings=AT_ONCE).run("a")
    assert len(agent.asked) == 1


def test_an_answer_behind_tools_is_tried_again():
    """Without running them a second time."""
    ran = []

    def run():
        ran.append(1)

    agent = Scripted(calls(("run", {})), ConnectionError(), "Done.")
    session = Session(Agent(agent, tools=[run]), settings=AT_ONCE)
    assert session.run("a").text == "Done."
    assert ran == [1]


def test_pauses_are_slept_in_short_steps():
    """So that somebody can end them."""
    session = Session(
        Scripted(ConnectionError(), "Yes."), settings=ConversationSettings(retry_initial_s=0.12, retry_jitter_s=0)
    )
    slept = []
    stream = session.stream("a")
    stream._sleep = slept.append
    assert [piece.type for piece in stream] == ["text_delta", "done"]
    assert sum(slept) == pytest.approx(0.12)
    assert max(slept) <= 0.05


def test_a_pause_ends_when_the_turn_is_to_stop():
    """The answer is cancelled, not tried again."""
    agent = Scripted(ConnectionError(), "Yes.")
    session = Session(agent, settings=ConversationSettings(retry_initial_s=9, retry_jitter_s=0))
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        session.cancel()

    stream = session.stream("a")
    stream._sleep = sleep
    (done,) = stream
    assert (done.response.status, len(slept), len(agent.asked)) == ("cancelled", 1, 1)


class Failing(MemoryStore):
    """A store that fails where it is told to: `fails` has the numbers of the saves."""

    def __init__(self, *fails):
        super().__init__()
        self.fails, self.saves = set(fails), 0

    def save(self, session_id, data):
        self.saves += 1
        if self.saves in self.fails:
            raise OSError("disk full")
        return super().save(session_id, data)


def test_a_store_that_fails_before_the_question_stops_the_turn(tmp_path):
    """Nobody is asked, and nothing is added: the caller says it again."""
    agent = Scripted("Yes.")
    session = Session(agent, "s1", store=Failing(1), logger=log_in(tmp_path))
    with pytest.raises(SessionNotSaved, match="session 's1' was not saved: OSError: disk full"):
        session.run("a")
    assert (session.messages, session.state, agent.asked) == ([], "new", [])
    assert types(tmp_path) == ["session.start", "history.add", "history.pop"]
    assert session.run("a").text == "Yes."


def test_a_store_that_fails_after_the_answer_loses_nothing():
    """The history has all of it; saving can be tried again."""
    session = Session(Scripted("Yes."), store=Failing(2))
    with pytest.raises(SessionNotSaved, match="is complete"):
        session.run("a")
    assert said(session.messages) == [("user", "a"), ("assistant", "Yes.")]
    assert session.state == "complete"
    session.save()


def test_a_store_that_fails_beside_the_agent_is_a_note():
    """The agent's failure is the one that is raised."""
    session = Session(Scripted(ValueError("no")), store=Failing(2))
    with pytest.raises(AgentError, match="ValueError: no") as caught:
        session.run("a")
    assert "disk full" in caught.value.__notes__[0]


def test_a_session_that_somebody_else_has_saved_is_not_saved_over():
    """A lost update is an error."""
    store = MemoryStore()
    first, second = (Session(Scripted("2", "4"), "s1", store=store) for _ in range(2))
    first.run("1")
    with pytest.raises(StaleSession):
        second.run("1")
    assert second.messages == []
    assert said(Session(Scripted(), "s1", store=store).messages) == [("user", "1"), ("assistant", "2")]


def test_a_log_that_cannot_be_written_raises_where_that_was_asked_for(tmp_path):
    """As it is: the agent is not to blame."""
    logger = SessionLogger(tmp_path, "s1", on_error="raise")
    session = Session(Scripted("Yes."), logger=logger)
    logger.close()
    with pytest.raises(NotRecorded):
        session.run("a")


def test_a_second_turn_at_the_same_time_is_refused():
    """By name, and the first one goes on."""
    session = Session(Scripted(["1", "2"], "3"), "s1")
    stream = session.stream("a")
    next(stream)
    with pytest.raises(RuntimeError, match="'s1' is busy"):
        session.run("b")
    with pytest.raises(RuntimeError, match="'s1' is busy"):
        session.add_message("user", "b")
    assert [piece.type for piece in stream] == ["text_delta", "done"]
    assert session.run("b").text == "3"


def test_another_thread_cancels():
    """The turn ends after the piece at hand, with what was said."""
    shown, go_on = threading.Event(), threading.Event()

    def agent(messages):
        yield "It "
        shown.set()
        assert go_on.wait(5)
        yield "is"
        yield " never reached"

    session = Session(agent)
    assert session.cancel() is False

    def cancel():
        assert shown.wait(5)
        assert session.cancel() is True
        go_on.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    response = session.run("a")
    thread.join()
    assert (response.status, response.text) == ("cancelled", "It is")
    assert session.messages[-1] == Message.assistant("It is", partial="cancelled")
    assert session.state == "cancelled"
    assert session.cancel() is False


def test_a_cancelled_turn_runs_no_more_tools():
    """The calls stay open until the next turn closes them."""

    def stop():
        """Cancel."""
        return session.cancel()

    session = Agent(Scripted(calls(("stop", {}), ("stop", {})), "Yes."), tools=[stop]).session()
    response = session.run("a")
    assert response.status == "cancelled"
    assert said(session.messages) == [("user", "a"), ("assistant", ""), ("tool", "true")]
    session.run("b")
    assert said(session.messages)[3:] == [("tool", CUT_OFF), ("user", "b"), ("assistant", "Yes.")]


def test_json_that_is_cancelled_has_no_output():
    """And is no error."""
    session = Session(lambda messages: iter([TextDelta("{"), session.cancel() and "}"]))
    response = session.json("a")
    assert (response.status, response.output) == ("cancelled", None)


def test_an_agent_that_closes_badly_is_forgiven():
    """What it said counts."""

    def agent(messages):
        try:
            yield "It"
            yield "is"
        finally:
            raise ValueError("while closing")

    session = Session(agent)
    stream = session.stream("a")
    next(stream)
    stream.close()
    assert session.messages[-1].text == "It"


def test_usage_of_failed_attempts_is_not_invented():
    """Only answers count."""
    session = Session(Scripted(ConnectionError(), reply("Yes.")), settings=AT_ONCE)
    session.run("a")
    assert session.conversation.token_counter.requests == 1
