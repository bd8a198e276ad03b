"""Histories in the shapes of providers: every role, pictures, tool calls, and what has no place."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.messages.json_value import decode_object
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.messages.read import read_entries
from sessionlog.messages.wire import anthropic_messages, openai_messages
from tests.profiles import examples

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
    spelled = openai_messages(history, "first")
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
    spelled = openai_messages(history)
    assert spelled[0]["content"] is None
    assert [message["role"] for message in spelled] == ["assistant", "tool", "tool", "user", "user"]
    assert spelled[3]["content"] == [{"type": "image_url", "image_url": {"url": PNG_URL}}]
    assert openai_messages(history[:3])[-1] == spelled[3]


def test_openai_is_shown_pictures_and_its_own_kinds_of_pieces():
    """A picture keeps what else was said of it; an answer that was only thought has no place."""
    sound = ContentPart(type="input_audio", extra={"input_audio": {"data": "x", "format": "wav"}})
    far = ContentPart(type="image_url", image_url="http://a/b.png", extra={"detail": "low"})
    thought = ContentPart(type="thinking", extra={"thinking": "hm", "signature": "s"})
    said = openai_messages([Message.user(["look", PNG, far, sound]), Message.assistant([thought])])
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


@pytest.mark.parametrize(
    ("text", "arguments"),
    [('{"x": [1]}', {"x": [1]}), ("", {}), (None, {}), ("[1]", "[1]"), ('{"x": NaN}', '{"x": NaN}'), ("{", "{")],
)
def test_arguments_are_an_object_or_the_models_own_text(text, arguments):
    """What is no JSON object is kept as it was written, for the tool to refuse."""
    assert ToolRequest.of_model("c", "f", text).arguments == arguments


def test_arguments_too_deep_to_read_are_a_text():
    """Nothing that a model writes ends a turn."""
    assert decode_object('{"x":' + "[" * 200_000) == '{"x":' + "[" * 200_000


_words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
_arguments = st.dictionaries(_words, st.none() | st.booleans() | st.integers(-9, 9) | _words, max_size=2)
_user = st.builds(Message.user, _words | st.just([ContentPart.of_text("look"), PNG]))


@st.composite
def _turn(draw):
    ids = draw(st.lists(_words, max_size=2, unique=True))
    calls = [ToolRequest(id_, draw(_words), draw(_arguments)) for id_ in ids]
    results = [Message.tool(draw(_words), call.id) for call in calls]
    return [draw(_user), Message.assistant(draw(_words), tool_calls=calls), *results]


_history = st.lists(_turn(), max_size=3).map(lambda turns: [message for turn in turns for message in turn])


def _read(sent):
    """The messages of a request, as a log of it would give them."""
    entries = read_entries(json.loads(json.dumps(sent)))
    assert not [entry for entry in entries if entry.problems]
    return [message for entry in entries for message in entry.messages]


def _known(message):
    """What both shapes have: pictures by their bytes, whatever OpenAI's address of them is."""
    content = message.content
    if not isinstance(content, str):
        content = [PNG if part.image_url == PNG_URL else part for part in content]
        content = content[0].text if len(content) == 1 and content[0].type == "text" else content
    return message.role, content, message.tool_calls, message.tool_call_id


@examples(200)
@given(_history)
def test_a_history_survives_each_wire(history):
    """What is sent to a provider is read back from a log of the request as the history that it was made of."""
    expected = [_known(message) for message in history]
    assert [_known(message) for message in _read(openai_messages(history))] == expected
    assert [_known(message) for message in _read(anthropic_messages(history))] == expected


def test_arguments_go_back_as_the_model_wrote_them():
    """Other blanks would miss the provider's cache of the prompt."""
    call = ToolRequest.of_model("c", "f", '{"a":1,  "b":2}')
    assert call.arguments == {"a": 1, "b": 2}
    [message] = openai_messages([Message.assistant(tool_calls=[call])])
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a":1,  "b":2}'
