"""SessionLogger: what an agent writes, and how its session begins and ends."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping

import pytest

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger import session_logger
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events
from sessionlog.testing import FixedClock, MemorySink


@pytest.fixture
def log():
    """A logger in memory."""
    return MemorySink(work_dir="/p")


def types(log):
    return [event.type for event in log.events]


def end_of(log):
    [end] = log.of_type("session.end")
    return end.data


def test_a_session_from_start_to_end(tmp_path):
    """The example of the module's docstring: a start, the events in order, an end with the totals."""
    task = "fix the tests"
    with SessionLogger(tmp_path, "s", provider="anthropic", model="m", prompt=task, metadata={"team": "a"}) as log:
        log.llm_request([{"role": "user", "content": task}], tools=[{"name": "bash"}], temperature=0)
        log.llm_response("ok", usage={"input": 812, "output": 96, "cache_read": 14_100}, latency_ms=4200)
        with log.tool_call("bash", {"command": "pytest -q"}) as call:
            call.output = "passed"
    with open(tmp_path / "s.jsonl") as file:
        lines = [json.loads(line) for line in file]
    assert [(line["seq"], line["type"]) for line in lines] == [
        (0, "session.start"), (1, "llm.request"), (2, "llm.response"), (3, "tool.call"), (4, "session.end")
    ]  # fmt: skip
    assert lines[0]["data"] == {
        "v": 1,
        "provider": "anthropic",
        "model": "m",
        "work_dir": os.getcwd(),
        "prompt": task,
        "metadata": {"team": "a"},
    }
    assert lines[1]["data"] == {
        "messages": [{"role": "user", "content": task}],
        "tools": [{"name": "bash"}],
        "temperature": 0,
    }
    assert lines[4]["data"]["status"] == "success"
    assert lines[4]["data"]["tokens"] == {"input": 812, "output": 96, "cache_read": 14_100, "total": 15_008}


def test_what_was_not_given_is_not_written(log):
    """Absent fields are absent, not null."""
    log.llm_request([])
    log.llm_response()
    log.tool_call("x", output=1)
    assert [event.data for event in log.events[1:]] == [{"messages": []}, {}, {"tool": "x", "output": 1}]


def test_a_failed_call(log):
    """The error stands for the answer."""
    log.llm_response(error=TimeoutError("60 s"), latency_ms=60_000)
    log.llm_response(error="overloaded")
    assert [event.data for event in log.events[1:]] == [
        {"latency_ms": 60_000, "error": "TimeoutError: 60 s"},
        {"error": "overloaded"},
    ]


def test_usage_as_a_value(log):
    """A TokenUsage is written as the JSON of a log."""
    log.llm_response("x", usage=TokenUsage(input=1, output=2, reasoning=1))
    assert log.events[-1].data["usage"] == {"input": 1, "output": 2, "reasoning": 1, "total": 3}
    assert log.totals.usage == TokenUsage(input=1, output=2, reasoning=1)


def test_the_folder_is_asked_of_the_environment(tmp_path, monkeypatch):
    """Without a directory the logs go where the settings say."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path / "here"))
    with SessionLogger(session_id="s") as log:
        pass
    assert log.path == str(tmp_path / "here" / "s.jsonl")


def test_a_work_dir_that_is_gone(tmp_path, monkeypatch):
    """A process whose folder was deleted can still log."""

    def getcwd():
        raise FileNotFoundError

    monkeypatch.setattr(session_logger.os, "getcwd", getcwd)
    log = MemorySink()
    log.emit("x")
    assert "work_dir" not in log.events[0].data


class TestCallback:
    """The three forms in which an agent loop reports."""

    def test_an_event(self, log):
        """Type, time, unknown keys and a foreign id stay; seq is ours."""
        event = Event(session_id="other", seq=77, type="x", ts="2020-01-01T00:00:00Z", data=[1], extra={"trace": "t"})
        assert log.callback()(event) is True
        written = log.events[-1]
        assert written == Event(session_id="other", seq=1, type="x", ts=event.ts, data=[1], extra={"trace": "t"})

    def test_a_mapping_with_data(self, log):
        """The keys of an envelope are the envelope's, others survive beside them."""
        assert log.callback()({"type": "x", "ts": "2020-01-01T00:00:00Z", "data": {"a": 1}, "trace": "t"}) is True
        written = log.events[-1]
        assert (written.type, written.ts, written.data, written.extra) == ("x", "2020-01-01T00:00:00Z", {"a": 1}, {"trace": "t"})  # fmt: skip

    def test_a_mapping_without_data(self, log):
        """What is not of the envelope is the payload."""
        assert log.callback()({"type": "x", "a": 1, "b": [2]}) is True
        assert (log.events[-1].type, log.events[-1].data) == ("x", {"a": 1, "b": [2]})

    def test_a_type_and_data(self, log):
        """As emit."""
        record = log.callback()
        assert record("x", {"a": 1}) is True
        assert record("y") is True
        assert [(event.type, event.data) for event in log.events[1:]] == [("x", {"a": 1}), ("y", None)]

    @pytest.mark.parametrize(
        "odd", [None, 5, ["x"], {"kind": "x"}, {"type": 5}, object()], ids=lambda odd: type(odd).__name__
    )
    def test_anything_else(self, odd):
        """It is recorded as of an unknown type; a loop is never broken."""
        log = MemorySink()
        assert log.callback()(odd) is True
        assert log.events[-1].type == "unknown"


