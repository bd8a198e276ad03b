"""A session as JSON text: what cannot come back as it went is refused by name, before anything is written.

`json` alone would turn the key 1 into "1" and write NaN, which is no JSON; orjson writes null for it and knows no
integers over 64 bits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from sessionlog.errors import InvalidHistory, InvalidSessionId

DEEPEST = 200
"""Levels of nesting; a session has six or so, and what its tools were given."""


def check_key(session_id: object) -> str:
    """Return the id if it is a text that a store can keep.

    Raises:
        InvalidSessionId: Empty, no text, or half a character.
    """
    if not isinstance(session_id, str) or not session_id:
        raise InvalidSessionId(f"session id {session_id!r}: it is a text that is not empty")
    if not session_id.isascii() and any("\ud800" <= letter <= "\udfff" for letter in session_id):
        raise InvalidSessionId(f"session id {session_id!r}: there is half a character in it")
    return session_id


def to_json(session_id: str, data: Mapping[str, Any]) -> str:
    """Return a session as one line of JSON that can be written as UTF-8.

    Raises:
        InvalidHistory: It is no mapping, or there is something in it that is not JSON; the message names its place.
    """
    if not isinstance(data, Mapping):
        raise InvalidHistory(f"session {session_id!r}: {type(data).__name__} cannot be saved; a session is a dict")
    _check(data, (), session_id)
    try:
        text = json.dumps(data if isinstance(data, dict) else dict(data), ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:  # half a character, as a stream that was cut may leave one
        return json.dumps(dict(data), separators=(",", ":"))
    except ValueError as error:  # an integer of more digits than Python prints
        raise InvalidHistory(f"session {session_id!r}: {error}; nothing was saved") from error
    return text


def from_json(text: object, place: str) -> dict[str, Any]:
    """Read what `to_json` made.

    Raises:
        InvalidHistory: It is something else; the message begins with `place`.
    """
    try:
        if not isinstance(text, str | bytes):
            raise TypeError(f"{type(text).__name__}, no text")  # noqa: TRY301 - told as the others are
        value = json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidHistory(f"{place}: not a saved session: {error}; it is left as it is") from error
    if not isinstance(value, dict):
        raise InvalidHistory(
            f"{place}: not a saved session: {type(value).__name__}, not an object; it is left as it is"
        )
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _check(value: Any, place: tuple[str | int, ...], session_id: str) -> None:
    """Refuse what JSON does not know, by its place."""
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bool:
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidHistory(_sentence(session_id, place, f"{value} is no JSON number"))
    elif len(place) >= DEEPEST:
        raise InvalidHistory(_sentence(session_id, place[:8], f"nested more than {DEEPEST} levels deep, or in itself"))
    elif isinstance(value, dict) or (not place and isinstance(value, Mapping)):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidHistory(_sentence(session_id, place, f"the key {key!r} is {type(key).__name__}, no text"))
            _check(item, (*place, key), session_id)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _check(item, (*place, number), session_id)
    elif not isinstance(value, str | int):
        raise InvalidHistory(_sentence(session_id, place, f"{kind.__name__} is not JSON"))


def _sentence(session_id: str, place: tuple[str | int, ...], flaw: str) -> str:
    where = "".join(f"[{step!r}]" for step in place) or "the session"
    return f"session {session_id!r}: {where}: {flaw}; nothing was saved"
