"""Server-sent events: the JSON objects in a stream of bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

MAX_EVENT = 16 << 20
"""Bytes of the longest event that is read; longer ones are skipped."""

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class EventStreamParser:
    """Parses the events of one stream, whatever pieces its bytes come in."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of the events that end in a piece; comments and data that is no JSON object are skipped."""
        piece = self._rest + piece
        *events, self._rest = _END.split(piece) if b"\r" in piece else piece.split(b"\n\n")
        if len(self._rest) > MAX_EVENT:
            self._rest = b""
        for event in events:
            yield from _objects(event)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """Yield the object of a last event that does not end with an empty line, as some servers send it."""
        rest, self._rest = self._rest, b""
        yield from _objects(rest)


def _objects(event: bytes) -> Iterator[Mapping[str, Any]]:
    if event.startswith(b"data:") and b"\n" not in event:
        data = event[5:]
    else:
        data = b"\n".join(line[5:] for line in event.splitlines() if line.startswith(b"data:"))
    try:
        found = orjson.loads(data) if data else None
    except ValueError:
        return
    if isinstance(found, dict):
        yield found