def test_the_session_starts_with_the_block(log):
    """Entering writes the start, so that a session that is killed at once is seen."""
    with log:
        assert types(log) == ["session.start"]
    assert types(log) == ["session.start", "session.end"]


def test_a_continued_session_has_one_start(tmp_path):
    """Entering a session that exists writes no second start."""
    for _ in range(2):
        with SessionLogger(tmp_path, "s") as log:
            log.emit("x")
    with open(log.path) as file:
        assert [json.loads(line)["type"] for line in file] == [
            "session.start", "x", "session.end", "x", "session.end"
        ]  # fmt: skip


class Mute(Exception):
    """An exception that will not be spelled."""

    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ValueError("bad"), "error", "ValueError: bad"),
        (Mute(), "error", "Mute: [unprintable]"),
        (MemoryError(), "error", "MemoryError"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
        (asyncio.CancelledError(), "cancelled", "CancelledError"),
        (GeneratorExit(), "cancelled", "GeneratorExit"),
        (SystemExit(143), "cancelled", "SystemExit: 143"),
        (SystemExit(130), "cancelled", "SystemExit: 130"),
        (SystemExit(1), "error", "SystemExit: 1"),
        (SystemExit("usage"), "error", "SystemExit: usage"),
        (SystemExit(0), "success", None),
        (SystemExit(), "success", None),
    ],
)
def test_how_a_session_ends(log, error, status, text):
    """An exception ends it with a status and its text, and goes on."""
    with pytest.raises(type(error)), log:
        raise error
    assert (end_of(log)["status"], end_of(log).get("error")) == (status, text)
    assert log.emit("late") is False


def test_a_session_that_ends_well(log):
    """No exception, no error."""
    with log:
        log.emit("x")
    assert end_of(log)["status"] == "success"
    assert "error" not in end_of(log)


def test_an_end_by_hand_is_the_end(log):
    """The first end counts: leaving the block writes no second one."""
    with log:
        assert log.end("iteration_limit", output="not done", process_outcome="stuck") is True
        assert log.end() is False
    end = end_of(log)
    assert (end["status"], end["output"], end["process_outcome"]) == ("iteration_limit", "not done", "stuck")


@pytest.mark.parametrize("form", ["emit", "write", "callback"])
def test_an_end_that_the_agent_reports_is_the_end(log, form):
    """An end in any form is the only one."""
    with log:
        if form == "emit":
            log.emit("session.end", {"status": "budget_halted"})
        elif form == "write":
            log.write(Event(session_id="", seq=0, type="session.end", ts="", data={"status": "budget_halted"}))
        else:
            log.callback()({"type": "session.end", "data": {"status": "budget_halted"}})
    assert end_of(log) == {"status": "budget_halted"}


def test_an_end_after_answers_that_told_nothing(log):
    """An agent that does not tell what it used has used something unknown, not nothing, and was not free."""
    log.llm_response("a")
    log.end()
    assert not {"tokens", "cost_usd"} & set(end_of(log))


def test_the_totals_of_an_end(log):
    """Token classes are disjoint and summed; a cost is known only if every response's is."""
    log.llm_response("a", usage={"input": 10, "output": 5, "cache_read": 100, "reasoning": 2}, cost_usd=0.1)
    log.llm_response("b", usage={"input": 1, "output": 1, "cache_write": 50}, cost_usd=0.2)
    log.end()
    assert end_of(log)["tokens"] == {
        "input": 11, "output": 6, "cache_read": 100, "cache_write": 50, "reasoning": 2, "total": 167
    }  # fmt: skip
    assert end_of(log)["cost_usd"] == 0.3


