"""JSON values from anything that a program or a provider passes: `json_value` converts, `strict_json` refuses.

`json_value` turns numbers that JSON or a log lacks (NaN, infinities, integers of more than 64 bits) into text, unpaired
surrogates into U+FFFD, tuples into lists, and other objects into what `events.sanitise` returns. JSON stays as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sessionlog.errors import InvalidHistory

MAX_DEPTH = 180
"""Levels of nesting: JSON writers allow about 200, and the message around a value takes some."""

_INT64 = range(-(2**63), 2**64)
_Path = tuple[str | int, ...]


def json_value(value: Any) -> Any:
    """Return a copy of any value as JSON types (`dict`, `list`, `str`, `int`, `float`, `bool`, None).

    Raises:
        InvalidHistory: It is nested too deep, or contains itself.
    """
    return _to_json(value, MAX_DEPTH)


def strict_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of a JSON value; integers of any size and unpaired surrogates stay, for JSON text can hold them.

    Args:
        value: The value.
        depth: How many levels of nesting are allowed.

    Raises:
        InvalidHistory: It is nested deeper, contains itself, or a value in it is not JSON; the error names the path,
            as `['messages'][3]['extra']`.
    """
    return _checked(value, depth, ())


def json_text(value: Any, *, compact: bool = False) -> str:
    """Return any value as JSON text: other objects by `str()`, bytes by their number, NaN by its name. Never raises.

    Args:
        value: Anything.
        compact: Without blanks after commas and colons, as it is sent to providers.
    """
    separators = (",", ":") if compact else None
    write = partial(json.dumps, ensure_ascii=False, default=_default_text, separators=separators)
    try:
        try:
            return write(value, allow_nan=False)
        except ValueError:  # NaN, an infinity, or a cycle
            return write(json.loads(write(value), parse_constant=str))
    except Exception:  # noqa: BLE001 - a cycle, a key that is not a text, a `__str__` that raises
        try:
            return str(value)
        except Exception:  # noqa: BLE001 - `__str__` may raise anything
            return object.__repr__(value)


def valid_text(text: str) -> str:
    """Return a text that UTF-8 can encode: join surrogate pairs, replace unpaired surrogates by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def decode_json(value: Any, *, parse_float: Callable[[str], object] | None = None) -> Any:
    """Return the object or list in a JSON text; anything else unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value, parse_float=parse_float)
    except (ValueError, RecursionError):
        return value


def decode_object(text: str) -> Any:
    """Return the object in a JSON text; any other text unchanged."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _to_json(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return valid_text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value in _INT64 else _sanitised(value)
    if kind is float:
        return value if math.isfinite(value) else _sanitised(value)
    if not depth:
        raise InvalidHistory("a value in it is nested too deep")
    if isinstance(value, Mapping):
        return {key if type(key) is str and key.isascii() else _key(key): _to_json(item, depth - 1)
                for key, item in value.items()}  # fmt: skip
    if isinstance(value, list | tuple):
        return [_to_json(item, depth - 1) for item in value]
    return _to_json(_sanitised(value), depth - 1)


def _checked(value: Any, depth: int, path: _Path) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidHistory(f"{_place(path)}: {value} is not a JSON number")
        return value
    if not depth:
        raise InvalidHistory(f"{_place(path[:8])}: nested more than {len(path)} levels deep, or contains itself")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidHistory(f"{_place(path)}: the key {key!r} is {type(key).__name__}, not a text")
        return {key: _checked(item, depth - 1, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(item, depth - 1, (*path, n)) for n, item in enumerate(value)]
    raise InvalidHistory(f"{_place(path)}: {type(value).__name__} is not JSON")


def _key(key: object) -> str:
    (name,) = _sanitised({key: None})
    return str(name)


def _sanitised(value: object) -> Any:
    from sessionlog.events.sanitise import sanitise

    return sanitise(value)


def _default_text(value: object) -> str:
    return f"[{len(value)} bytes]" if isinstance(value, bytes | bytearray) else str(value)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _place(path: _Path) -> str:
    return "".join(f"[{step!r}]" for step in path) or "the value"
