"""What a function takes, as JSON schema."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, Optional, Required, TypedDict, Union

import pytest
from pydantic import BaseModel

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


@dataclass
class Point:
    """A place on the map."""

    x: int
    size: Size = Size.S


class Options(TypedDict, total=False):
    """What may be chosen."""

    depth: Required[int]
    label: str


class Inner(BaseModel):
    """A part."""

    v: int


class Order(BaseModel):
    """A model of pydantic."""

    inner: Inner
    day: date | None = None


POINT = {
    "title": "Point", "description": "A place on the map.", "type": "object", "required": ["x"],
    "properties": {"x": {"type": "integer"}, "size": {"$ref": "#/$defs/Size", "default": 1}},
}  # fmt: skip
SIZE = {"title": "Size", "description": "A size.", "enum": [1, 2]}
OPTIONS = {
    "title": "Options", "description": "What may be chosen.", "type": "object", "required": ["depth"],
    "properties": {"depth": {"type": "integer"}, "label": {"type": "string"}},
}  # fmt: skip
A_POINT = {"$ref": "#/$defs/Point"}


@pytest.mark.parametrize(
    ("hint", "schema", "definitions"),
    [
        (Point, A_POINT, {"Point": POINT, "Size": SIZE}),
        (list[Point], {"type": "array", "items": A_POINT}, {"Point": POINT, "Size": SIZE}),
        (Point | None, {"anyOf": [A_POINT, {"type": "null"}]}, {"Point": POINT, "Size": SIZE}),
        (Options, {"$ref": "#/$defs/Options"}, {"Options": OPTIONS}),
        (date, {"type": "string", "format": "date"}, None),
        (bytes, {"type": "string", "contentEncoding": "base64"}, None),
        (list[Size], {"type": "array", "items": {"type": "integer", "enum": [1, 2]}}, None),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, None),
        (tuple[int, str], {
            "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False,
        }, None),
    ],
)  # fmt: skip
def test_types_of_values_have_the_schema_that_they_are_converted_by(hint, schema, definitions):
    """A dataclass, a TypedDict, a date; what they are made of is beside the properties."""

    def function(x):
        pass

    function.__annotations__ = {"x": hint}
    made = schema_of(function)
    assert made["properties"] == {"x": schema}
    assert made.get("$defs") == definitions


def test_a_model_of_pydantic_has_its_own_schema():
    """Alone, in a list, and in a dataclass; its parts are named after it."""

    @dataclass
    class Box:
        order: Order

    def function(one: Order, many: list[Order], box):
        pass

    function.__annotations__["box"] = Box
    made = schema_of(function)
    one = made["properties"]["one"]
    assert (one["title"], one["required"]) == ("Order", ["inner"])
    assert one["properties"]["inner"] == {"$ref": "#/$defs/Order_Inner"}
    assert made["properties"]["many"] == {"type": "array", "items": one}
    assert made["properties"]["box"] == {"$ref": "#/$defs/Box"}
    assert made["$defs"]["Order_Inner"]["properties"] == {"v": {"title": "V", "type": "integer"}}
    assert made["$defs"]["Box"]["properties"] == {"order": one}


def test_two_types_of_one_name_are_two_definitions():
    """As of two modules."""

    def make(kind):
        @dataclass
        class Item:
            value: kind

        return Item

    def function(a, b, c):
        pass

    first = make(int)
    function.__annotations__ = {"a": first, "b": make(str), "c": first}
    made = schema_of(function)
    assert made["properties"] == {
        "a": {"$ref": "#/$defs/Item"},
        "b": {"$ref": "#/$defs/Item_"},
        "c": {"$ref": "#/$defs/Item"},
    }
    assert [one["properties"]["value"]["type"] for one in made["$defs"].values()] == ["integer", "string"]


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

    def function(a, b: int = 3, *, c: str | None = None, d: Size = Size.S, e: float = float("nan")):
        pass

    schema = schema_of(function)
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == {"type": "integer", "default": 3}
    assert schema["properties"]["c"]["default"] is None
    assert "default" not in schema["properties"]["d"]
    assert schema["properties"]["e"] == {"type": "number"}  # NaN is no number of JSON
    assert schema["additionalProperties"] is False


class Called:
    """An object that is a function."""

    def __call__(self, a: Size, b: int = 3):
        """Its parameters are those of the call."""


@pytest.mark.parametrize(
    "function", [Called(), Called().__call__, partial(Called(), b=3), partial(Called.__call__, None)]
)
def test_the_types_of_an_object_that_is_called_are_known(function):
    """And those of a function with some of its arguments."""
    properties = schema_of(function)["properties"]
    assert properties == {"a": {"type": "integer", "enum": [1, 2]}, "b": {"type": "integer", "default": 3}}


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
    """Optional, annotated, one of several, or in a list."""
    assert enum_of(list[Size] | None) is Size
    assert enum_of(Optional[Size]) is Size  # noqa: UP045 - the old spelling counts, too
    assert enum_of(Annotated[Size, "of it"]) is Size
    assert enum_of(int | str) is None
    assert enum_of("Size") is None
