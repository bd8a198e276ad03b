"""A damaged line → the whole objects in it, and problems for the bytes between them.

What other writers and crashes leave is read as far as possible: byte order marks, NULs, invalid UTF-8, lone surrogates,
raw control characters, several documents on a line, a torn line joined to a whole one. Every byte is part of an object,
of a problem, or filler; the work is bounded by the length of the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from sessionlog.errors import Severity
from sessionlog.events.decoded_size import LARGE, too_large

_FILLER = re.compile("[ \t\r\n\x00\ufeff]*")
_OBJECT_HEAD = re.compile(r'\{\s*"(?:session_id|seq|type|ts|timestamp|data)"\s*:', re.IGNORECASE)
_RESYNCS = 64  # failed attempts to find the next event within one damaged line; bounds the work on hostile input
_DEEPEST = 1024  # as orjson
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProblem:
    """A `Problem` of one line, without path and line number, which the reader adds.

    Attributes:
        kind: As `Problem.kind`.
        detail: What was found.
        start: Byte offset inside the line.
        length: Bytes lost; 0 when the event could be read.
        severity: `info` when nothing was lost.
    """

    kind: str
    detail: str
    start: int = 0
    length: int = 0
    severity: Severity = "damage"


class Found(NamedTuple):
    """An object inside a damaged line, and where it begins and ends in the line's text."""

    value: dict[str, Any]
    start: int
    end: int
    bad_utf8: bool


def find_objects(line: bytes) -> Iterator[LineProblem | tuple[dict[str, Any], int, bytes]]:
    """Yield the whole objects of a damaged line as (object, byte offset, bytes), and problems for what is between them.

    The text is decoded once, and byte offsets are counted along: a line may hold any number of events.
    """
    if len(line) > LARGE and (detail := too_large(line, copies=3)):
        yield LineProblem(kind="too_large", detail=detail, length=len(line))
        return
    text = line.decode("utf-8", "surrogateescape")
    at = pos = 0  # the same position in the bytes and in the text
    while True:
        filler = _FILLER.match(text, pos)
        start = filler.end() if filler else pos
        nuls = text.count("\x00", pos, start)
        if nuls:
            first, last = text.index("\x00", pos), text.rindex("\x00", pos, start)
            begin, length = at + _size(text, pos, first), _size(text, first, last + 1)
            yield LineProblem(kind="nul_bytes", detail=f"{nuls} NUL bytes", start=begin, length=length)
        at += _size(text, pos, start)
        if start >= len(text):
            return
        found = _decode_at(text, start)
        if found is None:
            found = _resync(text, start + 1)
            broken = _size(text, start, found.start if found else len(text))
            yield problem_in(line[at : at + broken], at)
            if found is None:
                return
            at += broken
        length = _size(text, found.start, found.end)
        yield found.value, at, line[at : at + length]
        if found.bad_utf8:
            yield LineProblem(kind="bad_utf8", detail="invalid UTF-8 was replaced", start=at, severity="info")
        at, pos = at + length, found.end


def _size(text: str, start: int, end: int) -> int:
    return end - start if text.isascii() else len(text[start:end].encode("utf-8", "surrogateescape"))


def _resync(text: str, pos: int) -> Found | None:
    """Find the next whole event after a piece that is not one.

    Only an object with a session id or seq and a time counts: a torn event's payload is full of objects with a type.
    """
    tries = _RESYNCS
    while tries:
        head = _OBJECT_HEAD.search(text, pos)
        if head is None:
            break
        found = _decode_at(text, head.start())
        if found is None:
            tries -= 1
            pos = head.start() + 1
        elif _is_whole(found.value):
            return found
        else:
            pos = found.end
    return None


def _is_whole(value: dict[str, Any]) -> bool:
    keys = {key.lower(): item for key, item in value.items()}
    return (
        isinstance(keys.get("type"), str)
        and ("session_id" in keys or "seq" in keys)
        and ("ts" in keys or "timestamp" in keys)
    )


def _decode_at(text: str, start: int) -> Found | None:
    """Decode the object that begins at `start`; None if there is no whole one."""
    if text[start] != "{":
        return None
    try:
        value, end = _LENIENT.raw_decode(text, start)
        bad_utf8 = _SURROGATE.search(text, start, end) is not None
        if bad_utf8:
            mended = text[start:end].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            value = _LENIENT.decode(mended)
        if _ESCAPED_SURROGATE.search(text, start, end):
            value = without_surrogates(value)
    except (ValueError, RecursionError):
        return None
    return None if _is_too_deep(value) else Found(value, start, end, bad_utf8)


def _is_too_deep(value: Any) -> bool:
    """Whether a value is nested more than `_DEEPEST` levels: Python's own limit differs between versions."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def without_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates, which neither UTF-8 nor SQLite can hold, by U+FFFD."""
    text = json.dumps(value, ensure_ascii=False)
    if not _SURROGATE.search(text):
        return value
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def problem_in(piece: bytes, start: int) -> LineProblem:
    """Return the problem that describes an undecodable piece best."""
    length = len(piece)
    if piece.count(b"[", 0, 4096) + piece.count(b"{", 0, 4096) > 1000:
        return LineProblem(kind="too_deep", detail="nested too deeply to read", start=start, length=length)
    try:
        orjson.loads(piece)
    except ValueError:
        return LineProblem(kind="not_json", detail=f"{length} bytes are not JSON", start=start, length=length)
    return LineProblem(kind="not_object", detail=f"{length} bytes of JSON are not an event", start=start, length=length)
