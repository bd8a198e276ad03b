"""Messages of every kind become one small value; nothing raises."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.messages.content_text import text_of
from sessionlog.messages.json_value import decode_json
from sessionlog.messages.message_json import message_to_dict
from sessionlog.messages.read import read_entries, read_entry
from tests.context.talks import ask, call, user
from tests.conversation.history.histories import saved_message
from tests.profiles import examples


def parts(message):
    """Kind and text of each part."""
    return [(part.kind, part.text) for part in read_entry(message).pieces]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "system", "content": "Be brief."}, [("system", "Be brief.")]),
        ({"role": "developer", "content": "Be brief."}, [("system", "Be brief.")]),
        ({"role": "user", "content": "Hi"}, [("user", "Hi")]),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, [("user", "a"), ("user", "b")]),
        ({"role": "user", "content": ["a", "b"]}, [("user", "a"), ("user", "b")]),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, [("user", "[image_url]")]),
        ({"role": "user", "parts": [{"text": "Hi"}]}, [("user", "Hi")]),
        ({"role": "assistant", "content": "Yes", "reasoning_content": "Hm"}, [("thinking", "Hm"), ("assistant", "Yes")]),
        ({"role": "assistant", "content": None}, []),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}]}, [("thinking", "Hm")]),
        ({"role": "tool", "tool_call_id": "c", "content": "out"}, [("tool_return", "out")]),
        ({"role": "tool", "content": {"a": 1}}, [("tool_return", '{"a":1}')]),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x"}]}]},
            [("tool_return", "x")],
        ),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, [("user", "Hi")]),
        ({"type": "function_call", "name": "read", "arguments": "{}", "call_id": "c"}, [("tool_call", "{}")]),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, [("tool_return", "x")]),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}, [("thinking", "Hm")]),
        ("Hello", [("user", "Hello")]),
        (None, [("user", "")]),
    ],
)  # fmt: skip
def test_messages_of_logs_and_providers(message, expected):
    """OpenAI's and Anthropic's shapes, and those of our own logs."""
    assert parts(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": '{"path": "a"}'}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "read", "arguments": {"path": "a"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {"path": "a"}}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path": "a"}'},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "read", "args": {"path": "a"}, "tool_call_id": "c"}]},
        SimpleNamespace(kind="response", parts=[call("read", "c", '{"path": "a"}')]),
    ],
)  # fmt: skip
def test_a_tool_call_of_every_kind(message):
    """Its name, id and arguments are the same in all of them, and the message is the model's."""
    read = read_entry(message)
    (part,) = read.pieces
    assert (part.kind, part.name, part.call_id, part.arguments) == ("tool_call", "read", "c", {"path": "a"})
    assert part.text == '{"path": "a"}'
    assert read.is_response
    assert read.tool_names == ("read",)


@pytest.mark.parametrize(
    ("part", "kind", "failed"),
    [
        ({"part_kind": "system-prompt", "content": "x"}, "system", False),
        ({"part_kind": "user-prompt", "content": "x"}, "user", False),
        ({"part_kind": "user_prompt", "content": ["x"]}, "user", False),
        ({"part_kind": "tool-return", "content": "x", "outcome": "success"}, "tool_return", False),
        ({"part_kind": "tool-return", "content": "x", "outcome": "retried"}, "tool_return", True),
        ({"part_kind": "retry-prompt", "content": "x"}, "tool_return", True),
        ({"part_kind": "retry-feedback", "content": "x"}, "tool_return", True),
        ({"part_kind": "a-new-kind", "content": "x"}, "system", False),
    ],
)
def test_parts_of_a_stored_request(part, kind, failed):
    """What pydantic-ai sends to a model; a kind that is not known yet is no user's."""
    (read,) = read_entry({"kind": "request", "parts": [part]}).pieces
    assert (read.kind, read.text, read.failed) == (kind, "x", failed)


def test_a_user_prompt_with_files():
    """Texts are kept and the rest is named."""
    content = ["Look:", SimpleNamespace(kind="image-url", url="u"), {"kind": "binary"}, {"kind": "cache-point"}]
    assert parts(ask(SimpleNamespace(part_kind="user-prompt", content=content))) == [
        ("user", "Look:"),
        ("user", "[image-url]"),
        ("user", "[binary]"),
    ]


_PNG = b"\x89PNG" * 5000
_STORED = {"data": "iVBO" * 5000, "media_type": "image/png", "kind": "binary"}
_LIVE = SimpleNamespace(data=_PNG, media_type="image/png", kind="binary")
_GEMINI = {"inlineData": {"mimeType": "image/png", "data": "iVBO" * 5000}}


