"""Meaning: digests by which a message is recognised when a log repeats it.

The invariant: equal digests mean the same words of the same role, the same tools with the same arguments, the same
result. Ids, times, blanks at the ends, the order of keys in arguments and the spelling of JSON do not count; nor does
reasoning. A digest has 128 bits, so that no message can be made to hide another one; texts are not kept, so that a log
of gigabytes is folded in megabytes.
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
Meaning = tuple[bytes, ...]
"""The digests of the messages that one element of a history holds."""


def meaning_of(entry: Entry) -> Meaning:
    """Return what an element of a history means: a digest for each of its messages."""
    return tuple(map(digest_message, entry.messages))


def digest_message(message: Message) -> bytes:
    """Return 16 bytes that stand for what a message says."""
    return digest_words(message.role, content_text(message)[0], message.tool_calls)


def digest_words(role: str, text: str, calls: Iterable[ToolRequest] = ()) -> bytes:
    """Return 16 bytes that stand for a role's words and calls."""
    same = text.replace("\r\n", "\n").strip()
    meant = plain_json(same) if role == "tool" else same
    return digest_of(role, meant, *(word for call in calls for word in (call.name, plain_json(arguments_text(call)))))


def keys_of(message: Message, digest: bytes) -> tuple[bytes, ...]:
    """Return all that a message is recognised by: the ids of calls, which survive a cut text, and its digest."""
    if message.role == "tool" and message.tool_call_id:
        return digest_of("result", message.tool_call_id), digest
    if message.tool_calls and all(call.id for call in message.tool_calls):
        return digest_of("calls", *(call.id for call in message.tool_calls)), digest
    return (digest,)


def says_something(message: Message) -> bool:
    """Whether there is anything to show: words, calls, or a tool's result, which may be empty."""
    return message.role == "tool" or bool(message.tool_calls) or bool(content_text(message)[0].strip())


def spelling_of(value: Json) -> bytes:
    """Return 16 bytes that stand for a message as it is spelled: much faster than reading it."""
    try:
        if isinstance(value, dict) and isinstance(value.get("content"), str):
            # orjson reserves eight bytes for each of a text
            rest = blake2b(orjson.dumps({**value, "content": None}), digest_size=16)
            rest.update(value["content"].encode())
            return rest.digest()
        return blake2b(orjson.dumps(value), digest_size=16).digest()
    except (TypeError, ValueError, RecursionError):
        return digest_of(json_text(value))


def plain_json(text: str) -> str:
    """Return a text of JSON spelled in one way, keys sorted; any other text as it is."""
    if text[:1] not in '{["0123456789-':
        return text
    value = decode_json(text)
    if isinstance(value, str):
        return text
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return json_text(value)
