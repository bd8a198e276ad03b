"""Plain values: what is said is JSON from the moment it is a message, so that memory, log and store hold the same.

Numbers that JSON lacks (NaN, the infinities, integers of more than 64 bits) become their names as texts, half a
character becomes U+FFFD, tuples become lists, and what is no JSON at all is spelled as a log spells it. Nothing that is
JSON changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sessionlog.errors import InvalidHistory

DEEPEST = 180
"""Levels of nesting; writers of JSON end at about 200, and a message stands some levels deep itself."""

_INT64 = range(-(2**63), 2**64)


def plain_text(text: str) -> str:
    """Return a text that can be written; halves of characters that belong together become one."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def plain(value: Any) -> Any:
    """Return a copy of a value that is JSON.

    Raises:
        InvalidHistory: It is nested too deep, or in itself.
    """
    return _plain(value, DEEPEST)


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return plain_text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value in _INT64 else _spelled(value)
    if kind is float:
        return value if math.isfinite(value) else _NAMES[str(value)]
    if not depth:
        raise InvalidHistory("a value in it is nested too deep")
    if isinstance(value, Mapping):
        return {key if type(key) is str and key.isascii() else _key(key): _plain(item, depth - 1)
                for key, item in value.items()}  # fmt: skip
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return _plain(_spelled(value), depth - 1)


_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _key(key: object) -> str:
    (spelled,) = _spelled({key: None})
    return str(spelled)


def _spelled(value: object) -> Any:
    from sessionlog.events.sanitise import sanitise  # noqa: PLC0415 - 2 ms that ordinary messages never need

    return sanitise(value)
