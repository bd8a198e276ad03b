"""Event → one line: exact for what we wrote, and never an exception whatever a payload is."""

import json
from collections import OrderedDict
from dataclasses import dataclass, replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.decode import decode_line
from sessionlog.events.encode import encode_object, shorten
from sessionlog.messages.json_value import json_value
from sessionlog.testing import event_strategy
from tests.profiles import examples

FAST = examples(200)


class Hostile:
    """An object whose every conversion fails."""

    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __iter__ = __len__ = __hash__ = __repr__

    @property
    def __class__(self):
        raise RuntimeError("no")


class HostileText(str):
    """A string that will not be converted."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")

    encode = __repr__ = __iter__ = __str__


class HostileMapping(dict):
    """A mapping that cannot be walked."""

    def items(self):
        raise KeyError("no")


@dataclass
class Point:
    """A value of the caller's making."""

    x: float
    y: float | None


class Ratio(float):
    """A float of another make."""

    __slots__ = ()


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**63, 2**70)
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.decimals()
    | st.complex_numbers()
    | st.fractions()
    | st.builds(Hostile)
    | st.builds(HostileText, st.text(max_size=5))
    | st.builds(HostileMapping, a=st.integers())
    | st.builds(pow, st.just(10), st.just(5000))
    | st.sampled_from(
        [Hostile, len, (x for x in "ab"), range(3), Ellipsis, orjson.Fragment(b'1\n{"type":"session.end"}')]
    )
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers() | st.text(st.characters()), max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=5) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=15,
)


def line_of(data):
    return encode_object({"session_id": "s", "seq": 1, "type": "x", "ts": "2026-11-21T10:00:00Z", "data": data})


def kept(data):
    """What a reader finds of a payload."""
    line = line_of(data)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    events, problems = decode_line(line)
    assert problems == []
    return events[0].data


@FAST
@given(event=event_strategy())
def test_what_we_write_we_read(event):
    """An event survives writing and reading, unknown types, unknown keys and untyped payloads included."""
    events, problems = decode_line(encode_object(event.to_dict()))
    assert events == [event]
    assert [problem.severity for problem in problems] in ([], ["info"])


@FAST
@given(event=event_strategy())
def test_a_line_of_ours_is_written_again_as_the_same_bytes(event):
    """Reading and writing changes no byte."""
    line = encode_object(event.to_dict())
    [read] = decode_line(line)[0]
    assert encode_object(read.to_dict()) == line


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "x", "ts": "2026-11-21T10:00:00.1Z", "seq": "7", "session_id": 5}',
        b'{"Type":"x","TS":"2026-11-21T10:00:00Z","Data":{"A":1}}',
        b'{"session_id":"s","seq":1,"type":"x","ts":"","data":{"a":1e400,"b":123456789012345678901234567890}}',
        b'{"session_id":"s","seq":1,"type":"x","ts":"","data":"\\u003c\\ud800 \xff"}',
        b'{"session_id":"s","seq":1,"seq":2,"type":"x","ts":"","data":NaN}',
    ],
)
def test_a_foreign_line_keeps_its_bytes(line):
    """Spelling, order, numbers, even invalid UTF-8."""
    [event] = decode_line(line)[0]
    assert event.raw == line


def test_a_changed_foreign_event_keeps_its_unknown_keys():
    """After dataclasses.replace its line is made of the event."""
    [event] = decode_line(b'{"type":"x","seq":1,"session_id":"s","ts":"t","data":null,"trace":"abc"}')[0]
    assert encode_object(replace(event, seq=2).to_dict()) == (
        b'{"session_id":"s","seq":2,"type":"x","ts":"t","data":null,"trace":"abc"}\n'
    )


