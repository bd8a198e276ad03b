"""A function as an agent: what it gets, and what may come of it."""

import asyncio
import functools

import pytest

from sessionlog.conversation.agents.function import Function
from sessionlog.conversation.turns.pieces import AgentRequest, NextRequest, Reply, TextDelta
from sessionlog.conversation.turns.tool import tool
from sessionlog.errors import AgentError
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import Message, ToolRequest

ASK = AgentRequest(messages=[Message.user("a")], system="Be brief.", options={"temperature": 0, "seed": 7})
CALL = ToolRequest("c1", "f")


def pieces(function, ask=ASK):
    """What comes of a function."""
    answer = Function(function).answer(ask)
    if not hasattr(answer, "__anext__"):
        return list(answer)

    async def read():
        return [piece async for piece in answer]

    return asyncio.run(read())


def heard(ask=ASK):
    """What a function gets that takes all."""
    got = {}

    def function(*args, **kwargs):
        got.update(args=args, kwargs=kwargs)
        return ""

    pieces(function, ask)
    return got


def test_the_systems_text_is_the_first_message():
    """If there is one."""
    assert heard()["args"] == ([Message.system("Be brief."), Message.user("a")],)
    assert heard(AgentRequest(messages=[Message.user("a")]))["args"] == ([Message.user("a")],)


def test_the_list_is_the_functions_own():
    """It may change it."""
    ask = AgentRequest(messages=[Message.user("a")])
    pieces(lambda messages: messages.clear() or "", ask)
    assert len(ask.messages) == 1


def test_keywords_take_all_options():
    """Tools and a schema too, where there are any."""
    assert heard()["kwargs"] == {"temperature": 0, "seed": 7}
    made = tool(pieces)
    assert heard(AgentRequest(messages=[], tools=[made], schema={}))["kwargs"] == {"tools": [made], "schema": {}}


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (lambda messages, temperature: f"{temperature}", "0"),
        (lambda messages, *, seed=1: f"{seed}", "7"),
        (lambda seed, temperature=5: f"{len(seed)} {temperature}", "2 0"),
        (lambda *messages: f"{len(messages)}", "1"),
        (functools.partial(lambda prefix, messages, seed: f"{prefix}{seed}", "p"), "p7"),
    ],
)
def test_a_signature_says_which_options_it_takes(function, taken):
    """By name; the first argument is the messages, whatever it is called."""
    assert pieces(function)[-1].message.text == taken


class Called:
    """An object that is called."""

    def __call__(self, messages, seed):
        return f"{seed}"


class CalledAsync:
    """An object whose call is awaited."""

    async def __call__(self, messages, seed):
        return f"{seed}"


def test_objects_are_functions():
    """Async ones, too."""
    assert pieces(Called())[-1].message.text == pieces(CalledAsync())[-1].message.text == "7"
    assert Function(CalledAsync()).is_async
    assert Function(functools.partial(CalledAsync().__call__, seed=1)).is_async
    assert not Function(Called()).is_async


def test_a_builtin_without_a_signature_gets_the_messages():
    """And nothing else."""
    with pytest.raises(AgentError, match="gave dict"):
        pieces(dict, AgentRequest(messages=[]))


ANSWER = Message.assistant("yes", tool_calls=[CALL])
USED = Reply(message=Message.assistant("yes"), usage=TokenUsage(output=1))


@pytest.mark.parametrize("given", ["yes", Message.assistant("yes"), USED])
def test_a_whole_answer_is_a_reply(given):
    """A text, a message, or a reply as it is."""
    wanted = [given] if isinstance(given, Reply) else [Reply(message=Message.assistant("yes"))]
    assert pieces(lambda messages: given) == wanted

    async def later(messages):
        return given

    assert pieces(later) == wanted


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (["y", TextDelta("es")], Reply(message=Message.assistant("yes"))),
        (["y", "es", CALL], Reply(message=ANSWER)),
        (["y", "es", Message.assistant("", tool_calls=[CALL])], Reply(message=ANSWER)),
        ([CALL, Message.assistant("yes")], Reply(message=ANSWER)),
        (["y", "es", USED], USED),
        ([], Reply(message=Message.assistant(""))),
    ],
)
def test_pieces_are_put_together(given, answer):
    """What comes before a whole answer belongs to it."""

    def stream(messages):
        yield from given

    async def stream_async(messages):
        for piece in given:
            yield piece

    async def later(messages):
        return iter(given)

    texts = [
        piece if isinstance(piece, TextDelta) else TextDelta(piece)
        for piece in given
        if not isinstance(piece, Message | Reply | ToolRequest)
    ]
    for function in (stream, stream_async, later, lambda messages: iter(given)):
        assert pieces(function) == [*texts, answer]


def test_several_answers_follow_each_other():
    """A function may run its tools itself."""
    replies = [Reply(message=Message.assistant("1")), Reply(message=Message.assistant("2"))]
    assert pieces(lambda messages: iter([replies[0], NextRequest(), replies[1]])) == [
        replies[0],
        NextRequest(),
        replies[1],
    ]
