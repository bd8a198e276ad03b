"""The fast lane: the rows that Codex writes as it always does are read from their bytes, the rest is decoded.

`feed` gives what `feed_plainly` gives. A line is not decoded only if its head is spelled exactly as Codex spells it,
its end is a row's end, and no second row stands in it: the quotes of the key `"timestamp"` are escaped inside a text,
so one search tells; and no writer names a key twice. What such a line says is then at known places. Everything else
(spaces, other orders, escaped letters, other kinds, torn and glued rows) is decoded, and so is what is rare: a fork's
history, the first prompt, a turn that fails, a counter that falls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, parse_time
from sessionlog.sources.codex.rows import RolloutRows, take_line
from sessionlog.sources.codex.scan import Rollout
from sessionlog.sources.codex.tools import FIRST_LETTERS, ends_of, has_failed
from sessionlog.sources.gather import server_of

Way = Callable[[bytes, int], bool]
"""Accounts for a whole row of a known time, or leaves it untouched and says so."""

_DAY = re.compile(rb'\{"timestamp":"\d{4}-\d\d-\d\dT\Z')
_MINUTES = {b"%02d:%02d:" % divmod(minute, 60): minute * 60 * SECOND for minute in range(24 * 60)}
_SECONDS = {b"%02d." % second: second * SECOND for second in range(60)}
_MILLIS = {b"%03dZ" % milli: milli * 1_000_000 for milli in range(1000)}
_NEVER = -(2**63)
_KEY = b'"timestamp"'
_END = b"}}\n"
_TEXT_END = b'"}}\n'

_AT, _TO = 38, 91
"""Where a row's type stands behind a timestamp in milliseconds, with the beginning of its payload's type."""
_ITEM = b'","type":"response_item","payload":{"type":"'
_EVENT = b'","type":"event_msg","payload":{"type":"'
_KIND = _AT + len(_ITEM)
_TURN = b'","type":"turn_context","payload":{"turn_id":"'
_TURN_ID = re.compile(rb'[0-9A-Za-z-]{36}(?=",")')

_ROLE = re.compile(rb'(?:"id":"[^"\\]*",)?"role":"(?:(user)|assistant|developer|system)",')
_COUNT = rb"(?:0|[1-9]\d{0,14}+)"  # no more than is a count, and a number in JSON
_USAGE = (
    rb'\{"input_tokens":(N),"cached_input_tokens":(N),(?:"cache_write_input_tokens":(N),)?"output_tokens":(N),'
    rb'"reasoning_output_tokens":(N),"total_tokens":N\}'
)
_INFO = (
    rb'"info":(?:null|\{"total_token_usage":' + _USAGE + rb',"last_token_usage":' + _USAGE.replace(b"(N)", b"N")
    + rb',"model_context_window":N\}),"rate_limits":'
)  # fmt: skip
_COUNTED = re.compile(_INFO.replace(b"N", _COUNT))
_DIGITS = b"0123456789."
_TOOL = re.compile(
    rb'(?:function|custom_tool)_call(?:_output","call_id":"([^"\\]{1,400})","output":"'
    rb'|",(?:"id":"[^"\\]*",)?(?:"status":"[^"\\]*",)?(?:"call_id":"([^"\\]{1,400})",)?"name":"([^"\\]{1,400})",'
    rb'"(?:arguments|input)":")'
)
_CALL_ID = b'","call_id":"'
_SPACE = b'","namespace"'
_LONGEST_ID = 440
_QUOTE, _ESCAPE = b'"\\'  # as numbers: `in` takes five times as long to look for bytes of one letter


def feed(rollout: Rollout, rows: RolloutRows) -> None:
    """Account for all whole lines, decoding those that must be."""
    lane = Lane(rollout)
    for line in lane.others(rows):
        if not isinstance(line, Problem) and (b'"rate_limits"' in line or b"\\u00" in line):
            lane.flush()
        take_line(rollout, rows, line)
    lane.flush()


class Lane:
    """Accounts for whole lines undecoded, where their bytes allow it."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._days: dict[bytes, int] = {}
        self._minutes: dict[bytes, int] = {}  # by all that stands before a row's second
        self._limits = b""  # the latest word on the rate limits
        self._limits_ns = 0
        self._shape = b""
        self._names: dict[bytes, tuple[str, str]] = {}
        self._turn = b""  # what a turn's context says behind its id
        self._context: Mapping[str, Any] = {}

    def _ways(self) -> dict[bytes, Way | None]:
        """How to read each kind of row; None for kinds that account for nothing but their time."""
        ways: dict[bytes, Way | None] = {
            _ITEM + b"reasoning": None,
            _ITEM + b'message",': self._said,
            _ITEM + b"function_": self._tool,
            _ITEM + b"custom_to": self._tool,
            _EVENT + b"agent_message": None,
            _EVENT + b"agent_reasoni": None,
            _EVENT + b'token_count",': self._counted,
            _EVENT + b'user_message"': self._prompted,
            _EVENT + b'task_started"': self._started,
            _EVENT + b"task_complete": self._completed,
        }
        assert all(len(kind) == _TO - _AT for kind in ways)
        return ways

    def others(self, rows: RolloutRows) -> Iterator[bytes | Problem]:
        """Account for the lines of known ways, and yield what `rows.lines` gives for the others."""
        rollout, minutes, ways, turned = self._rollout, self._minutes, self._ways(), self._turned
        number, offset = rows.line, rows.offset
        latest_ns = _NEVER  # of the rows that account for nothing else
        stamp, time_ns = b"", None
        for line in rows.pieces():
            if line.endswith(_END):
                if line[:_AT] != stamp:
                    stamp = line[:_AT]
                    try:
                        time_ns = minutes[line[:31]] + _SECONDS[line[31:34]] + _MILLIS[line[34:_AT]]
                    except KeyError:
                        time_ns = self._time(stamp)
                if time_ns is not None:
                    way = ways.get(line[_AT:_TO], turned)  # its key holds an id
                    if way is None:
                        taken = line.find(_KEY, _TO) < 0
                        if taken and time_ns > latest_ns:
                            latest_ns = time_ns
                    else:
                        taken = way(line, time_ns)
                    if taken:
                        number += 1
                        offset += len(line)
                        continue
            rollout.begun = rollout.begun or number > rows.line
            rows.line, rows.offset = number, offset
            other = rows.whole(line)
            if other is None:
                break
            yield other
            number, offset = rows.line, rows.offset
        if latest_ns != _NEVER:
            rollout.pass_over(latest_ns)

    def _time(self, stamp: bytes) -> int | None:
        """The time of a row whose minute is new; None if it does not begin with a timestamp in milliseconds."""
        day, minute = stamp[:25], stamp[25:31]
        if day not in self._days:
            day_ns = parse_time(day[14:].decode() + "00:00:00.000Z") if _DAY.match(day) else None
            if day_ns is None:
                return None
            self._days[day] = day_ns
        try:
            self._minutes[stamp[:31]] = minute_ns = self._days[day] + _MINUTES[minute]
            return minute_ns + _SECONDS[stamp[31:34]] + _MILLIS[stamp[34:]]
        except KeyError:
            return None

    def _said(self, line: bytes, time_ns: int) -> bool:
        """A message; the first prompt is decoded."""
        role = _ROLE.match(line, _TO)
        if role is None or line.find(_KEY, _TO) >= 0:
            return False
        if role.group(1):
            if not self._rollout.prompt:
                return False
            self._rollout.asked(time_ns)
        else:
            self._rollout.pass_over(time_ns)
        return True

    def _prompted(self, line: bytes, time_ns: int) -> bool:
        """The words of the user, once more."""
        if not self._rollout.prompt or line.find(_KEY, _TO) >= 0:
            return False
        self._rollout.asked(time_ns)
        return True

    def _turned(self, line: bytes, time_ns: int) -> bool:
        """A turn's context that says what the one before said."""
        if not line.startswith(_TURN, _AT) or self._rollout.thread.history:
            return False
        id_ = _TURN_ID.match(line, _AT + len(_TURN))
        if id_ is None:
            return False
        if line[id_.end() :] != self._turn:
            if line.find(_KEY, _TO) >= 0:
                return False
            try:
                row = orjson.loads(line)
            except ValueError:
                return False
            if row["type"] != "turn_context" or not isinstance(row["payload"], dict):  # a key may stand there twice
                return False
            self._turn, self._context = line[id_.end() :], row["payload"]
        self._rollout.turn_context(self._context, time_ns)
        return True

    def _started(self, line: bytes, time_ns: int) -> bool:
        """The start of a turn of the thread's own."""
        if self._rollout.thread.history or line.find(_KEY, _TO) >= 0:
            return False
        self._rollout.started(time_ns)
        return True

    def _completed(self, line: bytes, time_ns: int) -> bool:
        """The end of a turn in which nothing went wrong."""
        rollout = self._rollout
        if (
            rollout.trouble
            or rollout.at_fault
            or line[_TO : _TO + 2] not in (b'",', b'"}')
            or line.find(_KEY, _TO) >= 0
        ):
            return False
        rollout.completed(time_ns)
        return True

    def _counted(self, line: bytes, time_ns: int) -> bool:
        """A counter: often the one before once more."""
        match = _COUNTED.match(line, _TO)
        if match is None:
            return False
        limits = line[match.end() : -3]
        if limits.translate(None, _DIGITS) != self._shape and not self._learns(limits):
            return False
        rollout = self._rollout
        given, cached, written, output, reasoning = match.groups()
        if given is None:
            own = rollout.touch(time_ns)
        else:
            before = rollout.counter
            if before is None:
                return False
            given, cached, output, reasoning = int(given), int(cached), int(output), int(reasoning)
            written = int(written) if written else before[4]
            more = given - before[0], cached - before[1], output - before[2], reasoning - before[3], written - before[4]
            if min(more) < 0:
                return False
            own = rollout.touch(time_ns)
            if any(more):
                rollout.counter = total = given, cached, output, reasoning, written
                rollout.respond(own, time_ns, total, more)
        if own:
            self._limits, self._limits_ns = limits, time_ns
        return True

    def _learns(self, limits: bytes) -> bool:
        """Whether this is JSON, and no more of the row: of limits that differ in their numbers only one is read."""
        self.flush()
        try:
            orjson.loads(limits)
        except ValueError:
            return False
        self._shape = limits.translate(None, _DIGITS)
        return True

    def flush(self) -> None:
        """Read the rate limits that wait."""
        if self._limits:
            with suppress(ValueError):
                self._rollout.take_limits(orjson.loads(self._limits), self._limits_ns)
            self._limits = b""

    def _tool(self, line: bytes, time_ns: int) -> bool:
        """A tool call, or what it gave back: a long text each, which is not looked into."""
        head = _TOOL.match(line, _KIND)
        if head is None or not line.endswith(_TEXT_END) or line.find(_KEY, _TO) >= 0:
            return False
        start, end = head.end(), len(line) - len(_TEXT_END)
        if end < start or line[end - 1] == _ESCAPE:  # a torn row may end in a quoted one
            return False
        returned, called, name = head.groups()
        try:
            if returned is not None:
                failed = has_failed(ends_of(line, start, end)) if line[start] in FIRST_LETTERS else None
                self._rollout.returned(returned.decode(), time_ns, failed, end - start)
                return True
            if called is None:
                at = line.rfind(_CALL_ID, max(start - 1, end - _LONGEST_ID))
                called = line[at + len(_CALL_ID) : end]
                if at < 0 or not called or _QUOTE in called:
                    return False
            if _ESCAPE in called or line.find(_SPACE, start - 1) >= 0:
                return False
            tool, server = self._names.get(name) or self._names.setdefault(name, server_of(name.decode()))
            self._rollout.called(called.decode(), tool, server, time_ns)
        except UnicodeDecodeError:
            return False
        return True
