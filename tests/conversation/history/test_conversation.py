"""A conversation keeps its sums, saves all of itself, and is never half restored.

What seed 001 did wrong here has a test each, whose sentence names the weakness.
"""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.errors import InvalidHistory, MissingField
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from tests.conversation.history.histories import any_history, asks, result, weigh
from tests.profiles import examples

START_NS = 1_777_629_600_000_001_000
SMALL = ConversationSettings(max_conversation_tokens=100, truncation_keep_recent=0)


def conversation(*messages, **fields):
    return Conversation(messages=messages, **({"settings": SMALL, "count": weigh, "clock": lambda: START_NS} | fields))


def state(one):
    """Everything that a failed call must leave as it was."""
    return (
        one.messages,
        one.estimated_tokens,
        one.token_counter,
        one.token_counter.to_dict(),
        one.start_time,
        one.settings,
    )


class Counted:
    """A count that knows how often it was asked."""

    def __init__(self):
        self.calls = 0

    def __call__(self, message):
        self.calls += 1
        return weigh(message)


def test_messages_are_added_and_taken():
    """Each is returned; an empty conversation has none to take."""
    one = conversation()
    added = one.add_message("user", "hello")
    assert one.get_history() == [added] == [Message.user("hello")]
    assert one.add_message(Message.assistant("hi")).text == "hi"
    assert (one.message_count, one.estimated_tokens) == (2, 7)
    assert one.pop_last_message() == Message.assistant("hi")
    assert (one.message_count, one.estimated_tokens) == (1, 5)
    one.pop_last_message()
    assert one.pop_last_message() is None


def test_fields_and_others_find_their_place():
    """Calls as values or as JSON; what is no field is kept."""
    one = conversation()
    call = ToolRequest("c1", "look", {"a": 1})
    json_call = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = one.add_message("assistant", None, tool_calls=[call, json_call], partial="failed", mood="good")
    assert asked.tool_calls == (call, ToolRequest("c2", "look"))
    assert (asked.content, asked.partial, asked.extra) == ("", "failed", {"mood": "good"})
    said = one.add_message(
        "tool", [{"type": "text", "text": "x"}, ContentPart.of_image(b"1")], tool_call_id="c1", name="look"
    )
    assert (said.tool_call_id, said.name, said.text) == ("c1", "look", "x")
    assert one.add_message("user", "x", extra={"a": 1}, b=2).extra == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        (("robot", "x"), {}, InvalidHistory),
        (("user", 5), {}, InvalidHistory),
        (("assistant", ""), {"tool_calls": [{"id": "c"}]}, MissingField),
        (("assistant", ""), {"tool_calls": "c"}, InvalidHistory),
        ((Message.user("x"), "y"), {}, TypeError),
        ((Message.user("x"),), {"name": "y"}, TypeError),
    ],
)
def test_what_is_no_message_is_not_added(arguments, fields, error):
    """The history is as it was."""
    one = conversation(Message.user("x"))
    before = state(one)
    with pytest.raises(error):
        one.add_message(*arguments, **fields)
    assert state(one) == before


def test_a_list_that_was_given_or_got_is_nobody_elses():
    """Weakness of seed 003: the caller's list was the session's own."""
    given_list = [Message.user("x")]
    one = Conversation(messages=given_list)
    given_list.clear()
    one.get_history().clear()
    assert one.message_count == 1


def test_clearing_counts_from_nothing():
    """A new counter: the one that somebody holds keeps what it counted."""
    one = conversation(Message.user("x"))
    held = one.token_counter
    held.add(TokenUsage(input=5))
    one.clear_history()
    assert (one.message_count, one.estimated_tokens, one.token_counter.requests, held.requests) == (0, 0, 0, 1)
    assert one.start_time == datetime(2026, 5, 1, 10, 0, 0, 1, tzinfo=UTC)


@given(any_history, st.lists(st.sampled_from(["pop", "cut", "replace", "clear", "add"]), max_size=12))
@examples(100)
def test_the_sums_are_those_of_the_history(history, script):
    """After any work. Weakness of seed 001: message_count was that of before a truncation."""
    one = conversation()
    for n, message in enumerate(history):
        one.add_message(message)
        if n < len(script):
            match script[n]:
                case "pop":
                    one.pop_last_message()
                case "cut":
                    one.truncate_history()
                case "replace":
                    one.replace_messages(one.get_history()[1:])
                case "clear":
                    one.clear_history()
                case _:
                    one.add_message("user", "more")
        assert one.message_count == len(one.get_history()) == len(one.messages)
        assert one.estimated_tokens == sum(map(weigh, one.messages))


def test_no_message_is_weighed_twice():
    """Weakness of seed 001: O(n²), as every drop estimated all that was left again."""
    count = Counted()
    one = conversation(count=count)
    for n in range(3000):
        one.add_message("user" if n % 2 else "assistant", "x" * 10)
    assert one.estimated_tokens == 30_000
    assert one.truncate_history() > 2900
    assert one.truncate_history() == 0
    one.replace_messages(one.get_history()[1:])
    assert count.calls == 3000


def test_the_threshold_is_reached_by_equality():
    """As the seed has it; what every request has besides counts."""
    one = conversation(Message.user("x" * 79))
    assert not one.needs_truncation()
    assert one.needs_truncation(1)
    assert conversation(Message.user("x" * 80)).needs_truncation()


def test_a_truncation_says_what_it_did():
    """And the conversation is what is left."""
    one = conversation(Message.user("x"), Message.assistant("y" * 90), Message.user("z"))
    done = one.truncate_history(system_estimate=2)
    assert (done, done.tokens_before, done.tokens_after) == (1, 94, 4)
    assert (one.message_count, one.estimated_tokens) == (2, 2)


