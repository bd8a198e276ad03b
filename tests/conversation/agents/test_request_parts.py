"""What a request has besides its messages."""

from dataclasses import dataclass

from pydantic import BaseModel

from sessionlog.conversation.agents.client import object_schema, system_text
from sessionlog.conversation.turns.pieces import AgentRequest
from sessionlog.messages.message import Message


def test_system_texts_are_joined_in_order():
    """The session's own is the first."""
    ask = AgentRequest(messages=[Message.system("b"), Message.user("hi"), Message.system("c")], system="a")
    assert system_text(ask) == "a\n\nb\n\nc"
    assert system_text(AgentRequest(messages=[])) == ""


def test_a_schema_is_enforced_where_it_is_an_objects_and_told_where_not():
    """Providers enforce objects only."""

    class City(BaseModel):
        name: str

    @dataclass
    class Town:
        name: str

    assert object_schema(None) == (None, "")
    assert object_schema(City)[0]["properties"]["name"]["type"] == "string"
    assert object_schema(Town)[0]["title"] == "Town"
    assert object_schema({"type": "object", "properties": {"a": {}}})[1] == ""
    schema, told = object_schema(list[int])
    assert schema is None
    assert '"integer"' in told
    assert object_schema({}) == (None, "Answer with JSON and nothing else.")
    assert object_schema({"type": "object"}) == (
        None,
        'Answer with JSON and nothing else. Its JSON schema: {"type": "object"}',
    )
