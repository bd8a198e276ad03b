"""What a valid history is, what is wrong with another, and the nearest valid one."""

import pytest
from hypothesis import given

from sessionlog.conversation.history.rules import check_history, is_valid, last_turn, open_calls, repair_history
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.history.histories import ASSISTANT, SYSTEM, USER, any_history, asks, result, valid_history
from tests.profiles import examples

GROUP = [asks("a", "b"), result("b"), result("a")]


@pytest.mark.parametrize(
    "history",
    [
        [],
        [SYSTEM, USER, ASSISTANT, USER],
        [USER, *GROUP, ASSISTANT],
        [USER, *GROUP, *GROUP, USER],
        [USER, asks("a")],
        [USER, asks("a", "b"), result("b")],
        [USER, asks("a", "a"), result("a"), result("a"), ASSISTANT],
    ],
)
def test_valid(history):
    """Also with an id that is used again, and with open calls at the end."""
    assert is_valid(history)
    check_history(history)
    left = repair_history(history)
    assert all(kept is message for kept, message in zip(left, history, strict=True))


@pytest.mark.parametrize(
    ("history", "left"),
    [
        ([result("a")], []),
        ([USER, result("a")], [USER]),
        ([USER, asks("a"), result(None), result(""), result("a")], [USER, asks("a"), result("a")]),
        ([USER, asks("a"), result("a", "1"), result("a", "2")], [USER, asks("a"), result("a", "1")]),
        ([USER, *GROUP, result("a")], [USER, *GROUP]),
        ([USER, ASSISTANT, result("a"), USER], [USER, ASSISTANT, USER]),
        ([USER, asks("a"), USER], [USER, USER]),
        ([USER, asks("a", text="so"), USER], [USER, Message.assistant("so"), USER]),
        ([USER, asks("a", "b"), result("b"), USER], [USER, asks("b"), result("b"), USER]),
        ([USER, asks("a"), USER, result("a")], [USER, USER]),
        ([USER, asks("a"), SYSTEM, result("a")], [USER, SYSTEM]),
        ([USER, asks(""), result(""), USER], [USER, USER]),
        ([asks("a"), asks("b"), result("a"), result("b")], [asks("b"), result("b")]),
    ],
)
def test_what_is_left_of_another(history, left):
    """Results without a call go, and calls that the history went on without."""
    assert not is_valid(history)
    assert repair_history(history) == left


def test_one_call_object_asked_for_twice_is_two_calls():
    """One result answers one of them."""
    call = ToolRequest("a", "look")
    left = repair_history([Message.assistant(tool_calls=[call, call]), result("a"), USER])
    assert left == [Message.assistant(tool_calls=[call]), result("a"), USER]


@given(any_history)
@examples(300)
def test_what_is_repaired_is_valid(history):
    """Every message of a person and of the system is still there, and there is no more to repair."""
    left = repair_history(history)
    assert is_valid(left)
    assert repair_history(left) == left
    check_history(left)
    people = [message for message in history if message.role in {"user", "system"}]
    assert [message for message in left if message.role in {"user", "system"}] == people


@given(valid_history)
@examples(100)
def test_a_valid_history_is_left_alone(history):
    """What the tests draw as valid is what the rules say."""
    assert is_valid(history)
    assert repair_history(history) == history


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ([USER, result("zz")], "messages[1]: a tool result for 'zz', which no call before it waits for"),
        ([asks("a"), result("a"), result("a")], "messages[2]: a tool result for 'a'"),
        ([result("a"), asks("a")], "messages[0]: a tool result for 'a'"),
        ([USER, result(None)], "messages[1]: a tool result without a tool_call_id"),
        ([asks(""), result("")], "messages[1]: a tool result without a tool_call_id"),
    ],
)
def test_a_result_without_its_call_is_named(history, says):
    """With its place."""
    with pytest.raises(InvalidHistory) as raised:
        check_history(history)
    assert str(raised.value).startswith(says)


def test_a_call_without_a_result_may_be_restored():
    """Its turn was interrupted."""
    history = [USER, asks("a", "b"), result("a"), USER, ASSISTANT]
    assert check_history(history) is None
    assert not is_valid(history), "though no provider would take it as it is"


@pytest.mark.parametrize(
    ("history", "ids"),
    [
        ([], []),
        ([result("a")], []),
        ([USER, ASSISTANT], []),
        ([USER, *GROUP], []),
        ([USER, asks("a", "b", "c"), result("b")], ["a", "c"]),
        ([USER, asks("a"), USER], []),
    ],
)
def test_open_calls_are_those_of_the_end(history, ids):
    """In the order they were asked for."""
    assert [call.id for call in open_calls(history)] == ids


def test_the_last_turn_begins_with_the_newest_person():
    """A summary is nobody's word."""
    summary = Message("user", "so far", extra={"summary": True})
    assert last_turn([]) == 0
    assert last_turn([SYSTEM, ASSISTANT]) == 2
    assert last_turn([USER, ASSISTANT, USER, asks("a"), result("a")]) == 2
    assert last_turn([USER, ASSISTANT, summary]) == 0
