"""No character of an API key gets into a snapshot, wherever an agent keeps it."""

import json
from dataclasses import fields, is_dataclass
from types import SimpleNamespace

import pytest

from sessionlog.context import (
    extract_context_snapshot,
    extract_full_context_snapshot,
    get_agent_context_snapshot,
    get_agent_full_context_snapshot,
    register_agent,
    unregister_agent,
)
from sessionlog.context.snapshots.secrets import SecretFilter
from tests.context.talks import answer, ask, call, result, user

SHAPED = "sk-ant-api03-QqWwEeRrTtYyUuIiOoPpAaSsDdFfGgHhJjKkLlZzXxCcVvBbNnMm0123456789-abcdefAA"
OPAQUE = "Zq7Xv2Kp9Wm4Rt6Yb8Nc"


class Client:
    """A client as providers' packages have it: the key is an attribute, in its headers, and in its `repr`."""

    def __init__(self, key):
        self.api_key = key
        self.headers = {"Authorization": f"Bearer {key}"}

    def __repr__(self):
        return f"Client(api_key={self.api_key!r})"

    __str__ = __repr__

    def model_dump(self):
        """As pydantic's models."""
        return {"api_key": self.api_key, "http_client": self}


def fetch(url: str) -> str:
    """Fetch a page."""
    key = "sk-ant-api03-QqWwEeRrTtYyUuIiOoPpAaSsDdFfGgHhJjKkLlZzXxCcVvBbNnMm0123456789-abcdefAA"
    return url + key


def careless_agent(key):
    """Keeps its key wherever one can be."""
    client = Client(key)
    schema = {
        "type": "object",
        "properties": {
            "api_key": {"type": "string", "default": key, "examples": [key]},
            "max_tokens": {"type": "integer", "default": 7},
        },
    }
    tool = SimpleNamespace(
        name="fetch", description=f"Uses {key}", parameters_json_schema=schema, function=fetch, client=client
    )
    model = SimpleNamespace(model_name="gpt-4o", client=client, api_key=key)
    settings = {
        "max_tokens": 300, "temperature": 0.5, "api_key": key, "extra_headers": {"X-Anything": key, "Cookie": key},
        "http_client": client, "nested": [{"auth": {"user": key}, "note": f"key {key} is used"}], key: 1,
    }  # fmt: skip
    return SimpleNamespace(
        model=model, model_settings=settings, client=client, api_key=key,
        _system_prompts=(f"Your key is {key}.",), _instructions=(f"Use {key}.",),
        toolsets=[SimpleNamespace(tools={"fetch": tool}, headers={"Authorization": key})],
    )  # fmt: skip


def history(key):
    """A talk in which everybody says the key."""
    return [
        ask(user(f"Take {key}")),
        answer(f"I take {key}", call("fetch", "c1", {"token": key, "client": Client(key)}), tokens=(9, 1)),
        ask(result("c1", f"called with {key}")),
    ]


def everything(value):
    """All texts in a value, whatever holds them, as attributes are seen by a debugger."""
    if is_dataclass(value):
        return "".join(everything(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, dict):
        return "".join(everything(key) + everything(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "".join(map(everything, value))
    return f"{value!r}\n"


def shares_four_characters(text, key):
    """Whether any four characters in a row of a key are in a text."""
    return any(key[at : at + 4] in text for at in range(len(key) - 3))


@pytest.mark.parametrize("key", [SHAPED, OPAQUE])
def test_no_piece_of_a_key_is_in_a_snapshot(key, monkeypatch):
    """Of a key of a known shape, or one that only the environment knows, not even four characters are left."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    agent = careless_agent(key)
    register_agent("careless", agent, {"model": "gpt-4o", "api_key": key}).keep_messages(history(key))
    try:
        snapshots = [
            extract_context_snapshot(agent, "a", message_history=history(key)),
            extract_context_snapshot(agent, "a"),
            get_agent_context_snapshot("careless"),
            full := extract_full_context_snapshot(agent, "a", message_history=history(key), memory_blocks=[{"m": key}]),
            extract_full_context_snapshot(agent, "a", tool_rules=[{"headers": {"h": key}}]),
            get_agent_full_context_snapshot("careless"),
        ]
    finally:
        unregister_agent("careless")
    for snapshot in snapshots:
        assert not shares_four_characters(everything(snapshot), key.removeprefix("sk-ant-api03-"))
        assert not shares_four_characters(json.dumps(snapshot.to_dict()), key.removeprefix("sk-ant-api03-"))
    assert full.model_settings["max_tokens"] == 300
    assert full.model_settings["http_client"] == "<Client>"
    assert full.tools[0].parameters_schema["properties"]["api_key"]["type"] == "string"
    assert full.tools[0].parameters_schema["properties"]["max_tokens"]["default"] == 7


def test_settings_of_any_depth_or_kind_are_json():
    """A circle ends, sets are lists, keys are texts, objects are their type's name."""
    circle = {1: {2, 3}}
    circle["again"] = circle
    made = SecretFilter({}).settings(circle)
    json.dumps(made)
    assert made["1"] == [2, 3]
    assert SecretFilter({}).settings({"n": None, "auth": None, "has_token": True}) == {
        "n": None, "auth": None, "has_token": True
    }  # fmt: skip


def test_short_values_of_the_environment_are_no_secrets():
    """A token that is a word would be cut out of every text."""
    assert SecretFilter({"TOKEN": "dummy", "SOME_SECRET": "correct-horse"}).text("dummy correct-horse") == "dummy ***"