def test_an_unknown_cost_is_not_a_smaller_one(log):
    """When one response lacks its cost, the end has none."""
    log.llm_response("a", usage={"input": 10}, cost_usd=0.1)
    log.llm_response("b", usage={"input": 10})
    log.end()
    assert "cost_usd" not in end_of(log)


def test_an_end_without_responses_has_no_tokens(log):
    """Nothing is known, so nothing is said."""
    log.end()
    assert "tokens" not in end_of(log)
    assert "cost_usd" not in end_of(log)


def test_a_response_that_was_lost_is_not_counted(log):
    """The totals are those of the log."""
    log.llm_response("a", usage={"input": 10})
    log.failure = OSError(28, "No space left on device")
    log.llm_response("b", usage={"input": 10})
    log.failure = None
    log.end()
    assert end_of(log)["tokens"]["input"] == 10


def test_p11_the_duration_is_monotonic(monkeypatch):
    """However the clock of the stamps jumps, the duration is what a stop-watch says."""
    now = [5_000_000_000]
    monkeypatch.setattr(session_logger, "monotonic_ns", lambda: now[0])
    clock = FixedClock()
    log = MemorySink(clock=clock)
    log.emit("x")
    clock.advance(-86_400)
    now[0] += 1_234_567_890
    log.end()
    assert end_of(log)["duration_ms"] == 1234
    assert log.events[-1].time_ns < log.events[0].time_ns


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM to catch")
def test_a_second_exit_leaves_the_handler_alone():
    """What the host has set after the block stays."""
    before = signal.getsignal(signal.SIGTERM)
    log = MemorySink(catch_sigterm=True)
    try:
        with log:
            pass
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        log.__exit__(None, None, None)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_ends_the_session_as_cancelled(log):
    """With catch_sigterm the signal leaves the block as SystemExit(143); afterwards the old handler is back."""
    before = signal.getsignal(signal.SIGTERM)
    log = MemorySink(catch_sigterm=True)
    with pytest.raises(SystemExit) as caught, log:
        signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 143
    assert end_of(log)["status"] == "cancelled"
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_being_asked_signals_are_left_alone(log):
    """A library does not take what is the program's."""
    before = signal.getsignal(signal.SIGTERM)
    with log:
        assert signal.getsignal(signal.SIGTERM) is before


FORBIDDEN = [
    "rich",
    "typer",
    "dateutil",
    "sqlite3",
    "pydantic",
    "asyncio",
    "sessionlog.reader",
    "hypothesis",
    "logging",
]


def test_the_write_path_imports_nothing_of_the_read_path():
    """An agent that logs does not pay for reports."""
    code = (
        "import sys, sessionlog\n"
        "from sessionlog.logger.session_logger import SessionLogger\n"
        "print(*[m for m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    loaded = set(run.stdout.split())
    assert "sessionlog.logger.session_logger" in loaded
    found = [name for name in loaded if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN)]
    assert found == []


def test_a_mapping_without_data_keeps_its_envelope(tmp_path):
    """What a callback gets as one flat mapping keeps its time and its session; the rest is the payload."""
    log = SessionLogger(tmp_path, "s", work_dir="/w")
    assert log.callback()({"type": "x", "ts": "2026-11-21T10:00:00Z", "session_id": "other", "n": 1})
    event = [item for item in read_events(log.path) if not isinstance(item, Problem)][-1]
    assert (event.ts, event.session_id, event.data) == ("2026-11-21T10:00:00Z", "other", {"n": 1})


def test_a_hook_sees_unknown_keys_too(tmp_path):
    """A user's hook gets the strings of keys that are not of the envelope."""
    log = SessionLogger(tmp_path, "s", work_dir="/w", redact=lambda text: text.replace("hunter2", "***"))
    assert log.write(Event(session_id="s", seq=0, type="x", ts="", data=None, extra={"note": "hunter2"}))
    with open(log.path, encoding="utf-8") as file:
        assert "hunter2" not in file.read()


