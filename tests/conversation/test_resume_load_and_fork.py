"""A session goes on where it was: from its store, from its log, or as a fork of either."""

import json

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import InvalidHistory, StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import ContentPart, Message
from tests.conversation.scripted import Scripted, calls, events, log_in, reply, said, types

TWO = [("user", "1"), ("assistant", "2")]


def one_turn(**keywords):
    """A session in which something was said."""
    session = Session(Scripted(reply("2"), reply("4"), reply("6")), "s1", "Be brief.", **keywords)
    session.run("1")
    return session


def test_a_session_is_restored_by_its_id():
    """History, system, tokens, start and state."""
    store = MemoryStore()
    first = one_turn(store=store)
    again = Session(Scripted("4"), "s1", store=store)
    assert again.to_dict() == first.to_dict()
    assert (again.usage, again.state) == (TokenUsage(input=10, output=2), "complete")
    assert again.conversation.start_time == first.conversation.start_time
    again.run("3")
    assert store.load("s1")["messages"][-1]["content"] == "4"


def test_a_resumed_session_began_when_its_log_did(tmp_path):
    """To the microsecond."""
    time_ns = 1_763_800_000_123_451_000
    one_turn(logger=SessionLogger(tmp_path, "s1", clock=lambda: time_ns)).close()
    again = Session.resume("s1", Scripted(), directory=tmp_path)
    assert again.conversation.start_time.microsecond == 123_451
    assert again.conversation.to_serializable()["start_time"] == "2025-11-22T08:26:40.123451Z"


def test_what_is_stored_is_a_session_and_more():
    """Its schema, and all that is known of it."""
    store = MemoryStore()
    session = one_turn(store=store)
    saved = store.load("s1")
    assert saved["schema"] == "sessionlog.session/1"
    assert {name: saved[name] for name in session.to_dict()} == session.to_dict()
    assert saved["token_usage"] == {"input": 10, "output": 2, "total": 12, "requests": 1}
    assert saved["state"] == "complete"
    assert saved["settings"]["retry_attempts"] == 4
    json.dumps(saved)


def test_load_names_what_is_not_there():
    """It does not begin another."""
    store = MemoryStore()
    one_turn(store=store)
    assert said(Session.load("s1", Scripted(), store).messages) == TWO
    with pytest.raises(LookupError, match="no session 's2' in the store"):
        Session.load("s2", Scripted(), store)


def test_every_change_is_saved():
    """Not only turns."""
    store = MemoryStore()
    session = one_turn(store=store)
    session.add_message("user", "x")
    assert len(store.load("s1")["messages"]) == 3
    session.undo()
    assert len(store.load("s1")["messages"]) == 2
    session.clear()
    assert store.load("s1")["messages"] == []


def test_saving_can_be_left_to_the_caller():
    """Then nothing is saved but by `save`."""
    store = MemoryStore()
    session = one_turn(store=store, settings=ConversationSettings(auto_save=False))
    assert not store.exists("s1")
    session.save()
    assert store.exists("s1")


def test_a_session_is_saved_elsewhere():
    """In a store that is not its own; without any, that is a wrong call."""
    store = MemoryStore()
    session = one_turn()
    session.save(store)
    assert said(Session.load("s1", Scripted(), store).messages) == TWO
    with pytest.raises(ValueError, match="'s1' has no store"):
        session.save()
    with pytest.raises(StaleSession):
        one_turn().save(store)


def test_messages_for_a_session_that_is_there_are_refused(tmp_path):
    """Two histories of one session cannot both be meant."""
    store = MemoryStore()
    one_turn(store=store)
    with pytest.raises(ValueError, match="in the store already"):
        Session(Scripted(), "s1", messages=[], store=store)
    one_turn(logger=log_in(tmp_path)).close()
    with pytest.raises(ValueError, match=r"in the log .*s1\.jsonl already"):
        Session(Scripted(), messages=[], logger=log_in(tmp_path))
    with pytest.raises(ValueError, match="has a history already"):
        Session.from_dict({"session_id": "s1", "messages": []}, Scripted(), logger=log_in(tmp_path))


