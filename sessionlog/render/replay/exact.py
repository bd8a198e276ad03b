"""Return calls, texts and JSON exactly as logged: with their key order, every digit and no escaped `<`.

A decoder turns 2.50 into 2.5 and 1e21 into 1e+21. Where a value holds fractional numbers, the event's bytes are decoded
again with these numbers left as text (`Digits`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import orjson

from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.events.sanitise import str_of_int
from sessionlog.messages import content_text
from sessionlog.messages.content_text import is_content
from sessionlog.messages.entry import arguments_text
from sessionlog.messages.json_value import decode_json
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render.replay.blocks import Call
from sessionlog.sources.values import objects

Json = Any
_DEPTH = 64
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e16
_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_line = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


class Digits(str):
    """The text of a number as logged."""

    __slots__ = ()


def exact(event: Event, key: str | None = None) -> Json:
    """Return a field of `event.data`, or all of it, with fractional numbers as `Digits`; None if it is absent."""
    value = _field(event.data, key)
    if event.raw is None or not _has_float(value):
        return value
    try:
        line = json.loads(event.raw, parse_float=Digits)
    except (ValueError, RecursionError):
        return value
    found = _field(_field(line, "data"), key)
    return value if found is None else found


def exact_elements(event: Event) -> Callable[[Json], Json]:
    """Return a function that maps an element of the event's `messages` to its exact form; it decodes the event once."""
    by_id: dict[int, Json] = {}

    def exact_of(logged: Json) -> Json:
        if not by_id:
            by_id.update(zip(map(id, event.data["messages"]), exact(event, "messages"), strict=False))
        return by_id.get(id(logged), logged)

    return exact_of


def compact_json(value: Json, depth: int = _DEPTH) -> str:
    """Return a JSON value on one line, keys in their order, cut where it is nested deeper; never raises."""
    if isinstance(value, Digits):
        return value
    if value is None or isinstance(value, str | bool):
        return _encode(value)
    if not isinstance(value, dict | list | tuple):
        return str_of_int(value)
    if not depth:
        return '"…"'
    if isinstance(value, dict):
        pairs = (f"{_encode(str(key))}:{compact_json(item, depth - 1)}" for key, item in value.items())
        return f"{{{','.join(pairs)}}}"
    return f"[{','.join(compact_json(item, depth - 1) for item in value)}]"


def _field(value: Json, key: str | None) -> Json:
    if key is None:
        return value
    return value.get(key) if isinstance(value, dict) else None


def _has_float(value: Json, depth: int = _DEPTH) -> bool:
    if isinstance(value, float):
        return True
    if depth == 0 or not isinstance(value, dict | list | tuple):
        return False
    items = value.values() if isinstance(value, dict) else value
    return any(_has_float(item, depth - 1) for item in items)


def error_of(event: Event) -> str:
    """Return an event's error as logged, other JSON than a text as JSON; "" for none."""
    if event.data.get("error") is None:
        return ""
    error = exact(event, "error")
    return text_of(error) if error else ""


def read_calls(value: Json) -> list[Call]:
    """Read `tool_calls`; a count, as in the oldest logs, gives none."""
    if not isinstance(value, list | tuple):
        return []
    return [_read_call(item) for item in value if isinstance(item, dict)]


def calls_in(message: Message, logged: Json) -> tuple[Call, ...]:
    """Return the tool calls of a message, as they stand in its logged form."""
    parts = (part for part in objects(logged, "content") if part.get("type") == "tool_use")
    found = [_read_call(item) for item in chain(objects(logged, "tool_calls"), parts)]
    return tuple(found if len(found) == len(message.tool_calls) else map(_call_of, message.tool_calls))


def _call_of(request: ToolRequest) -> Call:
    arguments = decode_json(arguments_text(request), parse_float=Digits)
    return Call(id=request.id, name=request.name, arguments=arguments, given=True)


def text_of(content: Json) -> str:
    """Return the text of a content, as `messages.content_text` does; other JSON as logged."""
    is_text = content is None or isinstance(content, str) or is_content(content)
    return content_text.text_of(content) if is_text else compact_json(content)


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


def event_json(event: Event) -> str:
    """Return the event's line without its line end: strict JSON; integers of any size keep their digits."""
    value = event.to_dict()
    line = _fast_json(value)
    if line is None:
        try:
            line = _encode_line(value)
        except (TypeError, ValueError, RecursionError):  # NaN, or nested deeper than the encoder allows
            line = json.dumps(json.loads(encode_object(value)), separators=(",", ":"))
    return line.replace("\x7f", "\\u007f")


def _fast_json(value: dict[str, Any]) -> str | None:
    """Return what `_encode_line` does, in 40 % of its time; None where orjson might write something else."""
    try:
        line = orjson.dumps(value)
    except TypeError:
        return None
    return str(line, "ascii") if line.isascii() and _has_plain_numbers(value) else None


def _has_plain_numbers(value: dict[str, Any] | list[Any]) -> bool:
    """Whether a value holds only JSON, and its fractional numbers are written without an exponent by everybody."""
    item: Any
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        if kind is str or kind is int or item is None:
            continue
        if kind is dict or kind is list:
            if not _has_plain_numbers(item):
                return False
        elif kind is float:
            if item and not _LEAST_PLAIN <= abs(item) < _MOST_PLAIN:
                return False
        elif kind is not bool:
            return False
    return True
