"""What is said is JSON from the moment it is a message: memory, log and store hold the same."""

import json
from datetime import UTC, datetime
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.log.logged_session import read_logged_session
from sessionlog.conversation.stores.json_text import from_json, to_json
from sessionlog.conversation.turns.pieces import ToolReturned
from sessionlog.errors import InvalidHistory
from sessionlog.messages.json_value import MAX_DEPTH, json_text, json_value, valid_text
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.messages.message_json import message_from_dict, message_to_dict
from tests.conversation.log.logs import record
from tests.profiles import examples


class Colour(StrEnum):
    """A text of another make."""

    RED = "red"


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ({"x": [float("nan"), float("inf"), -float("inf"), 0.5]}, {"x": ["NaN", "Infinity", "-Infinity", 0.5]}),
        (10**30, "1" + "0" * 30),
        ("a\ud800b", "a\ufffdb"),
        ({"k\udc00": ("\ud83d\ude00",)}, {"k\ufffd": ["\U0001f600"]}),
        ({1: {"b"}, None: Colour.RED}, {"1": ["b"], "None": "red"}),
        (datetime(2026, 11, 22, tzinfo=UTC), "2026-11-22T00:00:00+00:00"),
        ([b"bytes", None, True, 7], ["bytes", None, True, 7]),
    ],
)
def test_what_is_no_json_has_a_name(value, spelled):
    """A number has its name, an unpaired surrogate U+FFFD, any other object what a log writes for it."""
    assert json_value(value) == spelled
    json.dumps(json_value(value), allow_nan=False)


def test_what_is_too_deep_is_refused():
    """Also what holds itself."""
    deep, endless = "x", []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    endless.append(endless)
    assert json_value(deep) == deep
    for value in ([deep], endless):
        with pytest.raises(InvalidHistory, match="nested too deep"):
            json_value(value)


def test_nothing_is_shared():
    """Whoever gave a value may change it."""
    given_arguments = {"items": [1, 2]}
    call, message = ToolRequest("c", "t", given_arguments), Message("user", "x", extra={"more": given_arguments})
    given_arguments["items"].clear()
    assert call.arguments == message.extra["more"] == {"items": [1, 2]}


ANY = st.recursive(
    st.floats() | st.integers() | st.text(st.characters(exclude_categories=[]), max_size=4) | st.none() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner) | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=[]), max_size=4)


@examples(60)
@given(TEXTS, ANY, ANY)
def test_live_is_log_is_store(tmp_path_factory, text, arguments, more):
    """Whatever a program or a model gave."""
    call = ToolRequest(f"c{text}", f"t{text}", arguments, extra={"cache": more})
    said = [
        Message("user", [ContentPart.of_text(text), ContentPart(type=f"x{text}", extra={"more": more})], name=text),
        Message("assistant", text, tool_calls=[call], extra={"more": more}),
        Message("tool", text, tool_call_id=call.id, name=call.name),
    ]
    folder = tmp_path_factory.mktemp("plain")
    recorder = record(folder, redact=False)
    recorder.request(said[:1])
    recorder.response(said[1])
    recorder.tool(ToolReturned(call, said[2]))
    assert list(read_logged_session(str(folder / "s.jsonl")).messages) == said
    stored = from_json(to_json("s", {"messages": [message_to_dict(message) for message in said]}), "s")
    assert [message_from_dict(value) for value in stored["messages"]] == said
    assert all(valid_text(message.text) == message.text for message in said)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"v": float("nan")}, '{"v": "NaN"}'),
        ([-float("inf"), 0.1, 10**30, "Infinity"], '["-Infinity", 0.1, 1000000000000000000000000000000, "Infinity"]'),
        ({float("inf"): b"ab"}, '{"Infinity": "[2 bytes]"}'),
    ],
)
def test_json_text_is_json(value, text):
    """A number that JSON lacks is its name."""
    assert json_text(value) == text
