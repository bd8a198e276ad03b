"""LineEncoder: event → one line. Stamps, numbers, encodes, shortens, redacts.

One encoder serves one writer, under the writer's lock: encoding outside the lock was measured 2-3 times slower (threads
switch between encoding and writing), and `seq` would no longer follow file order.
"""

from __future__ import annotations

from collections.abc import Callable
from time import gmtime

import orjson

from sessionlog.events.encode import encode_object, shorten
from sessionlog.events.redact import MARK, redact_line
from sessionlog.events.secrets import may_hold_secret
from sessionlog.logger.deltas import Deltas

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.events.envelope import Event
    from sessionlog.events.sanitise import NoteNumbers

_MAX_HEADS = 1000
_UNCHECKED = 1 << 20  # bytes of a line that any reader decodes
_MAX_WIDE = 8 << 20  # bytes of an event whose value takes many times the memory of its line
_ANSWERS = frozenset({"llm.request", "llm.response"})
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the years 1 to 9999: the range of RFC 3339


class LineEncoder:
    """Makes the lines of one session.

    Attributes:
        seq: The next line's number.
    """

    __slots__ = (
        "_clock", "_deltas", "_heads", "_limit", "_note_numbers", "_redacts", "_second", "_second_text", "_session_id",
        "_unchecked", "seq",
    )  # fmt: skip

    def __init__(
        self, session_id: str, clock: Callable[[], int], *, limit: int, redacts: bool, note_numbers: NoteNumbers
    ) -> None:
        self.seq = 0
        self._session_id = session_id
        self._clock = clock
        self._limit = limit
        self._unchecked = min(limit, _UNCHECKED)
        self._redacts = redacts
        self._note_numbers = note_numbers
        self._deltas = Deltas()
        self._heads: dict[str, int] = {}
        self._second = -(1 << 62)  # `_second_text` in microseconds since 1970
        self._second_text = ""

    def encode(self, type_: str, data: Any, event: Event | None = None) -> bytes:
        """Return the line of an event stamped now, or of an `event` made elsewhere, with our next `seq`."""
        seq = self.seq
        self.seq = seq + 1
        micros = self._clock() // 1000 - self._second
        if not 0 <= micros < 1_000_000:  # the text down to the second costs more than all the rest of the stamp
            seconds, micros = divmod(micros + self._second, 1_000_000)
            self._second_text = _text_of(seconds)
            self._second = seconds * 1_000_000
        # zeros are needed one time in ten, and padding takes 0.3 µs
        ts = f"{self._second_text}{micros}Z" if micros > 99_999 else f"{self._second_text}{micros:06d}Z"
        searches = self._redacts
        if searches:
            if type_ == "llm.delta":
                data, is_clean = self._deltas.redact(data)
                searches = not is_clean or event is not None
            elif self._deltas and type_ in _ANSWERS:
                self._deltas.forget()
        if event is None:
            value = {"session_id": self._session_id, "seq": seq, "type": type_, "ts": ts, "data": data}
        else:
            value = event.to_dict() | {"seq": seq, "type": type_, "data": data}
            value["session_id"] = event.session_id or self._session_id
            value["ts"] = event.ts or ts
        line = encode_object(value, self._note_numbers)
        if len(line) > self._unchecked:
            line = self._cap_line(line, value)
        if searches:
            head = self._heads.get(type_) or self._head_of(type_) if event is None else 0
            redacted = redact_line(line, head)
            if redacted is not line:
                line = _with_keys_apart(line, redacted)
                if len(line) > self._limit:  # the mark is longer than what it replaced
                    line = shorten(orjson.loads(line), self._limit)
        return line

    def _cap_line(self, line: bytes, value: dict[str, Any]) -> bytes:
        """Return the line of an event, shortened if it exceeds the limit or would take a reader too much memory."""
        if len(line) > self._limit:
            line = shorten(value, self._limit)
        if len(line) > _UNCHECKED:
            from sessionlog.events.decoded_size import too_large

            if too_large(line, copies=2):
                line = shorten(value, min(self._limit, _MAX_WIDE))
        return line

    def _head_of(self, type_: str) -> int:
        """Return the least offset of the payload in a line: no secret is before it, so redaction starts there."""
        head = len(f'{{"session_id":"{self._session_id}","seq":1,"type":')
        if not may_hold_secret(type_.encode("utf-8", "replace")):
            head += len(type_) + len('"","ts":"2026-11-21T10:00:00.000000Z"')
        if len(self._heads) < _MAX_HEADS:
            self._heads[type_] = head
        return head


def _with_keys_apart(line: bytes, redacted: bytes) -> bytes:
    """Return a redacted line in which several keys of one object that were secrets stay several keys."""
    if redacted.count(MARK) < 2:
        return redacted
    from sessionlog.events.redacted_keys import with_distinct_keys

    return with_distinct_keys(line, redacted)


def _text_of(seconds: int) -> str:
    """Return the time down to the second; one outside the years 1 to 9999 is clamped, so that no event is lost."""
    year, month, day, hour, minute, second = gmtime(min(max(seconds, _FIRST), _LAST))[:6]
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}."
