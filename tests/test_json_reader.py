"""JSON read the short way means what it always means."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.json_reader import read_json
from tests.profiles import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8,
)  # fmt: skip


@examples(200)
@given(JSON, st.sampled_from(["", " ", "\n", "x", "]", ","]))
def test_json_is_read_as_the_whole_library_reads_it(value, more):
    """And what is none is a ValueError."""
    text = json.dumps(value) + more
    if more.strip():
        with pytest.raises(ValueError, match="JSON"):
            read_json(text)
    else:
        assert read_json(text) == value


@pytest.mark.parametrize("missing", ["absent", "asks for more"])
def test_without_the_part_in_c_the_library_reads_it(monkeypatch, missing):
    """On another Python, or a later one."""
    if missing == "absent":
        monkeypatch.setitem(sys.modules, "_json", None)
    else:
        monkeypatch.delattr("sessionlog.json_reader._Rules.object_hook")
    assert read_json(' {"a": [1, 2.5, "é"]} ') == {"a": [1, 2.5, "é"]}
    for text in ("{", "1 2", "[" * 100_000):
        with pytest.raises(ValueError, match="JSON"):
            read_json(text)


def test_json_nested_too_deeply_is_none():
    """A line of a megabyte of brackets ends nothing."""
    with pytest.raises(ValueError, match="JSON"):
        read_json("[" * 1_000_000)
