"""JSON text for people that keeps what was logged: key order, every digit, no escaped `<`.

A decoder turns 2.50 into 2.5 and 1e21 into 1e+21. Where a value holds such numbers, the event's own bytes are read once
more with the numbers left as text (`Digits`).
"""

from __future__ import annotations

import json
from typing import Any

from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.events.sanitise import str_of_int

Json = Any
_DEPTH = 64
_encode = json.JSONEncoder(ensure_ascii=False).encode


class Digits(str):
    """The text of a number as it stood in the log."""

    __slots__ = ()


def exact(event: Event, *path: str) -> Json:
    """Return the value at `path` below `event.data`, with its fractional numbers as `Digits`; None if it is absent."""
    value = _at(event.data, path)
    if event.raw is None or not _has_float(value):
        return value
    try:
        line = json.loads(event.raw, parse_float=Digits)
    except (ValueError, RecursionError):
        return value
    found = _at(line.get("data") if isinstance(line, dict) else None, path)
    return value if found is None else found


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


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _has_float(value: Json, depth: int = _DEPTH) -> bool:
    if isinstance(value, float):
        return True
    if depth == 0 or not isinstance(value, dict | list | tuple):
        return False
    items = value.values() if isinstance(value, dict) else value
    return any(_has_float(item, depth - 1) for item in items)


def event_json(event: Event) -> str:
    """Return the event's line, without its end; strict JSON, integers of any size keep their digits."""
    value = event.to_dict()
    try:
        line = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # not-a-number, or deeper than a reader would follow
        line = json.dumps(json.loads(encode_object(value)), separators=(",", ":"))
    return line.replace("\x7f", "\\u007f")
