"""A structured answer is the JSON that a model wrote, as what was asked for."""

import builtins

import pytest
from pydantic import BaseModel

from sessionlog.conversation.turns.output import checked_schema, read_output
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
    """Named by its place, in one line."""
    with pytest.raises(AgentError) as raised:
        read_output('[{"name": "Bern"}]', list[City])
    assert str(raised.value) == (
        "the answer does not match the schema: $[0].people: Field required. It is kept in the session"
    )


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"$ref": "#/$defs/name"}}},
    "required": ["a"],
    "$defs": {"name": {"type": "string", "maxLength": 3}},
}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": "x"}', "$.a: 'x' is not of type 'integer'. It is"),
        ("[]", "$: [] is not of type 'object'. It is"),
        ("{}", "$: 'a' is a required property. It is"),
        ('{"a": 1, "b": ["ok", "long"]}', "$.b[1]: 'long' is too long. It is"),
        ('{"a": 1, "b": [1, 2, 3, 4]}', "$.b[2]: 3 is not of type 'string'; and 1 more. It is"),
    ],
)
def test_a_json_schema_is_kept_to(text, says):
    """What it does not allow is an error that says where in the answer."""
    with pytest.raises(AgentError) as raised:
        read_output(text, SCHEMA)
    assert says in str(raised.value)
    assert read_output('{"a": 1, "b": ["ok"]}', SCHEMA) == {"a": 1, "b": ["ok"]}


def test_no_schema_is_fetched():
    """One that refers to another place is the caller's mistake."""
    with pytest.raises(ValueError, match=r"schema: .*nothing is fetched"):
        read_output("1", {"$ref": "https://example.invalid/schema.json"})


@pytest.mark.parametrize("schema", ["foo", 5, ["a"], ("a",), b"x", City(name="Bern", people=1), lambda: 1])
def test_a_schema_is_a_type_or_a_json_schema(schema):
    """Anything else is named before anybody is asked."""
    with pytest.raises(TypeError, match=r"schema is .*it is a type, as a pydantic model, or a JSON schema"):
        checked_schema(schema)


def test_a_dict_that_is_no_json_schema_is_named():
    """With its place; the empty one takes any JSON."""
    with pytest.raises(ValueError, match=r"schema: no JSON schema: \$\.type: 5 is not"):
        checked_schema({"type": 5})
    checked_schema({})
    assert read_output("[1]", {}) == [1]


@pytest.mark.parametrize(("schema", "package"), [(City, "pydantic"), ({"type": "object"}, "jsonschema")])
def test_what_is_not_installed_is_named(monkeypatch, schema, package):
    """With the words that install it; any JSON needs nothing."""
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    checked_schema({})
    with pytest.raises(MissingExtra, match=rf"needs {package}: pip install 'sessionlog\[json\]'"):
        checked_schema(schema)
