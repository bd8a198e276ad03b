"""EventWriter: what is in the file after emit said so, and what emit does when it cannot be."""

import json
import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import NotRecorded, Problem
from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from sessionlog.testing import FixedClock, MemorySink, event_strategy
from tests.logger.log_files import content_of, lines, writer
from tests.profiles import examples

FULL = OSError(28, "No space left on device")


def test_the_first_line_is_a_start(tmp_path):
    """A file we create begins with session.start, which says v = 1 and what the constructor was told."""
    logger = writer(tmp_path, start={"model": "m-1"})
    assert logger.emit("progress", {"phase": "route"})
    logger.close()
    assert lines(logger) == [
        {
            "session_id": "s",
            "seq": 0,
            "type": "session.start",
            "ts": "2026-11-21T10:00:00.000000Z",
            "data": {"v": 1, "model": "m-1"},
        },
        {
            "session_id": "s",
            "seq": 1,
            "type": "progress",
            "ts": "2026-11-21T10:00:01.000000Z",
            "data": {"phase": "route"},
        },
    ]


def test_no_file_before_the_first_event(tmp_path):
    """A logger that records nothing leaves nothing behind."""
    logger = writer(tmp_path / "logs")
    assert logger.is_new()
    logger.close()
    assert os.listdir(tmp_path) == []


def test_the_callers_own_start(tmp_path):
    """It is the first line, with v added and the constructor's fields below its own."""
    logger = writer(tmp_path, start={"model": "m-1", "provider": "p"})
    logger.emit("session.start", {"model": "m-2", "prompt": "hi"})
    logger.emit("progress")
    logger.close()
    start, progress = lines(logger)
    assert start["data"] == {"v": 1, "model": "m-2", "provider": "p", "prompt": "hi"}
    assert progress["type"] == "progress"


@pytest.mark.parametrize("data", [None, {}])
def test_a_start_without_data(tmp_path, data):
    """It still says v = 1."""
    logger = writer(tmp_path)
    logger.emit("session.start", data)
    logger.close()
    assert lines(logger)[0]["data"] == {"v": 1}