def test_a_relative_folder_without_a_working_folder(tmp_path, monkeypatch):
    """A working folder that is gone costs events, not the agent."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    log = SessionLogger("sessions", "s", notify=lambda text: None)
    assert not log.emit("x", {})


def test_a_plain_text_is_one_message():
    """A prompt given as text is not spelled letter by letter."""
    log = MemorySink()
    assert log.llm_request("hello")
    assert log.events[-1].data["messages"] == [{"role": "user", "content": "hello"}]


def test_a_sibling_is_written_in_the_same_way(tmp_path):
    """Another session in the same folder, with the same surroundings; it has its own id and no prompt."""
    around = {"provider": "p", "model": "m", "work_dir": "/w", "metadata": {"k": 1}}
    log = SessionLogger(tmp_path, "a", prompt="x", redact=lambda text: text.replace("low", "LOW"), **around)
    other = log.sibling("b")
    assert other.emit("x", {"text": "low"})
    start, event = read_events(other.path)
    assert (other.path, other.session_id) == (str(tmp_path / "b.jsonl"), "b")
    assert start.data == {"v": 1, **around}
    assert event.data == {"text": "LOW"}
    assert log.sibling().session_id not in {"a", "b"}


def test_a_session_that_goes_on_has_another_end(log):
    """Each end tells what was used since the last one; without going on there is one end."""
    log.llm_response("a", usage={"input": 3})
    assert log.end()
    assert not log.end()
    log.begin_run()
    log.llm_response("b", usage={"input": 4})
    assert log.end()
    assert [end.data["tokens"]["input"] for end in log.of_type("session.end")] == [3, 4]


def test_the_last_number_is_known_once_something_was_written(tmp_path):
    """A log that goes on is numbered on from what is there."""
    log = SessionLogger(tmp_path, "s")
    assert log.last_seq is None
    log.emit("x")
    assert log.last_seq == 1
    again = SessionLogger(tmp_path, "s")
    again.emit("x")
    assert again.last_seq == 2


class Raising(Mapping):
    """A mapping whose methods raise from the `after`th item on."""

    def __init__(self, after=0, **fields):
        self.after = after
        self.fields = fields

    def __getitem__(self, key):
        return self.fields[key]

    def __len__(self):
        return len(self.fields)

    def __iter__(self):
        for number, key in enumerate(self.fields):
            if number >= self.after:
                raise RuntimeError("no more")
            yield key


class Closed(Mapping):
    """A mapping that answers nothing."""

    def __getitem__(self, key):
        raise OSError("closed")

    def __len__(self):
        raise OSError("closed")

    def __iter__(self):
        raise OSError("closed")


def broken_off():
    yield {"role": "user", "content": "one"}
    raise ConnectionError("gone")


@pytest.mark.parametrize(
    ("messages", "recorded"),
    [
        (None, None),
        (5, [5]),
        (b"text", ["text"]),
        ({"role": "user", "content": "x"}, [{"role": "user", "content": "x"}]),
        (({"role": "user"},), [{"role": "user"}]),
        (iter([1, 2]), [1, 2]),
        (broken_off(), [{"role": "user", "content": "one"}, "[unreadable generator: ConnectionError]"]),
        (Closed(), ["[unreadable Closed: OSError]"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_p01_a_request_of_anything_is_recorded(log, messages, recorded):
    """What is no list of messages is kept as far as it can be read; the helper does not raise."""
    assert log.llm_request(messages, model="m") is True
    assert log.events[-1].data == _without_none({"model": "m", "messages": recorded})


def _without_none(fields):
    return {key: value for key, value in fields.items() if value is not None}


def test_p01_a_request_without_end_is_cut(log):
    """A generator that never stops does not stop the agent; the log says that there was more."""
    assert log.llm_request(itertools.count()) is True
    messages = log.events[-1].data["messages"]
    assert len(messages) == 100_001
    assert messages[-1] == "[too many items]"


@pytest.mark.parametrize("event", [Closed(), Raising(type="x", a=1), Raising(2, type="x", a=1, b=2)])
@pytest.mark.parametrize("hook", [True, str.lower])
def test_p01_a_callback_given_a_mapping_that_raises(event, hook):
    """Something is recorded, and the loop goes on."""
    log = MemorySink(redact=hook)
    assert log.callback()(event) is True
    assert log.events[-1].type == "unknown"
    assert log.events[-1].data.startswith("[unreadable ")
    assert log.callback()({"type": "x", "a": 1}) is True


@pytest.mark.parametrize("hook", [True, str.lower])
def test_p01_an_event_whose_extra_keys_raise(hook):
    """The hook reads them before the lock is taken: that must not raise either."""
    log = MemorySink(redact=hook)
    event = Event(session_id="", seq=0, type="x", ts="", data=1, extra=Raising(1, a=1, b=2))
    log.write(event)
    assert log.emit("after") is True
    health = log.health()
    assert health.emitted == 2
    assert health.written + health.dropped == 2


def test_p06_keys_of_a_mapping_that_become_equal_are_all_in_the_log(log):
    """A callback's mapping without `data` keeps both 1 and "1"."""
    assert log.callback()({"type": "x", 1: "a", "1": "b"}) is True
    assert log.events[-1].data == {"1": "a", "1 (2)": "b"}


@pytest.fixture
def told():
    """What a logger said."""
    return []


