"""What users get for testing their own plugs."""

import os
import sys

import pytest
from hypothesis import given

from sessionlog.errors import MissingExtra
from sessionlog.events.decode import decode_line
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock, MemorySink, event_strategy
from tests.profiles import examples


class TestFixedClock:
    """A clock that does what a test says."""

    def test_it_steps(self):
        """Each call moves it on."""
        clock = FixedClock("2026-11-21T10:00:00Z", step_ns=5)
        assert [clock() - clock.now_ns for _ in range(3)] == [-5, -5, -5]
        assert clock() == 1_795_255_200_000_000_015

    def test_it_can_stand_still(self):
        """With no step all calls agree."""
        clock = FixedClock(step_ns=0)
        assert clock() == clock()

    def test_it_can_be_moved(self):
        """Forwards and backwards."""
        clock = FixedClock(step_ns=0)
        before = clock()
        clock.advance(1.5)
        clock.advance(-0.5)
        assert clock() - before == 1_000_000_000

    def test_it_begins_at_a_time(self):
        """Anything else is a mistake in the test."""
        with pytest.raises(ValueError, match="not an RFC 3339 time"):
            FixedClock("tomorrow")


class TestMemorySink:
    """A logger without a file."""

    def test_it_records_what_a_log_would(self, tmp_path):
        """Byte for byte what a SessionLogger writes, given the same clock."""

        def use(log):
            with log:
                log.llm_response("hi", usage={"input": 1})
                log.callback()("x", {"key": "ghp_" + "a" * 36, "odd": {1}})
                log.write(Event(session_id="other", seq=9, type="y", ts="", data=None))
                log.end("error", duration_ms=5)

        sink = MemorySink("s", work_dir="/p", redact=str.upper)
        use(sink)
        use(SessionLogger(tmp_path, "s", work_dir="/p", redact=str.upper, clock=FixedClock()))
        assert sink.content == (tmp_path / "s.jsonl").read_bytes()
        assert [event.type for event in sink.events] == ["session.start", "llm.response", "x", "y", "session.end"]

    def test_it_is_a_logger(self):
        """What asks for a SessionLogger takes it."""
        assert isinstance(MemorySink(), SessionLogger)

    def test_it_touches_no_disk(self, tmp_path, monkeypatch):
        """No folder, no file."""
        monkeypatch.chdir(tmp_path)
        with MemorySink() as log:
            log.emit("x")
        assert os.listdir(tmp_path) == []
        assert not os.path.exists(log.path)

    def test_events_of_one_type(self):
        """In order, and nothing for a type that did not come."""
        log = MemorySink()
        log.emit("x", 1)
        log.emit("y", 2)
        log.emit("x", 3)
        assert [event.data for event in log.of_type("x")] == [1, 3]
        assert log.of_type("z") == ()

    def test_a_failing_disk(self):
        """What a plug meets when the disk is full, and afterwards."""
        log = MemorySink()
        log.failure = OSError(28, "No space left on device")
        assert log.emit("a") is False
        assert f"{log.path}: event not recorded (ENOSPC" in log.notices[0]
        log.failure = None
        assert log.emit("b") is True
        assert [event.type for event in log.events] == ["session.start", "log.gap", "b"]
        assert log.health().path == log.path

    def test_events_are_comparable(self):
        """Two runs of the same code give the same events."""

        def run():
            log = MemorySink(work_dir="/p")
            log.emit("x", {"a": 1})
            return log.events

        assert run() == run()


class TestEventStrategy:
    """Events to try a plug on."""

    @examples(100)
    @given(event=event_strategy())
    def test_its_events_survive_a_log(self, event):
        """Each is read back as it was."""
        assert decode_line(encode_object(event.to_dict()))[0] == [event]

    @examples(50)
    @given(event=event_strategy(types=["tool.call", "vendor.thing"]))
    def test_types_can_be_chosen(self, event):
        """Only those come."""
        assert event.type in {"tool.call", "vendor.thing"}

    def test_known_and_unknown_types_come(self):
        """A plug is tried on both."""
        seen = set()

        @examples(100)
        @given(event=event_strategy())
        def collect(event):
            seen.add(event.type in KNOWN_TYPES)

        collect()
        assert seen == {True, False}

    def test_without_hypothesis(self, monkeypatch):
        """The sentence names the package, and nothing else of the module needs it."""
        monkeypatch.setitem(sys.modules, "hypothesis", None)
        with pytest.raises(MissingExtra, match="pip install hypothesis"):
            event_strategy()


def test_a_sibling_of_a_sink_is_in_memory_too():
    """Forks of a recorded session can be tested without a file."""
    sink = MemorySink("a", work_dir="/p")
    named, unnamed = sink.sibling("b"), sink.sibling()
    named.emit("x", {})
    assert ([event.session_id for event in named.events], unnamed.session_id) == (["b", "b"], "a-sibling")
    assert named.events[0].data["work_dir"] == "/p"


def test_a_sibling_of_a_sink_has_its_own_id_and_notices():
    """What one loses is no notice of another; a function that was given is called for both."""
    given = []
    for sink in (MemorySink("a"), MemorySink("a", notify=given.append)):
        one, two = sink.sibling(), sink.sibling()
        assert len({sink.session_id, one.session_id, two.session_id}) == 3
        one.failure = OSError(28, "No space left on device")
        assert not one.emit("x", {})
        found = [sink.notices, one.notices, two.notices, given]
        assert [len(notices) for notices in found] == ([0, 1, 0, 0] if not given else [0, 0, 0, 1])
