"""What providers send: the same two answers in each format, a text and a tool call, whole and as a stream."""

import json

import orjson


def sse(*events, named=False, done=False):
    """Server-sent events as bytes."""
    lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


CHAT_USAGE = {
    "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 5},
}  # fmt: skip
CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5-2025-08-07", "usage": CHAT_USAGE,
    "choices": [{
        "index": 0, "finish_reason": "tool_calls",
        "message": {
            "role": "assistant", "content": "Let me look.",
            "tool_calls": [{
                "id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'},
            }],
        },
    }],
}  # fmt: skip


def chat_chunk(delta, finish=None, **more):
    """A chunk of a chat completion."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5-2025-08-07"}
    return {**head, "choices": choices, **more}


CHAT_CHUNKS = [
    chat_chunk({"role": "assistant", "content": ""}),
    chat_chunk({"content": "Let me "}),
    chat_chunk({"content": "look."}),
    chat_chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "read", "arguments": ""}}]}),
    chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path":'}}]}),
    chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"a.py"}'}}]}),
    chat_chunk({}, "tool_calls", usage=CHAT_USAGE),
]  # fmt: skip

RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-2025-08-07", "status": "completed",
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "A file."}]},
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"path":"a.py"}'},
    ],
    "usage": {
        "input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "input_tokens_details": {"cached_tokens": 60},
        "output_tokens_details": {"reasoning_tokens": 5},
    },
}  # fmt: skip
_AT = {"item_id": "msg_1", "output_index": 1, "content_index": 0, "logprobs": []}
RESPONSE_EVENTS = [
    {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None}},
    {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Let me ", **_AT},
    {"type": "response.output_text.delta", "sequence_number": 2, "delta": "look.", **_AT},
    {"type": "response.output_item.done", "sequence_number": 3, "output_index": 2, "item": RESPONSE["output"][2]},
    {"type": "response.completed", "sequence_number": 4, "response": RESPONSE},
]  # fmt: skip

MESSAGE_USAGE = {
    "input_tokens": 40, "output_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 7,
    "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3},
}  # fmt: skip
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
    "stop_reason": "tool_use", "stop_sequence": None, "usage": MESSAGE_USAGE,
    "content": [
        {"type": "thinking", "thinking": "A file.", "signature": "c2ln"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
    ],
}  # fmt: skip
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": {**MESSAGE_USAGE, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "A file."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"path":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"a.py"}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]  # fmt: skip


def gemini(parts, finish=None, **more):
    """A whole answer of Gemini, or a piece of one."""
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        **({"finishReason": finish} if finish else {}),
    }
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-pro", "responseId": "r1", **more}


GEMINI_USAGE = {
    "promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 15, "thoughtsTokenCount": 5,
    "totalTokenCount": 120,
}  # fmt: skip
_GEMINI_CALL = {"functionCall": {"name": "read", "args": {"path": "a.py"}}}
GEMINI = gemini(
    [{"text": "A file.", "thought": True}, {"text": "Let me look."}, _GEMINI_CALL], "STOP", usageMetadata=GEMINI_USAGE
)
GEMINI_PIECES = [
    gemini([{"text": "A file.", "thought": True}], usageMetadata={"promptTokenCount": 100}),
    gemini([{"text": "Let me "}]),
    gemini([{"text": "look."}, _GEMINI_CALL], "STOP", usageMetadata=GEMINI_USAGE),
]

ASKED = {"role": "user", "content": "What does a.py do?"}
_CHAT, _RESPONSES, _MESSAGES, _GEMINI = (
    "https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/responses",
    "https://api.anthropic.com/v1/messages",
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:",
)  # fmt: skip
_GEMINI_ASKED = {"contents": [{"role": "user", "parts": [{"text": "What does a.py do?"}]}]}
FORMATS = {
    "chat": (_CHAT, {"model": "gpt-5", "messages": [ASKED]}, orjson.dumps(CHAT), False),
    "chat stream": (_CHAT, {"model": "gpt-5", "messages": [ASKED], "stream": True}, sse(*CHAT_CHUNKS, done=True), True),
    "responses": (_RESPONSES, {"model": "gpt-5", "input": [ASKED]}, orjson.dumps(RESPONSE), False),
    "responses stream": (
        _RESPONSES, {"model": "gpt-5", "input": "What does a.py do?", "stream": True}, sse(*RESPONSE_EVENTS, named=True), True,
    ),
    "messages": (_MESSAGES, {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [ASKED]}, orjson.dumps(MESSAGE), False),
    "messages stream": (
        _MESSAGES, {"model": "claude-haiku-4-5", "messages": [ASKED], "stream": True}, sse(*MESSAGE_EVENTS, named=True), True,
    ),
    "gemini": (f"{_GEMINI}generateContent", _GEMINI_ASKED, orjson.dumps(GEMINI), False),
    "gemini stream": (f"{_GEMINI}streamGenerateContent?alt=sse", _GEMINI_ASKED, sse(*GEMINI_PIECES), True),
    "gemini list": (f"{_GEMINI}streamGenerateContent", _GEMINI_ASKED, orjson.dumps(GEMINI_PIECES), False),
}  # fmt: skip
"""Name → (address, request, answer, whether it is a stream of events)."""
