"""EventWriter: what is in the file after emit said so, and what emit does when it cannot be."""

import json
import os
import stat
import threading

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.errors import NotRecorded, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import LLMResponse, ToolCall
from sessionlog.events.redact import FAILED
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from sessionlog.testing import FixedClock, MemorySink, event_strategy

SECRET = "ghp_" + "a1B2" * 9
FULL = OSError(28, "No space left on device")


def writer(folder, session_id="s", **options):
    options.setdefault("clock", FixedClock())
    return EventWriter(folder, session_id, **options)


def content_of(logger):
    with open(logger.path, "rb") as file:
        return file.read()


def lines(logger):
    return [json.loads(line) for line in content_of(logger).splitlines()]


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


def test_a_torn_tail_is_healed(tmp_path):
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


@settings(max_examples=60, deadline=None, derandomize=True)
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


@settings(max_examples=80, deadline=None, derandomize=True)
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


def test_payload_dataclasses_are_written_as_their_json():
    """None is left out, unknown fields are there."""
    log = MemorySink()
    log.emit("tool.call", ToolCall(tool="bash", extra={"shell": "zsh"}))
    log.emit("llm.response", LLMResponse(usage=TokenUsage(input=3)))
    assert [event.data for event in log.events[1:]] == [
        {"tool": "bash", "shell": "zsh"},
        {"usage": {"input": 3, "output": 0, "total": 3}},
    ]
    assert log.totals.usage == TokenUsage(input=3)


class Hostile:
    """An object that cannot be spelled."""

    def __repr__(self):
        raise RuntimeError("no")


class HostileMeta(type):
    """A class that cannot be asked where it comes from."""

    @property
    def __module__(cls):
        raise RuntimeError("no")


class Nowhere(metaclass=HostileMeta):
    """An object of such a class."""


def circle():
    data = {}
    data["self"] = data
    return data