def test_a_damaged_snapshot_leaves_everything_as_it_was():
    """What is wrong is said; what is stored stays."""
    store = MemoryStore()
    store.save("s1", {"messages": [{"role": "robot", "content": ""}]})
    with pytest.raises(InvalidHistory, match=r"messages\[0\]"):
        Session(Scripted(), "s1", store=store)
    assert store.load("s1")["messages"][0]["role"] == "robot"


def test_a_saved_version_is_gone_on_from():
    """And what somebody else saved meanwhile is not saved over."""
    store = MemoryStore()
    one_turn(store=store)
    read = Session.from_dict(store.load("s1"), Scripted("4", "6"), store=store)
    read.run("3")
    other = Session(Scripted("x"), "s1", store=store)
    other.run("y")
    with pytest.raises(StaleSession):
        read.run("5")
    assert len(read.messages) == 4


def test_a_session_has_its_logs_id(tmp_path):
    """Unless the caller says the same."""
    assert Session(Scripted(), logger=log_in(tmp_path)).session_id == "s1"
    assert Session(Scripted(), "s1", logger=log_in(tmp_path)).session_id == "s1"


def test_nothing_is_written_before_something_is_said(tmp_path):
    """Not even a start; a `with` begins at once."""
    Session(Scripted(), logger=log_in(tmp_path))
    assert list(tmp_path.iterdir()) == []
    with Session(Scripted(), logger=log_in(tmp_path)):
        assert types(tmp_path) == ["session.start"]
    assert types(tmp_path) == ["session.start", "session.end"]


def test_a_log_that_somebody_has_begun_is_no_history(tmp_path):
    """As inside of `with SessionLogger()`."""
    with log_in(tmp_path) as logger:
        session = Session(Scripted("2"), system="Be brief.", messages=[Message.user("0")], logger=logger)
        session.run("1")
    assert types(tmp_path) == ["session.start", "history.add", "llm.request", "llm.response", "session.end"]
    assert find_logged_session(tmp_path / "s1.jsonl").system == "Be brief."


def test_a_log_is_gone_on_with(tmp_path):
    """History, system, tokens and state come from it alone."""
    one_turn(logger=log_in(tmp_path)).close()
    agent = Scripted(reply("4"))
    session = Session(agent, logger=log_in(tmp_path))
    assert (said(session.messages), session.system, session.state) == (TWO, "Be brief.", "complete")
    session.run("3")
    assert said(agent.asked[0]) == [("system", "Be brief."), *TWO, ("user", "3")]
    assert session.usage == TokenUsage(input=20, output=4)
    assert types(tmp_path).count("session.start") == 1


def test_the_log_is_the_truth_and_the_store_a_snapshot(tmp_path):
    """What is in the log only is there; the snapshot is saved over."""
    store = MemoryStore()
    one_turn(store=store, logger=log_in(tmp_path)).close()
    newer = Session(Scripted("4"), logger=log_in(tmp_path))
    newer.run("3")
    newer.close()
    session = Session(Scripted("6"), store=store, logger=log_in(tmp_path))
    assert len(session.messages) == 4
    session.run("5")
    assert len(store.load("s1")["messages"]) == 6


def test_a_damaged_snapshot_beside_a_log_is_saved_over(tmp_path):
    """The log has all of it."""
    store = MemoryStore()
    one_turn(logger=log_in(tmp_path)).close()
    store.save("s1", {"session_id": "s1"})

    class Damaged(MemoryStore):
        def load(self, session_id):
            raise InvalidHistory("damaged")

        save = store.save

    session = Session(Scripted("4"), store=Damaged(), logger=log_in(tmp_path))
    session.run("3")
    assert len(store.load("s1")["messages"]) == 4


def test_a_snapshot_begins_a_log(tmp_path):
    """Where there was none: with the history and what it has used."""
    store = MemoryStore()
    one_turn(store=store)
    session = Session(Scripted("4"), store=store, session_id="s1", logger=log_in(tmp_path))
    session.run("3")
    (start, _), (added, data), *_ = events(tmp_path)
    assert (start, added, data["reason"]) == ("session.start", "history.add", "restored")
    remembered = find_logged_session(tmp_path / "s1.jsonl")
    assert (list(remembered.messages), remembered.usage) == (session.messages, session.usage)


