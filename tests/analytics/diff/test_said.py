"""One thing said: what makes it the same as another, and what does not."""

import pytest

from sessionlog.analytics.diff.said import cut_to, make_called, make_said, said_in
from sessionlog.messages.read import read_entry


def said(message):
    """What a message of a log says."""
    return list(said_in(read_entry(message)))


def digests(message):
    return [one.digest for one in said(message)]


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
    assert digests(one) == digests(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (make_said("user", "a"), make_said("assistant", "a")),
        (make_said("user", "a b"), make_said("user", "a  b")),
        (make_said("assistant", "", calls=[make_called("f", {"a": 1})]), make_said("assistant", "", calls=[make_called("f", {"a": "1"})])),
        (make_said("assistant", "", calls=[make_called("f", {})]), make_said("assistant", "", calls=[make_called("g", {})])),
        (make_said("assistant", "f"), make_said("assistant", "", calls=[make_called("f", None)])),
        (make_said("tool", "1"), make_said("tool", "1.0")),
    ],
)  # fmt: skip
def test_words_roles_tools_and_arguments_count(one, other):
    """Each of them makes it another."""
    assert one.digest != other.digest


def test_a_message_may_say_several_things():
    """Words and the results of tools are told apart; what says nothing is nothing."""
    parts = [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}, {"type": "text", "text": "go on"}]
    assert [(one.role, one.text) for one in said({"role": "user", "content": parts})] == [
        ("user", "go on"),
        ("tool", "ok"),
    ]
    assert said({"role": "assistant", "content": "  "}) == []


def test_a_long_text_is_cut_and_still_itself():
    """What is left out is counted, in arguments too; the digest is that of the whole."""
    long = make_said("assistant", "x" * 50, calls=[make_called("f", {"a": "y" * 50})])
    short = cut_to(long, 10)
    assert (short.text, short.left_out, short.digest) == ("x" * 10, 40, long.digest)
    assert short.calls[0].arguments == '{"a": "yy…'
    assert cut_to(long, None) is long
    assert cut_to(long, 0).text == ""


def test_lone_surrogates_are_texts_like_any():
    """No log makes this raise."""
    assert make_said("user", "\udcff").digest != make_said("user", "?").digest
