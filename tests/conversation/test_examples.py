"""The examples of sessions, each with a function and with pydantic-ai: what the log tells is what the runs were."""

import asyncio
from pathlib import Path

import pytest

from sessionlog.analytics.status.reader import session_status
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.conversation import (
    AgentError,
    Done,
    FileStore,
    MemoryStore,
    Message,
    Session,
    SQLiteStore,
    TextDelta,
    ToolCalled,
    ToolReturned,
)
from sessionlog.conversation.history.rules import is_valid
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from tests.conversation.examples import MAKES, USAGE, City, make_agent

EACH = pytest.mark.parametrize("make", MAKES)


@pytest.fixture
def logger(tmp_path):
    """A log of its own."""
    return SessionLogger(tmp_path / "logs", "s", work_dir=str(tmp_path))


def check_log(session, *responses, make):
    """Compare what the log of a session tells with what its runs were, and what is resumed with what it was."""
    path = session.path
    session.close()
    requests, turns = sum(response.requests for response in responses), len(responses)
    usage = sum((response.usage for response in responses), TokenUsage())
    results = [one for response in responses for one in response.messages if one.role == "tool"]
    assert usage == session.usage

    totals = aggregate_usage(path).totals
    counted = (totals.input_tokens, totals.output_tokens, totals.cache_read_tokens, totals.cache_write_tokens)
    assert counted == (usage.input, usage.output, usage.cache_read, usage.cache_write)
    assert (totals.requests, totals.reasoning_tokens) == (requests, usage.reasoning)
    used = session_status(path=path, env={"HOME": str(Path(path).parent)}).usage["session"]
    assert (used["turns"], used["requests"], used["totalTokens"]) == (turns, requests, usage.total)
    assert aggregate_tools(path).totals.calls == len(results)

    resumed = Session.resume(path, make_agent(make))
    assert resumed.messages == session.messages
    assert (resumed.usage, resumed.system, resumed.session_id) == (session.usage, session.system, session.session_id)
    assert resumed.state == "complete"
    resumed.close()


@EACH
def test_several_turns(make, logger):
    """What was said in the first turn is known in the next."""
    session = make_agent(make, system="Be brief.").session(logger=logger)
    first = session.run("My name is Alice")
    second = session.run("What's my name?")
    assert (first.text, second.text) == ("Nice to meet you, Alice!", "You are Alice.")
    assert [one.role for one in session.messages] == ["user", "assistant"] * 2
    assert session.messages[0] == Message.user("My name is Alice")
    if make != "pydantic-ai streamed":
        assert first.usage == USAGE
    check_log(session, first, second, make=make)


@EACH
def test_a_session_that_was_never_told_knows_nothing(make):
    """Sessions of one agent do not know each other."""
    agent = make_agent(make)
    agent.session().run("My name is Alice")
    assert agent.session().run("What's my name?").text == "I do not know."


@EACH
def test_forks_for_other_plans(make, logger):
    """Each goes on from the same beginning, and knows nothing of the other; their logs name where they come from."""
    session = make_agent(make).session(logger=logger)
    first = session.run("My name is Alice")
    by_train, by_boat = session.fork(), session.fork("boat")
    train, boat = by_train.run("Plan a trip by train"), by_boat.run("Plan a trip by boat")
    again = by_boat.run("Plan it again by sail")
    assert (train.text, boat.text, again.text) == ("plan 1: by train", "plan 1: by boat", "plan 2: by sail")
    assert by_boat.run("What's my name?").text == "You are Alice."
    assert by_train.session_id != session.session_id
    assert [len(one.messages) for one in (session, by_train, by_boat)] == [2, 4, 8]
    path = by_boat.path
    start = next(read_events(path))
    assert start.data["parent"]["session"] == "s"
    check_log(by_train, train, make=make)
    check_log(session, first, make=make)
    by_boat.close()
    resumed = Session.resume(path, make_agent(make))
    assert resumed.messages == by_boat.messages
    resumed.close()


@EACH
def test_saved_and_restored(make):
    """As a value, with another agent of the same kind."""
    session = make_agent(make, system="Be brief.").session("sid")
    session.run("My name is Alice")
    session.run("Compare Rome Paris")
    data = session.to_dict()
    assert set(data) == {"session_id", "system", "messages"}
    restored = Session.from_dict(data, make_agent(make))
    assert (restored.session_id, restored.system, restored.messages) == ("sid", "Be brief.", session.messages)
    assert restored.run("What's my name?").text == "You are Alice."
    assert len(session.messages) == len(restored.messages) - 2


@EACH
@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_stores(make, kind, tmp_path):
    """Saved after every turn, and restored by the id; another process would do the same."""

    def open_store():
        return FileStore(tmp_path / "sessions") if kind == "file" else SQLiteStore(tmp_path / "sessions.db")

    memory = MemoryStore()
    store = memory if kind == "memory" else open_store()
    session = make_agent(make).session("alice", store=store)
    session.run("My name is Alice")
    session.run("Compare Rome Paris")
    other = memory if kind == "memory" else open_store()
    restored = make_agent(make).session("alice", store=other)
    assert restored.messages == session.messages
    assert restored.usage == session.usage
    assert restored.run("What's my name?").text == "You are Alice."
    assert other.list_sessions() == ["alice"]
    assert Session.load("alice", make_agent(make), other).messages == restored.messages
    for one in {store, other} if kind == "sqlite" else ():
        one.close()


