"""The weight of a message: its estimated tokens, its size in a log, and what is left of one that does not fit.

A message that is too long for one event of a log is cut when it enters a history, and says so: what a log had to cut
could never be read back, so memory, log and store hold the same.
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

_AROUND = 4
"""What a provider's template adds to each message."""

PICTURE = 1500
"""What one picture takes, the same as where logs are measured; that module would bring all that reads logs."""


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: its texts, names and arguments, 1,500 for each picture, 4 for its frame."""
    tokens = _AROUND + (count_tokens(message.name) if message.name else 0)
    if isinstance(message.content, str):
        tokens += count_tokens(message.content)
    else:
        tokens += sum(_piece(part) for part in message.content)
    for call in message.tool_calls:
        arguments = call.arguments
        tokens += count_tokens(call.name)
        tokens += count_tokens(arguments) if isinstance(arguments, str) else count_tokens_json(arguments)
    return int(tokens)


def _piece(part: ContentPart) -> int:
    if part.data is not None or part.image_url is not None or part.type == "image":
        return PICTURE
    rest = count_tokens_json(dict(part.extra)) if part.extra else 0
    return count_tokens(part.text or "") + rest


MOST = 24 << 20
"""Bytes of a message as JSON; an event may have 32 MiB, and says more than its message."""

_MOST_WIDE = 6 << 20
"""The same of a message with emoji: all its characters take four bytes each once they are read."""

_FIELD = 1 << 20
"""Bytes of a call's arguments, or of an unknown field, in a message that does not fit."""

_FOUR_BYTES = re.compile(rb"[\xf0-\xf4]")
_HEAD = 10_000
_PER_LETTER = 6
"""Bytes that one character takes in JSON at most."""


def cap_message(message: Message, most: int = MOST) -> Message:
    """Return the message, or what fits of it: texts are cut and say how long they were, pictures say how many bytes.

    Args:
        message: The message.
        most: Bytes that it may take as JSON.
    """
    if size_of(message) * _PER_LETTER <= min(most, _MOST_WIDE):
        return message
    written = orjson.dumps(message_to_dict(message))
    if _FOUR_BYTES.search(written):
        most = min(most, _MOST_WIDE)
    if len(written) <= most:
        return message
    calls = tuple(replace(call, arguments=_field(call.arguments)) for call in message.tool_calls)
    extra = {key: _field(value) for key, value in message.extra.items()}
    rest = replace(message, content="", tool_calls=calls, extra=extra)
    return replace(rest, content=_content(message.content, most - _length(message_to_dict(rest)) - _HEAD))


def shortened(text: str, letters: int = _HEAD) -> str:
    """Return a text's beginning, and how much of it was cut."""
    if len(text) <= letters:
        return text
    gone = len(text) - letters
    return f"{text[:letters]}… [{gone:,} of {len(text):,} characters were cut: too long to be kept]"


def size_of(message: Message) -> int:
    """About how many characters a message takes in a log."""
    size = 100 + sum(200 + len(call.name) + size_of_json(call.arguments) for call in message.tool_calls)
    if message.extra:
        size += size_of_json(message.extra)
    if isinstance(message.content, str):
        return size + len(message.content)
    return size + sum(map(_size_of_part, message.content))


def size_of_json(value: Any) -> int:
    """About how many characters a value takes as JSON."""
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


def _field(value: Any) -> Any:
    """A value as it is, or the beginning of its JSON."""
    spelled = orjson.dumps(value)
    return value if len(spelled) <= _FIELD else shortened(spelled.decode())


def _content(content: Content, room: int) -> Content:
    """Cut the longest pieces until all of them fit."""
    if isinstance(content, str):
        return _text(content, room)
    pieces, sizes = list(content), [_length_of_part(part) for part in content]
    over = sum(sizes) - room
    for n in sorted(range(len(pieces)), key=sizes.__getitem__, reverse=True):
        if over <= 0:
            break
        pieces[n] = _part(pieces[n], sizes[n] - over)
        over -= sizes[n] - _length_of_part(pieces[n])
    return tuple(pieces)


def _part(part: ContentPart, room: int) -> ContentPart:
    if part.type == "text" and part.text and not part.extra:
        return ContentPart.of_text(_text(part.text, room - _HEAD))
    kind = part.media_type or part.type
    size = len(part.data) if part.data is not None else _size_of_part(part)
    return ContentPart.of_text(f"[{kind} of {size:,} bytes was left out: too long to be kept]")


def _length_of_part(part: ContentPart) -> int:
    return _length(message_to_dict(Message("user", (part,))))


def _text(text: str, room: int) -> str:
    length = _length(text)
    letters = len(text) * (room - 200) // length if length > room else len(text)
    while letters > 0 and _length(shortened(text, letters)) > room:
        letters = letters * 7 // 8 - 100
    return shortened(text, max(0, letters))
