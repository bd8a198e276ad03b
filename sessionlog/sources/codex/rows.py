"""The lines of a rollout, the fast way: what Codex writes as it always does is read from its bytes, the rest decoded.

`feed_plainly` is the reference; `feed` gives the same. A line is not decoded only if its head is spelled exactly as
Codex spells it, its end is a row's end, and no second row stands in it: the quotes of the key `"timestamp"` are escaped
inside a text, so one search tells. What such a line says is then at known places. Everything else (spaces, other
orders, escaped letters, other kinds, torn and glued rows) is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import orjson

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, parse_time
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.codex.counters import Vector, read_vector
from sessionlog.sources.codex.scan import Rollout
from sessionlog.sources.codex.tools import ends_of, has_failed
from sessionlog.sources.gather import server_of

_ROW = b'{"timestamp"'
_KEY = b'"timestamp"'
_TRIES = 64
_STAMP = re.compile(rb'\{"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\Z')
_NOT_THE_USER = re.compile(rb'(?:"id":"[^"\\]*",)?"role":"(?:assistant|developer|system)",')
_LIMITS = b',"rate_limits":'
_INFO = b'"info":'
_COUNT_KEYS = {"total_token_usage", "last_token_usage", "model_context_window"}
_CALLED = re.compile(rb'call",(?:"id":"[^"\\]*",)?"name":"([^"\\]{1,400})","arguments":"')
_PATCHED = re.compile(
    rb'ol_call",(?:"id":"[^"\\]*",)?(?:"status":"[^"\\]*",)?"call_id":"([^"\\]{1,400})","name":"([^"\\]{1,400})","input":"'
)
_RETURNED = re.compile(rb'(?:ol_)?call_output","call_id":"([^"\\]{1,400})","output":"')
_CALL_ID = b'","call_id":"'
_SPACE = b'","namespace"'
_LONGEST_ID = 440
_END = b"}}\n"
_TEXT_END = b'"}}\n'
_NUMBERS = b"0123456789."
_SECONDS = {b"%02d." % second: second * SECOND for second in range(60)}
_MILLIS = {b"%03dZ" % milli: milli * 1_000_000 for milli in range(1000)}
_NEVER = -(2**63)

_AT, _TO = 38, 91
"""Where a row's type stands behind a timestamp in milliseconds, with the beginning of its payload's type."""
_WAYS = {
    b'","type":"response_item","payload":{"type":"reasoning': "passed",
    b'","type":"response_item","payload":{"type":"message",': "said",
    b'","type":"event_msg","payload":{"type":"agent_message': "passed",
    b'","type":"event_msg","payload":{"type":"agent_reasoni': "passed",
    b'","type":"event_msg","payload":{"type":"token_count",': "counted",
    b'","type":"response_item","payload":{"type":"function_': "function",
    b'","type":"response_item","payload":{"type":"custom_to': "custom",
}


class RolloutRows(Rows):
    """Rows of a rollout: a row that was glued to a torn one is found again.

    Attributes:
        text: The line that was decoded last.
    """

    text: bytes = b""

    def decode(self, line: bytes) -> Iterator[Row | Problem]:
        """Yield the objects of one line, and the last row of a line that is none."""
        self.text = line
        for item in super().decode(line):
            yield item
            if isinstance(item, Problem) and item.kind == "not_json":
                yield from _glued(line)

    def others(self, way_of: Callable[[bytes], Callable[[bytes], bool] | None]) -> Iterator[bytes | Problem]:
        """Yield what `lines` gives, but for the whole lines that a way takes."""
        readline, limit = self._file.readline, self._max_line + 1
        number, offset = self.line, self.offset
        while line := readline(limit):
            way = way_of(line[_AT:_TO])
            if way is not None and way(line):
                number += 1
                offset += len(line)
                continue
            self.line, self.offset = number, offset
            if line.endswith(b"\n"):
                self._advance(len(line))
                yield line
            elif len(line) < limit:
                self._tail = line
                return
            else:
                skipped = self._skip(len(line))
                if not skipped:
                    return
                yield self._too_long(skipped)
            number, offset = self.line, self.offset
        self.line, self.offset = number, offset


def _glued(line: bytes) -> Iterator[Row]:
    at = len(line)
    for _ in range(_TRIES):
        at = line.rfind(_ROW, 1, at)
        if at < 0:
            return
        try:
            row = orjson.loads(line[at:])
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
        return


def feed(rollout: Rollout, rows: RolloutRows) -> None:
    """Account for all whole lines, decoding those that must be."""
    lane = _Lane(rollout)
    for line in rows.others({kind: getattr(lane, way) for kind, way in _WAYS.items()}.get):
        if not isinstance(line, Problem) and (b'"rate_limits"' in line or b"\\u00" in line):
            lane.flush()
        take_line(rollout, rows, line)
    lane.finish()


class _Lane:
    """Reads whole lines undecoded; each of its ways says whether it could."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._minutes: dict[bytes, int] = {}
        self._passed_ns = _NEVER  # the latest time of a row that was passed over
        self._info = b""  # the counters read last
        self._counter: Vector | None = None  # and the total that they made
        self._limits = b""  # the latest word on the rate limits
        self._limits_ns = 0
        self._shape = b""
        self._names: dict[bytes, tuple[str, str]] = {}

    def _time(self, line: bytes) -> int | None:
        """The time of a row that begins with a timestamp in milliseconds."""
        try:
            return self._minutes[line[:31]] + _SECONDS[line[31:34]] + _MILLIS[line[34:38]]
        except KeyError:
            head = line[:31]
        if head in self._minutes or not _STAMP.match(head):
            return None
        minute_ns = parse_time(head[14:].decode() + "00.000Z")
        if minute_ns is None:
            return None
        self._minutes[head] = minute_ns
        return self._time(line)

    def passed(self, line: bytes) -> bool:
        """A row that accounts for nothing."""
        if line[-3:] != _END or line.find(_KEY, _TO) >= 0:
            return False
        time_ns = self._time(line)
        if time_ns is None:
            return False
        self._passed_ns = max(self._passed_ns, time_ns)
        return True

    def said(self, line: bytes) -> bool:
        """A message of anybody but the user."""
        return _NOT_THE_USER.match(line, _TO) is not None and self.passed(line)

    def counted(self, line: bytes) -> bool:
        """A counter: often the one before once more."""
        at = line.find(_LIMITS, _TO)
        if at < 0 or line[_TO : _TO + 7] != _INFO or line[-3:] != _END:
            return False
        time_ns = self._time(line)
        if time_ns is None:
            return False
        info, limits = line[_TO + 7 : at], line[at + len(_LIMITS) : -3]
        if not self._is_known(limits):
            return False
        rollout = self._rollout
        if info == b"null" or (info == self._info and rollout.counter is self._counter):
            own = rollout.touch(time_ns)
        else:
            try:
                value = orjson.loads(info)
            except ValueError:
                return False
            if not isinstance(value, dict) or not value.keys() <= _COUNT_KEYS:
                return False
            total, issues = read_vector(value.get("total_token_usage"), rollout.counter)
            last, more = read_vector(value.get("last_token_usage"))
            if issues or more:
                return False
            own = rollout.touch(time_ns)
            rollout.tally(own, time_ns, total, last)
            if rollout.counter == total:
                self._info, self._counter = info, rollout.counter
        if own:
            self._limits, self._limits_ns = limits, time_ns
        return True

    def _is_known(self, limits: bytes) -> bool:
        """Whether this is JSON, and no more of the row: of limits that differ in their numbers only one is read."""
        shape = limits.translate(None, _NUMBERS)
        if shape != self._shape:
            self.flush()
            try:
                orjson.loads(limits)
            except ValueError:
                return False
            self._shape = shape
        return True

    def flush(self) -> None:
        """Read the rate limits that wait."""
        if self._limits:
            with suppress(ValueError):
                self._rollout.take_limits(orjson.loads(self._limits), self._limits_ns)
            self._limits = b""

    def finish(self) -> None:
        """Account for what waits."""
        self.flush()
        if self._passed_ns != _NEVER:
            self._rollout.pass_over(self._passed_ns)

    def function(self, line: bytes) -> bool:
        """A call of a function, or what it gave back."""
        if line[_TO + 4 : _TO + 5] == b"_":
            return self._returned(line)
        head = _CALLED.match(line, _TO)
        if head is None or not _ends_a_text(line) or line.find(_KEY, _TO) >= 0:
            return False
        at = line.rfind(_CALL_ID, max(head.end() - 1, len(line) - _LONGEST_ID))
        call_id = line[at + len(_CALL_ID) : -4]
        if at < 0 or not call_id or b'"' in call_id or b"\\" in call_id or line.find(_SPACE, head.end() - 1) >= 0:
            return False
        return self._call(call_id, head.group(1), line)

    def custom(self, line: bytes) -> bool:
        """A call of a custom tool, or what it gave back."""
        if line[_TO + 7 : _TO + 8] == b"_":
            return self._returned(line)
        head = _PATCHED.match(line, _TO)
        if head is None or not _ends_a_text(line) or line.find(_KEY, _TO) >= 0:
            return False
        return self._call(head.group(1), head.group(2), line)

    def _call(self, call_id: bytes, name: bytes, line: bytes) -> bool:
        time_ns = self._time(line)
        if time_ns is None:
            return False
        try:
            tool, server = self._names.get(name) or self._names.setdefault(name, server_of(name.decode()))
            id_ = call_id.decode()
        except UnicodeDecodeError:
            return False
        self._rollout.called(id_, tool, server, time_ns)
        return True

    def _returned(self, line: bytes) -> bool:
        head = _RETURNED.match(line, _TO)
        if head is None or not _ends_a_text(line) or line.find(_KEY, _TO) >= 0:
            return False
        start, end = head.end(), len(line) - len(_TEXT_END)
        time_ns = self._time(line)
        if time_ns is None or end < start:
            return False
        try:
            call_id = head.group(1).decode()
        except UnicodeDecodeError:
            return False
        self._rollout.returned(call_id, time_ns, has_failed(ends_of(line, start, end)), end - start)
        return True


def _ends_a_text(line: bytes) -> bool:
    r"""Whether a line ends as a row whose last value is a text; a torn row may end in a quoted one, `\"}}`."""
    return line[-4:] == _TEXT_END and line[-5:-4] != b"\\"


def feed_plainly(rollout: Rollout, rows: RolloutRows) -> None:
    """Account for all whole lines, each decoded: what every other way must equal."""
    for line in rows.lines():
        take_line(rollout, rows, line)


def take_line(rollout: Rollout, rows: RolloutRows, line: bytes | Problem) -> None:
    """Account for one line, decoded."""
    if isinstance(line, Problem):
        rollout.findings.note(line)
        return
    rollout.line = rows.line
    for item in rows.decode(line):
        if isinstance(item, Problem):
            rollout.findings.note(item)
        else:
            rollout.take(item, line)
