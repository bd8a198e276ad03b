"""Messages of OpenTelemetry's GenAI conventions as messages of chat APIs, and ours as theirs.

The conventions have a role and typed parts: `text` and `reasoning` with `content`, `tool_call` with `id`, `name` and
`arguments`, `tool_call_response` with `id` and `response`, and others with a `modality`. Spans carry JSON texts,
events as values. What is in another shape is kept as it is, for `messages.read`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sessionlog.messages.genai import ANSWERED, SENT, SYSTEM
from sessionlog.messages.message import Message

Json = Any
_WORDS = {"text": "text", "thinking": "reasoning"}


def sent_messages(attributes: Mapping[str, Json]) -> list[Json]:
    """Return what was sent to a model, as attributes of a span or an event have it: the system's words first."""
    system = _message({"role": "system", "parts": _list(attributes.get(SYSTEM))})
    sent = [made for message in _list(attributes.get(SENT)) for made in _message(message)]
    return [*(system if system[0].get("content") else ()), *sent]


def answer_fields(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of `llm.response` for an answer: `content`, `tool_calls`, `finish_reason`, `message`.

    `message` is there if it has thoughts. Some answers hold results of tools that the provider runs itself; the model
    has not written them, so they are left out.
    """
    messages = _list(attributes.get(ANSWERED))
    if not messages:
        return {}
    parts = [
        part
        for message in messages
        for part in _list(_field(message, "parts"))
        if _field(part, "type") != "tool_call_response"
    ]
    [made] = _message({"role": "assistant", "parts": parts})
    content = made.get("content")
    text = (
        content if isinstance(content, str) else "".join(one["text"] for one in content or () if one["type"] == "text")
    )
    is_plain = content is None or isinstance(content, str)
    return {
        "content": text or None,
        "tool_calls": made.get("tool_calls"),
        "finish_reason": next(filter(None, (_field(message, "finish_reason") for message in messages)), None),
        "message": None if is_plain else made,
    }


def last_prompt(messages: Sequence[Json]) -> str | None:
    """Return the last text of the user; None for none."""
    for message in reversed(messages):
        content = _field(message, "content")
        if _field(message, "role") == "user" and isinstance(content, str) and content:
            return content
    return None


def genai_message(message: Message) -> dict[str, Json]:
    """Return a message of ours as the conventions have it; a picture or file is its kind, without its bytes."""
    parts: list[dict[str, Json]] = []
    if message.role == "tool":
        parts.append({"type": "tool_call_response", "id": message.tool_call_id or "", "response": message.text})
    for part in () if message.role == "tool" else message.parts:
        if part.type in _WORDS and part.text:
            parts.append({"type": _WORDS[part.type], "content": part.text})
        elif part.type not in _WORDS:
            parts.append({"type": part.type})
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return {"role": message.role, "parts": parts}


def _message(message: Json) -> list[Json]:
    """Return a message, after the results of tools that it has, each of which is a message in chat APIs."""
    parts = _list(_field(message, "parts"))
    role = _field(message, "role")
    if not isinstance(message, Mapping) or ("parts" not in message and "content" in message):
        return [message]
    content: list[dict[str, Json]] = []
    calls: list[dict[str, Json]] = []
    results: list[Json] = []
    for part in parts:
        kind = _field(part, "type")
        if kind == "tool_call":
            calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")})
        elif kind == "tool_call_response":
            output = part.get("response", part.get("result"))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": output})
        elif isinstance(part, Mapping) and isinstance(part.get("content"), str) and not part.get("modality"):
            content.append({"type": "thinking" if kind == "reasoning" else "text", "text": part["content"]})
        else:
            content.append({"type": str(_field(part, "modality") or kind or "part")})
    if results and not content and not calls:
        return results
    made: dict[str, Json] = {"role": role}
    if all(one["type"] == "text" for one in content):
        made["content"] = "".join(one["text"] for one in content) or None
    else:
        made["content"] = content
    return [*results, made | ({"tool_calls": calls} if calls else {})]


def _list(value: Json) -> Sequence[Json]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    return value if isinstance(value, list | tuple) else ()


def _field(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, Mapping) else None
