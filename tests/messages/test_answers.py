"""`messages.answers` and `messages.server_sent_events`: what providers send, whatever it is."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.usage import read_usage
from sessionlog.messages.answers import (
    AnthropicMessage,
    ChatCompletion,
    GeneratedContent,
    ModelResponse,
    model_in,
    reader_of,
)
from sessionlog.messages.server_sent_events import MAX_EVENT, EventStreamParser
from tests.profiles import examples

READERS = [AnthropicMessage, ChatCompletion, GeneratedContent, ModelResponse]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    "type", "choices", "delta", "message", "content", "tool_calls", "function", "index", "usage", "error", "item", "output",
    "response", "content_block", "candidates", "parts", "text", "input", "id", "name", "arguments", "usageMetadata", "finish_reason",
]  # fmt: skip
KINDS = [
    "content_block_start", "content_block_delta", "content_block_stop", "message_start", "message_delta", "response.completed",
    "response.output_item.done", "function_call", "error", "text_delta", "input_json_delta",
]  # fmt: skip
SHAPED = st.recursive(
    JSON | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


@examples(60)
@given(bodies=st.lists(st.dictionaries(st.sampled_from(NAMES), SHAPED, max_size=6), max_size=4))
def test_nothing_that_is_sent_is_an_error(bodies):
    """Fields of any type in any place: they are read or skipped, and the result can be logged."""
    for kind in READERS:
        fed, whole = kind(), kind()
        for body in bodies:
            assert isinstance(fed.feed(body), str)
            whole.read(body)
            kind.request_fields(body)
        json.dumps([fed.response_fields(), whole.response_fields()])
        read_usage(fed.usage)


@given(
    texts=st.lists(st.text(max_size=20), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_events_are_the_same_wherever_the_stream_is_cut(texts, cuts, end):
    """Between bytes of a letter, too, and with each of the three line ends."""
    lines = [f"event: x{end}data: {json.dumps({'text': text})}{end}{end}" for text in texts]
    stream = f": a comment{end}{end}{''.join(lines)}data: [DONE]{end}{end}".encode()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    parser = EventStreamParser()
    found = [event for a, b in pairwise(bounds) for event in parser.feed(stream[a:b])]
    assert [event["text"] for event in [*found, *parser.finish()]] == texts


def test_data_of_several_lines_and_a_last_event_without_an_end():
    """Both are in the standard, or in the wild."""
    parser = EventStreamParser()
    assert [*parser.feed(b'data: {"a":\ndata: 1}\n\ndata: {"b": 2}')] == [{"a": 1}]
    assert [*parser.finish()] == [{"b": 2}]
    assert [*parser.finish()] == []


def test_an_endless_event_takes_bounded_memory():
    """It is skipped; the next one is read."""
    parser = EventStreamParser()
    for _ in range(MAX_EVENT // (1 << 20) + 2):
        assert [*parser.feed(b"x" * (1 << 20))] == []
    assert [*parser.feed(b'\n\ndata: {"a": 1}\n\n')] == [{"a": 1}]


@pytest.mark.parametrize(("path", "kind"), [
    ("/v1/chat/completions", ChatCompletion), ("/openai/deployments/x/chat/completions?api-version=1", ChatCompletion),
    ("/v1/chat/completions/", ChatCompletion), ("/v1/completions", None), ("/v1/responses", ModelResponse),
    ("/v1/responses/resp_1", None), ("/v1/responses/resp_1/cancel", None), ("/v1/messages", AnthropicMessage),
    ("/v1/messages/count_tokens", None), ("/v1/messages/batches", None), ("/v1beta/models/g:generateContent", GeneratedContent),
    ("/v1beta/models/g:streamGenerateContent?alt=sse", GeneratedContent), ("/v1beta/models/g:countTokens", None),
    ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", AnthropicMessage),
    ("/v1/projects/p/locations/l/publishers/meta/models/llama:rawPredict", None), ("/", None), ("", None),
])  # fmt: skip
def test_endpoints_are_recognised_by_their_path(path, kind):
    """Those at which a model answers."""
    assert reader_of(path) is kind


def test_a_model_in_an_address():
    """Gemini's."""
    assert model_in("/v1beta/models/gemini-2.5-pro:generateContent?key=x") == "gemini-2.5-pro"
    assert model_in("/v1/messages") is None
    assert model_in("/v1internal:streamGenerateContent?alt=sse") is None


