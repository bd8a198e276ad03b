"""One line of bytes → events.

Decoding never raises: it returns the events of a line and its problems, as values. orjson, which accepts only strict
JSON, is tried first; what it rejects is decoded leniently by `damaged`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from sessionlog.events.damaged import LineProblem, find_objects
from sessionlog.events.decoded_size import LARGE, too_large
from sessionlog.events.envelope import Event, keep_raw
from sessionlog.events.times import parse_time

_ENVELOPE = frozenset({"session_id", "seq", "type", "ts", "data"})
_FOLDED = _ENVELOPE | {"timestamp"}
_BEYOND_64_BITS = 2.0**63


def decode_line(line: bytes) -> tuple[list[Event], list[LineProblem]]:
    """Return the events of one line, in order, and its problems. Blank lines have neither."""
    line = line.rstrip(b"\r\n")
    if not line:
        return [], []
    if len(line) > LARGE and (detail := too_large(line, copies=2)):
        return [], [LineProblem(kind="too_large", detail=detail, length=len(line))]
    try:
        value = _loads(line)
    except (ValueError, RecursionError):
        return _decode_damaged(line)
    if isinstance(value, dict):
        return _single(value, line)
    kind = type(value).__name__
    return [], [LineProblem(kind="not_object", detail=f"a JSON {kind} is not an event", length=len(line))]


def _loads(line: bytes) -> Any:
    """Parse strict JSON; numbers that orjson would turn into floats keep all their digits."""
    value = orjson.loads(line)
    if _has_huge_number(value):
        with suppress(ValueError, RecursionError):
            return json.loads(line)
    return value


def _has_huge_number(value: Any) -> bool:
    """Whether a float may have been an integer beyond 64 bits: checking values is 20 times faster than the text."""
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


def _single(value: dict[str, Any], line: bytes) -> tuple[list[Event], list[LineProblem]]:
    event, problem = event_of(value)
    if event is None:
        assert problem is not None
        return [], [LineProblem(kind=problem.kind, detail=problem.detail, length=len(line))]
    return [keep_raw(event, line)], [problem] if problem else []


def event_of(value: dict[str, Any]) -> tuple[Event | None, LineProblem | None]:
    """Make an event of a decoded object; (None, problem) if it has no type, (event, problem) if a field was wrong."""
    type_ = value.get("type")
    is_plain = value.keys() == _ENVELOPE
    if type_ is None or not (is_plain or value.keys() >= _ENVELOPE):
        value = _fold_keys(value)
        type_ = value.get("type")
    if not isinstance(type_, str) or not type_:
        return None, LineProblem(kind="bad_envelope", detail="an object without a type is not an event")
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
    extra = {} if is_plain else {k: v for k, v in value.items() if k not in _ENVELOPE}
    event = Event(session_id=session_id, seq=seq, type=type_, ts=ts, data=value.get("data"), extra=extra)
    if issues:
        return event, LineProblem(kind="bad_envelope", detail="; ".join(issues), severity="info")
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


def _decode_damaged(line: bytes) -> tuple[list[Event], list[LineProblem]]:
    events: list[Event] = []
    problems: list[LineProblem] = []
    for item in find_objects(line):
        if isinstance(item, LineProblem):
            problems.append(item)
            continue
        value, start, piece = item
        event, problem = event_of(value)
        if event is None:
            assert problem is not None
            problems.append(replace(problem, start=start, length=len(piece)))
            continue
        events.append(keep_raw(event, piece))
        if problem:
            problems.append(replace(problem, start=start))
    return events, problems
