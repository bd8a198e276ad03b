"""Event: one line of a log as a value."""

from dataclasses import FrozenInstanceError, replace

import pytest

from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.events.payloads import PAYLOADS

LINE = b'{"session_id":"s-1","seq":4,"type":"tool.call","ts":"2026-11-21T10:00:00.25Z","data":{"tool":"bash"}}'


def read(line):
    events, problems = decode_line(line)
    assert problems == []
    return events[0]


def test_a_new_event_is_stamped_in_utc_with_microseconds():
    """Event.new writes the instant it was given as our logger does."""
    event = Event.new("s-1", 3, "progress", {"phase": "route"}, now_ns=1_795_255_200_123_456_789)
    assert event == Event(
        session_id="s-1", seq=3, type="progress", ts="2026-11-21T10:00:00.123456Z", data={"phase": "route"}
    )


def test_a_new_event_is_stamped_now_by_default(monkeypatch):
    """Without an instant the clock is asked."""
    monkeypatch.setattr("sessionlog.events.envelope.time_ns", lambda: 0)
    assert Event.new("s-1", 1, "progress").ts == "1970-01-01T00:00:00.000000Z"


def test_an_event_is_a_value():
    """Events with the same content are equal, wherever they come from, and nobody can change one."""
    event = read(LINE)
    assert event == replace(event)
    assert event.raw is not None
    with pytest.raises(FrozenInstanceError):
        event.seq = 5


def test_a_line_keeps_its_bytes():
    """An event that was read knows the bytes of its line, without the line's end."""
    assert read(LINE + b"\r\n").raw == LINE


def test_a_changed_event_forgets_its_bytes():
    """dataclasses.replace drops the bytes: they would contradict the change."""
    assert replace(read(LINE), seq=5).raw is None


def test_the_bytes_cannot_be_given_by_hand():
    """Only reading attaches bytes to an event."""
    with pytest.raises(TypeError):
        Event(session_id="s", seq=1, type="x", ts="", raw=b"{}")


def test_the_instant_is_an_integer_and_the_text_stays():
    """The text of ts keeps its spelling; time_ns compares."""
    event = read(LINE)
    assert (event.ts, event.time_ns) == ("2026-11-21T10:00:00.25Z", 1_795_255_200_250_000_000)


def test_an_event_without_a_time_has_none():
    """A ts that is not a time gives None, not zero."""
    assert Event(session_id="s", seq=1, type="x", ts="soon").time_ns is None


def test_the_keys_of_a_line_have_one_order():
    """The envelope's five keys come first, unknown keys after them."""
    event = Event(session_id="s", seq=1, type="x", ts="", data=None, extra={"trace": "t"})
    assert list(event.to_dict()) == ["session_id", "seq", "type", "ts", "data", "trace"]


def test_every_type_with_a_payload_is_known():
    """Check must not call a type unknown for which there is a class."""
    assert set(PAYLOADS) <= KNOWN_TYPES
