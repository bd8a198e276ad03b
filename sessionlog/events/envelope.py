"""Event: one line of a log, `{"session_id","seq","type","ts","data"}`.

An event is a value. Types, payloads and top-level keys that this version does not know survive a read and a write. An
event read from a file keeps the bytes of its line, unless it was changed with `dataclasses.replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

from sessionlog.events.times import format_time, parse_time

KNOWN_TYPES = frozenset(
    {
        "session.start", "session.end", "llm.request", "llm.response", "llm.delta", "tool.call", "override",
        "rejected_override", "routing_decision", "progress", "compaction.start", "compaction.end", "reasoning.stall",
        "planning.turn", "model.download", "model.load", "log.gap", "history.add", "history.pop", "history.clear",
    }
)  # fmt: skip
"""The event types this version has a payload or a rendering for; others pass through."""

CLOSED = "closed"
"""The status of a session.end that a logger wrote when it was closed before the session was ended. It has no totals,
ends no run, and the session counts as unfinished: another writer may still continue it."""

OBJECTS = (dict, Mapping)
"""The types of JSON objects. `dict` comes first, because a check against the abstract class takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        session_id: The writer's id. A file may hold several: the file name is the session's id.
        seq: The writer's counter. It may repeat: the order of the file counts.
        type: An open set; see `KNOWN_TYPES`.
        ts: The instant as written, RFC 3339; empty when the line had none.
        data: The payload as JSON value; treat it as read-only. `payload(event)` returns the dataclass.
        extra: Top-level keys that are not the five of the envelope.
        raw: The line's bytes as read, without its end; None for an event made in memory.
    """

    session_id: str
    seq: int
    type: str
    ts: str
    data: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    raw: bytes | None = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def new(cls, session_id: str, seq: int, type: str, data: Any = None, *, now_ns: int | None = None) -> Event:  # noqa: A002 - the envelope's own word
        """Make an event stamped now, in UTC with microseconds."""
        stamp = format_time(time_ns() if now_ns is None else now_ns)
        return cls(session_id=session_id, seq=seq, type=type, ts=stamp, data=data)

    @property
    def time_ns(self) -> int | None:
        """Nanoseconds since 1970, None when `ts` is not a time."""
        return parse_time(self.ts)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the line, in canonical key order."""
        return {
            "session_id": self.session_id,
            "seq": self.seq,
            "type": self.type,
            "ts": self.ts,
            "data": self.data,
            **self.extra,
        }


def keep_raw(event: Event, raw: bytes) -> Event:
    """Attach the bytes that an event was read from; `dataclasses.replace` drops them again."""
    object.__setattr__(event, "raw", raw)
    return event
