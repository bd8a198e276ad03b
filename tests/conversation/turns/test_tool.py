"""A tool is a function that a model may call; what goes wrong in it is a result."""

from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, Required, TypedDict

import pytest
from pydantic import BaseModel

from sessionlog.conversation.turns.tool import Tool, call_tool, error_message, result_message, tool, tools_of
from sessionlog.messages.message import ContentPart, ToolRequest


class Unit(Enum):
    """Of a temperature."""

    C = "celsius"
    F = "fahrenheit"


def weather(city: str, unit: Unit = Unit.C) -> str:
    """Its description is below: it is one that runs over two lines."""
    return f"{city} {unit.name}"


weather.__doc__ = "Tell the weather\nof a city.\n\nIt is always fine."


def test_a_tool_is_still_the_function():
    """Calling it calls it, and its name, first paragraph and schema are what a model sees."""
    made = tool(weather)
    assert made("Bern") == "Bern C"
    assert (made.name, made.description) == ("weather", "Tell the weather of a city.")
    assert made.parameters["required"] == ["city"]
    assert made.function is weather


def test_a_tool_is_given_another_name_and_description():
    """As a decorator with arguments."""

    @tool(name="w", description="Weather.")
    def any_function():
        """Nobody reads this."""

    assert (any_function.name, any_function.description) == ("w", "Weather.")
    assert isinstance(any_function, Tool)


def test_a_function_without_a_docstring_has_no_description():
    """Nothing is invented."""
    assert tool(lambda: 1).description == ""


def test_what_is_no_function_is_no_tool():
    """It is named."""
    with pytest.raises(TypeError, match="not str"):
        tool("ls")


def test_a_tool_stays_one():
    """It is not wrapped twice."""
    made = tool(weather)
    assert tools_of([made]) == (made,)


def test_two_tools_of_one_name_are_refused():
    """A model could not tell them apart."""
    with pytest.raises(ValueError, match="two tools are called 'weather'"):
        tools_of([weather, weather])


def test_an_enum_gets_its_member():
    """A model says the value."""
    assert tool(weather).run({"city": "Bern", "unit": "fahrenheit"}) == "Bern F"


def test_a_value_that_is_no_member_is_refused_with_those_that_are():
    """So that a model can put it right."""
    with pytest.raises(TypeError, match="unit: Invalid enum value 'kelvin'; it is one of 'celsius', 'fahrenheit'"):
        tool(weather).run({"city": "Bern", "unit": "kelvin"})


@dataclass
class Point:
    """A place on the map."""

    x: int
    unit: Unit = Unit.C


class Options(TypedDict, total=False):
    """What may be chosen."""

    depth: Required[int]
    day: date


class Model(BaseModel):
    """A model of pydantic."""

    v: int


class Own:
    """A type that only the function knows."""


class Mixed(Enum):
    """Values of two types."""

    A = "a"
    B = 2


