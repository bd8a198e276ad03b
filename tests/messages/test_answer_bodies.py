"""Answers written in the formats of providers: the readers of these formats read the same answer, whole and streamed."""

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.messages.answer_bodies import (
    Answer,
    finish_word,
    write_answer,
    write_error,
    write_events,
    write_stream,
)
from sessionlog.messages.answers import (
    AnthropicMessage,
    ChatCompletion,
    GeneratedContent,
    ModelResponse,
    error_text,
)
from sessionlog.messages.message import ToolRequest
from sessionlog.messages.server_sent_events import EventStreamParser
from tests.profiles import examples

FORMATS = [ChatCompletion, ModelResponse, AnthropicMessage, GeneratedContent]
USAGE = TokenUsage(input=40, output=20, cache_read=60, reasoning=5)
WHOLE = Answer(
    id="r1", model="gpt-5", text="Let me look.", thoughts="A file.", usage=USAGE,
    calls=(ToolRequest("call_1", "read", {"path": "a.py"}), ToolRequest("call_2", "bash", {})),
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COUNTS = st.integers(0, 10**6)
ANSWERS = st.builds(
    Answer,
    id=st.just("r1"),
    model=st.just("m"),
    text=TEXTS,
    thoughts=TEXTS,
    calls=st.lists(
        st.builds(
            ToolRequest, st.uuids().map(str), st.just("tool"), st.dictionaries(TEXTS, TEXTS | COUNTS, max_size=3)
        ),
        max_size=2,
        unique_by=lambda call: call.id,
    ).map(tuple),
    usage=st.builds(TokenUsage, input=COUNTS, output=COUNTS, cache_read=COUNTS),
)


def read(kind, answer, *, streamed):
    """What the format's reader finds in a written answer."""
    reader = kind()
    if streamed:
        for event in EventStreamParser().feed(write_stream(kind, answer)):
            reader.feed(event)
    else:
        reader.read(write_answer(kind, answer))
    return reader


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
@examples(40)
@given(answer=ANSWERS)
def test_what_is_written_is_read(kind, streamed, answer):
    """Texts, reasoning, calls and tokens are the same, and the answer is whole."""
    found = read(kind, answer, streamed=streamed)
    assert ("".join(found.texts), "".join(found.thoughts)) == (answer.text, answer.thoughts)
    calls = [ToolRequest.of_model(call["id"], call["name"], call["arguments"]) for call in found.calls]
    assert calls == list(answer.calls)
    assert (found.id, found.model, found.error, found.is_whole) == (answer.id, answer.model, None, True)
    usage = read_usage(found.usage)[0]
    assert (usage.prompt, usage.cache_read, usage.output) == (
        answer.usage.prompt,
        answer.usage.cache_read,
        answer.usage.output,
    )


def test_tokens_of_all_classes_are_written_where_the_format_has_them():
    """Anthropic's has both lifetimes of the cache, the others the reasoning."""
    usage = TokenUsage(input=7, output=20, cache_read=60, cache_write=30, cache_write_1h=10, reasoning=5)
    answer = Answer(id="r1", model="m", text="x", usage=usage)
    found = {kind: read_usage(write_answer(kind, answer).get("usage"))[0] for kind in FORMATS[:3]}
    assert found[AnthropicMessage] == TokenUsage(input=7, output=20, cache_read=60, cache_write=30, cache_write_1h=10)
    assert found[ChatCompletion] == found[ModelResponse]
    assert found[ChatCompletion] == TokenUsage(input=7, output=20, cache_read=60, cache_write=30, reasoning=5)
    gemini = read_usage(write_answer(GeneratedContent, answer)["usageMetadata"])[0]
    assert (gemini.prompt, gemini.output, gemini.reasoning) == (97, 20, 5)


@pytest.mark.parametrize(
    ("given_reason", "calls", "words"),
    [
        (None, False, ["stop", "", "end_turn", "STOP", "stop"]),
        ("stop_sequence", False, ["stop", "", "end_turn", "STOP", "stop"]),
        ("completed", True, ["tool_calls", "", "tool_use", "STOP", "tool_call"]),
        ("MAX_TOKENS", True, ["length", "max_output_tokens", "max_tokens", "MAX_TOKENS", "length"]),
        ("refusal", False, ["content_filter", "content_filter", "refusal", "SAFETY", "content_filter"]),
    ],
)
def test_the_finish_reason_is_the_word_of_each_format(given_reason, calls, words):
    """Whatever word the recording has."""
    answer = Answer(id="r1", model="m", calls=WHOLE.calls if calls else (), finish_reason=given_reason)
    assert [finish_word(answer, kind) for kind in (*FORMATS, None)] == words


def test_a_chat_stream_ends_with_usage_only_if_that_is_asked_for():
    """A chunk without a choice breaks clients that did not ask for it."""
    assert write_stream(ChatCompletion, WHOLE).count(b'"choices":[]') == 1
    assert write_stream(ChatCompletion, WHOLE, has_usage=False).count(b'"choices":[]') == 0


def test_the_sdks_accept_what_is_written():
    """Their own types, which forbid what providers do not send, hold it."""
    chat = openai.types.chat.ChatCompletion.model_validate(write_answer(ChatCompletion, WHOLE), strict=True)
    assert chat.choices[0].message.tool_calls[0].function.arguments == '{"path": "a.py"}'
    for chunk in write_events(ChatCompletion, WHOLE):
        openai.types.chat.ChatCompletionChunk.model_validate(chunk, strict=True)
    response = openai.types.responses.Response.model_validate(write_answer(ModelResponse, WHOLE))
    assert (response.output_text, response.output[-1].name) == ("Let me look.", "bash")
    message = anthropic.types.Message.model_validate(write_answer(AnthropicMessage, WHOLE))
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]


def test_an_error_is_read_by_every_client():
    """Its type and text; a text without a type has a general one."""
    assert error_text(write_error("rate_limit_error: Slow down", 429)) == "rate_limit_error: Slow down"
    assert error_text(write_error("no way: 3 of 4", 500)) == "api_error: no way: 3 of 4"