@pytest.mark.parametrize(
    ("content", "text", "pictures"),
    [
        (_LIVE, "[binary]", 1),
        (_STORED, "[binary]", 1),
        (_STORED | {"data": _PNG}, "[binary]", 1),
        (["here", _LIVE, _STORED], "here\n[binary]\n[binary]", 2),
        ({"img": _LIVE, "n": 1}, '{"img":"[binary]","n":1}', 1),
        ({"img": [_STORED]}, '{"img":["[binary]"]}', 1),
        ([_GEMINI], "[image]", 1),
        ([{"type": "image", "source": {"type": "base64", "data": "iVBO"}}], "[image]", 1),
        ([{"type": "input_image", "image_url": "data:image/png;base64,iVBO"}], "[input_image]", 1),
        ([{"type": "document", "source": {"type": "text", "data": "Plain."}}], "Plain.", 0),
        ([{"name": "a.py", "size": 3}], '[{"name":"a.py","size":3}]', 0),
        ({"type": "image", "name": "a.png"}, '{"type":"image","name":"a.png"}', 0),
        ({"raw": b"\x00" * 5000}, '{"raw":"[5000 bytes]"}', 0),
    ],
)  # fmt: skip
def test_a_picture_is_named_never_spelled(content, text, pictures):
    """In whatever shape and depth a user or a tool sends it: no base64 and no repr of bytes is taken for text."""
    sent = (
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": content}]},
        {"role": "tool", "content": content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content}]},
    )
    for message in sent:
        (part,) = read_entry(message).pieces
        assert (part.text, part.media) == (text, pictures)


def test_pictures_beside_words():
    """Each is a piece of its own in a provider's message, in pydantic-ai's, and a whole answer."""
    found = read_entry({"role": "user", "parts": [{"text": "Look"}, _GEMINI]}).pieces
    assert [(part.text, part.media) for part in found] == [("Look", 0), ("[image]", 1)]
    prompt = read_entry(ask(user(["Look", _LIVE]))).pieces
    assert [(part.text, part.media) for part in prompt] == [("Look", 0), ("[binary]", 1)]
    (made,) = read_entry({"kind": "response", "parts": [{"part_kind": "file", "content": _STORED}]}).pieces
    assert (made.kind, made.text, made.media) == ("assistant", "[binary]", 1)


def test_times_and_usage_are_kept():
    """As given: of the message or of its last part; usage only of a response."""
    ts = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert read_entry(ask(user("x"), ts=ts)).timestamp == "2026-11-21T10:00:00.000000Z"
    late = SimpleNamespace(part_kind="user-prompt", content="x", timestamp=ts)
    assert read_entry(ask(late)).timestamp == "2026-11-21T10:00:00.000000Z"
    stored = {"kind": "response", "parts": [], "usage": {"input_tokens": 3}, "timestamp": "2026-11-21T10:00:00Z"}
    read = read_entry(stored)
    assert (read.usage, read.timestamp) == ({"input_tokens": 3}, "2026-11-21T10:00:00Z")
    assert read_entry({**stored, "kind": "request"}).usage is None


def test_a_prompt_is_what_a_user_says():
    """Not what brings the answers of tools, and not what a system adds."""
    assert read_entry({"role": "user", "content": "Go"}).is_prompt
    returned = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    assert not read_entry({"role": "user", "content": [returned, {"type": "text", "text": "reminder"}]}).is_prompt
    assert not read_entry({"role": "system", "content": "Go"}).is_prompt


def test_reading_twice_is_reading_once():
    """A message that was read is itself."""
    (read,) = read_entries([{"role": "user", "content": "x"}])
    assert read_entry(read) is read


def test_arguments_that_are_no_json_stay_text():
    """A model may answer anything."""
    assert decode_json('{"a": ') == '{"a": '
    assert decode_json("[1]") == [1]
    assert decode_json("plain") == "plain"
    assert decode_json(None) is None


def test_texts_of_odd_contents():
    """What is no text is spelled as JSON, and what JSON refuses as Python does."""
    assert text_of(3) == "3"
    assert text_of([]) == "[]"
    endless = []
    endless.append(endless)
    assert text_of(endless) == "[[...]]"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "tool", "request", "response", "text", "tool_use", "tool_result"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["role", "content", "kind", "parts", "part_kind", "type", "text", "tool_calls", "function",
                         "name", "arguments", "input", "args", "id", "usage", "timestamp", "instructions"]),
        inner, max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@examples(200)
@given(saved_message)
def test_what_was_saved_is_read_as_it_was(message):
    """The reader takes our own JSON for what it is."""
    assert read_entry(json.loads(json.dumps(message_to_dict(message)))).messages == (message,)


@examples(300)
@given(_JSON)
def test_no_shape_raises(value):
    """Whatever a log holds is read into parts with a kind and a text."""
    read = read_entry(value)
    assert all(part.kind and isinstance(part.text, str) for part in read.pieces)
    assert all(isinstance(name, str) for name in read.tool_names)
