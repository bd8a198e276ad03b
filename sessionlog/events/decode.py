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
from dataclasses import dataclass
from typing import Any

import orjson

from sessionlog.errors import Severity
from sessionlog.events.envelope import Event, keep_raw
from sessionlog.events.times import parse_time

_ENVELOPE = frozenset({"session_id", "seq", "type", "ts", "data"})
_HUGE_NUMBER = re.compile(rb"[:\[,\s-]\d{20}")
_FILLER = b" \t\r\n\x00\xef\xbb\xbf"
_OBJECT_HEAD = re.compile(rb'\{\s*"(?:session_id|seq|type|ts|timestamp|data)"\s*:', re.IGNORECASE)
_RESYNCS = 64  # attempts to find the next event within one damaged line; bounds the work on hostile input
_LENIENT = json.JSONDecoder(strict=False)
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    if _HUGE_NUMBER.search(line):
        return json.loads(line)
    return value


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
    """Match envelope and payload keys whatever their case, as Go's decoder does; exact spellings win."""
    if all(key == key.lower() for key in value):
        return value
    folded = {key.lower(): item for key, item in value.items()}
    folded.update({key: item for key, item in value.items() if key == key.lower()})
    data = folded.get("data")
    if isinstance(data, dict):
        lower = {key.lower(): item for key, item in data.items()}
        folded["data"] = lower | {key: item for key, item in data.items() if key == key.lower()}
    return folded


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
            flaws.append(Flaw(kind=flaw.kind, detail=flaw.detail, start=start, length=len(piece)))
            continue
        events.append(keep_raw(event, piece))
        if flaw:
            flaws.append(flaw)
    return events, flaws


def _pieces(line: bytes) -> Iterator[Flaw | tuple[dict[str, Any], int, bytes]]:
    """Walk a damaged line: whole objects, and flaws for what lies between them."""
    pos, end = 0, len(line)
    for _ in range(_RESYNCS):
        start = _skip_filler(line, pos)
        nuls = line.count(b"\x00", pos, start)
        if nuls:
            yield Flaw(kind="nul_bytes", detail=f"{nuls} NUL bytes", start=pos, length=nuls)
        if start >= end:
            return
        value, length, flaw = _decode_prefix(line[start:]) if line[start] == 0x7B else (None, 0, None)
        if value is not None:
            yield value, start, line[start : start + length]
            if flaw:
                yield flaw
            pos = start + length
            continue
        head = _OBJECT_HEAD.search(line, start + 1)
        pos = head.start() if head else end
        yield flaw_for(line[start:pos], start)
    if _skip_filler(line, pos) < end:
        yield flaw_for(line[pos:], pos)


def _skip_filler(line: bytes, pos: int) -> int:
    return len(line) - len(line[pos:].lstrip(_FILLER))


def _decode_prefix(piece: bytes) -> tuple[dict[str, Any] | None, int, Flaw | None]:
    """Decode the object at the start of `piece`: (value, bytes consumed, a note), or (None, 0, None)."""
    text = piece.decode("utf-8", "surrogateescape")
    try:
        value, end = _LENIENT.raw_decode(text)
        consumed = len(text[:end].encode("utf-8", "surrogateescape"))
        if _SURROGATE.search(text, 0, end):
            value = _LENIENT.decode(piece[:consumed].decode("utf-8", "replace"))
            return value, consumed, Flaw(kind="bad_utf8", detail="invalid UTF-8 was replaced", severity="info")
    except (ValueError, RecursionError):
        return None, 0, None
    return without_surrogates(value), consumed, None


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
