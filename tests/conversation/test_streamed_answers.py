"""A stream gives an answer as it comes; wherever it is left, what was shown is kept."""

import gc
import json

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.turns.pieces import Done, NextRequest, Reply, TextDelta, ToolCalled, ToolReturned
from sessionlog.errors import AgentError
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, calls, events, log_in, reply, said, types


def test_pieces_come_as_the_agent_gives_them():
    """Not when it is done."""
    given = []

    def agent(messages):
        for text in ("1", "2"):
            given.append(text)
            yield text

    stream = Session(agent).stream("a")
    assert given == []
    assert next(stream) == TextDelta("1")
    assert given == ["1"]
    assert [piece.type for piece in stream] == ["text_delta", "done"]


def test_the_last_piece_is_done():
    """With the response; then there is nothing more."""
    session = Session(Scripted(["stream", "ed"]))
    *pieces, done = session.stream("q")
    assert [piece.text for piece in pieces] == ["stream", "ed"]
    assert done.response.text == "streamed"
    assert said(session.messages) == [("user", "q"), ("assistant", "streamed")]
    stream = session.stream("q")
    stream.close()
    assert list(stream) == []


def test_a_whole_answer_is_one_piece():
    """Also of an agent that does not stream."""
    pieces = list(Session(Scripted("Hello")).stream("a"))
    assert [getattr(piece, "text", None) for piece in pieces[:-1]] == ["Hello"]


def test_what_was_shown_is_not_shown_again():
    """Where the whole answer follows its pieces."""
    pieces = list(Session(Scripted(["Hel", "lo", reply("Hello")])).stream("a"))
    assert [piece.text for piece in pieces[:-1]] == ["Hel", "lo"]
    assert pieces[-1].response.usage.output == 2


def test_empty_pieces_are_not_shown(tmp_path):
    """Nor written down."""
    session = Session(Scripted(["", "a", ""]), logger=log_in(tmp_path))
    assert [piece.type for piece in session.stream("a")] == ["text_delta", "done"]
    assert types(tmp_path).count("llm.delta") == 1


def test_tools_are_shown_as_they_run():
    """Asked for, then answered; then the model goes on."""

    def add(a, b):
        return a + b

    agent = Scripted(["Well, ", calls(("add", {"a": 1, "b": 2}))], "3.")
    pieces = list(Session(Agent(agent, tools=[add])).stream("a"))
    assert [piece.type for piece in pieces] == ["text_delta", "tool_called", "tool_returned", "text_delta", "done"]
    called, returned = pieces[1:3]
    assert (called.request.name, returned.request, returned.message.text) == ("add", called.request, "3")
    assert returned.duration_ms >= 0


def test_a_stream_that_is_not_begun_does_nothing():
    """Like any iterator."""
    session = Session(Scripted("1"))
    session.stream("a").close()
    del session.stream("b").stop
    assert session.messages == []
    assert session.run("c").text == "1"


def test_a_stream_that_is_left_keeps_what_was_shown(tmp_path):
    """Seed 003's weakness: a stream that was consumed in part recorded nothing, not even the user's words."""
    store = MemoryStore()
    session = Session(Scripted(["It ", "is", " seven"], "Yes."), "s1", store=store, logger=log_in(tmp_path))
    for piece in session.stream("a"):
        if piece.text == "is":
            break
    whole = [Message.user("a"), Message.assistant("It is", partial="interrupted")]
    assert session.messages == whole
    assert session.state == "interrupted"
    assert Session(Scripted(), "s1", store=store).messages == whole
    type_, data = events(tmp_path)[-1]
    assert (type_, data["partial"]) == ("llm.response", "interrupted")
    assert session.run("b").text == "Yes."


@pytest.mark.parametrize("leave", ["close", "with", "forget", "error"])
def test_however_it_is_left(leave):
    """Closed, at the end of a `with`, forgotten, or by an exception in the loop's body."""
    session = Session(Scripted(["It ", "is"], "Yes."))
    stream = session.stream("a")
    next(stream)
    if leave == "close":
        stream.close()
        stream.close()
    elif leave == "with":
        with stream:
            pass
    elif leave == "error":
        with pytest.raises(ZeroDivisionError), stream:
            raise ZeroDivisionError
    del stream
    gc.collect()
    assert said(session.messages) == [("user", "a"), ("assistant", "It ")]
    assert session.state == "interrupted"
    assert session.run("b").text == "Yes."


def test_a_stream_that_breaks_keeps_what_was_shown():
    """Seed 003's weakness: a broken stream recorded nothing."""
    session = Session(Scripted(["It ", ValueError("cut")], "Yes."))
    stream = session.stream("a")
    assert next(stream).text == "It "
    with pytest.raises(AgentError, match="cut"):
        next(stream)
    assert list(stream) == []
    assert session.messages[-1] == Message.assistant("It ", partial="failed")


