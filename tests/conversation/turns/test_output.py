"""A structured answer is the JSON that a model wrote, as what was asked for."""

import builtins

import pytest
from pydantic import BaseModel

from sessionlog.conversation.turns.output import check_schema, read_output
from sessionlog.errors import AgentError, MissingExtra


class City(BaseModel):
    """What is asked for."""

    name: str
    people: int


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bern", "people": 1}',
        ' \n{"name": "Bern", "people": 1}\n',
        '```json\n{"name": "Bern", "people": 1}\n```',
        '```\n{"name": "Bern", "people": 1}```',
        '\n```JSON \r\n{"name": "Bern", "people": 1}\n  ```\n',
    ],
)
def test_fences_are_taken_off(text):
    """Models love them."""
    assert read_output(text, City) == City(name="Bern", people=1)
    assert read_output(text, {}) == {"name": "Bern", "people": 1}


def test_fences_within_a_text_are_not():
    """Only those around all of it."""
    assert read_output('"```json\\n1\\n```"', {}) == "```json\n1\n```"


def test_any_type_can_be_asked_for():
    """Not only models."""
    assert read_output("[1, 2]", list[int]) == [1, 2]


@pytest.mark.parametrize("text", ["", "sorry", "{", "```json\n{\n```", "NaN"])
def test_what_is_no_json_is_an_error_that_quotes_it(text):
    """And says that the answer is kept."""
    with pytest.raises(AgentError, match=r"not JSON .*kept in the session"):
        read_output(text, {})


def test_another_shape_is_an_error():
    """Named by field."""
    with pytest.raises(AgentError, match=r"(?s)not what was asked for.*people"):
        read_output('{"name": "Bern"}', City)


def test_a_type_needs_pydantic(monkeypatch):
    """A JSON schema needs nothing."""
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pydantic":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    check_schema({"type": "object"})
    with pytest.raises(MissingExtra, match="pip install pydantic"):
        check_schema(City)
