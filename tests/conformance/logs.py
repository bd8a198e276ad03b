"""Small logs in the original's spelling, written where a test needs one."""

import json
import os
from pathlib import Path

END = {"status": "success", "tokens": {"input": 10, "output": 5, "total": 15}, "cost_usd": 0.25, "duration_ms": 1000}


def line(seq: int, type_: str, data, *, at: str = "") -> bytes:
    """One line; by default each event is one second after the one before it."""
    ts = at or f"2026-04-09T10:00:{seq:02}Z"
    return json.dumps({"session_id": "s", "seq": seq, "type": type_, "ts": ts, "data": data}).encode() + b"\n"


def start(**more) -> tuple[str, dict]:
    """A session.start of the original, without a version."""
    return "session.start", {"provider": "p", "model": "m", **more}


def end(**more) -> tuple[str, dict]:
    """A session.end with plain totals."""
    return "session.end", END | more


def answer(**more) -> tuple[str, dict]:
    """An llm.response."""
    return "llm.response", {"content": "ok", "usage": {"input": 10, "output": 5}, "latency_ms": 100, **more}


def write_log(folder: Path, *events, name: str = "s") -> Path:
    """Write (type, data) or (type, data, time) as a log, or bytes as they are; return its path."""
    path = folder / f"{name}.jsonl"
    pieces = [
        event if isinstance(event, bytes) else line(seq, *event[:2], at=event[2] if len(event) > 2 else "")
        for seq, event in enumerate(events)
    ]
    path.write_bytes(b"".join(pieces))
    os.utime(path, (0, 0))  # nobody is in the middle of writing it
    return path