def test_a_stream_that_is_left_closes_its_agent():
    """Its connection goes."""
    closed = []

    def agent(messages):
        try:
            yield "1"
            yield "2"
        finally:
            closed.append(True)

    stream = Session(agent).stream("a")
    next(stream)
    assert closed == []
    stream.close()
    assert closed == [True]


def test_a_stream_that_is_left_while_tools_run_closes_their_calls_later():
    """What ran is in the history, what did not is answered before the next turn."""
    agent = Scripted(calls(("run", {}), ("run", {})), "Yes.")

    def run():
        return "ran"

    session = Session(Agent(agent, tools=[run]))
    stream = session.stream("a")
    while not isinstance(next(stream), ToolReturned):
        pass
    stream.close()
    assert said(session.messages) == [("user", "a"), ("assistant", ""), ("tool", "ran")]
    session.run("b")
    assert [message.role for message in agent.asked[1]] == ["user", "assistant", "tool", "tool", "user"]


def test_what_is_shown_is_in_the_log_already(tmp_path):
    """A killed process loses nothing that anybody has seen."""
    session = Session(Scripted(["It ", "is"]), logger=log_in(tmp_path))
    for piece in session.stream("a"):
        if isinstance(piece, TextDelta):
            assert events(tmp_path)[-1] == ("llm.delta", {"content": piece.text})
        if isinstance(piece, Done):
            assert events(tmp_path)[-1][0] == "llm.response"


def test_the_question_is_saved_before_the_agent_is_asked(tmp_path):
    """In the log and in the store."""
    store = MemoryStore()

    def agent(messages):
        assert events(tmp_path)[-1][0] == "llm.request"
        saved = store.load("s1")
        assert [message["content"] for message in saved["messages"]] == ["a"]
        assert saved["state"] == "interrupted"
        return "Yes."

    session = Session(agent, "s1", store=store, logger=log_in(tmp_path))
    session.run("a")
    assert store.load("s1")["state"] == "complete"


def test_cancelling_between_two_pieces_ends_the_stream():
    """With a `Done` that says so, and without asking the agent for more."""
    session = Session(Scripted(["It ", "is"]))
    stream = session.stream("a")
    next(stream)
    assert session.cancel()
    (done,) = stream
    assert (done.response.status, done.response.text) == ("cancelled", "It ")


class OwnTools:
    """An agent that runs its tools itself."""

    runs_tools = True
    model = "m"
    provider = "p"

    def __init__(self, *pieces):
        self.pieces = pieces

    def answer(self, ask):
        for piece in self.pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece


def test_an_agent_that_runs_its_tools_itself_is_recorded_all_the_same(tmp_path):
    """Each of its requests, answers and tools."""
    asked = calls(("f", {"x": 1}))
    request = asked.tool_calls[0]
    returned = ToolReturned(request, Message.tool("7", "c1", name="f"), duration_ms=3)
    agent = OwnTools(Reply(message=asked), ToolCalled(request), returned, NextRequest(), TextDelta("7."), reply("7."))
    session = Session(Agent(agent, tools=[said]), logger=log_in(tmp_path))
    pieces = list(session.stream("a"))
    assert [piece.type for piece in pieces] == ["tool_called", "tool_returned", "text_delta", "done"]
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "assistant"]
    assert types(tmp_path) == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.delta", "llm.response",
    ]  # fmt: skip
    assert pieces[-1].response.requests == 2
    assert json.dumps(events(tmp_path)[1][1]["model"]) == '"m"'


def test_what_an_agent_says_without_a_whole_answer_is_one():
    """Texts alone, at the end of its pieces."""
    assert Session(OwnTools(TextDelta("7"), TextDelta("."))).run("a").text == "7."


@pytest.mark.parametrize(
    ("pieces", "named"), [((), "returned no answer"), (("text",), "yielded str; a piece is a TextDelta")]
)
def test_an_agent_that_gives_nothing_or_anything_is_named(pieces, named):
    """In words."""
    with pytest.raises(AgentError, match=named):
        Session(OwnTools(*pieces)).run("a")


@pytest.mark.parametrize(
    ("given", "named"), [(None, "returned NoneType"), ("text", "returned str"), (7, "returned int")]
)
def test_an_answer_that_is_no_iterator_is_named(given, named):
    """In words."""
    agent = OwnTools()
    agent.answer = lambda ask: given
    with pytest.raises(AgentError, match=named):
        Session(agent).run("a")
