"""Histories as providers spell them: every role, pictures, tool calls, and what has no place."""

import base64
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from sessionlog.conversation.agents.spelling import (
    anthropic_messages,
    object_schema,
    openai_messages,
    read_arguments,
    system_text,
)
from sessionlog.conversation.turns.pieces import Ask
from sessionlog.messages.message import ContentPart, Message, ToolRequest

PNG = ContentPart.of_image(b"\x89PNG", "image/png")
PNG_URL = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
CALLS = (ToolRequest("c1", "look", {"x": 1}), ToolRequest("c2", "look", "{broken"))


def test_openai_keeps_the_order_and_the_ids():
    """A call's arguments are a text there, also when they are no JSON."""
    history = [
        Message.system("later"),
        Message.user("hi", name="ann"),
        Message.assistant("well", tool_calls=CALLS),
        Message.tool("one", "c1", name="look"),
        Message.tool("two", "c2", name="look"),
        Message.assistant("done"),
    ]
    spelled = openai_messages(Ask(messages=history, system="first"))
    assert [message["role"] for message in spelled] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert spelled[2] == {"role": "user", "content": "hi", "name": "ann"}
    assert [call["function"]["arguments"] for call in spelled[3]["tool_calls"]] == ['{"x": 1}', "{broken"]
    assert [message.get("tool_call_id") for message in spelled[4:6]] == ["c1", "c2"]


def test_openai_is_shown_a_tools_picture_after_its_results():
    """Its tool messages are text, and nothing may stand between the results of one group."""
    history = [
        Message.assistant(tool_calls=CALLS),
        Message.tool([PNG], "c1"),
        Message.tool("two", "c2"),
        Message.user("and?"),
    ]
    spelled = openai_messages(Ask(messages=history))
    assert spelled[0]["content"] is None
    assert [message["role"] for message in spelled] == ["assistant", "tool", "tool", "user", "user"]
    assert spelled[3]["content"] == [{"type": "image_url", "image_url": {"url": PNG_URL}}]
    assert openai_messages(Ask(messages=history[:3]))[-1] == spelled[3]


def test_openai_is_shown_pictures_and_its_own_kinds_of_pieces():
    """A picture keeps what else was said of it; an answer that was only thought has no place."""
    sound = ContentPart(type="input_audio", extra={"input_audio": {"data": "x", "format": "wav"}})
    far = ContentPart(type="image_url", image_url="http://a/b.png", extra={"detail": "low"})
    thought = ContentPart(type="thinking", extra={"thinking": "hm", "signature": "s"})
    said = openai_messages(Ask(messages=[Message.user(["look", PNG, far, sound]), Message.assistant([thought])]))
    assert said == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG_URL}},
                {"type": "image_url", "image_url": {"url": "http://a/b.png", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
            ],
        }
    ]


def test_anthropic_is_told_in_turns():
    """Results of tools and what the user says after them are one message there, the results first."""
    history = [
        Message.user("hi"),
        Message.system("be kind"),
        Message.assistant("well", tool_calls=CALLS),
        Message.tool("one", "c1"),
        Message.tool([PNG, "seen"], "c2"),
        Message.user("and?"),
        Message.assistant("done"),
    ]
    spelled = anthropic_messages(history)
    assert [message["role"] for message in spelled] == ["user", "assistant", "user", "assistant"]
    assert [block["type"] for block in spelled[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [call["input"] for call in spelled[1]["content"][1:]] == [{"x": 1}, {"arguments": "{broken"}]
    one, two, said = spelled[2]["content"]
    assert one == {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "one"}]}
    assert [block["type"] for block in two["content"]] == ["image", "text"]
    assert said == {"type": "text", "text": "and?"}


def test_anthropic_takes_a_pictures_bytes_or_its_address():
    """An address that holds the bytes itself is none there."""
    picture = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}
    for part in (PNG, ContentPart.of_image_url(PNG_URL)):
        assert anthropic_messages([Message.user([part])])[0]["content"] == [{"type": "image", "source": picture}]
    far = anthropic_messages([Message.user([ContentPart.of_image_url("http://a/b.png")])])
    assert far[0]["content"][0]["source"] == {"type": "url", "url": "http://a/b.png"}


def test_anthropic_is_given_back_what_it_thought_but_nothing_that_it_refuses():
    """Empty texts, thoughts without a signature, and pieces that say nothing stay here."""
    thought = ContentPart(type="thinking", extra={"thinking": "hm", "signature": "s"})
    foreign = ContentPart(type="thinking", extra={"thinking": "hm"})
    history = [
        Message.user(" "),
        Message.user("hi"),
        Message.assistant([thought, foreign, "", ContentPart(type="odd"), "yes"]),
    ]
    spelled = anthropic_messages(history)
    assert spelled[0]["content"] == [{"type": "text", "text": "hi"}]
    assert spelled[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "yes"},
    ]


def test_system_texts_are_joined_in_order():
    """The session's own is the first."""
    ask = Ask(messages=[Message.system("b"), Message.user("hi"), Message.system("c")], system="a")
    assert system_text(ask) == "a\n\nb\n\nc"
    assert system_text(Ask(messages=[])) == ""


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('{"x": [1]}', {"x": [1]}), ("", {}), (None, {}), ("[1]", "[1]"), ('{"x": NaN}', '{"x": NaN}'), ("{", "{")],
)
def test_arguments_are_an_object_or_the_models_own_text(text, arguments):
    """What is no JSON object is kept as it was written, for the tool to refuse."""
    assert read_arguments(text) == arguments


def test_arguments_too_deep_to_read_are_a_text():
    """Nothing that a model writes ends a turn."""
    assert read_arguments('{"x":' + "[" * 200_000) == '{"x":' + "[" * 200_000


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