ODD = {
    "a set": lambda: {1, 2},
    "bytes": lambda: b"\xff",
    "a hostile object": lambda: {"a": Hostile()},
    "an object from nowhere": Nowhere,
    "a circle": circle,
    "surrogates": lambda: {"\ud800": "\udfff"},
    "a huge integer": lambda: {"n": 10**5000},
    "a function": lambda: print,
    "a number": lambda: 5,
    "text": lambda: "text",
    "a fragment with a newline": lambda: {"a": orjson.Fragment(b"1\n2")},
    "usage from elsewhere": lambda: {"usage": {"input": 10**5000}, "cost_usd": 10**5000},
    "a broken payload": lambda: ToolCall(extra=None),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("type_", ["x", "llm.response", "session.start"])
def test_any_payload_is_recorded(make, type_):
    """No emit raises, and says True for one readable event."""
    log = MemorySink()
    assert log.emit(type_, make()) is True
    assert log.emit("after") is True
    assert [event.type for event in log.events][-2:] == [type_, "after"]
    assert log.health().ok


@pytest.mark.parametrize("type_", ["", 5, None, b"x"])
def test_any_type_is_recorded(type_):
    """A type that is no word still gives an event that can be read."""
    log = MemorySink()
    assert log.emit(type_, {"a": 1}) is True
    assert log.events[-1].data == {"a": 1}
    assert log.events[-1].type


def test_a_type_that_cannot_be_spelled_is_recorded():
    """Even that is an event."""
    log = MemorySink()
    assert log.emit(Hostile()) is True
    assert log.events[-1].type == "unknown"


def test_an_oversize_event_is_cut_and_says_so(tmp_path):
    """Its strings are cut until it fits; what fits is whole."""
    logger = writer(tmp_path, max_event=2000)
    assert logger.emit("tool.call", {"tool": "cat", "output": "x" * 10_000})
    assert logger.emit("tool.call", {"tool": "cat", "output": "x" * 1800})
    logger.close()
    _, cut, whole = lines(logger)
    assert cut["data"]["truncated"] is True
    assert cut["data"]["tool"] == "cat"
    assert cut["data"]["output"].endswith("characters cut]")
    assert len(orjson.dumps(cut)) < 2000
    assert whole["data"] == {"tool": "cat", "output": "x" * 1800}


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_the_size_limit_is_exact(tmp_path, size):
    """A line of exactly the limit is whole, one byte more is cut."""
    logger = writer(tmp_path, max_event=1000)
    logger.emit("session.start")
    empty = (
        len(
            orjson.dumps(
                {"session_id": "s", "seq": 1, "type": "x", "ts": "2026-11-21T10:00:00.000000Z", "data": {"a": ""}}
            )
        )
        + 1
    )
    logger.emit("x", {"a": "y" * (1000 - empty + size)})
    logger.close()
    assert lines(logger)[1]["data"].get("truncated") is (True if size > 0 else None)


def test_secrets_do_not_reach_the_file(tmp_path):
    """By default well-known shapes are removed from everything that is written, keys and unknown keys included."""
    logger = writer(tmp_path, start={"prompt": f"use {SECRET}"})
    logger.emit("tool.call", {"output": [f"line\n{SECRET}"], SECRET: 1})
    logger.write(Event(session_id=SECRET, seq=0, type="x", ts="", data=None, extra={"k": {"n": SECRET}}))
    logger.close()
    assert SECRET.encode() not in content_of(logger)
    assert content_of(logger).count(b"[redacted]") == 5


def test_redaction_can_be_turned_off(tmp_path):
    """Who wants the bytes as they are gets them."""
    logger = writer(tmp_path, redact=False)
    logger.emit("x", {"a": SECRET})
    logger.close()
    assert lines(logger)[1]["data"] == {"a": SECRET}


def test_a_hook_gets_every_string_of_a_payload():
    """The session.start's too, before the well-known shapes are looked for."""
    log = MemorySink(redact=lambda text: text.replace("Alice", "[name]"), prompt="Alice asks", work_dir="/home/Alice")
    log.emit("x", {"Alice": ["Alice", {"deep": "dear Alice"}], "key": SECRET, "n": 5})
    log.emit("tool.call", ToolCall(tool="mail", output={"to": "Alice"}))
    start, event, call = (event.data for event in log.events)
    assert (start["prompt"], start["work_dir"]) == ("[name] asks", "/home/[name]")
    assert event == {"[name]": ["[name]", {"deep": "dear [name]"}], "key": "[redacted]", "n": 5}
    assert call == {"tool": "mail", "output": {"to": "[name]"}}


@pytest.mark.parametrize("answer", [None, 5, b"x"], ids=repr)
def test_a_hook_that_fails_fails_closed(answer):
    """Rubbish or an exception: the text is gone, the event is there."""
    log = MemorySink(redact=lambda text: answer)
    assert log.emit("x", {"secret": "secret"})
    assert log.events[-1].data == {FAILED: FAILED}


def test_a_hook_that_raises_fails_closed():
    """The event is there without its text, and emit does not raise."""

    def hook(text):
        raise RuntimeError(text)

    log = MemorySink(redact=hook)
    assert log.emit("x", {"secret": ["secret"]})
    assert b"secret" not in log.content


def test_a_lost_event_is_counted_told_and_shown():
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


def test_a_gap_at_the_end_is_written_by_close():
    """If writing works again only then, the hole is still shown."""
    log = MemorySink()
    log.emit("a")
    log.failure = FULL
    log.emit("b")
    log.failure = None
    log.close()
    assert log.events[-1].type == "log.gap"


def test_closing_never_raises():
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
    assert [event.seq for event in items] == list(range(1601))
    stamps = [event.time_ns for event in items]
    assert stamps == sorted(stamps)
    for thread in range(8):
        assert [e.data["number"] for e in items[1:] if e.data["thread"] == thread] == list(range(200))
    assert logger.health().written == 1600


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
