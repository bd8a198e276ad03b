"""Payload classes and their JSON objects."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.envelope import Event
from sessionlog.events.payload_json import payload, read_payload, to_data
from sessionlog.events.payloads import (
    PAYLOADS,
    LLMResponse,
    Payload,
    RoutingStickyState,
    RoutingUtilizationState,
    SessionEnd,
    SessionStart,
    ToolCall,
)
from sessionlog.events.tokens import TokenUsage
from tests.profiles import examples

CLASSES = sorted({*PAYLOADS.values(), RoutingStickyState, RoutingUtilizationState}, key=lambda cls: cls.__name__)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=3)
USAGE = st.builds(TokenUsage, input=st.integers(0, 2**40), output=st.integers(0, 2**40), cache_read=st.integers(0, 9))
NUMBERS = st.floats(-1e200, 1e200)
GOOD = {
    "str | None": st.text(max_size=20),
    "int | None": st.integers(-(2**63), 2**63),
    "float | None": NUMBERS,
    "bool | None": st.booleans(),
    "Json": JSON.filter(lambda value: value is not None),
    "Mapping[str, Any] | None": OBJECTS,
    "tuple[Json, ...] | None": st.lists(JSON, max_size=3),
    "tuple[str, ...] | None": st.lists(st.text(max_size=8), max_size=3),
    "TokenUsage | None": USAGE.map(TokenUsage.to_dict),
    "RoutingStickyState | None": st.fixed_dictionaries({}, optional={"reason": st.text(max_size=9), "bonus": NUMBERS}),
    "RoutingUtilizationState | None": st.fixed_dictionaries({}, optional={"queued_requests": st.integers(0, 99)}),
}


def names_of(cls):
    return {item.name: str(item.type) for item in fields(cls) if item.name != "extra"}


def good_data(cls):
    known = st.fixed_dictionaries({}, optional={name: GOOD[kind] for name, kind in names_of(cls).items()})
    names = set(names_of(cls)) | {"extra"}
    unknown = st.dictionaries(st.text(max_size=8).filter(lambda key: key not in names), JSON, max_size=2)
    return st.builds(lambda a, b: a | b, known, unknown)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@examples(25)
@given(data=st.data())
def test_known_and_unknown_fields_survive(cls, data):
    """Reading an object and writing it back changes nothing, fields of other versions included."""
    logged = data.draw(good_data(cls))
    assert to_data(read_payload(cls, logged)) == logged


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@examples(25)
@given(data=st.data())
def test_wrong_types_are_read_without_raising(cls, data):
    """Whatever stands in a field, the others are read."""
    names = names_of(cls)
    logged = data.draw(st.dictionaries(st.sampled_from(sorted(names)) | st.text(max_size=8), JSON, max_size=8))
    value = read_payload(cls, logged)
    assert isinstance(value, cls)
    for key in set(logged) - set(names):
        assert value.extra[key] == logged[key]
    to_data(value)


@pytest.mark.parametrize(
    ("field", "logged", "read"),
    [
        ("content", 5, "5"),
        ("content", 2.5, "2.5"),
        ("content", True, None),
        ("content", ["a"], None),
        ("content", {}, None),
        ("content", 10**40, str(10**40)),
        ("latency_ms", "12.5", 12.5),
        ("latency_ms", 12, 12.0),
        ("latency_ms", "soon", None),
        ("latency_ms", True, None),
        ("latency_ms", 10**400, None),
        ("latency_ms", float("nan"), None),
        ("latency_ms", float("inf"), None),
        ("latency_ms", "inf", None),
        ("latency_ms", [1], None),
        ("attempt_index", "3", 3),
        ("attempt_index", 3.0, 3),
        ("attempt_index", -3, -3),
        ("attempt_index", 3.5, None),
        ("attempt_index", True, None),
        ("attempt_index", "three", None),
        ("attempt", {"route": "a"}, {"route": "a"}),
        ("attempt", "a", None),
        ("usage", [1], None),
        ("usage", {"input": "5", "output": -1}, TokenUsage(input=5)),
        ("tool_calls", 3, 3),
        ("tool_calls", [{"id": "c1"}], [{"id": "c1"}]),
        ("cost_usd", None, None),
    ],
)
def test_how_a_field_is_read(field, logged, read):
    """Numbers in text are numbers, numbers where text belongs are text, and what cannot be either is None."""
    value = read_payload(LLMResponse, {field: logged, "model": "m"})
    assert getattr(value, field) == read
    assert value.model == "m"


@pytest.mark.parametrize("huge", [pytest.param(10**5000, id="huge")])
def test_an_integer_too_long_for_text_is_read(huge):
    """A number that Python will not spell in decimal does not stop the reading of a payload."""
    assert read_payload(ToolCall, {"tool": huge, "duration_ms": huge}).duration_ms is None


def test_words_that_are_no_words_are_left_out():
    """A list of names keeps its names."""
    assert read_payload(SessionStart, {"attempted_providers": ["a", 5, None, "b"]}).attempted_providers == ("a", "b")


def test_a_boolean_is_only_a_boolean():
    """0 and "true" are not truth values."""
    assert read_payload(RoutingStickyState, {"key_present": 1}).key_present is None
    assert read_payload(RoutingStickyState, {"key_present": False}).key_present is False


def test_the_event_type_chooses_the_class():
    """payload(event) is the dataclass of the event's type, unknown fields in extra."""
    event = Event(session_id="s", seq=1, type="tool.call", ts="", data={"tool": "bash", "shell": "zsh"})
    assert payload(event) == ToolCall(tool="bash", extra={"shell": "zsh"})


@pytest.mark.parametrize(
    ("type_", "data"), [("vendor.thing", {"a": 1}), ("tool.call", None), ("tool.call", [1]), ("tool.call", "bash")]
)
def test_no_class_no_payload(type_, data):
    """An unknown type, and data that is no object, have no payload."""
    assert payload(Event(session_id="s", seq=1, type=type_, ts="", data=data)) is None


def test_none_is_left_out_of_the_json():
    """What is not known is not written."""
    end = SessionEnd(status="success", tokens=TokenUsage(input=1), cost_usd=0.0, extra={"note": None})
    assert to_data(end) == {
        "status": "success",
        "tokens": {"input": 1, "output": 0, "total": 1},
        "cost_usd": 0.0,
        "note": None,
    }


def test_a_field_named_extra_in_the_log_is_kept():
    """The name of our own attribute is nothing special in a log."""
    value = read_payload(ToolCall, {"extra": {"a": 1}})
    assert value.extra == {"extra": {"a": 1}}
    assert to_data(value) == {"extra": {"a": 1}}


def test_an_empty_object_is_an_empty_payload():
    """Every field is optional."""
    for cls in CLASSES:
        assert read_payload(cls, {}) == cls()
        assert to_data(cls()) == {}
        assert issubclass(cls, Payload)
