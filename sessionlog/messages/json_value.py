"""JSON values out of whatever a program or a provider hands over: copied, cleaned, or refused by their place.

Numbers that JSON or a log lacks (NaN, the infinities, integers of more than 64 bits) become their names as text,
half of a surrogate pair becomes U+FFFD, tuples become lists, and objects become what `events.sanitise` makes of them.
Nothing that is JSON changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from sessionlog.errors import InvalidHistory

MAX_DEPTH = 180
"""Levels of nesting; JSON writers stop at about 200, and a message is some levels deep itself."""

_INT64 = range(-(2**63), 2**64)
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_Path = tuple[str | int, ...]


def json_value(value: Any) -> Any:
    """Return a copy of any value as JSON types (`dict`, `list`, `str`, `int`, `float`, `bool`, None).

    Raises:
        InvalidHistory: It is nested too deep, or contains itself.
    """
    return _named(value, MAX_DEPTH)


def strict_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of a JSON value; integers of any size and unpaired surrogates, which JSON text can hold, stay.

    Args:
        value: The value.
        depth: How many levels of nesting are allowed.

    Raises:
        InvalidHistory: It is nested deeper, contains itself, or something in it is no JSON; the error names the place,
            as `['messages'][3]['extra']`.
    """
    return _checked(value, depth, ())


def json_text(value: Any, *, compact: bool = False) -> str:
    """Return a value as JSON text, what JSON lacks as `str()` gives it and bytes as their number. Never raises.

    Args:
        value: Anything.
        compact: Without blanks after commas and colons, as providers are sent it.
    """
    separators = (",", ":") if compact else None
    try:
        return json.dumps(value, ensure_ascii=False, default=_described, separators=separators)
    except Exception:  # noqa: BLE001 - a circle, a key that is no text, a `__str__` that raises
        try:
            return str(value)
        except Exception:  # noqa: BLE001 - a `__str__` may do anything
            return object.__repr__(value)


def valid_text(text: str) -> str:
    """Return a text that UTF-8 can hold: surrogate pairs are joined, unpaired surrogates become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def decode_json(value: Any, *, parse_float: Callable[[str], object] | None = None) -> Any:
    """Return the object or list of a JSON text; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value, parse_float=parse_float)
    except (ValueError, RecursionError):
        return value


def decode_object(text: str) -> Any:
    """Return the object of a JSON text; a text that is none as it is."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _named(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return valid_text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value in _INT64 else _sanitised(value)
    if kind is float:
        return value if math.isfinite(value) else _NAMES[str(value)]
    if not depth:
        raise InvalidHistory("a value in it is nested too deep")
    if isinstance(value, Mapping):
        return {key if type(key) is str and key.isascii() else _key(key): _named(item, depth - 1)
                for key, item in value.items()}  # fmt: skip
    if isinstance(value, list | tuple):
        return [_named(item, depth - 1) for item in value]
    return _named(_sanitised(value), depth - 1)


def _checked(value: Any, depth: int, path: _Path) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidHistory(f"{_place(path)}: {value} is no JSON number")
        return value
    if not depth:
        raise InvalidHistory(f"{_place(path[:8])}: nested more than {len(path)} levels deep, or in itself")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidHistory(f"{_place(path)}: the key {key!r} is {type(key).__name__}, no text")
        return {key: _checked(item, depth - 1, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(item, depth - 1, (*path, n)) for n, item in enumerate(value)]
    raise InvalidHistory(f"{_place(path)}: {type(value).__name__} is not JSON")


def _key(key: object) -> str:
    (name,) = _sanitised({key: None})
    return str(name)


def _sanitised(value: object) -> Any:
    from sessionlog.events.sanitise import sanitise  # noqa: PLC0415 - 2 ms that ordinary messages never need

    return sanitise(value)


def _described(value: object) -> str:
    return f"[{len(value)} bytes]" if isinstance(value, bytes | bytearray) else str(value)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _place(path: _Path) -> str:
    return "".join(f"[{step!r}]" for step in path) or "the value"
