"""What was called and what came back, as logged: every digit, and a word for what is no text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.messages.entry import arguments_text
from sessionlog.messages.json_value import decode_json
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import Digits, compact_json

Json = Any
_TEXT_KEYS = ("text", "thinking", "content", "input_text", "output_text")


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
    """Return what a content says: a string, or parts of which the text is joined and the rest is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and all(map(_is_part, content)):
        return "\n".join(text for part in content if (text := _part_text(part)))
    return compact_json(content)


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


def _is_part(value: Json) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("type"), str))


def _part_text(part: Json) -> str:
    if isinstance(part, str):
        return part
    kind = part["type"]
    if kind in {"tool_use", "tool_result"}:
        return ""
    for key in _TEXT_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
    return f"[{kind}]"


def _word(value: Json) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
