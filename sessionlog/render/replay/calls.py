"""What was called and what came back, as logged: every digit, and a word for what is no text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.messages import content_text
from sessionlog.messages.content_text import is_content
from sessionlog.messages.entry import arguments_text
from sessionlog.messages.json_value import decode_json
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import Digits, compact_json

Json = Any


def error_text(value: Json) -> str:
    """Return an error as logged: a text, or whatever else a writer put there; "" for what says that there is none."""
    return text_of(value) if value else ""


def read_calls(value: Json) -> list[Call]:
    """Read `tool_calls`; a count, as in the oldest logs, gives none."""
    if not isinstance(value, list | tuple):
        return []
    return [_read_call(item) for item in value if isinstance(item, dict)]


def calls_in(message: Message, logged: Json) -> tuple[Call, ...]:
    """Return the calls that a message makes, as they stand in what was logged of it."""
    fields = logged if isinstance(logged, dict) else {}
    content = fields.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    found = [
        *read_calls(fields.get("tool_calls")),
        *(_read_call(part) for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"),
    ]
    return tuple(found if len(found) == len(message.tool_calls) else map(_call_of, message.tool_calls))


def _call_of(request: ToolRequest) -> Call:
    arguments = decode_json(arguments_text(request), parse_float=Digits)
    return Call(id=request.id, name=request.name, arguments=arguments, given=True)


def text_of(content: Json) -> str:
    """Return what a content says, as `messages.content_text` does; other JSON as logged."""
    is_words = content is None or isinstance(content, str) or is_content(content)
    return content_text.text_of(content) if is_words else compact_json(content)


def _read_call(item: Mapping[str, Json]) -> Call:
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    key = next((key for key in ("arguments", "input", "args") if key in inner), None)
    return Call(
        id=_word(item.get("id")) or _word(item.get("tool_call_id")),
        name=_word(inner.get("name")) or _word(item.get("tool_name")),
        arguments=decode_json(inner[key], parse_float=Digits) if key else None,
        given=key is not None,
    )


def _word(value: Json) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
