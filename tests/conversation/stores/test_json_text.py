"""Sessions as JSON text: exact, or refused by name."""

import math
from collections import OrderedDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.stores.json_text import MAX_DEPTH, from_json, to_json
from sessionlog.errors import InvalidHistory
from tests.profiles import examples

TEXTS = st.text(st.characters(codec=None), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def nested(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return {"deep": value}


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
@examples(150)
def test_what_goes_in_comes_out(data):
    """Any JSON, half characters included, as one line of UTF-8."""
    text = to_json("s", data)
    assert b"\n" not in text.encode()
    assert repr(from_json(text.encode(), "p")) == repr(data)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"a": {"b": [1, b"x"]}}, r"session 's': \['a'\]\['b'\]\[1\]: bytes is not JSON; nothing was saved"),
        ({"a": math.nan}, r"\['a'\]: nan is not a JSON number"),
        ({"a": [-math.inf]}, r"\['a'\]\[0\]: -inf is not a JSON number"),
        ({"a": {1: 2}}, r"\['a'\]: the key 1 is int, not a text"),
        ({None: 2}, "the value: the key None is NoneType, not a text"),
        ({"a": object()}, r"\['a'\]: object is not JSON"),
        ({"a": 10**5000}, "session 's': .*nothing was saved"),
        (nested(MAX_DEPTH), f"nested more than {MAX_DEPTH} levels"),
        ([1], "list cannot be saved; a session is a dict"),
        (None, "NoneType cannot be saved"),
    ],
)
def test_what_is_not_json_is_refused_by_its_place(data, where):
    """Before anything is written."""
    with pytest.raises(InvalidHistory, match=where):
        to_json("s", data)


def test_a_session_in_itself_is_refused():
    """It has no end."""
    data = {}
    data["me"] = data
    with pytest.raises(InvalidHistory, match="or contains itself"):
        to_json("s", data)


def test_the_deepest_that_is_written_is_read():
    """One level more is refused."""
    assert from_json(to_json("s", nested(MAX_DEPTH - 1)), "p") == nested(MAX_DEPTH - 1)


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_mapping_is_a_session(kind):
    """Tuples are JSON's lists."""
    assert from_json(to_json("s", kind({"a": (1, "\ud800")})), "p") == {"a": [1, "\ud800"]}


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a":1}x', "[1]", "null", '{"a":NaN}', '{"a":Infinity}', b"\xff{}", "[" * 100_000, None, 7],
)
def test_what_is_none_is_named(text):
    """With its place, and left as it is."""
    with pytest.raises(InvalidHistory, match=r"^the place: not a saved session: .*; it is left as it is$"):
        from_json(text, "the place")
