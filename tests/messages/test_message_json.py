"""A message comes back from JSON exactly as it was; what is no message is named with its place."""

import json

import pytest
from hypothesis import given

from sessionlog.errors import InvalidHistory, MissingField
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.messages.message_json import (
    content_from_json,
    message_from_dict,
    message_to_dict,
    messages_from,
    request_from_dict,
)
from tests.conversation.history.histories import saved_message
from tests.profiles import examples


@given(saved_message)
@examples(150)
def test_every_message_comes_back(message):
    """Through JSON text, with and without its nulls."""
    for nulls in (False, True):
        assert message_from_dict(json.loads(json.dumps(message_to_dict(message, nulls=nulls)))) == message


def test_with_nulls_it_has_the_seeds_keys():
    """All of them, and no other that is not set."""
    message = Message.user(["look", ContentPart.of_image_url("http://x/y.png")])
    assert message_to_dict(message, nulls=True) == {
        "role": "user",
        "content": [
            {"type": "text", "text": "look", "image_url": None},
            {"type": "image_url", "text": None, "image_url": "http://x/y.png"},
        ],
        "name": None,
        "tool_call_id": None,
        "tool_calls": None,
    }
    asked = Message.assistant(tool_calls=[ToolRequest("c1", "f")])
    assert message_to_dict(asked, nulls=True)["tool_calls"] == [{"id": "c1", "name": "f", "arguments": {}}]


def test_without_nulls_only_what_is_set_is_there():
    """As a log keeps it."""
    assert message_to_dict(Message.user("hi")) == {"role": "user", "content": "hi"}
    marked = Message("assistant", "so f", partial="failed", extra={"id": 7})
    assert message_to_dict(marked) == {"role": "assistant", "content": "so f", "partial": "failed", "id": 7}


def test_the_bytes_of_a_picture_survive():
    """Weakness of seed 003: they were lost in the dict."""
    message = Message.user([ContentPart.of_image(b"\x89PNG\x00\xff", "image/png")])
    saved = message_to_dict(message, nulls=True)
    assert saved["content"][0] == {
        "type": "image", "text": None, "image_url": None, "data": "iVBORwD/", "media_type": "image/png",
    }  # fmt: skip
    assert message_from_dict(saved) == message


def test_nothing_is_shared_with_the_json():
    """Changing what was made, or what it was made of, changes no message."""
    message = Message.assistant(tool_calls=[ToolRequest("c1", "f", {"deep": [1]})])
    saved = message_to_dict(message)
    read = message_from_dict(saved)
    saved["tool_calls"][0]["arguments"]["deep"].append(2)
    assert message.tool_calls[0].arguments == read.tool_calls[0].arguments == {"deep": [1]}


def test_the_spelling_of_providers_is_read():
    """Addresses and calls in objects of their own; whatever else they say is kept."""
    read = message_from_dict(
        {
            "role": "assistant", "content": None, "refusal": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}, "sealed": "x"},
                {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
                {"id": "c3", "name": "g"},
            ],
        }
    )  # fmt: skip
    assert read.tool_calls == (
        ToolRequest("c1", "f", {"a": 1}, extra={"sealed": "x"}), ToolRequest("c2", "f", "{broken"), ToolRequest("c3", "g"),
    )  # fmt: skip
    assert read.extra == {"refusal": None}
    picture = {"type": "image_url", "image_url": {"url": "http://x", "detail": "high"}}
    assert content_from_json(["hi", picture, {"type": "thinking", "thinking": "…", "data": "no base64"}]) == (
        ContentPart.of_text("hi"),
        ContentPart(type="image_url", image_url="http://x", extra={"detail": "high"}),
        ContentPart(type="thinking", extra={"thinking": "…", "data": "no base64"}),
    )
    assert request_from_dict({"id": "c", "function": {"name": "f"}}).arguments == {}
    assert request_from_dict({"id": "c", "function": {"name": "f", "arguments": [1]}}).arguments == [1]


USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        ({}, InvalidHistory, "messages: an object; it must be a list of messages"),
        (None, InvalidHistory, "messages: null"),
        ([USER, "x"], InvalidHistory, "messages[1]: a text; a message must be an object"),
        ([{"content": "x"}], MissingField, "messages[0]: no 'role'"),
        ([{"role": "user"}], MissingField, "messages[0]: no 'content'"),
        ([USER, {"role": "robot", "content": ""}], InvalidHistory, "messages[1]: unknown role 'robot'"),
        ([{"role": [], "content": ""}], InvalidHistory, "messages[0]: unknown role []"),
        ([{"role": "user", "content": 5}], InvalidHistory, "messages[0].content: a number"),
        ([{"role": "user", "content": [5]}], InvalidHistory, "messages[0].content[0]: a number"),
        ([{"role": "user", "content": [{"text": "x"}]}], MissingField, "messages[0].content[0]: no 'type'"),
        ([{"role": "user", "content": [{"type": 5}]}], InvalidHistory, "messages[0].content[0]: type is int"),
        (
            [{"role": "user", "content": [{"type": "image", "media_type": "image/png", "data": "iVBO****"}]}],
            InvalidHistory,
            "messages[0].content[0]: data is not base64",
        ),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            InvalidHistory,
            "messages[0].content[0]: image_url without its 'url'",
        ),
        ([USER | {"name": 5}], InvalidHistory, "messages[0]: name is int"),
        (
            [USER | {"tool_calls": 5}],
            InvalidHistory,
            "messages[0].tool_calls: a number; it must be a list of tool calls",
        ),
        (
            [USER | {"tool_calls": [5]}],
            InvalidHistory,
            "messages[0].tool_calls[0]: a number; a tool call must be an object",
        ),
        ([USER | {"tool_calls": [{"id": "c"}]}], MissingField, "messages[0].tool_calls[0]: no 'name'"),
        ([USER | {"tool_calls": [{"id": 5, "name": "f"}]}], InvalidHistory, "messages[0].tool_calls[0]: id of a tool"),
        (
            [USER | {"tool_calls": [{"id": "c", "name": "f"}]}],
            InvalidHistory,
            "messages[0]: tool calls in a user message",
        ),
    ],
)
def test_what_is_no_message_is_named(value, error, says):
    """With its place; a missing field is a KeyError too."""
    with pytest.raises(error) as raised:
        messages_from(value)
    assert str(raised.value).startswith(says)
    assert isinstance(raised.value, KeyError) == (error is MissingField)


def test_what_is_nested_too_deep_is_named():
    """Python ends there; the message does not break the program that reads it."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    call = {"id": "c", "name": "f", "arguments": deep}
    for value, place in (
        ({"role": "user", "content": "x", "more": deep}, "messages[0]"),
        ({"role": "assistant", "tool_calls": [call]}, "messages[0].tool_calls[0]"),
    ):
        with pytest.raises(InvalidHistory) as raised:
            messages_from([value])
        assert str(raised.value) == f"{place}: a value in it is nested too deep"
    with pytest.raises(InvalidHistory, match="nested too deep"):
        message_to_dict(Message("user", "x", extra={"more": deep}))
