"""The size of a message: its estimated tokens, its length in a log, and how one that is too long is shortened.

A message that is too long for one log event is shortened when it enters a history, with a note in its text. If only the
log shortened it, the session could not be read back from there; so memory, log and store hold the same message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.messages.message import Content, ContentPart, Message
from sessionlog.messages.message_json import message_to_dict

_FRAME_TOKENS = 4
"""Tokens that a provider's template adds to each message."""

IMAGE_TOKENS = 1500
"""Tokens of one image, as in `sessionlog.context`; importing it from there would load every log reader."""


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: its texts, names and arguments, 1,500 per image, 4 for its frame."""
    tokens = _FRAME_TOKENS + (count_tokens(message.name) if message.name else 0)
    if isinstance(message.content, str):
        tokens += count_tokens(message.content)
    else:
        tokens += sum(_part_tokens(part) for part in message.content)
    for call in message.tool_calls:
        arguments = call.arguments
        tokens += count_tokens(call.name)
        tokens += count_tokens(arguments) if isinstance(arguments, str) else count_tokens_json(arguments)
    return int(tokens)


def _part_tokens(part: ContentPart) -> int:
    if part.data is not None or part.image_url is not None or part.type == "image":
        return IMAGE_TOKENS
    rest = count_tokens_json(dict(part.extra)) if part.extra else 0
    return count_tokens(part.text or "") + rest


MAX_BYTES = 24 << 20
"""Bytes of a message as JSON; an event may have 32 MiB, and holds more than its message."""

_MAX_BYTES_WIDE = 6 << 20
"""The same for a message with emoji: in memory, each of its characters takes four bytes."""

_MAX_FIELD_BYTES = 1 << 20
"""Bytes of a call's arguments, or of an unknown field, in a message that is too long."""

_FOUR_BYTES = re.compile(rb"[\xf0-\xf4]")
_HEAD = 10_000
_BYTES_PER_CHARACTER = 6
"""The most bytes that one character takes in JSON."""


def cap_message(message: Message, max_bytes: int = MAX_BYTES) -> Message:
    """Return the message, shortened if it takes more than `max_bytes` as JSON.

    Long texts end with a note of their full length; images are replaced by a note of their size.
    """
    if size_of(message) * _BYTES_PER_CHARACTER <= min(max_bytes, _MAX_BYTES_WIDE):
        return message
    written = orjson.dumps(message_to_dict(message))
    if _FOUR_BYTES.search(written):
        max_bytes = min(max_bytes, _MAX_BYTES_WIDE)
    if len(written) <= max_bytes:
        return message
    calls = tuple(replace(call, arguments=_cap_field(call.arguments)) for call in message.tool_calls)
    extra = {key: _cap_field(value) for key, value in message.extra.items()}
    rest = replace(message, content="", tool_calls=calls, extra=extra)
    return replace(rest, content=_cap_content(message.content, max_bytes - _length(message_to_dict(rest)) - _HEAD))


def cap_text(text: str, length: int = _HEAD) -> str:
    """Return a text, or its first `length` characters and a note of how many were cut."""
    if len(text) <= length:
        return text
    cut = len(text) - length
    return f"{text[:length]}… [{cut:,} of {len(text):,} characters were cut: too long to be kept]"


def size_of(message: Message) -> int:
    """Estimate the characters of a message in a log."""
    size = 100 + sum(200 + len(call.name) + size_of_json(call.arguments) for call in message.tool_calls)
    if message.extra:
        size += size_of_json(message.extra)
    if isinstance(message.content, str):
        return size + len(message.content)
    return size + sum(map(_size_of_part, message.content))


def size_of_json(value: Any) -> int:
    """Estimate the characters of a value as JSON."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return sum(len(str(key)) + 4 + size_of_json(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(2 + size_of_json(item) for item in value)
    return 20


def _size_of_part(part: ContentPart) -> int:
    size = 60 + len(part.text or "") + len(part.image_url or "") + len(part.data or b"") * 4 // 3
    return size + (size_of_json(part.extra) if part.extra else 0)


def _length(value: Any) -> int:
    return len(orjson.dumps(value))


def _cap_field(value: Any) -> Any:
    """The value, or the beginning of its JSON where that is too long."""
    written = orjson.dumps(value)
    return value if len(written) <= _MAX_FIELD_BYTES else cap_text(written.decode())


def _cap_content(content: Content, room: int) -> Content:
    """Shorten the longest parts until all of them fit."""
    if isinstance(content, str):
        return _cap_json_text(content, room)
    parts, sizes = list(content), [_length_of_part(part) for part in content]
    over = sum(sizes) - room
    for n in sorted(range(len(parts)), key=sizes.__getitem__, reverse=True):
        if over <= 0:
            break
        parts[n] = _cap_part(parts[n], sizes[n] - over)
        over -= sizes[n] - _length_of_part(parts[n])
    return tuple(parts)


def _cap_part(part: ContentPart, room: int) -> ContentPart:
    if part.type == "text" and part.text and not part.extra:
        return ContentPart.of_text(_cap_json_text(part.text, room - _HEAD))
    kind = part.media_type or part.type
    size = len(part.data) if part.data is not None else _size_of_part(part)
    return ContentPart.of_text(f"[{kind} of {size:,} bytes was left out: too long to be kept]")


def _length_of_part(part: ContentPart) -> int:
    return _length(message_to_dict(Message("user", (part,))))


def _cap_json_text(text: str, room: int) -> str:
    """Shorten a text that takes more than `room` bytes as JSON."""
    size = _length(text)
    length = len(text) * (room - 200) // size if size > room else len(text)
    while length > 0 and _length(cap_text(text, length)) > room:
        length = length * 7 // 8 - 100
    return cap_text(text, max(0, length))
