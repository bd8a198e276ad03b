"""A message that no event could hold is cut when it enters a history, and says so."""

import pytest

from sessionlog.conversation.history import weight as module
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.weight import MAX_BYTES, cap_message, cap_text, size_of
from sessionlog.conversation.log.logged_session import read_logged_session
from sessionlog.conversation.stores.json_text import to_json
from sessionlog.conversation.turns.pieces import ToolReturned
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.messages.message_json import message_to_dict
from tests.conversation.log.logs import USER, record

SMALL = 60_000


def length(message):
    """Its bytes as JSON."""
    return len(to_json("s", message_to_dict(message)).encode())


def test_what_fits_is_the_very_message():
    """Whatever it is made of."""
    for message in (USER, Message.user("x" * 59_000), Message.user([ContentPart.of_image(b"x" * 40_000)])):
        assert cap_message(message, SMALL) is message


@pytest.mark.parametrize("letter", ["x", "\x00", "é", "😀", "\n"])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_text_is_cut_and_says_how_long_it_was(letter, in_parts):
    """Whatever its letters take as JSON; as much of it as fits is there."""
    said = letter * 400_000
    message = cap_message(Message.tool([said, "the end"] if in_parts else said, "c"), SMALL)
    assert SMALL / 3 < length(message) <= SMALL
    assert message.text.startswith(letter * 1000)
    assert "of 400,000 characters were cut" in message.text
    assert message.text.endswith("the end") == in_parts
    assert cap_message(message, SMALL) is message


def test_pictures_that_do_not_fit_are_left_out_the_largest_first():
    """And say what they were."""
    small, large = ContentPart.of_image(b"x" * 5_000), ContentPart.of_image(b"y" * 90_000)
    message = cap_message(Message.user(["see", small, large]), SMALL)
    assert message.content == (
        ContentPart.of_text("see"), small,
        ContentPart.of_text("[image/png of 90,000 bytes was left out: too long to be kept]"),
    )  # fmt: skip
    page = ContentPart(type="page", text="z" * 90_000, extra={"n": 1})
    assert "[page of 90," in cap_message(Message.user([page]), SMALL).text


def test_arguments_and_other_fields_are_cut_as_well(monkeypatch):
    """Arguments are then a text, as what is no JSON object is."""
    monkeypatch.setattr(module, "_MAX_FIELD_BYTES", 20_000)
    call, other = ToolRequest("c", "write", {"text": "x" * 90_000}), ToolRequest("d", "write", {"text": "y"})
    message = cap_message(Message("assistant", "so", tool_calls=[call, other], extra={"raw": "z" * 50_000}), SMALL)
    assert length(message) <= SMALL
    assert message.tool_calls[0].arguments.startswith('{"text":"xxx')
    assert "of 90,011 characters were cut" in message.tool_calls[0].arguments
    assert (message.tool_calls[1], message.text) == (other, "so")
    assert "characters were cut" in message.extra["raw"]


def test_a_short_text_stays():
    """With its size."""
    assert cap_text("short") == "short"
    assert size_of(Message.user("x" * 50)) == 150


@pytest.mark.parametrize(
    ("letter", "most"), [pytest.param("y", MAX_BYTES, marks=pytest.mark.slow), ("\U0001f600", 6 << 20)]
)
def test_a_session_with_a_message_of_forty_mebibytes_is_remembered(letter, most, tmp_path):
    """The log, the history and what is remembered are the same; what was cut is said in it."""
    history, call = Conversation(), ToolRequest("c", "read", {"path": "x"})
    odd = Message("tool", letter * ((40 << 20) // len(letter.encode())), tool_call_id="c", name="other")
    recorder = record(tmp_path, redact=False)
    history.add_message(USER)
    recorder.request(history.messages)
    for said in (Message.assistant("", tool_calls=[call]), odd):
        history.add_message(said)
        recorder.response(said) if said.role == "assistant" else recorder.tool(ToolReturned(call, said))
    recorder.request(history.messages)
    recorder.response(history.add_message(Message.assistant("ho")))
    found = read_logged_session(recorder.path)
    assert found.messages == history.messages
    text = found.messages[2].text
    assert f"of {(40 << 20) // len(letter.encode()):,} characters were cut" in text
    assert most - (2 << 20) < len(text.encode()) < most


def test_a_piece_of_an_answer_is_told_in_several_events(tmp_path):
    """However long it is."""
    recorder = record(tmp_path, redact=False)
    recorder.request([USER])
    recorder.delta("x" * (9 << 20))
    assert len(read_logged_session(recorder.path).messages[1].text) == 9 << 20
