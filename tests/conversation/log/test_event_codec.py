"""spelling: messages as they stand in a log, our own and anybody's."""

import pytest

from sessionlog.conversation.log.event_codec import (
    read_answer,
    read_calls,
    read_message,
    read_tool_result,
    size_of,
)
from sessionlog.errors import InvalidHistory, MissingField
from sessionlog.messages.message import ContentPart, Message, ToolRequest

CALL = ToolRequest("c", "ls", {"path": "."})


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        ({"usage": {"input": 1}}, None),
        ({"content": ""}, Message.assistant()),
        ({"content": "x", "error": "broken"}, Message.assistant("x", partial="failed")),
        ({"content": "x", "error": "broken", "partial": "cancelled"}, Message.assistant("x", partial="cancelled")),
        ({"tool_calls": [{"id": "c", "name": "ls", "arguments": {"path": "."}}]}, Message.assistant(tool_calls=[CALL])),
        ({"tool_calls": 2}, None),
        ({"content": [{"type": "text", "text": "x"}]}, Message("assistant", (ContentPart.of_text("x"),))),
    ],
)
def test_answers(data, answer):
    """What an llm.response says as a message; what says nothing is none."""
    assert read_answer(data) == answer


def test_an_answer_that_was_streamed():
    """Its pieces are its text where the response has none."""
    assert read_answer({"usage": {}}, "streamed") == Message.assistant("streamed")
    assert read_answer({"error": "x"}, "streamed") == Message.assistant("streamed", partial="failed")
    assert read_answer({"content": "said"}, "streamed") == Message.assistant("said")


@pytest.mark.parametrize(
    ("output", "content"),
    [
        (None, "no such file"),
        ("text", "text"),
        ({"a": 1}, '{"a":1}'),
        ([1, 2], "[1,2]"),
        (["a"], "a"),
        (["a", "b"], ("a", "b")),
    ],
)
def test_results(output, content):
    """What a tool says: texts and pieces as they are, other values as JSON, and the error where there is no output."""
    found = read_tool_result({"output": output, "error": "no such file"}, CALL.id, CALL.name)
    assert found == Message("tool", content, tool_call_id="c", name="ls")


def test_a_message_of_anthropics_spelling():
    """Results in a user's message are messages of their own, before what the user says; calls are calls."""
    answer = {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "."}},
    ]}  # fmt: skip
    [said] = read_message(answer, "x")
    assert (said.tool_calls, said.text, said.content[0].extra) == ((CALL,), "look", {"thinking": "hm"})
    results = {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a"}]},
        {"type": "text", "text": "and?"},
    ]}  # fmt: skip
    assert read_message(results, "x") == (Message.tool("a", "c"), Message.user("and?"))
    assert read_message({"role": "user", "content": results["content"][:1]}, "x") == (Message.tool("a", "c"),)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ({"content": "a"}, MissingField, "x: no 'role'"),
        ({"role": "user"}, MissingField, "x: no 'content'"),
        ({"role": "user", "content": {"a": 1}}, InvalidHistory, "x.content"),
        ({"role": "assistant", "tool_calls": ["ls"]}, InvalidHistory, r"x.tool_calls\[0\]"),
        (
            {"role": "user", "content": [{"type": "tool_result"}]},
            InvalidHistory,
            "x: a tool result without the id of its call",
        ),
    ],
)
def test_what_is_no_message(value, error, words):
    """The place and the reason are named."""
    with pytest.raises(error, match=words):
        read_message(value, "x")


def test_other_names_of_roles_and_calls_without_ids():
    """Older spellings are understood."""
    assert read_message({"role": "developer", "content": "a"}, "x") == (Message.system("a"),)
    assert read_calls([{"name": "ls"}, {"name": "ls", "id": None}], "x") == (
        ToolRequest("call-0", "ls"), ToolRequest("call-1", "ls")
    )  # fmt: skip


def test_sizes():
    """A message is at least as long as what it says."""
    picture = Message.user([ContentPart.of_image(b"x" * 3000), "text"])
    assert size_of(picture) > 4000
    assert size_of(Message.assistant("x" * 500, tool_calls=[ToolRequest("c", "ls", {"a": ["y" * 500]})])) > 1000
