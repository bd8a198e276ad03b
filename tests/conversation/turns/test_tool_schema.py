"""What a function takes, as JSON schema."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from sessionlog.conversation.turns.tool import enum_of, hints_of, schema_of


class Size(Enum):
    """A size."""

    S = 1
    L = 2


class Mixed(Enum):
    """Values of two types."""

    A = "a"
    B = 2


class Unknown:
    """A type that JSON has no word for."""


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, list[bool]], {
            "type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}},
        }),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - the old spelling counts, too
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007 - as above
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Size, {"type": "integer", "enum": [1, 2]}),
        (Mixed, {"enum": ["a", 2]}),
        (Annotated[str, "where"], {"type": "string", "description": "where"}),
        (Annotated[str, 7], {"type": "string"}),
        (Any, {}),
        (Unknown, {}),
        (list[Unknown], {"type": "array", "items": {}}),
    ],
)  # fmt: skip
def test_a_hint_is_a_schema(hint, schema):
    """A type that JSON has no word for is any value."""

    def function(x):
        pass

    function.__annotations__ = {"x": hint}
    assert schema_of(function)["properties"] == {"x": schema}


def test_what_has_a_default_is_not_required():
    """The default is told where it is plain."""

    def function(a, b: int = 3, *, c: str | None = None, d: Size = Size.S):
        pass

    schema = schema_of(function)
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == {"type": "integer", "default": 3}
    assert schema["properties"]["c"]["default"] is None
    assert "default" not in schema["properties"]["d"]
    assert schema["additionalProperties"] is False


def test_keywords_take_any_name():
    """Positional ones cannot be named."""

    def function(*args, **kwargs):
        pass

    assert schema_of(function) == {"type": "object", "properties": {}, "required": [], "additionalProperties": True}


def test_a_hint_that_names_nothing_leaves_the_plain_ones():
    """A type of a local name is any value, the others are known all the same."""

    def function(a: "Nowhere", b: "int", c: int):  # noqa: F821 - that is the point
        pass

    assert hints_of(function) == {"b": int, "c": int}


def test_an_enum_is_found_in_what_it_is_wrapped_in():
    """Optional, annotated, or one of several."""
    assert enum_of(Optional[Size]) is Size  # noqa: UP045 - the old spelling counts, too
    assert enum_of(Annotated[Size, "of it"]) is Size
    assert enum_of(int | str) is None
    assert enum_of("Size") is None
