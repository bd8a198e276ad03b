"""Calls and contents of several providers' shapes, as they were logged."""

from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import Digits, calls_in, read_calls, text_of


def test_parts_are_joined_and_what_is_no_text_is_named():
    """Content parts give their text; an image is a word."""
    parts = [{"type": "text", "text": "look:"}, {"type": "image_url", "image_url": {}}, "and say"]
    assert text_of(parts) == "look:\n[image_url]\nand say"


def test_json_that_is_no_content_is_spelled():
    """A tool that returned a list of objects is shown what it returned."""
    assert text_of([{"a": 1}, 2]) == '[{"a":1},2]'
    assert text_of({"a": None}) == '{"a":null}'
    assert text_of(None) == ""


def test_calls_of_the_usual_shapes_are_read():
    """Flat calls, OpenAI's function with a text of JSON, and a count, which says nothing."""
    assert read_calls([{"id": "1", "name": "ls", "arguments": {"a": 1}}]) == [
        Call(id="1", name="ls", arguments={"a": 1}, given=True)
    ]
    assert read_calls([{"id": "2", "function": {"name": "ls", "arguments": '{"a":1.50}'}}]) == [
        Call(id="2", name="ls", arguments={"a": Digits("1.50")}, given=True)
    ]
    assert read_calls(3) == []
    assert read_calls([{"name": "ls"}, "odd"]) == [Call(name="ls")]


def test_arguments_that_only_look_like_json_stay_text():
    """Half a JSON text is what the model said."""
    assert read_calls([{"name": "w", "arguments": '{"path":"poe'}])[0].arguments == '{"path":"poe'


def test_calls_of_messages_keep_their_digits():
    """As parts of the content, and where the model wrote them as a text."""
    message = Message.assistant("", tool_calls=[ToolRequest.of_model("1", "ls", '{"a":1.50}')])
    call = Call(id="1", name="ls", arguments={"a": Digits("1.50")}, given=True)
    assert calls_in(message, None) == (call,)
    part = {"type": "tool_use", "id": "1", "name": "ls", "input": {"a": Digits("1.50")}}
    assert calls_in(message, {"content": [part]}) == (call,)