@pytest.mark.parametrize(("given", "text"), [
    ({"path": "a.py"}, '{"path": "a.py"}'), ({}, "{}"), ([1], "[1]"), ('{"path": "a.py"}', '{"path": "a.py"}'), (None, ""),
])  # fmt: skip
def test_arguments_that_come_as_a_value_are_kept(given, text):
    """Some servers send an object in place of its JSON text, in whole answers and in streams."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": given}}
    expected = [{"id": "c1", "name": "read", "arguments": text}]
    whole, older, streamed = ChatCompletion(), ChatCompletion(), ChatCompletion()
    whole.read({"choices": [{"message": {"tool_calls": [call]}}]})
    assert whole.calls == expected
    older.read({"choices": [{"message": {"function_call": call["function"]}}]})
    assert older.calls == [expected[0] | {"id": ""}]
    streamed.feed({"choices": [{"delta": {"tool_calls": [{"index": 0, **call}]}}]})
    assert streamed.calls == expected


@pytest.mark.parametrize(("begun", "deltas", "arguments"), [
    ({}, ['{"path": ', '"a.py"}'], {"path": "a.py"}), ({}, ["", "{}"], {}), ({}, [""], {}), ({}, [], {}),
    ({"path": "a.py"}, [], {"path": "a.py"}), ({"path": "a.py"}, [""], {"path": "a.py"}), ({}, [{"path": "a.py"}], {"path": "a.py"}),
])  # fmt: skip
def test_the_input_of_a_tool_that_is_streamed(begun, deltas, arguments):
    """In pieces; whole at the beginning; an object; of a tool without parameters only an empty piece."""
    reader = AnthropicMessage()
    block = {"type": "tool_use", "id": "t1", "name": "read", "input": begun}
    reader.feed({"type": "content_block_start", "index": 0, "content_block": block})
    for piece in deltas:
        delta = {"type": "input_json_delta", "partial_json": piece}
        reader.feed({"type": "content_block_delta", "index": 0, "delta": delta})
    reader.feed({"type": "content_block_stop", "index": 0})
    assert reader.calls == [{"id": "t1", "name": "read", "arguments": arguments}]
    assert reader.blocks == [block | {"input": arguments}]


def test_geminis_bodies_may_be_wrapped():
    """Gemini CLI's Google login has another server, with the same bodies one level deeper."""
    body = {
        "model": "gemini-2.5-pro",
        "project": "p",
        "request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    }
    fields = GeneratedContent.request_fields(body)
    assert (fields["model"], fields["messages"]) == ("gemini-2.5-pro", body["request"]["contents"])
    reader = GeneratedContent()
    answer = {"candidates": [{"content": {"parts": [{"text": "Ho"}]}, "finishReason": "STOP"}], "responseId": "r",
              "modelVersion": "gemini-2.5-pro", "usageMetadata": {"promptTokenCount": 7}}  # fmt: skip
    assert reader.feed({"response": answer, "traceId": "t"}) == "Ho"
    assert reader.is_whole
    found = reader.response_fields()
    assert (found["model"], found["response_id"], found["usage"]) == ("gemini-2.5-pro", "r", {"promptTokenCount": 7})


@pytest.mark.parametrize(("start", "later", "expected"), [
    ({"input_tokens": 9, "output_tokens": 1}, {"output_tokens": 5}, {"input": 9, "output": 5}),
    ({"input_tokens": 9, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 5}, {"input": 0, "output": 5}),
    ({"input_tokens": 9, "output_tokens": 1}, {"input_tokens": None, "output_tokens": 5}, {"input": 9, "output": 5}),
    ({"input_tokens": 9, "output_tokens": 1}, {"output_tokens": 5, "cache_read_input_tokens": 7}, {"input": 9, "output": 5, "cache_read": 7}),
    (
        {"input_tokens": 9, "output_tokens": 1, "cache_creation_input_tokens": 4, "cache_creation": {"ephemeral_1h_input_tokens": 4}},
        {"output_tokens": 5, "cache_creation_input_tokens": 6},
        {"input": 9, "output": 5, "cache_write": 6},
    ),
    (
        {"input_tokens": 9, "output_tokens": 1, "cache_creation_input_tokens": 4, "cache_creation": {"ephemeral_1h_input_tokens": 4}},
        {"output_tokens": 5, "cache_creation_input_tokens": 4},
        {"input": 9, "output": 5, "cache_write": 4, "cache_write_1h": 4},
    ),
])  # fmt: skip
def test_later_counts_of_a_message_win(start, later, expected):
    """Also 0; null is no count; a later total of cache writes wins over details that do not add up to it."""
    reader = AnthropicMessage()
    reader.feed({"type": "message_start", "message": {"usage": start}})
    reader.feed({"type": "message_delta", "usage": later})
    counts = read_usage(reader.usage)[0].to_dict()
    assert {name: count for name, count in counts.items() if name != "total"} == expected


@pytest.mark.parametrize(("chunks", "expected"), [
    ([{"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}], {"input": 9, "output": 5}),
    ([{"choices": [{"delta": {"content": "x"}}]}, {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 5}}],
     {"input": 0, "output": 5}),
    ([{"usage": {"prompt_tokens": 9, "completion_tokens": 1}}, {"usage": {"prompt_tokens": 9, "completion_tokens": 0}}, {"usage": None}],
     {"input": 9, "output": 0}),
    ([{"model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}}],
     {"input": 9, "output": 5, "cache_read": 0}),
])  # fmt: skip
def test_the_usage_of_a_completion_is_in_any_chunk(chunks, expected):
    """With choices or without; the last one counts, also where it is 0."""
    reader = ChatCompletion()
    for chunk in chunks:
        reader.feed(chunk)
    counts = read_usage(reader.usage)[0].to_dict()
    assert {name: count for name, count in counts.items() if name != "total"} == {
        name: count for name, count in expected.items() if count or name in ("input", "output")
    }


def test_the_pieces_of_a_block_are_joined():
    """Also of one that has not ended; a call whose only piece is empty keeps the input that it began with."""
    reader = AnthropicMessage()
    for index, block in enumerate([{"type": "tool_use", "id": "a", "input": {}}, {"type": "text", "text": "L"}]):
        reader.feed({"type": "content_block_start", "index": index, "content_block": block})
    reader.feed({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}})
    reader.feed({"type": "content_block_stop", "index": 0})
    for text in "et ":
        reader.feed({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}})
    assert [block.get("text") for block in reader.blocks] == [None, "Let "]
    reader.feed({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "me"}})
    reader.feed({"type": "content_block_stop", "index": 1})
    assert [block.get("text") for block in reader.blocks] == [None, "Let me"]
    assert (reader.calls[0]["arguments"], "".join(reader.texts)) == ({}, "Let me")


@pytest.mark.parametrize("indices", [(0, 1), (0, 0)])
@pytest.mark.parametrize("ids", [("t", "t"), (None, None)])
def test_tools_of_one_id_have_their_own_inputs(ids, indices):
    """Some servers repeat an id or an index, or send no id."""
    reader = AnthropicMessage()
    for id_, index, piece in zip(ids, indices, ('{"n": 1}', '{"n": 2}'), strict=True):
        block = {"type": "tool_use", "id": id_, "name": "f", "input": {}}
        reader.feed({"type": "content_block_start", "index": index, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": piece}
        reader.feed({"type": "content_block_delta", "index": index, "delta": delta})
        if indices == (0, 1):
            reader.feed({"type": "content_block_stop", "index": index})
    assert [block["input"] for block in reader.blocks] == [{"n": 1}, {"n": 2}]
    assert [call["arguments"] for call in reader.calls] == [{"n": 1}, {"n": 2}]


def test_calls_that_a_server_gives_the_same_index():
    """A new id begins a new call."""
    reader = ChatCompletion()
    for id_, arguments in (("a", "{1"), ("", "}"), ("b", "{2"), ("", "}")):
        call = {"index": 0, "id": id_, "function": {"name": "f" if id_ else None, "arguments": arguments}}
        reader.feed({"choices": [{"delta": {"tool_calls": [call]}}]})
    assert [(call["id"], call["arguments"]) for call in reader.calls] == [("a", "{1}"), ("b", "{2}")]


def test_a_refusal_and_a_block_are_reasons():
    """What a model would not answer."""
    refused = ChatCompletion()
    refused.read({"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "No."}}]})
    assert refused.response_fields()["content"] == "No."
    blocked = GeneratedContent()
    blocked.read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert blocked.response_fields() == {"finish_reason": "SAFETY"}
    failed = ModelResponse()
    failed.feed(
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "Oh"}},
        }
    )
    assert (failed.error, failed.finish_reason) == ("server_error: Oh", "failed")


def test_calls_without_ids_and_the_older_kind_of_call():
    """A name after arguments begins another call."""
    reader = ChatCompletion()
    for n in (1, 2):
        call = {"index": 0, "id": "", "function": {"name": "f", "arguments": f'{{"p":{n}}}'}}
        reader.feed({"choices": [{"delta": {"tool_calls": [call]}}]})
    assert [call["arguments"] for call in reader.calls] == ['{"p":1}', '{"p":2}']
    older = ChatCompletion()
    older.read({"choices": [{"message": {"function_call": {"name": "g", "arguments": "{}"}}}]})
    assert [(call["name"], call["arguments"]) for call in older.calls] == [("g", "{}")]


def test_only_the_first_candidate_is_read():
    """Also where each piece of a stream has another one."""
    reader = GeneratedContent()
    for index in (0, 1, 0):
        reader.feed({"candidates": [{"index": index, "content": {"parts": [{"text": f"A{index} "}]}}]})
    assert "".join(reader.texts) == "A0 A0 "


def test_an_error_event_of_a_response_may_hold_an_object():
    """OpenAI's and its imitators' differ."""
    for event in ({"type": "error", "message": "boom"}, {"type": "error", "error": {"message": "boom"}}):
        reader = ModelResponse()
        reader.feed(event)
        assert reader.error == "boom"


def test_a_letter_that_is_cut_in_two_is_whole_again():
    """Each half is an escape of its own."""
    reader = ChatCompletion()
    parser = EventStreamParser()
    stream = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n'
    for event in parser.feed(stream):
        reader.feed(event)
    assert reader.response_fields() == {"content": "\U0001f600"}
