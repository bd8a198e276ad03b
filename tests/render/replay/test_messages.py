"""Messages of several providers' shapes, and the digests that tell them apart."""

from sessionlog.hashes import digest_of
from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import Digits
from sessionlog.render.replay.messages import read_calls, read_message, said_keys, text_of


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


def test_tool_parts_of_a_message_are_calls_and_replies():
    """Anthropic's shape: tool_use and tool_result are parts of the content."""
    message = read_message(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "1", "name": "ls", "input": {}},
                {"type": "tool_result", "tool_use_id": "0", "content": [{"type": "text", "text": "done"}]},
            ],
        }
    )
    assert message.text == "so"
    assert [call.name for call in message.calls] == ["ls"]
    assert [(reply.id, reply.text) for reply in message.replies] == [("0", "done")]


def test_arguments_that_only_look_like_json_stay_text():
    """Half a JSON text is what the model said."""
    assert read_calls([{"name": "w", "arguments": '{"path":"poe'}])[0].arguments == '{"path":"poe'


def test_odd_messages_become_text():
    """Nothing that stands in `messages` is an error."""
    assert read_message(7).text == "7"
    assert read_message({"content": {"x": 1}}).role == "unknown"


def test_the_borders_of_digested_parts_count():
    """("ab", "c") and ("a", "bc") are different things."""
    assert digest_of("ab", "c") != digest_of("a", "bc")


def test_calls_are_known_by_their_ids_first():
    """An answer whose text was trimmed by the agent is still recognised by its calls."""
    call = Call(id="1", name="ls")
    assert said_keys("assistant", "one text", [call])[0] == said_keys("assistant", "another", [call])[0]
    assert len(said_keys("assistant", "text", [Call(name="ls")])) == 1
