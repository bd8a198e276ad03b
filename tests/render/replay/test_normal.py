"""Events as lines of JSON for programs."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.envelope import Event
from sessionlog.render.replay.exact import event_json
from tests.profiles import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def line(data, **extra):
    """The line of an event."""
    return event_json(Event(session_id="s", seq=1, type="t", ts="2026-11-21T10:00:00Z", data=data, extra=extra))


def test_keys_come_in_order_and_unknown_ones_survive():
    """The five of the envelope, then the rest."""
    assert list(json.loads(line({"b": 1, "a": 2}, extra_key=[1]))) == [
        "session_id", "seq", "type", "ts", "data", "extra_key",
    ]  # fmt: skip


def test_integers_keep_their_digits():
    """A number that no double holds is still that number."""
    assert '"data":123456789012345678901234567890}' in line(123456789012345678901234567890)


def test_what_json_cannot_hold_is_still_a_line():
    """Not-a-number is its name; a value that is no JSON is spelled."""
    assert json.loads(line([float("nan"), float("inf")]))["data"] == ["NaN", "Infinity"]
    assert json.loads(line({"a": {1, 2}}))["data"]["a"] == [1, 2]


@examples(100)
@given(st.text())
def test_a_line_is_ascii_without_controls(text):
    """Whoever prints it to a terminal is safe, and reads back what was logged."""
    made = line(text)
    assert made.isascii()
    assert made.isprintable()
    assert json.loads(made)["data"] == text


@examples(400)
@given(JSON)
def test_a_line_is_that_of_the_standard_library(data):
    """Numbers have the same digits and exponents whichever encoder writes them."""
    expected = json.dumps(data, separators=(",", ":")).replace("\x7f", "\\u007f")
    assert line(data) == f'{{"session_id":"s","seq":1,"type":"t","ts":"2026-11-21T10:00:00Z","data":{expected}}}'


def test_small_and_large_numbers_have_python_s_exponents():
    """Encoders differ from 1e-4 down and from 1e16 up."""
    numbers = [1e-4, 1.2e-05, 9.99e-5, 1e15, 1e16, 1.5e300, -1e-7, 0.0, -0.0, 5e-324]
    assert f'"data":{json.dumps(numbers, separators=(",", ":"))}}}' in line(numbers)
