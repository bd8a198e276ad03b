"""Turns of a native log: prompts are the user's messages in its requests, each of which repeats those before.

A request with more of them than the one before has new ones; one with fewer follows a compaction, or was made aside,
and begins no turn. Requests are most of a log's bytes, so they are not decoded: inside a text the quotes of a role are
escaped. What is searched of a request is what it has beyond the one before, where the bytes ahead of that stand again.
Invariant: a log that is read on gives what a log that is read whole gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.reader.search import find
from sessionlog.sources.gather import first_words, latest

_DATA, _EARLIER = b'"data":', b'"earlier_messages":'
_ROLES = (b'"role":"user"', b'"role": "user"')
_SPACED = b'{"session_id": '
_LETTER = rb'(?:[!#-\[\]-~\xc3-\xdf\xe4-\xf4]|\\["\\]|\xe1[^\x9a]|\xe2[^\x80\x81]|\xe3[^\x80])'
_FLAT = rb'(?:[^{}\[\]"]|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+'
_RESULT = (
    rb'\{"(?:type": ?"tool_result|tool_use_id)"'
    + _FLAT
    + rb"(?:\[(?:\{"
    + _FLAT
    + rb"\}(?:, ?)?)*+\]"
    + _FLAT
    + rb")?+\}"
)
_WORDS = re.compile(
    rb', ?"content": ?(?:(?:\[\{"type": ?"text", ?"text": ?)?" {0,99}+' + _LETTER
    + rb"|(\[)" + _RESULT + rb"(?:, ?" + _RESULT + rb")*+\])",
    re.DOTALL,
)  # fmt: skip
"""Behind a role: words of the user's, or results of tools and nothing else."""
_PROOF = 64
"""Bytes that must stand again where they stood: a text that was changed before them has moved them."""
_LAST = 600
"""Bytes in which the short fields behind the messages fit, and mostly the end of the last message."""


class Turns:
    """The prompts of one log, as far as it has been read.

    Attributes:
        count: How many there were.
        last_ns: When the last of them was sent.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin, or go on with what `state` gave."""
        known = state or {}
        self.count: int = known.get("count", 0)
        self.last_ns: int | None = known.get("last_ns")
        self._held: int = known.get("held", 0)  # by the last request
        self._peak: int = known.get("peak", 0)  # by the one before the last that held fewer
        self._until: int = known.get("until", 0)  # bytes of a request's payload that hold as many
        self._proof = str(known.get("proof", "")).encode("latin-1")  # the last of these bytes

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        return {
            "count": self.count, "last_ns": self.last_ns, "held": self._held, "peak": self._peak,
            "until": self._until, "proof": self._proof.decode("latin-1"),
        }  # fmt: skip

    def look(self, data: bytes, start: int, end: int, time_ns: int | None) -> None:
        """Take the line data[start:end], a whole llm.request and nothing else."""
        origin = data.find(_DATA, start, end)
        role = _ROLES[data.startswith(_SPACED, start)]
        goes_on = data.find(_EARLIER, max(origin, end - _PROOF), end) >= 0
        held, at = 0, origin
        known = origin + self._until
        if self._proof and known < end and not goes_on and data.startswith(self._proof, known - len(self._proof)):
            held, at = self._held, known
        while (at := find(data, role, at, end)) >= 0:
            at += len(role)
            words = _WORDS.match(data, at, end)
            if words is None:  # spelled in another way
                self.take(decode_line(data[start:end])[0])
                break
            held += words.lastindex is None
        else:
            self._take(held, time_ns, goes_on=goes_on)
        if not goes_on:
            self._remember(data, origin, end, role)

    def _remember(self, data: bytes, origin: int, end: int, role: bytes) -> None:
        """Keep the place up to which a request that repeats this one holds what this one does."""
        until = max(origin, end - _LAST)
        while (at := data.find(role, until, end)) >= 0:
            until = at + len(role)
        self._until = until - origin
        self._proof = data[max(origin, until - _PROOF) : until]

    def take(self, events: Iterable[Event]) -> None:
        """Take requests that are decoded."""
        for event in events:
            payload = event.data if isinstance(event.data, Mapping) else {}
            messages = payload.get("messages")
            if event.type == "llm.request" and isinstance(messages, list):
                held = sum(is_prompt(message) for message in messages)
                self._take(held, event.time_ns, goes_on=bool(payload.get("earlier_messages")))
                self._until, self._proof = 0, b""

    def _take(self, held: int, time_ns: int | None, *, goes_on: bool) -> None:
        new = held if goes_on else max(0, held - self._held)
        if not goes_on:
            if held < self._held:
                self._peak = max(self._peak, self._held)
            elif held >= self._peak:
                if new > 1 and self._peak:  # back from a request that was made aside
                    new = held - self._peak
                self._peak = 0
            self._held = held
        if new:
            self.count += new
            self.last_ns = latest(self.last_ns, time_ns)


def is_prompt(message: Any) -> bool:
    """Whether a message has words of the user's: the result of a tool has none of its own."""
    return isinstance(message, Mapping) and message.get("role") == "user" and first_words(message.get("content")) != ""