@EACH
def test_tools(make, logger):
    """Calls and results enter the history and the log, with their ids; one that fails is told as what went wrong."""
    session = make_agent(make).session(logger=logger)
    first = session.run("My name is Alice")
    compared = session.run("Compare Rome Paris")
    assert compared.text.startswith("3 results, the last: ")
    assert compared.requests == 2
    calls = compared.messages[1].tool_calls
    results = {one.tool_call_id: one for one in compared.messages if one.role == "tool"}
    assert [call.name for call in calls] == ["weather", "weather", "population"]
    assert set(results) == {call.id for call in calls}
    assert results[calls[0].id].text == "sunny in Rome"
    assert is_valid(session.messages)
    told = [event.data for event in read_events(logger.path) if event.type == "tool.call"]
    assert {(one["id"], one["tool"]) for one in told} == {(call.id, call.name) for call in calls}
    assert all(one["duration_ms"] >= 0 for one in told)
    check_log(session, first, compared, session.run("What's my name?"), make=make)


def test_a_tool_that_fails_is_the_models_to_know():
    """The session's own tools never raise."""
    response = make_agent("function").session().run("Compare Rome Atlantis")
    assert response.text == "3 results, the last: ERROR: LookupError: it sank"


@pytest.mark.parametrize("make", ["pydantic-ai", "pydantic-ai streamed"])
def test_a_tool_of_pydantic_ai_that_raises_ends_the_turn(make, logger):
    """As that library has it; what was said is kept, and the next turn goes on with the call closed."""
    session = make_agent(make).session(logger=logger)
    session.run("My name is Alice")
    with pytest.raises(AgentError, match="LookupError: it sank"):
        session.run("Compare Rome Atlantis")
    assert session.messages[-1].role in {"assistant", "tool"}
    assert session.run("What's my name?").text == "You are Alice."
    assert is_valid(session.messages)
    session.close()
    resumed = Session.resume(logger.path, make_agent(make))
    assert resumed.messages == session.messages
    assert resumed.usage == session.usage
    resumed.close()


@EACH
def test_structured_answers(make, logger):
    """As the type that was asked for; the answer's text is in the history."""
    session = make_agent(make).session(logger=logger)
    first = session.run("My name is Alice")
    asked = session.json("The largest city of Italy?", schema=City)
    assert asked.output == City(name="Rome", population=2_800_000)
    assert City.model_validate_json(session.messages[-1].text) == asked.output
    assert session.messages[-1].tool_calls == ()
    check_log(session, first, asked, session.run("What's my name?"), make=make)


@EACH
def test_streams(make, logger):
    """Pieces come as they are made, tools are told, and the last piece has the response."""
    session = make_agent(make).session(logger=logger)
    pieces = list(session.stream("My name is Alice"))
    first = pieces[-1].response
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == first.text
    words = first.text.split()
    assert len(pieces) == 1 + (1 if make in {"function", "pydantic-ai"} else len(words)), (
        "a text that comes at once is one"
    )
    pieces = list(session.stream("Compare Rome Paris"))
    second = pieces[-1].response
    assert isinstance(pieces[-1], Done)
    called = [piece.request.id for piece in pieces if isinstance(piece, ToolCalled)]
    returned = [piece.request.id for piece in pieces if isinstance(piece, ToolReturned)]
    assert sorted(called) == sorted(returned) == sorted(call.id for call in second.messages[1].tool_calls)
    check_log(session, first, second, make=make)


@EACH
def test_a_stream_that_is_left_keeps_what_was_shown(make, logger):
    """And the session goes on."""
    session = make_agent(make).session(logger=logger)
    with session.stream("My name is Alice") as stream:
        shown = next(stream).text
    assert session.messages == [
        Message.user("My name is Alice"),
        Message.assistant(shown, partial=None if make in {"function", "pydantic-ai"} else "interrupted"),
    ]
    assert session.run("What's my name?").text == "You are Alice."
    session.close()
    resumed = Session.resume(logger.path, make_agent(make))
    assert resumed.messages == session.messages
    resumed.close()


@EACH
def test_in_a_loop(make, logger):
    """All of it, awaited."""

    async def talk():
        session = make_agent(make).session(logger=logger)
        first = await session.run_async("My name is Alice")
        pieces = [piece async for piece in session.stream_async("Compare Rome Paris")]
        asked = await session.json_async("The largest city of Italy?", schema=City)
        return session, first, pieces, asked

    session, first, pieces, asked = asyncio.run(talk())
    assert first.text == "Nice to meet you, Alice!"
    assert asked.output == City(name="Rome", population=2_800_000)
    assert sum(isinstance(piece, ToolReturned) for piece in pieces) == 3
    check_log(session, first, pieces[-1].response, asked, make=make)


@EACH
def test_a_log_is_gone_on_with(make, logger):
    """By a new process, as if nothing had happened; what comes later is in the same log."""
    session = make_agent(make, system="Be brief.").session(logger=logger)
    first = session.run("My name is Alice")
    compared = session.run("Compare Rome Paris")
    session.close()
    resumed = Session.resume(logger.path, make_agent(make))
    third = resumed.run("What's my name?")
    assert third.text == "You are Alice."
    assert resumed.messages[:-2] == session.messages
    check_log(resumed, first, compared, third, make=make)
