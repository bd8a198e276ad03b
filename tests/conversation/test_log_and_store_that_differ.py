"""Where a session has a log and a store, the one that knows more is gone on from; a log that was cut short is told."""

import errno
import os

import pytest

from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import InvalidHistory
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, log_in, reply, said

FOUR = [("user", "1"), ("assistant", "2"), ("user", "3"), ("assistant", "4")]


def silent_log(folder):
    """A logger that says nothing of what it drops."""
    return SessionLogger(folder, "s1", notify=lambda _: None)


@pytest.fixture
def full_disk(monkeypatch):
    """Call it, and logs cannot be written; call it with False, and they can."""
    write = os.write

    def refuse(fd, data):
        raise OSError(errno.ENOSPC, "no space left on device")

    return lambda is_full=True: monkeypatch.setattr(os, "write", refuse if is_full else write)


def begun(folder, store, *answers):
    """A session with a first turn in both."""
    session = Session(Scripted(reply("2"), *answers), "s1", store=store, logger=silent_log(folder))
    session.run("1")
    return session


def test_a_log_that_could_not_be_written_is_behind_the_store(tmp_path, full_disk):
    """What the store has beyond it is taken, and told to the log by the next turn."""
    store = MemoryStore()
    session = begun(tmp_path, store, reply("4"))
    full_disk()
    session.run("3")
    full_disk(False)
    assert len(find_logged_session(tmp_path / "s1.jsonl").messages) == 2
    again = Session(Scripted("6"), "s1", store=store, logger=silent_log(tmp_path))
    assert (said(again.messages), again.usage, again.state) == (FOUR, TokenUsage(input=20, output=4), "complete")
    again.run("5")
    assert said(find_logged_session(tmp_path / "s1.jsonl").messages) == [*FOUR, ("user", "5"), ("assistant", "6")]
    assert len(store.load("s1")["messages"]) == 6


def test_a_log_that_can_be_written_again_is_told_at_the_end(tmp_path, full_disk):
    """Closing is enough."""
    session = begun(tmp_path, MemoryStore(), reply("4"))
    full_disk()
    session.run("3")
    full_disk(False)
    session.close()
    assert said(find_logged_session(tmp_path / "s1.jsonl").messages) == FOUR


def test_a_log_with_a_gap_is_behind_although_it_went_on(tmp_path, full_disk):
    """Something was written after the gap, but not what was said in it."""
    store, logger = MemoryStore(), silent_log(tmp_path)
    session = Session(Scripted("2", "4"), "s1", store=store, logger=logger)
    session.run("1")
    full_disk()
    session.run("3")
    full_disk(False)
    logger.emit("note", {"text": "the disk has room again"})
    again = Session(Scripted(), "s1", store=store, logger=silent_log(tmp_path))
    assert said(again.messages) == FOUR


def test_what_was_taken_back_in_the_log_stays_taken_back(tmp_path):
    """Although the store has it still: the log went on after the snapshot."""
    store = MemoryStore()
    begun(tmp_path, store, "4").run("3")
    alone = Session(Scripted(), logger=log_in(tmp_path))
    alone.undo()
    alone.close()
    assert said(Session(Scripted(), "s1", store=store, logger=log_in(tmp_path)).messages) == FOUR[:2]


def test_a_session_that_went_on_without_its_log_is_gone_on_from(tmp_path):
    """The log is told what the store knows."""
    store = MemoryStore()
    begun(tmp_path, store).close()
    Session(Scripted("4"), "s1", store=store).run("3")
    session = Session(Scripted("6"), "s1", store=store, logger=log_in(tmp_path))
    assert said(session.messages) == FOUR
    session.close()
    assert said(find_logged_session(tmp_path / "s1.jsonl").messages) == FOUR


def test_histories_that_went_on_in_two_ways_are_refused(tmp_path):
    """Both are named, and the two ways on; each of them works, and nothing was changed."""
    store = MemoryStore()
    begun(tmp_path, store).close()
    Session(Scripted("4"), "s1", store=store).run("3")
    alone = Session(Scripted("b"), logger=log_in(tmp_path))
    alone.run("a")
    alone.close()
    with pytest.raises(
        InvalidHistory, match=r"s1\.jsonl \(4 messages\) and the snapshot stored as 's1' \(4 messages\)"
    ):
        Session(Scripted(), "s1", store=store, logger=log_in(tmp_path))
    assert said(Session.resume("s1", Scripted(), directory=tmp_path).messages)[-1] == ("assistant", "b")
    assert said(Session.load("s1", Scripted(), store).messages) == FOUR


@pytest.mark.parametrize("text", ["key sk-ant-REDACTED", "half \ud800 a letter"])
def test_what_a_log_cannot_hold_is_no_other_way(tmp_path, text):
    """A redacted secret, half a letter: it is the same message."""
    store = MemoryStore()
    session = Session(Scripted("2"), "s1", store=store, logger=log_in(tmp_path))
    session.run(text)
    again = Session(Scripted("4"), "s1", store=store, logger=log_in(tmp_path))
    assert len(again.messages) == 2
    again.add_message(Message.user("3"))
