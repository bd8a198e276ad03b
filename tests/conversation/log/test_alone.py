"""Two that tell one session's history would contradict each other: whoever comes second is told, before it asks."""

import os

import pytest

from sessionlog.conversation.log.logged_session import open_log, read_logged_session
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.errors import StaleSession
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message
from sessionlog.testing import MemorySink
from tests.conversation.log.logs import record, turn


def resumed(folder):
    """A recorder that goes on with the log, as another process would."""
    found = read_logged_session(str(folder / "s.jsonl"))
    made = Recorder(open_log(found))
    made.continue_log(found)
    return made, list(found.messages)


def test_one_that_is_alone_is_never_refused(folder):
    """Not without a logger, before its begin, between its turns, after its end, or in memory."""
    Recorder(None).check_sole_writer()
    alone = Recorder(SessionLogger(folder, "s"))
    alone.check_sole_writer()
    alone.begin(system=None)
    history = []
    for text in ("a", "b"):
        alone.check_sole_writer()
        history = turn(alone, history, text)
    alone.end("success")
    alone.check_sole_writer()
    other, history = resumed(folder)
    other.check_sole_writer()
    turn(other, history, "c")
    other.check_sole_writer()
    sink = Recorder(MemorySink())
    sink.begin(system=None)
    sink.check_sole_writer()


def test_who_comes_second_is_told(folder):
    """By the file, the session and the two ways on; whoever went on last may go on further."""
    first = record(folder)
    history = turn(first, [], "a")
    second, read = resumed(folder)
    turn(second, read, "b")
    with pytest.raises(StaleSession, match=r"s\.jsonl: .*session 's'.*Session\.resume\('.*s\.jsonl', …\).*fork\(\)"):
        first.check_sole_writer()
    second.check_sole_writer()
    turn(first, history, "c")
    for recorder in (first, second):
        with pytest.raises(StaleSession):
            recorder.check_sole_writer()
    third, _ = resumed(folder)
    third.check_sole_writer()


def test_what_others_write_within_a_turn_is_noticed_after_it(folder):
    """Also where our own last event stands behind it, and the file was let go of meanwhile."""
    first = record(folder)
    first.request([Message.user("a")])
    other, _ = resumed(folder)
    other.delta("x")
    first.response(Message.assistant("ho"))
    with pytest.raises(StaleSession):
        first.check_sole_writer()
    first.close()
    with pytest.raises(StaleSession):
        first.check_sole_writer()


def test_what_was_written_since_it_was_remembered_is_noticed(folder):
    """Before the first event of one's own, and after it."""
    history = turn(record(folder), [], "a")
    second, _ = resumed(folder)
    third, _ = resumed(folder)
    turn(third, history, "b")
    with pytest.raises(StaleSession):
        second.check_sole_writer()
    turn(second, history, "c")
    with pytest.raises(StaleSession):
        second.check_sole_writer()


def test_two_that_were_new_at_once(folder):
    """The log that one of them began is not the other's, which writes nothing into it."""
    one, two = (Recorder(SessionLogger(folder, "s")) for _ in range(2))
    one.begin(system=None)
    turn(one, [], "a")
    before = (folder / "s.jsonl").read_bytes()
    two.begin(system="b", inherited=[Message.user("b")])
    with pytest.raises(StaleSession):
        two.check_sole_writer()
    assert (folder / "s.jsonl").read_bytes() == before


def test_two_sessions_with_one_logger(folder):
    """The logger's own events are no reason; another session's are."""
    logger = SessionLogger(folder, "s")
    one, two = Recorder(logger), Recorder(logger)
    one.begin(system=None)
    two.begin(system=None, inherited=[Message.user("b")])
    turn(one, [], "a")
    logger.emit("note", {"by": "the program"})
    one.check_sole_writer()
    with pytest.raises(StaleSession):
        two.check_sole_writer()
    third = Recorder(logger)
    third.continue_log(read_logged_session(logger.path))
    third.check_sole_writer()
    with pytest.raises(StaleSession):
        one.check_sole_writer()


@pytest.mark.parametrize("change", ["deleted", "replaced", "emptied"])
def test_a_log_that_is_begun_anew_is_nobodys(folder, change):
    """It was deleted, or another file has its name: what is written next stands in a log of its own."""
    first, path = record(folder), folder / "s.jsonl"
    history = turn(first, [], "a")
    if change == "emptied":
        os.truncate(path, 0)
    else:
        path.unlink()
    if change == "replaced":
        path.write_bytes(b"x" * 9000 + b"\n")
    first.check_sole_writer()
    turn(first, history, "b")
    first.check_sole_writer()


def test_a_disk_that_was_full_is_nobody_else(folder, monkeypatch):
    """A piece of a line that could not be taken back is our own."""
    first = record(folder)
    history = turn(first, [], "a")

    def write(fd, line):
        monkeypatch.undo()
        with open(folder / "s.jsonl", "ab") as log:  # more than we know of, as without locks
            log.write(line[:9])
        raise OSError(28, "full")

    monkeypatch.setattr(os, "write", write)
    first.sync([*history, Message.user("b")])
    first.check_sole_writer()
    turn(first, history, "c")
    first.check_sole_writer()
    other, read = resumed(folder)
    turn(other, read, "d")
    with pytest.raises(StaleSession):
        first.check_sole_writer()


def test_what_comes_between_the_opening_and_the_first_event_is_noticed(folder):
    """However short that is."""
    history = turn(record(folder), [], "a")
    second, _ = resumed(folder)
    third, _ = resumed(folder)
    second._logger._open()
    turn(third, history, "b")
    turn(second, history, "c")
    with pytest.raises(StaleSession):
        second.check_sole_writer()
