"""The heads of rows as Codex writes them, and the proof that a line holds no more than one row."""

from __future__ import annotations

from collections.abc import Callable

from sessionlog.reader.search import find as search_far
from sessionlog.reader.search import searchers

Way = Callable[[bytes, int, int, int], bool]
"""(data, at, stop, time_ns) → whether the row at data[at:stop] was accounted for; else it was left untouched."""

AT, TO = 38, 91
"""Where a row's type stands behind a timestamp in milliseconds, with the beginning of its payload's type."""

ITEM = b'","type":"response_item","payload":{"type":"'
EVENT = b'","type":"event_msg","payload":{"type":"'
TURN = b'","type":"turn_context","payload":{"turn_id":"'

_KEY = b'"timestamp"'
_PAYS = 1 << (9 if "stringzilla" in searchers() else 14)
"""Bytes from which on a foreign search pays."""


def is_alone(data: bytes, at: int, stop: int) -> bool:
    """Whether no other row begins in the row at data[at:stop]: in a text, the quotes of its first key are escaped."""
    at += TO
    return (data.find(_KEY, at, stop) if stop - at < _PAYS else search_far(data, _KEY, at, stop)) < 0
