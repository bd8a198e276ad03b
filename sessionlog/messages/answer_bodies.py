"""Answers of models, written in the formats in which providers send them: whole, or event by event.

This is the counterpart of `answers`, which names the formats and their documentation: its readers read what is written
here. Answers are written for clients in tests, so times are 0 and texts are cut into words, one for each event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.answers import (
    AnswerReader,
    AnthropicMessage,
    ChatCompletion,
    Fields,
    GeneratedContent,
    ModelResponse,
)
from sessionlog.messages.entry import arguments_text
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import ToolRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole answer.

    Attributes:
        id: The response's id.
        model: The model that answered.
        text: Its text.
        thoughts: Its reasoning.
        calls: Its tool calls.
        usage: Tokens in disjoint classes.
        finish_reason: Why it stopped, in any provider's word; None where it is unknown.
    """

    id: str
    model: str
    text: str = ""
    thoughts: str = ""
    calls: tuple[ToolRequest, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    finish_reason: str | None = None


_MEANINGS = {
    "length": {"length", "max_tokens", "max_output_tokens"},
    "filter": {"content_filter", "refusal", "safety", "blocklist", "prohibited_content", "recitation", "spii"},
}
_WORDS: Mapping[type[AnswerReader] | None, Mapping[str, str]] = {
    ChatCompletion: {"stop": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter"},
    ModelResponse: {"length": "max_output_tokens", "filter": "content_filter"},
    AnthropicMessage: {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "refusal"},
    GeneratedContent: {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"},
    None: {"stop": "stop", "calls": "tool_call", "length": "length", "filter": "content_filter"},
}


def finish_word(answer: Answer, kind: type[AnswerReader] | None = None) -> Any:
    """Return why an answer stopped, in the word of a format, None for pydantic-ai's; an unknown reason is its end."""
    given = (answer.finish_reason or "").lower()
    plain = "calls" if answer.calls else "stop"
    return _WORDS[kind].get(next((name for name, words in _MEANINGS.items() if given in words), plain), "")


def write_answer(kind: type[AnswerReader], answer: Answer) -> Fields:
    """Return an answer as the body that a client gets which asked for no stream."""
    return _WRITERS[kind][0](answer)


def write_events(kind: type[AnswerReader], answer: Answer) -> Iterator[Fields]:
    """Yield an answer as the events of a stream."""
    return _WRITERS[kind][1](answer)


def write_stream(kind: type[AnswerReader], answer: Answer, *, has_usage: bool = True) -> bytes:
    """Return an answer as a stream of server-sent events.

    Args:
        kind: The format.
        answer: The answer.
        has_usage: Whether a chat completion ends with a chunk that has no choice, only the usage.
    """
    lines = []
    for event in write_events(kind, answer):
        if event.get("choices") == [] and not has_usage:
            continue
        if "type" in event:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json_text(event, compact=True)}\n\n")
    return "".join([*lines, "data: [DONE]\n\n" if kind is ChatCompletion else ""]).encode()


def words_of(text: str) -> list[str]:
    """Return a text in the pieces of a stream: words with the blanks around them."""
    return re.findall(r"\s*\S+\s*", text) or ([text] if text else [])


def write_error(text: str, status: int) -> Fields:
    """Return an error, `rate_limit_error: Slow down`, as a body that clients of every provider read."""
    word, colon, message = text.partition(": ")
    if not colon or not word.replace("_", "").isalpha():
        word, message = "api_error", text
    return {"type": "error", "error": {"type": word, "status": word, "code": status, "message": message}}


def _chat_usage(usage: TokenUsage) -> Fields:
    return {
        "prompt_tokens": usage.prompt, "completion_tokens": usage.output, "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }  # fmt: skip


def _chat_head(answer: Answer, kind: str) -> Fields:
    return {"id": answer.id, "object": kind, "created": 0, "model": answer.model}


def _chat_call(call: ToolRequest, arguments: str) -> Fields:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _chat_body(answer: Answer) -> Fields:
    message: Fields = {"role": "assistant", "content": answer.text or None}
    if answer.thoughts:
        message["reasoning_content"] = answer.thoughts
    if answer.calls:
        message["tool_calls"] = [_chat_call(call, arguments_text(call)) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": finish_word(answer, ChatCompletion)}
    return {**_chat_head(answer, "chat.completion"), "choices": [choice], "usage": _chat_usage(answer.usage)}


def _chat_events(answer: Answer) -> Iterator[Fields]:
    head = _chat_head(answer, "chat.completion.chunk")

    def chunk(delta: Fields, finish: str | None = None) -> Fields:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": word}) for word in words_of(answer.thoughts))
    yield from (chunk({"content": word}) for word in words_of(answer.text))
    for index, call in enumerate(answer.calls):
        yield chunk({"tool_calls": [{"index": index, **_chat_call(call, "")}]})
        for piece in words_of(arguments_text(call)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish_word(answer, ChatCompletion))
    yield {**head, "choices": [], "usage": _chat_usage(answer.usage)}


def _response_items(answer: Answer) -> Iterator[Fields]:
    if answer.thoughts:
        summary = [{"type": "summary_text", "text": answer.thoughts}]
        yield {"type": "reasoning", "id": f"rs_{answer.id}", "summary": summary}
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        item = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "status": "completed"}
        yield {**item, "content": [part]}
    for index, call in enumerate(answer.calls):
        item = {"type": "function_call", "id": f"fc_{answer.id}_{index}", "call_id": call.id, "status": "completed"}
        yield {**item, "name": call.name, "arguments": arguments_text(call)}


def _response_body(answer: Answer) -> Fields:
    usage, cut = answer.usage, finish_word(answer, ModelResponse)
    return {
        "id": answer.id, "object": "response", "created_at": 0, "model": answer.model,
        "status": "incomplete" if cut else "completed", "incomplete_details": {"reason": cut} if cut else None,
        "error": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto",
        "tools": [], "output": list(_response_items(answer)),
        "usage": {
            "input_tokens": usage.prompt, "output_tokens": usage.output, "total_tokens": usage.total,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        },
    }  # fmt: skip


def _response_events(answer: Answer) -> Iterator[Fields]:
    body = _response_body(answer)
    begun = {**body, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    events: list[tuple[str, Fields]] = [("created", {"response": begun}), ("in_progress", {"response": begun})]
    for index, item in enumerate(body["output"]):
        events += _item_events(item, {"item_id": item["id"], "output_index": index})
    events.append(("incomplete" if body["incomplete_details"] else "completed", {"response": body}))
    for number, (name, fields) in enumerate(events):
        yield {"type": f"response.{name}", "sequence_number": number, **fields}


def _item_events(item: Fields, at: Fields) -> Iterator[tuple[str, Fields]]:
    place = {"output_index": at["output_index"]}
    if item["type"] == "function_call":
        yield "output_item.added", {**place, "item": {**item, "arguments": "", "status": "in_progress"}}
        for piece in words_of(item["arguments"]):
            yield "function_call_arguments.delta", {**at, "delta": piece}
        yield "function_call_arguments.done", {**at, "name": item["name"], "arguments": item["arguments"]}
    elif item["type"] == "reasoning":
        yield "output_item.added", {**place, "item": {**item, "summary": []}}
        yield from _part_events("reasoning_summary_", {**at, "summary_index": 0}, item["summary"][0], {})
    else:
        yield "output_item.added", {**place, "item": {**item, "content": [], "status": "in_progress"}}
        yield from _part_events("output_", {**at, "content_index": 0}, item["content"][0], {"logprobs": []})
    yield "output_item.done", {**place, "item": item}


def _part_events(prefix: str, at: Fields, part: Fields, more: Fields) -> Iterator[tuple[str, Fields]]:
    name = "content_part" if prefix == "output_" else "reasoning_summary_part"
    yield f"{name}.added", {**at, "part": {**part, "text": ""}}
    for word in words_of(part["text"]):
        yield f"{prefix}text.delta", {**at, "delta": word, **more}
    yield f"{prefix}text.done", {**at, "text": part["text"], **more}
    yield f"{name}.done", {**at, "part": part}


def _message_body(answer: Answer) -> Fields:
    usage = answer.usage
    blocks: list[Fields] = []
    if answer.thoughts:
        blocks.append({"type": "thinking", "thinking": answer.thoughts, "signature": ""})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        given = call.arguments if isinstance(call.arguments, Mapping) else {"arguments": call.arguments}
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(given)})
    return {
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model, "content": blocks,
        "stop_reason": finish_word(answer, AnthropicMessage), "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input, "output_tokens": usage.output,
            "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write - usage.cache_write_1h,
                "ephemeral_1h_input_tokens": usage.cache_write_1h,
            },
        },
    }  # fmt: skip


