"""Server-sent events: the JSON objects in a stream of bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

MAX_EVENT = 16 << 20
"""Bytes of the longest event that is read; longer ones are skipped."""

MAX_VALUES = 1 << 20
"""Values of a JSON text that is parsed, about: a million may be 3 MB of text, and take 100 MB. Real ones have less."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class EventStreamParser:
    """Parses the events of one stream, whatever pieces its bytes come in."""

    def __init__(self) -> None:
        self._rest = bytearray()  # of an event that has not ended
        self._searched = 0
        self._has_begun = False

    def feed(self, piece: bytes) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of the events that end in a piece; comments and data that is no JSON object are skipped."""
        if not self._has_begun:
            piece, self._has_begun = piece.removeprefix(_BYTE_ORDER_MARK), True
        rest = self._rest
        if not rest and piece.endswith(b"\n\n") and b"\r" not in piece:  # whole events, as most pieces are
            for event in piece[:-2].split(b"\n\n"):
                yield from _objects(event)
            return
        rest += piece
        start, at = 0, max(0, self._searched - 3)  # an end may be cut
        while end := _END.search(rest, at):
            event = bytes(rest[start : end.start()])
            start = at = end.end()
            yield from _objects(event)
        del rest[: start if len(rest) - start <= MAX_EVENT else len(rest)]
        self._searched = len(rest)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """Yield the object of a last event that does not end with an empty line, as some servers send it."""
        rest, self._rest = bytes(self._rest), bytearray()
        yield from _objects(rest)


def _objects(event: bytes) -> Iterator[Mapping[str, Any]]:
    if event.startswith(b"data:") and b"\n" not in event:
        data = event[5:]
    else:
        data = b"\n".join(line[5:] for line in event.splitlines() if line.startswith(b"data:"))
    found = parse_json(data) if data else None
    if isinstance(found, dict):
        yield found


def parse_json(data: bytes) -> Any:
    """Parse JSON as clients do, who take NaN, halves of letters and a byte order mark; None for what is none.

    Raises:
        ValueError: It has more than MAX_VALUES values: parsing them would take much time and memory.
    """
    if _marks(data) > MAX_VALUES and _marks_outside_texts(data) > MAX_VALUES:
        raise ValueError(f"a JSON text of {len(data):,} bytes with more than {MAX_VALUES:,} values")
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _marks(data: bytes) -> int:
    """Count the characters that begin a value or stand between two; those within texts count, too."""
    return sum(map(data.count, (b",", b"[", b"{")))


def _marks_outside_texts(data: bytes) -> int:
    """Count the same without those in texts; many texts count as they are, too many to look between them."""
    data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = data.count(b'"')
    return quotes if quotes > 4 * MAX_VALUES else _marks(b"".join(data.split(b'"')[::2]))
