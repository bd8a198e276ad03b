"""Sessions as JSON text: a value that would not be read back unchanged is refused, with its place, before writing.

`json` alone would turn the key 1 into "1" and write NaN, which is not JSON; orjson writes null for it and refuses
integers over 64 bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from sessionlog.errors import InvalidHistory, InvalidSessionId
from sessionlog.messages.json_value import strict_json

MAX_DEPTH = 200
"""Levels of nesting; a session has about six, plus those of tool arguments."""


def check_key(session_id: object) -> str:
    """Return the id if a store can use it.

    Raises:
        InvalidSessionId: It is empty, not a text, or not valid Unicode.
    """
    if not isinstance(session_id, str) or not session_id:
        raise InvalidSessionId(f"session id {session_id!r}: it has to be a text that is not empty")
    if not session_id.isascii() and any("\ud800" <= letter <= "\udfff" for letter in session_id):
        raise InvalidSessionId(f"session id {session_id!r}: it contains an unpaired surrogate")
    return session_id


def to_json(session_id: str, data: Mapping[str, Any]) -> str:
    """Return a session as one line of JSON that can be written as UTF-8.

    Raises:
        InvalidHistory: The data is not a mapping, or contains something that is not JSON; the message names its place.
    """
    if not isinstance(data, Mapping):
        raise InvalidHistory(f"session {session_id!r}: {type(data).__name__} cannot be saved; a session is a dict")
    try:
        value = strict_json(data, MAX_DEPTH)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate: a truncated stream may end with one
        return json.dumps(value, separators=(",", ":"))
    except ValueError as error:  # not JSON, or an integer of more digits than Python prints
        raise InvalidHistory(f"session {session_id!r}: {error}; nothing was saved") from error
    return text


def from_json(text: object, place: str) -> dict[str, Any]:
    """Parse the text of `to_json`; `place` is for error messages.

    Raises:
        InvalidHistory: It is not such a text.
    """
    try:
        if not isinstance(text, str | bytes):
            raise TypeError(f"{type(text).__name__}, not a text")  # noqa: TRY301 - one error for all
        value = json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidHistory(f"{place}: not a saved session: {error}; it is left as it is") from error
    if not isinstance(value, dict):
        raise InvalidHistory(
            f"{place}: not a saved session: {type(value).__name__}, not an object; it is left as it is"
        )
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
