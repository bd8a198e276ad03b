"""Small literal logs: an event in one line of Python, a file in one call.

Times are wall clocks of 20 November 2026 UTC (`10:00:05`) or whole RFC 3339 texts. Files are written long ago, so that
no line of them can still be in the writing.
"""

import json
import os
from pathlib import Path

from sessionlog.events.times import parse_time
from sessionlog.sources import native

DAY = "2026-11-20"
LONG_AGO = 1_700_000_000


def at(clock):
    """A wall clock of the day, in nanoseconds."""
    return parse_time(f"{DAY}T{clock}Z")


def event(kind, clock, data):
    """One event; `seq` is given when it is written."""
    ts = clock if "T" in clock or not clock else f"{DAY}T{clock}Z"
    return {"session_id": "inside", "seq": 0, "type": kind, "ts": ts, "data": data}


def start(clock="10:00:00", **data):
    """session.start of a native log."""
    return event("session.start", clock, {"v": 1} | data)


def go_start(clock="10:00:00", **data):
    """session.start of the Go original's dialect: no `v`."""
    return event("session.start", clock, data)


def asked(clock="10:00:01", **data):
    """llm.request."""
    return event("llm.request", clock, data)


def answered(clock="10:00:02", **data):
    """llm.response."""
    return event("llm.response", clock, data)


def progress(clock="10:00:01", **data):
    """A line that no report asks for."""
    return event("progress", clock, data)


def ended(clock="10:00:03", **data):
    """session.end, successful unless told otherwise."""
    return event("session.end", clock, {"status": "success"} | data)


def as_line(item):
    """An event as our writer spells it; bytes as they are."""
    if isinstance(item, bytes):
        return item
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class Scanned:
    """A native log's one session as scanned, and what was wrong with its file."""

    def __init__(self, scan):
        [self.session] = scan.sessions
        self.problems = scan.problems

    def __eq__(self, other):
        return (self.session, self.problems) == (other.session, other.problems)

    __hash__ = None

    def __getattr__(self, name):
        return getattr(self.session, name)


def scan_log(path):
    """Scan one native log; None when it holds no event."""
    scan = native.scan(path, None)
    return Scanned(scan) if scan.sessions else None


def write_log(path, *items):
    """Write events (numbered) and raw bytes to a file; returns its path as text."""
    numbered = [item if isinstance(item, bytes) else item | {"seq": seq} for seq, item in enumerate(items)]
    path = Path(os.fsdecode(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(as_line, numbered)))
    os.utime(path, (LONG_AGO, LONG_AGO))
    return str(path)


def scanned(folder, *items, name="s.jsonl"):
    """Write one log and scan it."""
    return scan_log(write_log(Path(folder) / name, *items))


def one_record(folder, *items):
    """Scan a log that holds exactly one record."""
    [record] = scanned(folder, *items).records
    return record