@pytest.mark.parametrize(
    ("hint", "value", "converted"),
    [
        (list[Unit], ["celsius", "fahrenheit"], [Unit.C, Unit.F]),
        (list[Unit] | None, ["celsius"], [Unit.C]),
        (dict[str, Unit], {"a": "celsius"}, {"a": Unit.C}),
        (list[Mixed], ["a", 2], [Mixed.A, Mixed.B]),
        (list[Mixed] | None, ["a", 2], [Mixed.A, Mixed.B]),
        (dict[str, Mixed], {"a": 2}, {"a": Mixed.B}),
        (dict[str, list[Annotated[Mixed | None, "of it"]]], {"a": ["a", None]}, {"a": [Mixed.A, None]}),
        (tuple[Own, Mixed], [{"a": 1}, 2], [{"a": 1}, 2]),
        (Unit | str, "celsius", Unit.C),
        (Unit | str, "kelvin", "kelvin"),
        (dict[str, Unit | str], {"a": "celsius", "b": "kelvin"}, {"a": Unit.C, "b": "kelvin"}),
        (Point, {"x": 1, "unit": "fahrenheit"}, Point(1, Unit.F)),
        (list[Point], [{"x": 1}], [Point(1)]),
        (Options, {"depth": 1, "day": "2026-11-21"}, {"depth": 1, "day": date(2026, 11, 21)}),
        (date, "2026-11-21", date(2026, 11, 21)),
        (set[str], ["a", "a"], {"a"}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Model, {"v": "3"}, Model(v=3)),
        (list[Model], [{"v": 3}], [Model(v=3)]),
        (Literal["a", 1], 1, 1),
        (Annotated[int, "how many"], "5", 5),
        (int, "5", 5),
        (int | str, "5", "5"),
        (str | None, "null", "null"),
        (Any, {"a": [1]}, {"a": [1]}),
        (Own, {"a": 1}, {"a": 1}),
        (list[Own], [{"a": 1}], [{"a": 1}]),
        (Point, None, None),
    ],
)
def test_a_value_is_converted_to_its_type(hint, value, converted):
    """A type that only the function knows gets the value as it is, and so does any for null."""

    def same(x):
        return x

    same.__annotations__ = {"x": hint}
    found = tool(same).run({"x": value})
    assert (found, type(found)) == (converted, type(converted))


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (
            list[Unit],
            ["kelvin"],
            r"x: Invalid enum value 'kelvin' - at `\$\[0\]`; it is one of 'celsius', 'fahrenheit'",
        ),
        (Point, {"x": "one"}, r"x: Expected `int`, got `str` - at `\$\.x`"),
        (Model, {"v": "one"}, "x: 1 validation error for Model"),
        (Literal["a"], "b", "x: Invalid enum value 'b'"),
        (Mixed, "c", "x: 'c' is none of 'a', 2"),
        (dict[str, Mixed], {"a": "c"}, "x: 'c' is none of 'a', 2"),
        (int, [1], "x: Expected `int`, got `array`"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(hint, value, words):
    """Before the function is called, so that a model can put it right."""

    def never(x):
        raise AssertionError

    never.__annotations__ = {"x": hint}
    with pytest.raises(TypeError, match=words):
        tool(never).run({"x": value})


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"a": 1}, (1, 2, 3, 4, {})),
        ({"a": 1, "c": 7, "d": 8, "e": 9}, (1, 2, 7, 8, {"e": 9})),
        ({"a": 1, "b": 5}, (1, 5, 3, 4, {})),
    ],
)
def test_parameters_that_have_no_keyword_are_given_by_name(arguments, result):
    """A model knows names alone; one that it leaves out has its default."""

    @tool
    def function(a, b=2, c=3, /, d=4, **more):
        return a, b, c, d, more

    assert function.run(arguments) == result
    with pytest.raises(TypeError, match="missing a required argument: 'a'; it takes a, b, c, d"):
        function.run({"b": 1})


@pytest.mark.parametrize("arguments", [{}, {"city": "Bern", "town": 1}])
def test_other_arguments_are_refused_with_those_that_it_takes(arguments):
    """Before the function is called."""
    with pytest.raises(TypeError, match="it takes city, unit"):
        tool(weather).run(arguments)


@pytest.mark.parametrize("arguments", ["{not json", None, [1]])
def test_arguments_that_are_no_object_are_refused(arguments):
    """A model that writes broken JSON is told so."""
    with pytest.raises(TypeError, match="no JSON object"):
        tool(weather).run(arguments)


def test_an_unknown_tool_names_the_known_ones():
    """And says where there is none."""
    known = {"b": tool(weather), "a": tool(weather)}
    with pytest.raises(LookupError, match="no tool 'c'; there are a, b"):
        call_tool(known, ToolRequest("1", "c"))
    with pytest.raises(LookupError, match="there are none"):
        call_tool({}, ToolRequest("1", "c"))


def test_an_async_function_is_known_as_one():
    """Its result has to be awaited."""

    @tool
    async def slow() -> str:
        return ""

    class Slow:
        async def __call__(self) -> str:
            return ""

    assert slow.is_async
    assert tool(Slow()).is_async
    assert tool(partial(Slow())).is_async
    assert not tool(weather).is_async
    assert not tool(partial(weather)).is_async


PICTURE = ContentPart.of_image(b"\x89PNG")


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("as it is", "as it is"),
        ({"°": [1, None]}, '{"°": [1, null]}'),
        (None, "null"),
        ({"v": float("nan")}, '{"v": "NaN"}'),
        (Unit, "\"<enum 'Unit'>\""),
        (PICTURE, (PICTURE,)),
        (["a picture:", PICTURE], (ContentPart.of_text("a picture:"), PICTURE)),
    ],
)
def test_a_result_is_a_text_or_pieces(result, content):
    """Anything else is written as JSON."""
    message = result_message(ToolRequest("c1", "f"), result)
    assert (message.role, message.content, message.tool_call_id, message.name) == ("tool", content, "c1", "f")


def test_an_error_is_a_result():
    """It says that it is one."""
    assert error_message(ToolRequest("c1", "f"), "ValueError: no").text == "ERROR: ValueError: no"
