"""The rule of what is the same request: formats, ids, order and marks do not count, and all that is asked does."""

import random

import pytest

from sessionlog.messages.message import ContentPart, Message
from sessionlog.testing.replay.request import PARTS, read_request
from tests.testing.replay.logs import ASKED, CHAT, FORMATS, SYSTEM, user


def key(fields):
    """The key of a request."""
    return read_request(fields).key(PARTS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_request_is_the_same_in_every_format(name):
    """Ids of calls, reasoning, cache marks, signatures, and the way JSON is written do not count."""
    assert read_request(FORMATS[name]) == read_request(CHAT)
    assert key(FORMATS[name]) == key(CHAT)


def test_what_a_request_holds():
    """System texts at the beginning are a part, calls are numbered, tools have names."""
    found = read_request({**CHAT, "model": "gpt-5", "temperature": 0.0, "top_p": 0.5, "stream": True})
    assert (found.model, found.system, found.prompt) == ("gpt-5", SYSTEM, ASKED)
    assert found.parameters == {"temperature": 0, "top_p": 0.5}
    assert [*found.tools] == ["read"]
    assert found.messages[1]["tool_calls"] == [{"id": "call 1", "name": "read", "arguments": {"path": "a.py"}}]
    assert found.messages[2] == {
        "role": "tool",
        "content": '{"lines": 1, "text": "print(1)"}',
        "tool_call_id": "call 1",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-6"},
        {"messages": [*CHAT["messages"], user("And b.py?")]},
        {"messages": CHAT["messages"][1:]},
        {"messages": [{"role": "system", "content": "Be long."}, *CHAT["messages"][1:]]},
        {"messages": [*CHAT["messages"][:3], {"role": "tool", "tool_call_id": "call_9", "content": "?"}]},
        {"tools": []},
        {"tools": [{"name": "read", "description": "Read it", "input_schema": {}}]},
        {"temperature": 1},
        {"seed": 7},
    ],
    ids=str,
)
def test_whatever_is_asked_differently_is_another_request(change):
    """In any part."""
    same = {**CHAT, "model": "gpt-5", "temperature": 0}
    assert key(same | change) != key(same)


def test_results_count_in_the_order_of_their_calls():
    """Tools that run at the same time end in any order, and some results have no id."""
    called = [{"id": f"x{n}", "name": "read", "arguments": {"path": str(n)}} for n in range(3)]
    results = [{"role": "tool", "tool_call_id": f"x{n}", "content": str(n)} for n in range(3)]
    begin = [user("?"), {"role": "assistant", "content": "", "tool_calls": called}]
    mixed = results.copy()
    random.Random(4).shuffle(mixed)
    assert mixed != results
    assert key({"messages": begin + mixed}) == key({"messages": begin + results})
    nameless = [{"role": "tool", "name": "read", "content": str(n)} for n in range(3)]
    assert key({"messages": begin + nameless}) == key({"messages": begin + results})


def test_a_result_belongs_to_its_call():
    """The same texts for exchanged calls are another request; a result of no call is none of its."""
    called = [{"id": name, "name": name, "arguments": {}} for name in ("ls", "pwd")]
    begin = [user("?"), {"role": "assistant", "content": "", "tool_calls": called}]
    one, other = ({"role": "tool", "tool_call_id": name, "content": name} for name in ("ls", "pwd"))
    exchanged = [{**one, "tool_call_id": "pwd"}, {**other, "tool_call_id": "ls"}]
    assert key({"messages": [*begin, one, other]}) != key({"messages": begin + exchanged})
    alone = read_request({"messages": [user("?"), one]})
    assert alone.messages[1]["tool_call_id"] == "no call"


def test_secrets_are_as_in_a_log():
    """A log has no key in its prompts; the program that is tested may send it again."""
    secret = "sk-ant-api03-" + "Ab3dEf6hIj" * 9
    assert key({"messages": [user(f"use {secret}")]}) == key({"messages": [user("use [redacted]")]})


def test_files_count_by_their_bytes():
    """A picture in the message is compared by its hash, one behind an address by the address."""

    def asked(part):
        return key({"messages": [Message.user(["See:", part])]})

    one, other = ContentPart.of_image(b"one"), ContentPart.of_image(b"other")
    assert asked(one) == asked(ContentPart.of_image(b"one"))
    assert len({asked(one), asked(other), asked(ContentPart.of_image_url("https://a.example/1.png"))}) == 3


def test_empty_messages_and_line_ends_do_not_count():
    """Writers differ there."""
    messages = [user("one\r\ntwo "), {"role": "assistant", "content": ""}]
    assert key({"messages": messages}) == key({"messages": [user("one\ntwo")]})


def test_a_system_text_beside_the_messages_is_one_at_the_beginning():
    """As Anthropic's API has it."""
    assert key({"system": "Be brief.", "messages": [user("?")]}) == key(
        {"messages": [{"role": "system", "content": "Be brief."}, user("?")]}
    )
