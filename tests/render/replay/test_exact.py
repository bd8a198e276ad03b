"""JSON as it was logged: every digit, every key in its place."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.decode import decode_line
from sessionlog.render.replay.exact import Digits, compact_json, exact
from tests.profiles import examples


def logged(text):
    """An event read from a line whose `data.input` is `text`."""
    line = f'{{"session_id":"s","seq":1,"type":"tool.call","ts":"2026-11-21T10:00:00.5Z","data":{{"input":{text}}}}}'
    [event], _ = decode_line(line.encode())
    return event


def test_numbers_are_shown_as_they_were_logged():
    """2.50 is not 2.5, and no integer loses a digit."""
    text = '{"z":2.50,"a":1E+2,"big":123456789012345678901234567890,"n":[1.0,-0.0],"t":"<&>"}'
    assert compact_json(exact(logged(text), "input")) == text


def test_an_absent_value_is_none():
    """A field that is not there is no error."""
    assert exact(logged("[1.5]"), "output") is None


def test_a_digit_text_is_not_a_string():
    """A logged string of digits keeps its quotes; a number's text has none."""
    assert compact_json(["2.50", Digits("2.50")]) == '["2.50",2.50]'


def test_deep_values_end():
    """A nest deeper than anybody reads is cut instead of overflowing the stack."""
    value = []
    for _ in range(500):
        value = [value]
    assert "…" in compact_json(value)


@examples(100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    )
)
def test_compact_json_is_json(value):
    """What is spelled reads back as the same value."""
    assert json.loads(compact_json(value)) == value
