"""One line of bytes → events.

Decoding never raises: it gives the events a line holds and the flaws that were met on the way, as values. The ladder is
orjson first, which refuses whatever is not strict JSON; then a lenient pass for what other writers leave behind (byte
order marks, NULs, invalid UTF-8, lone surrogates, raw control characters, several documents on a line, a torn line
glued to a whole one).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from sessionlog.errors import Severity
from sessionlog.events.envelope import Event, keep_raw
from sessionlog.events.times import parse_time

_ENVELOPE = frozenset({"session_id", "seq", "type", "ts", "data"})
_TIMES = ("ts", "timestamp")
_FOLDED = _ENVELOPE | {"timestamp"}
_BEYOND_64_BITS = 2.0**63
_FILLER = re.compile("[ \t\r\n\x00\ufeff]*")
_OBJECT_HEAD = re.compile(r'\{\s*"(?:session_id|seq|type|ts|timestamp|data)"\s*:', re.IGNORECASE)
_RESYNCS = 64  # failed attempts to find the next event within one damaged line; bounds the work on hostile input
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Something wrong with one line; the reader turns it into a `Problem` by adding the place.

    Attributes:
        kind: A word of `Problem.kind`.
        detail: What was found.
        start: Byte offset inside the line.
        length: Bytes lost; 0 when the event was read all the same.
        severity: `info` when nothing was lost.
    """

    kind: str
    detail: str
    start: int = 0
    length: int = 0
    severity: Severity = "damage"


def decode_line(line: bytes) -> tuple[list[Event], list[Flaw]]:
    """Return the events of one line, in order, and its flaws. Blank lines give neither."""
    line = line.rstrip(b"\r\n")
    if not line:
        return [], []
    try:
        value = _loads(line)
    except (ValueError, RecursionError):
        return _decode_damaged(line)
    if isinstance(value, dict):
        return _single(value, line)
    kind = type(value).__name__
    return [], [Flaw(kind="not_object", detail=f"a JSON {kind} is not an event", length=len(line))]


def _loads(line: bytes) -> Any:
    """Parse strict JSON; numbers that orjson would turn into floats keep all their digits."""
    value = orjson.loads(line)
    if _has_huge_number(value):
        with suppress(ValueError, RecursionError):
            return json.loads(line)
    return value


def _has_huge_number(value: Any) -> bool:
    """Whether a float may have been an integer beyond 64 bits: looking at values is 20 times faster than at text."""
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo.extend(item.values())
        elif type(item) is list:
            todo.extend(item)
        elif type(item) is float and (item >= _BEYOND_64_BITS or item <= -_BEYOND_64_BITS):
            return True
    return False


def _single(value: dict[str, Any], line: bytes) -> tuple[list[Event], list[Flaw]]:
    event, flaw = event_of(value)
    if event is None:
        assert flaw is not None
        return [], [Flaw(kind=flaw.kind, detail=flaw.detail, length=len(line))]
    return [keep_raw(event, line)], [flaw] if flaw else []


def event_of(value: dict[str, Any]) -> tuple[Event | None, Flaw | None]:
    """Make an event of a decoded object; (None, flaw) if it has no type, (event, flaw) if a field was mended."""
    type_ = value.get("type")
    if type_ is None or not (value.keys() >= _ENVELOPE):
        value = _fold_keys(value)
        type_ = value.get("type")
    if not isinstance(type_, str) or not type_:
        return None, Flaw(kind="bad_envelope", detail="an object without a type is not an event")
    issues: list[str] = []
    session_id = value.get("session_id", "")
    if not isinstance(session_id, str):
        issues.append("session_id is not a string")
        session_id = str(session_id) if isinstance(session_id, int) else ""
    seq = value.get("seq", 0)
    if type(seq) is not int:
        issues.append("seq is not an integer")
        seq = int(seq) if isinstance(seq, str) and seq.isascii() and seq.isdigit() and len(seq) < 19 else 0
    ts = value.get("ts")
    if ts is None:
        ts = value.get("timestamp", "")
    if not isinstance(ts, str):
        issues.append("ts is not a string")
        ts = ""
    elif parse_time(ts) is None:
        issues.append(f"ts {ts[:40]!r} is not a time" if ts else "no ts")
    extra = {} if value.keys() == _ENVELOPE else {k: v for k, v in value.items() if k not in _ENVELOPE}
    event = Event(session_id=session_id, seq=seq, type=type_, ts=ts, data=value.get("data"), extra=extra)
    if issues:
        return event, Flaw(kind="bad_envelope", detail="; ".join(issues), severity="info")
    return event, None