@pytest.mark.parametrize("strategy", ["summarise", lambda history, chosen: 1 / 0])
def test_a_function_that_fails_changes_nothing(strategy):
    """What it raises is raised."""
    chosen = ConversationSettings(
        max_conversation_tokens=100, truncation_keep_recent=0, truncation_strategy=strategy, summary=lambda gone: 1 / 0
    )
    one = conversation(Message.user("x"), Message.assistant("y" * 90), Message.user("z"), settings=chosen)
    before = state(one)
    with pytest.raises(ZeroDivisionError):
        one.truncate_history()
    assert state(one) == before


def test_another_history_is_checked_before_it_is_taken():
    """What is no message is named."""
    one = conversation(Message.user("x"))
    before = state(one)
    with pytest.raises(InvalidHistory, match=r"messages\[1\]: dict; it is a Message"):
        one.replace_messages([Message.user("y"), {"role": "user"}])
    assert state(one) == before


# Saving


def saved(**changes):
    one = conversation(Message.user("hi"), asks("a"), result("a"))
    one.token_counter.add(TokenUsage(input=7, output=3))
    data = one.to_serializable() | changes
    return {name: value for name, value in data.items() if value is not ...}


def test_all_of_it_comes_back():
    """Weakness of seed 001: start_time and settings were not saved."""
    one = conversation(clock=lambda: 0, settings=ConversationSettings())
    one.restore_from(json.loads(json.dumps(saved())))
    assert one.get_history() == [Message.user("hi"), asks("a"), result("a")]
    assert (one.estimated_tokens, one.token_counter.usage) == (7, TokenUsage(input=7, output=3))
    assert one.start_time == datetime(2026, 5, 1, 10, 0, 0, 1, tzinfo=UTC)
    assert one.settings == SMALL
    assert one.to_serializable() == saved()


def test_messages_are_saved_without_nulls():
    """As the seed has them."""
    data = saved()
    assert data.keys() == {"messages", "token_usage", "start_time", "settings"}
    assert data["messages"][0] == {"role": "user", "content": "hi"}
    assert data["token_usage"] == {"input": 7, "output": 3, "total": 10, "requests": 1}
    assert data["start_time"] == "2026-05-01T10:00:00.000001Z"
    assert data["settings"]["truncation_strategy"] == "drop_oldest"


def test_restored_tokens_are_not_added():
    """Weakness of seed 001: a counter that was not empty counted what was restored twice."""
    one = conversation()
    one.token_counter.add(TokenUsage(input=100))
    one.restore_from(saved())
    one.restore_from(saved())
    assert (one.token_counter.usage, one.token_counter.requests) == (TokenUsage(input=7, output=3), 1)


def test_what_was_not_saved_stays_or_is_nothing():
    """An older version saved messages alone; the tokens of another history are not those of this one."""
    one = conversation(Message.user("x"))
    one.token_counter.add(TokenUsage(input=100))
    one.restore_from({"messages": []})
    assert (one.message_count, one.token_counter.requests) == (0, 0)
    assert (one.start_time.year, one.settings) == (2026, SMALL)


def test_settings_that_are_given_win():
    """Those that were saved may need a function that nobody has."""
    one = conversation()
    data = saved(settings={"truncation_strategy": "summarise"})
    with pytest.raises(InvalidHistory, match="needs `summary`"):
        one.restore_from(data)
    chosen = ConversationSettings(retry_attempts=1)
    one.restore_from(data, settings=chosen)
    assert one.settings is chosen


USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ([], InvalidHistory, "a saved conversation is an object, not list"),
        ({}, MissingField, "no 'messages'"),
        (saved(messages=None), InvalidHistory, "messages: null"),
        (saved(messages=[USER, {"role": "robot", "content": ""}]), InvalidHistory, "messages[1]: unknown role 'robot'"),
        (saved(messages=[USER, {"role": "user"}]), MissingField, "messages[1]: no 'content'"),
        (
            saved(messages=[USER, {"role": "tool", "content": "x", "tool_call_id": "zz"}]),
            InvalidHistory,
            "messages[1]: a tool result for 'zz'",
        ),
        (saved(token_usage={"input": "many"}), InvalidHistory, "token_usage: input: 'many' is not a count"),
        (saved(start_time="yesterday"), InvalidHistory, "start_time: 'yesterday' is no RFC 3339 time"),
        (saved(settings={"max_conversation_tokens": -1}), InvalidHistory, "settings: max_conversation_tokens is -1"),
        (saved(settings=5), InvalidHistory, "settings: int; it is an object"),
    ],
)
def test_nothing_changes_before_all_is_checked(data, error, says):
    """Weakness of seed 001: the history was cleared first, and lost with bad data."""
    one = conversation(Message.user("dear"))
    one.token_counter.add(TokenUsage(input=9))
    before = state(one)
    with pytest.raises(error) as raised:
        one.restore_from(data)
    assert str(raised.value).startswith(says)
    assert state(one) == before


def test_an_interrupted_turn_is_restored():
    """Its call has no result yet."""
    one = conversation()
    one.restore_from({"messages": saved()["messages"][:2]})
    assert one.message_count == 2


def test_without_a_count_there_is_an_estimate():
    """The house's own."""
    one = Conversation()
    one.add_message("user", "Who is there?")
    assert 4 < one.estimated_tokens < 12
    assert (datetime.now(UTC) - one.start_time).total_seconds() < 60
