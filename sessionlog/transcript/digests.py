"""Digests: find out whether a log repeats a message, without keeping its text.

The invariant: equal digests mean the same text of the same role, the same tool calls with the same arguments, or the
same result. They ignore ids, times, reasoning, blanks at both ends, the order of keys and the formatting of JSON. A
digest has 128 bits, so that no one can construct a message that hides another one. Without the texts, a log of
gigabytes needs megabytes of memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson

from sessionlog.hashes import blake2b, digest_of
from sessionlog.messages.entry import Entry, arguments_text, content_text
from sessionlog.messages.json_value import decode_json, json_text
from sessionlog.messages.message import Message, ToolRequest

Json = Any
Digests = tuple[bytes, ...]
"""The digests of the messages that one element of a history holds."""


def digests_of(entry: Entry) -> Digests:
    """Return a digest for each message of an element."""
    return tuple(map(digest_message, entry.messages))


def digest_message(message: Message) -> bytes:
    """Return a 16-byte digest of a message's role, text and tool calls."""
    return digest_text(message.role, content_text(message)[0], message.tool_calls)


def digest_text(role: str, text: str, calls: Iterable[ToolRequest] = ()) -> bytes:
    """Return a 16-byte digest of a role, a text and tool calls."""
    stripped = text.replace("\r\n", "\n").strip()
    canonical = canonical_json(stripped) if role == "tool" else stripped
    return digest_of(
        role, canonical, *(word for call in calls for word in (call.name, canonical_json(arguments_text(call))))
    )


def keys_of(message: Message, digest: bytes) -> tuple[bytes, ...]:
    """Return the keys of a message: a digest of its call ids, which stay when its text is cut, and its own digest."""
    if message.role == "tool" and message.tool_call_id:
        return digest_of("result", message.tool_call_id), digest
    if message.tool_calls and all(call.id for call in message.tool_calls):
        return digest_of("calls", *(call.id for call in message.tool_calls)), digest
    return (digest,)


def has_content(message: Message) -> bool:
    """Whether a message has a text or calls, or is a tool's result, which may be empty."""
    return message.role == "tool" or bool(message.tool_calls) or bool(content_text(message)[0].strip())


def raw_digest(value: Json) -> bytes:
    """Return a 16-byte digest of a message's JSON as logged: much faster than reading the message."""
    try:
        if isinstance(value, dict) and isinstance(value.get("content"), str):
            # hashed apart: orjson reserves eight bytes for each byte of a text
            rest = blake2b(orjson.dumps({**value, "content": None}), digest_size=16)
            rest.update(value["content"].encode())
            return rest.digest()
        return blake2b(orjson.dumps(value), digest_size=16).digest()
    except (TypeError, ValueError, RecursionError):
        return digest_of(json_text(value))


def canonical_json(text: str) -> str:
    """Return JSON text in one format with sorted keys; any other text unchanged."""
    if text[:1] not in '{["0123456789-':
        return text
    value = decode_json(text)
    if isinstance(value, str):
        return text
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return json_text(value)
