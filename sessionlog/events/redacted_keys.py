"""Keys that redaction made equal: JSON readers keep only the last of them, so they are numbered."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from sessionlog.events.encode import encode_object
from sessionlog.events.redact import MARK, redact_line
from sessionlog.events.sanitise import distinct_keys

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"(:?)')


def with_distinct_keys(line: bytes, redacted: bytes) -> bytes:
    """Return `redacted`; if two or more keys held a secret, `line` redacted again with numbered keys."""
    strings = _STRING.finditer(redacted)
    if sum(bool(string[1]) and MARK in string[0] for string in strings) < 2:
        return redacted
    return redact_line(encode_object(json.loads(line, object_pairs_hook=_object)))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return distinct_keys((_redacted_key(key), value) for key, value in pairs)


def _redacted_key(key: str) -> str:
    text: str = orjson.loads(redact_line(orjson.dumps(key)))
    return text