def _message_events(answer: Answer) -> Iterator[Fields]:
    body = _message_body(answer)
    begun = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(body["content"]):
        empty, deltas = _block_deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.usage.output}}
    yield {"type": "message_stop"}


def _block_deltas(block: Fields) -> tuple[Fields, Sequence[Fields]]:
    """Return a content block as it begins, and the pieces that complete it."""
    if block["type"] == "tool_use":
        pieces = words_of(json.dumps(block["input"], ensure_ascii=False))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    kind = block["type"]
    return {**block, kind: ""}, [{"type": f"{kind}_delta", kind: word} for word in words_of(block[kind])]


def _content_piece(answer: Answer, parts: Sequence[Fields], *, is_last: bool) -> Fields:
    candidate: Fields = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    piece: Fields = {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id}
    if is_last:
        usage = answer.usage
        candidate["finishReason"] = finish_word(answer, GeneratedContent)
        piece["usageMetadata"] = {
            "promptTokenCount": usage.prompt, "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output - usage.reasoning, "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.total,
        }  # fmt: skip
    return piece


def _content_calls(answer: Answer) -> list[Fields]:
    return [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in answer.calls]


def _content_body(answer: Answer) -> Fields:
    thoughts = [{"text": answer.thoughts, "thought": True}] if answer.thoughts else []
    texts = [{"text": answer.text}] if answer.text else []
    return _content_piece(answer, [*thoughts, *texts, *_content_calls(answer)], is_last=True)


def _content_events(answer: Answer) -> Iterator[Fields]:
    for word in words_of(answer.thoughts):
        yield _content_piece(answer, [{"text": word, "thought": True}], is_last=False)
    for word in words_of(answer.text):
        yield _content_piece(answer, [{"text": word}], is_last=False)
    yield _content_piece(answer, _content_calls(answer), is_last=True)


_Writers = tuple[Callable[[Answer], Fields], Callable[[Answer], Iterator[Fields]]]
_WRITERS: Mapping[type[AnswerReader], _Writers] = {
    ChatCompletion: (_chat_body, _chat_events),
    ModelResponse: (_response_body, _response_events),
    AnthropicMessage: (_message_body, _message_events),
    GeneratedContent: (_content_body, _content_events),
}