def test_resume_goes_on_after_a_crash(tmp_path):
    """From the log alone, and with it: the answer that broke off is there, too."""
    session = one_turn(logger=log_in(tmp_path))
    session.agent.adapter._function.answers[0] = ["It ", "is", " seven"]
    stream = session.stream("3")
    assert [next(stream).text, next(stream).text] == ["It ", "is"]
    (tmp_path / "copy").mkdir()
    torn = (tmp_path / "s1.jsonl").read_bytes() + b'{"session_id":"s1","se'
    (tmp_path / "copy" / "s1.jsonl").write_bytes(torn)
    agent = Scripted(reply("Seven."))
    resumed = Session.resume("s1", agent, directory=tmp_path / "copy")
    assert resumed.state == "interrupted"
    assert said(resumed.messages) == [*TWO, ("user", "3"), ("assistant", "It is")]
    assert resumed.messages[-1].partial == "interrupted"
    assert resumed.usage == TokenUsage(input=10, output=2)
    assert (tmp_path / "copy" / "s1.jsonl").read_bytes() == torn
    with resumed:
        resumed.run("again?")
    assert said(agent.asked[0])[1:] == [*TWO, ("user", "3"), ("assistant", "It is"), ("user", "again?")]
    found = find_logged_session(tmp_path / "copy" / "s1.jsonl")
    assert (list(found.messages), found.usage, found.state) == (resumed.messages, resumed.usage, "complete")
    stream.close()


def test_resume_closes_the_calls_of_a_killed_turn(tmp_path):
    """Nobody knows whether they took effect, and the model is told so."""
    agent = Agent(Scripted(calls(("look", {})), "4"), tools=[lambda: None])
    session = agent.session(logger=log_in(tmp_path))
    stream = session.stream("1")
    while next(stream).type != "tool_called":
        pass
    resumed = Session.resume(tmp_path / "s1.jsonl", Scripted("5"))
    resumed.run("2")
    assert [message.role for message in resumed.messages] == ["user", "assistant", "tool", "user", "assistant"]
    stream.close()


def test_resume_saves_in_a_store_as_well(tmp_path):
    """If one is given."""
    one_turn(logger=log_in(tmp_path)).close()
    store = MemoryStore()
    settings = ConversationSettings(retry_attempts=1)
    session = Session.resume("s1", Scripted("4"), directory=tmp_path, store=store, settings=settings)
    session.run("3")
    assert len(store.load("s1")["messages"]) == 4
    assert session.settings == settings


def test_pictures_and_changes_survive_in_the_log(tmp_path):
    """Messages added, taken back and forgotten between turns."""
    session = Session(Scripted("2", "4", "6"), logger=log_in(tmp_path))
    session.run(["1", ContentPart.of_image(b"\x89PNG")])
    session.run("3")
    session.undo()
    session.add_message("user", "noted")
    assert list(find_logged_session(tmp_path / "s1.jsonl").messages) == session.messages
    session.clear()
    session.add_message("user", "new")
    session.run()
    found = find_logged_session(tmp_path / "s1.jsonl")
    assert (list(found.messages), found.usage) == (session.messages, session.usage)


def test_a_cut_is_in_the_log(tmp_path):
    """What was dropped, so that the history can be told again."""
    settings = ConversationSettings(max_conversation_tokens=200, truncation_keep_recent=2)
    session = Session(Scripted(*["word " * 40] * 5), logger=log_in(tmp_path), settings=settings)
    for n in range(4):
        session.run(f"{n} " + "word " * 40)
    assert "compaction.end" in types(tmp_path)
    assert list(find_logged_session(tmp_path / "s1.jsonl").messages) == session.messages


