"""What makes a message the same as another, and what does not."""

import pytest

from sessionlog.messages.message import Message, ToolRequest
from sessionlog.messages.read import read_entry
from sessionlog.transcript.digests import digest_message, digests_of, has_content, raw_digest


def called(name, arguments, text="", call_id=""):
    return Message.assistant(text, tool_calls=[ToolRequest.of_model(call_id, name, arguments)])


def result(text, **more):
    return Message("tool", text, tool_call_id="1", **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"role": "user", "content": "hello\r\n"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "name": "f", "arguments": {"a": 1, "b": 2}}],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "2", "function": {"name": "f", "arguments": '{"b": 2,"a":1}'}}],
            },
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}],
            },
            {"role": "assistant", "content": "Yes.", "timestamp": "2026-11-20T10:00:00Z"},
        ),
        (
            {"role": "tool", "tool_call_id": "1", "content": '{"a": [1, 2]}'},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": '{"a":[1,2]}'}]},
        ),
    ],
    ids=["blanks", "arguments", "reasoning", "results"],
)
def test_spelling_ids_and_times_do_not_count(one, other):
    """However a log spells it, what is said is the same."""
    assert digests_of(read_entry(one)) == digests_of(read_entry(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Message.user("a"), Message.assistant("a")),
        (Message.user("a b"), Message.user("a  b")),
        (called("f", {"a": 1}), called("f", {"a": "1"})),
        (called("f", {}), called("g", {})),
        (Message.assistant("f"), called("f", None)),
        (result("1"), result("1.0")),
        (Message.user("\udcff"), Message.user("?")),
    ],
    ids=["role", "blanks inside", "arguments", "tool", "call", "numbers", "half a pair"],
)
def test_words_roles_tools_and_arguments_count(one, other):
    """Each of them makes it another."""
    assert digest_message(one) != digest_message(other) or one == other


def test_what_there_is_nothing_to_show_of():
    """Blanks say nothing; a result says something even where it is empty."""
    assert not has_content(Message.assistant("  "))
    assert has_content(result(""))
    assert has_content(called("f", None))


def test_whatever_a_log_holds_has_a_spelling():
    """Also what JSON lacks."""
    circle = []
    circle.append(circle)
    values = ["\udcff", {1: 2}, float("nan"), circle, [[]], None]
    assert len({raw_digest(value) for value in values}) == len(values) - 1  # nan and None are both null