class SdkUsage:
    """A usage object of an SDK: no mapping, no dataclass."""

    def __init__(self):
        self.prompt_tokens = 100
        self.completion_tokens = 30
        self.prompt_tokens_details = {"cached_tokens": 60}


def test_p06_the_usage_object_of_an_sdk_is_counted(told):
    """It was stored as its repr: now it counts in the log and in the session's end."""
    log = MemorySink(notify=told.append)
    log.llm_response("hi", usage=SdkUsage(), cost_usd=0)
    log.end()
    usage = {"input": 40, "output": 30, "cache_read": 60, "total": 130}
    assert log.of_type("llm.response")[0].data["usage"] == usage
    assert end_of(log)["tokens"] == usage
    assert (told, log.health().warnings) == ([], {})


@pytest.mark.parametrize(
    ("usage", "word"), [({"inptu": 12}, "inptu"), ({"input": 1, "cache_raed": 5}, "cache_raed"), (object(), "object")]
)
def test_p06_a_usage_that_is_not_known_is_told_once(told, usage, word):
    """One line on stderr however often it comes; health() counts the events."""
    log = MemorySink(notify=told.append)
    for _ in range(3):
        assert log.llm_response("hi", usage=usage)
    assert len(told) == 1
    assert word in told[0]
    assert "sessionlog check" in told[0]
    assert log.health().warnings == {"usage": 3}
    assert log.health().ok


def test_p06_a_cost_that_is_no_number_is_told(told):
    """It counts nowhere."""
    log = MemorySink(notify=told.append)
    log.llm_response("hi", usage={"input": 1}, cost_usd="cheap")
    assert log.health().warnings == {"usage": 1}
    assert "cheap" in told[0]


def test_p06_misspelt_arguments_are_told_once(told):
    """They are recorded as fields of the caller's own, which no report reads."""
    log = MemorySink(notify=told.append)
    for _ in range(2):
        log.llm_response("hi", useage={"input": 1}, cost=0.5, tag="mine")
        log.tool_call("read", output="", duration=3)
    log.end(cost=1)
    assert [line.partition("(")[2].partition(":")[0] for line in told] == ["useage", "cost", "duration"]
    assert log.health().warnings == {"field": 5}
    assert log.of_type("llm.response")[0].data["tag"] == "mine"


def test_closing_without_an_end_says_so(log):
    """The log ends with a session.end of its own status, without totals, once."""
    log.llm_response("hi", usage={"input": 3})
    log.close()
    log.close()
    assert types(log) == ["session.start", "llm.response", "session.end"]
    assert end_of(log).keys() == {"status", "duration_ms"}
    assert end_of(log)["status"] == "closed"
    assert log.health().ok


def test_closing_a_session_that_has_its_end_adds_none(log):
    """By hand, by the block, or where nothing was recorded, or nothing since the session was continued."""
    log.emit("x")
    log.end("error")
    log.begin_run()
    log.close()
    assert end_of(log)["status"] == "error"
    with MemorySink() as block:
        block.emit("x")
    assert end_of(block)["status"] == "success"
    empty = MemorySink()
    empty.close()
    assert empty.content == b""


def test_closing_inside_an_emit_ends_the_session_behind_it():
    """A signal handler closes while an event is encoded: that event is written first."""

    class Closes:
        def __repr__(self):
            log.close()
            return "closes"

    log = MemorySink()
    log.emit("x")
    log.emit("x", {"a": Closes()})
    assert types(log) == ["session.start", "x", "x", "session.end"]
    assert log.emit("x") is False


def test_closing_where_the_disk_is_full_does_not_raise():
    """Even where losses are raised otherwise."""
    log = MemorySink(on_error="raise")
    log.emit("x")
    log.failure = OSError(28, "No space left on device")
    log.close()
    assert types(log) == ["session.start", "x"]


@pytest.mark.parametrize("redact", [True, False, lambda text: text], ids=["secrets", "nothing", "function"])
def test_a_number_that_json_lacks_is_written_by_its_name_and_counted(redact):
    """Not as null, which means that nothing was measured; each name is a notice once."""
    told = []
    log = MemorySink(notify=told.append, redact=redact)
    for loss in (float("nan"), float("nan"), float("inf"), 0.5):
        log.emit("metrics", {"loss": loss, "other": None})
    assert [event.data for event in log.of_type("metrics")] == [
        {"loss": loss, "other": None} for loss in ("NaN", "NaN", "Infinity", 0.5)
    ]
    assert log.health().warnings == {"number": 3}
    assert [("NaN" in line, "Infinity" in line, "written as a text" in line) for line in told] == [
        (True, False, True), (False, True, True)
    ]  # fmt: skip