@FAST
@given(data=TREES)
def test_p01_encoding_never_raises(data):
    """Any tree of Python objects becomes one line that a reader takes for one event."""
    kept(data)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({1, 2}, [1, 2]),
        ((1, "a"), [1, "a"]),
        (b"caf\xc3\xa9 \xff", "café �"),
        (bytearray(b"ab"), "ab"),
        (memoryview(b"ab"), "ab"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        ({"v": [None, (-float("inf"), {"w": 0.5})]}, {"v": [None, ["-Infinity", {"w": 0.5}]]}),
        ({"v": float("nan"), "s": {1}}, {"v": "NaN", "s": [1]}),
        (Point(float("nan"), None), {"x": "NaN", "y": None}),
        (OrderedDict(v=Ratio("inf")), {"v": "Infinity"}),
        (2**64 - 1, 2**64 - 1),
        (2**64, str(2**64)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        ("\ud800 \udfff", "� �"),
        ({"\ud800": 1}, {"�": 1}),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ("line\u2028separator\x85\r\n", "line\u2028separator\x85\r\n"),
    ],
)
def test_what_json_cannot_hold_is_spelled(data, found):
    """Sets, bytes, big integers, surrogates and odd keys arrive as the nearest JSON."""
    assert kept(data) == found


def test_a_long_list_with_one_odd_number_stays_whole():
    """Only that number is written as a text; the bounds are those of objects that are no JSON."""
    numbers = [0.5] * 150_000 + [float("nan")]
    assert kept(numbers) == [0.5] * 150_000 + ["NaN"]


@FAST
@given(
    data=st.recursive(st.none() | st.floats(), lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner))
)
def test_null_stands_for_none_alone(data):
    """Numbers that JSON lacks are written by their names, and those are named once for an event."""
    named = []
    line = encode_object({"session_id": "s", "data": data}, named.append)
    texts = ["NaN", "Infinity", "-Infinity"]
    assert named in ([], [tuple(sorted(name for name in texts if f'"{name}"'.encode() in line))])
    assert json_value(data) == json.loads(line)["data"]


def test_no_payload_can_smuggle_a_second_line():
    """A pre-encoded fragment with a line break inside does not begin another event."""
    smuggled = orjson.Fragment(b'1,"ts":""}\n{"type":"session.end"')
    assert line_of({"a": smuggled}).count(b"\n") == 1


def test_a_circle_ends():
    """A payload that contains itself is cut at a depth, and says so."""
    data = {"name": "loop"}
    data["self"] = data
    assert kept(data)["self"]["self"]["name"] == "loop"
    assert b"[too deep]" in line_of(data)


def test_a_hostile_object_costs_only_itself():
    """An object that cannot be looked at is named in its place; its neighbours stay."""
    found = kept({"ok": 1, "bad": Hostile(), "worse": HostileMapping(a=1), "set": {1}})
    assert found["ok"] == 1
    assert found["bad"] == "[unreadable Hostile: RuntimeError]"
    assert found["set"] == [1]


@FAST
@given(data=TREES, limit=st.integers(400, 4000))
def test_a_cut_event_fits_and_says_so(data, limit):
    """Whatever is in it, an event cut to a limit is one readable event within the limit, marked as cut."""
    line = shorten({"session_id": "s", "seq": 1, "type": "x", "ts": "", "data": data}, limit)
    assert len(line) <= limit
    [event] = decode_line(line)[0]
    assert event.data["truncated"] is True


def test_a_cut_event_keeps_what_is_short():
    """Only long strings are cut; each says how much is missing."""
    line = shorten({"session_id": "s", "seq": 1, "type": "x", "ts": "", "data": {"tool": "cat", "o": "y" * 9000}}, 1000)
    [event] = decode_line(line)[0]
    assert event.data["tool"] == "cat"
    assert event.data["o"] == "y" * 250 + "…[8750 characters cut]"


@pytest.mark.parametrize("key", ["type", "trace", "session_id"])
def test_an_event_too_long_outside_its_payload_fits_too(key):
    """A huge type or unknown key is cut as well."""
    value = {"session_id": "s", "seq": 1, "type": "x", "ts": "", "data": {"a": 1}} | {key: "y" * 5000}
    line = shorten(value, 1000)
    assert len(line) <= 1000
    assert decode_line(line)[0][0].data == {"truncated": True}