def test_reopening_goes_on(tmp_path):
    """A second logger of the same session adds to the file, continues seq, and writes no second start."""
    first = writer(tmp_path)
    first.emit("a")
    first.close()
    before = content_of(first)
    second = writer(tmp_path)
    assert not second.is_new()
    second.emit("b")
    second.close()
    assert content_of(first).startswith(before)
    assert [(line["seq"], line["type"]) for line in lines(second)] == [(0, "session.start"), (1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("content", "seq"),
    [
        (b'{"session_id":"s","seq":41,"type":"x","ts":"","data":null}\n', 42),
        (b'{"type":"x","data":{"seq":7},"seq":41}\n', 0),
        (b'{"session_id":"s","seq":41,"type":"x"}\n\n\n', 42),
        (b'{"session_id":"s","seq":41,"type":"x"}\ngarbage\n', 42),
        (b'{"session_id":"s","seq":41,"type":"x"}\n{"session_id":"s","seq":42,"ty', 43),
        (b'{ "session_id": "s", "seq": 41, "type": "x" }\r\n', 42),
        (b"garbage\n", 0),
        (b'{"session_id":"s","seq":41,"type":"x"}\n' + b'{"x":"' + b"y" * 200_000 + b'"}\n', 42),
    ],
)
def test_where_seq_goes_on(tmp_path, content, seq):
    """After the last line that has a number, however much follows it; never lower than 0."""
    (tmp_path / "s.jsonl").write_bytes(content)
    logger = writer(tmp_path)
    logger.emit("x")
    logger.close()
    after = content_of(logger)
    assert after.startswith(content)
    assert json.loads(after.splitlines()[-1])["seq"] == seq


def test_p04_a_torn_tail_is_healed(tmp_path):
    """The next event is a line of its own; the torn bytes stay where they are."""
    torn = b'{"session_id":"s","seq":0,"type":"session.start","data":{}}\n{"session_id":"s","se'
    (tmp_path / "s.jsonl").write_bytes(torn)
    logger = writer(tmp_path)
    assert logger.emit("x")
    logger.close()
    assert content_of(logger).startswith(torn + b"\n{")
    items = list(read_events(logger.path))
    assert [item.type for item in items if isinstance(item, Event)] == ["session.start", "x"]


def test_stamps(tmp_path):
    """The ts is the clock's instant in UTC with six digits, across seconds and years, forwards and backwards."""
    instants = ["2026-11-21T10:00:00.000001Z", "2026-11-21T10:00:00.999999Z", "2026-12-31T23:59:59.500000Z",
                "2027-01-01T00:00:00.000000Z", "2026-11-21T10:00:00.100000Z", "1970-01-01T00:00:00.000000Z"]  # fmt: skip
    clock = FixedClock(instants[0], step_ns=0)
    logger = writer(tmp_path, clock=clock)
    for instant in instants:
        clock.now_ns = FixedClock(instant).now_ns + 999
        logger.emit("x")
    logger.close()
    assert [line["ts"] for line in lines(logger)[1:]] == instants


@examples(60)
@given(instants=st.lists(st.integers(0, 4 * 10**18), min_size=1, max_size=8))
def test_stamps_agree_with_the_clock(instants):
    """Whatever the clock says, the stamp reads back as it, to the microsecond."""
    clock = FixedClock(step_ns=0)
    log = MemorySink(clock=clock)
    log.emit("session.start")
    for instant in instants:
        clock.now_ns = instant
        log.emit("x")
    assert [event.time_ns for event in log.events[1:]] == [instant // 1000 * 1000 for instant in instants]


@examples(80)
@given(event=event_strategy(types=["vendor.thing", "tool.call", "progress"]))
def test_an_event_made_elsewhere_keeps_what_it_is(event):
    """It keeps type, ts, payload, unknown keys and a foreign session id; seq is ours."""
    log = MemorySink("own", redact=False)
    assert log.write(event)
    written = log.events[-1]
    assert (written.type, written.ts, written.data, written.extra) == (event.type, event.ts, event.data, event.extra)
    assert written.session_id == event.session_id
    assert written.seq == 1


def test_an_event_without_id_or_time_gets_ours():
    """What is missing is filled in."""
    log = MemorySink("own")
    log.write(Event(session_id="", seq=99, type="x", ts=""))
    written = log.events[-1]
    assert (written.session_id, written.seq, written.ts) == ("own", 1, "2026-11-21T10:00:01.000000Z")


def test_p06_a_lost_event_is_counted_told_and_shown():
    """An emit says False, health() and the log say what is missing, and one line is said aloud."""
    log = MemorySink()
    log.emit("a")
    log.failure = FULL
    assert log.emit("b") is False
    assert log.emit("c") is False
    log.failure = None
    assert log.emit("d") is True
    health = log.health()
    assert (health.emitted, health.written, health.dropped, health.ok) == (4, 2, 2, False)
    assert health.dropped_by == {"ENOSPC": 2}
    assert "No space left" in health.last_error
    assert [(event.seq, event.type) for event in log.events] == [
        (0, "session.start"), (1, "a"), (4, "log.gap"), (5, "d")
    ]  # fmt: skip
    assert log.of_type("log.gap")[0].data == {"events": 2, "from_seq": 2, "to_seq": 3, "reason": "ENOSPC"}
    assert len(log.notices) == 1


def test_p06_a_gap_at_the_end_is_written_by_close():
    """If writing works again only then, the hole is still shown."""
    log = MemorySink()
    log.emit("a")
    log.failure = FULL
    log.emit("b")
    log.failure = None
    log.close()
    assert [event.type for event in log.events[-2:]] == ["log.gap", "session.end"]


def test_p01_closing_never_raises():
    """Not even when the disk is still full; and closing twice is nothing."""
    log = MemorySink()
    log.emit("a")
    log.failure = FULL
    log.emit("b")
    log.close()
    log.close()
    assert [event.type for event in log.events] == ["session.start", "a"]


def test_after_closing_nothing_is_recorded():
    """A late event is dropped and counted, and the log stays as it is."""
    log = MemorySink()
    log.emit("a")
    log.close()
    before = log.content
    assert log.emit("b") is False
    assert log.health().dropped_by == {"closed": 1}
    assert log.content == before


def test_on_error_raise():
    """Who asks for it gets an exception for an event that is not in the log, and only then."""
    log = MemorySink(on_error="raise")
    assert log.emit("a") is True
    log.failure = FULL
    with pytest.raises(NotRecorded, match="No space left") as caught:
        log.emit("b")
    assert isinstance(caught.value, OSError)
    log.failure = None
    assert log.emit("c") is True
    log.close()
    with pytest.raises(NotRecorded, match="closed"):
        log.emit("d")


@pytest.mark.parametrize("option", [{"durability": "often"}, {"on_error": "ignore"}])
def test_an_option_that_does_not_exist(tmp_path, option):
    """The constructor names what there is."""
    with pytest.raises(ValueError, match="use '"):
        writer(tmp_path, **option)


@pytest.mark.parametrize("durability", ["os", "interval", "fsync"])
def test_every_durability_writes(tmp_path, durability):
    """What was acknowledged is in the file at once."""
    logger = writer(tmp_path, durability=durability)
    for number in range(3):
        assert logger.emit("x", {"n": number})
        assert lines(logger)[-1]["data"] == {"n": number}
    logger.close()


def test_files_are_private(tmp_path):
    """0600 files in 0700 folders, each folder that we make."""
    logger = writer(tmp_path / "a" / "b")
    logger.emit("x")
    logger.close()
    assert stat.S_IMODE(os.stat(logger.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "a" / "b").st_mode) == 0o700


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("make", [os.mkfifo if hasattr(os, "mkfifo") else None, os.mkdir, lambda path: os.symlink("/etc/hostname", path)], ids=["fifo", "folder", "link"])  # fmt: skip
def test_only_a_regular_file_is_written_to(tmp_path, make):
    """A pipe, a folder or a link in the log's place is not touched; the event is dropped and counted."""
    make(tmp_path / "s.jsonl")
    logger = writer(tmp_path, notify=lambda text: None)
    assert logger.emit("x") is False
    assert logger.health().dropped == 1
    logger.close()


def test_a_deleted_log_is_begun_anew(tmp_path):
    """After somebody removed the file, the next event is in a new one that begins with a start."""
    logger = writer(tmp_path)
    logger.emit("a")
    os.unlink(logger.path)
    assert logger.emit("b") is True
    logger.close()
    assert [line["type"] for line in lines(logger)] == ["session.start", "b"]


def test_threads_share_a_logger(tmp_path):
    """Eight threads, 200 events each: every event is one line, once; seq is file order; each thread's order is kept."""
    logger = SessionLogger(tmp_path, "s", work_dir="/p")
    begin = threading.Barrier(8)

    def work(thread):
        begin.wait()
        for number in range(200):
            assert logger.emit("x", {"thread": thread, "number": number})

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.close()
    items = list(read_events(logger.path))
    assert not any(isinstance(item, Problem) for item in items)
    assert [event.seq for event in items] == list(range(1602))  # its start and its end too
    stamps = [event.time_ns for event in items]
    assert stamps == sorted(stamps)
    for thread in range(8):
        assert [e.data["number"] for e in items[1:-1] if e.data["thread"] == thread] == list(range(200))
    assert logger.health().written == 1601


def test_two_loggers_share_a_file(tmp_path):
    """Two writers of one session never glue lines; seq may repeat, file order is the truth."""
    first, second = writer(tmp_path), writer(tmp_path)
    for number in range(50):
        assert (first if number % 2 else second).emit("x", {"n": number})
    first.close()
    second.close()
    assert [line["data"]["n"] for line in lines(first) if line["type"] == "x"] == list(range(50))


def test_an_emit_inside_an_emit_is_written_behind_it():
    """What a signal handler records while an event is being written comes after it, in order of seq."""
    inner = []
    armed = []

    def clock():
        if armed:
            armed.clear()
            inner.append(log.emit("inner"))
        return 0

    log = MemorySink(clock=clock)
    log.emit("session.start")
    armed.append(True)
    assert log.emit("outer") is True
    assert inner == [False]
    assert [(event.seq, event.type) for event in log.events] == [(0, "session.start"), (1, "outer"), (2, "inner")]
    assert log.health().written == 3
