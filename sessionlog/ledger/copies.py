"""Which copy of a response counts: each is entered once, however many logs repeat it.

The source names a response by its key; the rules are the same for all sources and do not depend on the order in which
logs are read (the tests try every order):

- Copies of one key: the higher standing wins, then the greatest output, then the greatest total. Its counts, cost and
  speed are the record's; session, project and time are those of the earliest copy of that standing (time, then path).
- A record that is not REAL does not count beside a REAL one of its family.

So a record may be put together from two copies. That loses nothing: what later copies are compared with are the counts
of the one and the place of the other, and both are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Copy = Mapping[str, Any]
"""A row of `records` with its label's names, and with the `path` of its log and the `session` by name."""

_PLACE = ("session_id", "log_id", "time_ns", "active_ms", "project", "branch", "version", "agent", "path", "session")
"""What a copy tells of where the response was made; the rest is told of the response itself."""

_COUNTS = (
    "input", "cache_read", "cache_write", "cache_write_1h", "reasoning", "cost_nano", "estimate_nano", "latency_ms",
    "requests", "failed", "priced", "quality", "granularity", "provider", "model", "response_model",
)  # fmt: skip


def put_together(known: Copy, new: Copy) -> Copy:
    """Return the one record that counts for two copies of a key; ties of unequal copies are broken, too."""
    if known["standing"] != new["standing"]:
        return max(known, new, key=lambda copy: copy["standing"])
    counts, place = max(known, new, key=_weight), min(known, new, key=_age)
    return {**counts, **{name: place[name] for name in _PLACE}}


def prefers(one: Copy, other: Copy) -> bool:
    """Whether `one` of two copies of a tool call counts: the finished one, then the earlier."""
    return _told(one) < _told(other)


def _told(call: Copy) -> tuple[Any, ...]:
    names = ("tool", "server", "agent", "project", "failed", "duration_ms", "output_bytes")
    measured = ((call[name] is None, call[name] or 0) if name == "duration_ms" else call[name] for name in names)
    return not call["finished"], *_since(call), call["session"], *measured


def _weight(copy: Copy) -> tuple[Any, ...]:
    total = copy["input"] + copy["cache_read"] + copy["cache_write"] + copy["output"]
    return copy["output"], total, *((copy[n] is not None, copy[n] if copy[n] is not None else 0) for n in _COUNTS)


def _age(copy: Copy) -> tuple[Any, ...]:
    """The earliest is the least; of two rows of one log for the same moment the one that knows more activity."""
    names = (copy[name] for name in ("session", "project", "branch", "version", "agent"))
    return *_since(copy), -copy["active_ms"], *names


def _since(copy: Copy) -> tuple[bool, int, bytes]:
    return copy["time_ns"] is None, copy["time_ns"] or 0, copy["path"].encode("utf-8", "surrogatepass")