def test_a_fork_has_a_log_of_its_own_that_names_its_parent(tmp_path):
    """In the same folder, with what it inherits."""
    session = one_turn(logger=log_in(tmp_path))
    fork = session.fork("s2")
    fork.run("3")
    start = events(tmp_path, "s2")[0][1]
    assert start["parent"]["session"] == "s1"
    assert start["parent"]["seq"] == len(events(tmp_path)) - 1
    assert types(tmp_path, "s2") == ["session.start", "history.add", "llm.request", "llm.response"]
    assert said(session.messages) == TWO
    found = find_logged_session(tmp_path / "s2.jsonl")
    assert (list(found.messages), found.usage) == (fork.messages, fork.usage)
    with pytest.raises(ValueError, match="a log of session 's2' already"):
        session.fork("s2")


def test_a_fork_is_saved_at_once():
    """Where the session is; not over another one."""
    store = MemoryStore()
    session = one_turn(store=store)
    fork = session.fork()
    assert said(Session.load(fork.session_id, Scripted(), store).messages) == TWO
    with pytest.raises(ValueError, match=f"'{fork.session_id}' is in the store already"):
        session.fork(fork.session_id)


def test_fork_from_any_point_of_a_log(tmp_path):
    """The parent's log is only read."""
    session = one_turn(logger=log_in(tmp_path))
    session.run("3")
    session.close()
    before = (tmp_path / "s1.jsonl").read_bytes()
    fork = Session.fork_from("s1", Scripted("x"), at=2, session_id="s2", directory=tmp_path)
    assert (said(fork.messages), fork.system, fork.usage) == (TWO, "Be brief.", TokenUsage())
    fork.run("other")
    fork.close()
    assert (tmp_path / "s1.jsonl").read_bytes() == before
    assert events(tmp_path, "s2")[0][1]["parent"] == {"session": "s1", "path": str(tmp_path / "s1.jsonl"), "seq": 2}
    with pytest.raises(LookupError, match="no event has seq 99"):
        Session.fork_from("s1", Scripted(), at=99, directory=tmp_path)
    with pytest.raises(ValueError, match="'s2' already"):
        Session.fork_from("s1", Scripted(), session_id="s2", directory=tmp_path)
    with pytest.raises(InvalidHistory):
        Session.fork_from("s1", Scripted(), session_id="s3", directory=_with_hole(tmp_path))


def test_a_fork_goes_beside_its_parent(tmp_path):
    """Unless the caller says where."""
    one_turn(logger=log_in(tmp_path)).close()
    Session.fork_from(tmp_path / "s1.jsonl", Scripted(), session_id="s2")
    assert types(tmp_path, "s2") == ["session.start", "history.add"]


def _with_hole(folder):
    lines = (folder / "s1.jsonl").read_bytes().splitlines(keepends=True)
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "s1.jsonl").write_bytes(b"".join([lines[0], b"{not json\n", *lines[2:]]))
    return damaged


def test_damage_is_passed_over_where_that_is_wanted(tmp_path):
    """By name only."""
    one_turn(logger=log_in(tmp_path)).close()
    folder = _with_hole(tmp_path)
    with pytest.raises(InvalidHistory, match=r"s1\.jsonl:2"):
        Session.resume("s1", Scripted(), directory=folder)
    with pytest.raises(InvalidHistory):
        Session(Scripted(), logger=SessionLogger(folder, "s1"))
    assert said(Session.resume("s1", Scripted(), directory=folder, skip_damage=True).messages) == [("assistant", "2")]


def test_a_log_may_have_a_name_of_its_own(tmp_path):
    """The session's id is the store's word, the log's is its file's; only a log with a history is another session's."""
    store, logger = MemoryStore(), SessionLogger(tmp_path)
    with Session(Scripted("Hi."), "s-1", store=store, logger=logger) as session:
        session.run("Hello")
    assert (session.session_id, store.list_sessions()) == ("s-1", ["s-1"])
    assert len(Session.resume(logger.path, Scripted()).messages) == 2
    with pytest.raises(ValueError, match=r"'s-2' cannot continue the log of .*SessionLogger\(session_id='s-2'\)"):
        Session(Scripted(), "s-2", logger=SessionLogger(tmp_path, logger.session_id))