def _fold_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Match envelope keys in any case, as Go's decoder does, and then the payload's too; exact spellings win."""
    if all(key in _FOLDED or key.lower() not in _FOLDED for key in value):
        return value
    folded = {key.lower() if key.lower() in _FOLDED else key: item for key, item in value.items()}
    folded.update({key: item for key, item in value.items() if key in _FOLDED})
    data = folded.get("data")
    if isinstance(data, dict):
        lower = {key.lower(): item for key, item in data.items()}
        folded["data"] = lower | {key: item for key, item in data.items() if key == key.lower()}
    return folded


class _Found(NamedTuple):
    """An object inside a damaged line, and where it begins and ends in the line's text."""

    value: dict[str, Any]
    start: int
    end: int
    bad_utf8: bool


def _decode_damaged(line: bytes) -> tuple[list[Event], list[Flaw]]:
    events: list[Event] = []
    flaws: list[Flaw] = []
    for item in _pieces(line):
        if isinstance(item, Flaw):
            flaws.append(item)
            continue
        value, start, piece = item
        event, flaw = event_of(value)
        if event is None:
            assert flaw is not None
            flaws.append(replace(flaw, start=start, length=len(piece)))
            continue
        events.append(keep_raw(event, piece))
        if flaw:
            flaws.append(replace(flaw, start=start))
    return events, flaws


def _pieces(line: bytes) -> Iterator[Flaw | tuple[dict[str, Any], int, bytes]]:
    """Walk a damaged line: whole objects, and flaws for what lies between them.

    The walk goes over the text, decoded once, and counts the bytes along: a line may hold any number of events.
    """
    text = line.decode("utf-8", "surrogateescape")
    at = pos = 0  # the same place in the bytes and in the text
    while True:
        filler = _FILLER.match(text, pos)
        start = filler.end() if filler else pos
        nuls = text.count("\x00", pos, start)
        if nuls:
            first, last = text.index("\x00", pos), text.rindex("\x00", pos, start)
            place = at + _size(text, pos, first)
            yield Flaw(kind="nul_bytes", detail=f"{nuls} NUL bytes", start=place, length=_size(text, first, last + 1))
        at += _size(text, pos, start)
        if start >= len(text):
            return
        found = _decode_at(text, start)
        if found is None:
            found = _resync(text, start + 1)
            broken = _size(text, start, found.start if found else len(text))
            yield flaw_for(line[at : at + broken], at)
            if found is None:
                return
            at += broken
        length = _size(text, found.start, found.end)
        yield found.value, at, line[at : at + length]
        if found.bad_utf8:
            yield Flaw(kind="bad_utf8", detail="invalid UTF-8 was replaced", start=at, severity="info")
        at, pos = at + length, found.end


def _size(text: str, start: int, end: int) -> int:
    return end - start if text.isascii() else len(text[start:end].encode("utf-8", "surrogateescape"))


def _resync(text: str, pos: int) -> _Found | None:
    """Find the next whole event behind a piece that is none.

    Only an object that says whose event it is and when counts: a torn event's payload is full of objects with a type.
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
        elif _is_whole(_fold_keys(found.value)):
            return found
        else:
            pos = found.end
    return None


def _is_whole(value: dict[str, Any]) -> bool:
    named = "session_id" in value or "seq" in value
    return named and isinstance(value.get("type"), str) and any(key in value for key in _TIMES)


def _decode_at(text: str, start: int) -> _Found | None:
    """Decode the object that begins at `start`; None where there is none, or no whole one."""
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
    return _Found(value, start, end, bad_utf8)


def without_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates, which neither UTF-8 nor SQLite can hold, by U+FFFD."""
    text = json.dumps(value, ensure_ascii=False)
    if not _SURROGATE.search(text):
        return value
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def flaw_for(piece: bytes, start: int) -> Flaw:
    """Name what an undecodable piece most likely is."""
    length = len(piece)
    if piece.count(b"[", 0, 4096) + piece.count(b"{", 0, 4096) > 1000:
        return Flaw(kind="too_deep", detail="nested too deeply to read", start=start, length=length)
    try:
        orjson.loads(piece)
    except ValueError:
        return Flaw(kind="not_json", detail=f"{length} bytes are not JSON", start=start, length=length)
    return Flaw(kind="not_object", detail=f"{length} bytes of JSON are not an event", start=start, length=length)
