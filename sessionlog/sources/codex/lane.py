"""The fast lane: the rows that Codex writes as it always does are read from their bytes, the rest is decoded.

`feed` gives what `feed_plainly` gives. A line is not decoded only if its head is spelled exactly as Codex spells it,
its end is a row's end, and no second row stands in it: the quotes of the key `"timestamp"` are escaped inside a text,
so one search tells; and no writer names a key twice. What such a line says is then at known places. Everything else
(spaces, other orders, escaped letters, other kinds, torn and glued rows) is decoded, and so is what is rare: a fork's
history, the first prompt, a turn that fails, a counter that falls. The lines are looked at where they stand in a block
of the file: copying each out of it would take as long as all the rest of a row that says nothing.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.sources.codex.counter_rows import CounterRows
from sessionlog.sources.codex.heads import AT, EVENT, ITEM, TO, TURN, Way, is_alone
from sessionlog.sources.codex.rows import RolloutRows, take_line
from sessionlog.sources.codex.scan import TOOL_ENDS, Rollout
from sessionlog.sources.codex.stamps import MILLIS, MINUTE_END, SECOND_END, SECONDS, Stamps
from sessionlog.sources.codex.tool_rows import ToolRows

_HEAD = struct.Struct(f"{MINUTE_END}s{SECOND_END - MINUTE_END}s{AT - SECOND_END}s{TO - AT}s")  # as quick as one slice
_TURN_ID = re.compile(rb'[0-9A-Za-z-]{36}(?=",")')
_ASSISTANT = b'"role":"assistant",'
_ROLE = re.compile(rb'(?:"id":"[^"\\\n]*",)?"role":"(?:(user)|assistant|developer|system)",')
_WORD = (  # what begins in another way may be Codex's own, or no word at all
    rb' {0,99}+(?:[!$-;=-\[\]-~\xc3-\xdf\xe4-\xf4]|\xe1[^\x9a]|\xe2[^\x80\x81]|\xe3[^\x80]|\\["\\]|#(?! AGENTS)'
    rb"|<(?!%b))"
)
_ITEM_WORDS = re.compile(rb'"content":\[\{"type":"input_text","text":"(?:( {0,99}+<)|' + _WORD % b"" + rb")")
_EVENT_WORDS = re.compile(rb',"message":"' + _WORD % b"[eu]")


def feed(rollout: Rollout, rows: RolloutRows) -> None:
    """Account for all whole lines, decoding those that must be."""
    lane = Lane(rollout, rows)
    for block in rows.blocks():
        if isinstance(block, Problem):
            take_line(rollout, rows, block)
        else:
            lane.walk(*block)
    lane.flush()


class Lane:
    """Accounts for whole lines undecoded, where their bytes allow it."""

    def __init__(self, rollout: Rollout, rows: RolloutRows) -> None:
        self._rollout = rollout
        self._rows = rows
        self._stamps = Stamps()
        self._turn = b""  # what a turn's context says behind its id
        self._context: Mapping[str, Any] = {}
        self._counters = CounterRows(rollout)
        tools = ToolRows(rollout)
        self._ways: dict[bytes, Way | None] = {  # None: says nothing but when it was
            ITEM + b"reasoning": None,
            ITEM + b'message",': self._said,
            ITEM + b"function_": tools.function,
            ITEM + b"custom_to": tools.custom,
            EVENT + b"agent_message": None,
            EVENT + b"agent_reasoni": None,
            EVENT + b'token_count",': self._counters.take,
            EVENT + b'user_message"': self._prompted,
            EVENT + b'task_started"': self._started,
            EVENT + b"task_complete": self._completed,
            EVENT + b"patch_apply_e": self._tool_ended,
            EVENT + b"exec_command_": self._tool_ended,
            EVENT + b"mcp_tool_call": self._tool_ended,
        }
        assert all(len(kind) == TO - AT for kind in self._ways)

    def flush(self) -> None:
        """Read what waits until the end."""
        self._counters.flush()

    def walk(self, data: bytes, start: int, end: int) -> None:
        """Account for the lines of a block: those of known ways as they are, the others decoded."""
        ways, turned, head_of, find, is_whole = self._ways, self._turned, _HEAD.unpack_from, data.find, data.endswith
        seconds, millis = SECONDS, MILLIS
        passing: list[int] = []  # the times of the rows that account for nothing else
        passes = passing.append
        known, minute_ns = b"", 0
        at = behind = start  # where the last line that was decoded ends
        number = numbered = decoded = 0
        while at < end:
            stop = find(b"\n", at)
            taken = False
            if is_whole(b"}}", at, stop):
                try:
                    minute, second, milli, kind = head_of(data, at)
                    if minute != known:
                        minute_ns = self._stamps.minute_ns(minute)
                        known = minute
                    time_ns = minute_ns + seconds[second] + millis[milli]
                except (KeyError, struct.error):
                    pass  # spelled in another way
                else:
                    way = ways.get(kind, turned)  # a turn's kind ends in an id
                    if way is not None:
                        taken = way(data, at, stop, time_ns)
                    elif is_alone(data, at, stop):
                        taken = True
                        passes(time_ns)
            if not taken:
                self._rows.go_to(number - numbered, at - behind)
                self._decode(data[at : stop + 1])
                behind = stop + 1
                numbered = number + 1
                decoded += 1
            number += 1
            at = stop + 1
        self._rows.go_to(number - numbered, end - behind)
        if passing:
            self._rollout.pass_over(max(passing))
        if number > decoded:
            self._rollout.begun = True

    def _decode(self, line: bytes) -> None:
        self._rows.take(line)
        if b'"rate_limits"' in line or b"\\u00" in line:
            self._counters.flush()
        take_line(self._rollout, self._rows, line)

    def _said(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """A message; the first prompt is decoded."""
        if data.startswith(_ASSISTANT, at + TO) and is_alone(data, at, stop):
            self._rollout.pass_over(time_ns)
            return True
        role = _ROLE.match(data, at + TO)
        if role is None or not is_alone(data, at, stop):
            return False
        if role.group(1):
            begun = _ITEM_WORDS.match(data, role.end())
            if not self._rollout.prompt or begun is None:
                return False
            if begun.group(1):
                self._rollout.asked(time_ns)
            else:
                self._rollout.prompted("", time_ns, 1)
        else:
            self._rollout.pass_over(time_ns)
        return True

    def _prompted(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """The words of the user, once more."""
        begun = _EVENT_WORDS.match(data, at + TO)
        if not self._rollout.prompt or begun is None or not is_alone(data, at, stop):
            return False
        self._rollout.prompted("", time_ns, -1)
        return True

    def _turned(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """A turn's context that says what the one before said."""
        if not data.startswith(TURN, at + AT) or self._rollout.thread.history:
            return False
        id_ = _TURN_ID.match(data, at + AT + len(TURN))
        if id_ is None:
            return False
        said = data[id_.end() : stop]
        if said != self._turn:
            if not is_alone(data, at, stop):
                return False
            try:
                row = orjson.loads(data[at:stop])
            except ValueError:
                return False
            if row["type"] != "turn_context" or not isinstance(row["payload"], dict):  # a key may stand there twice
                return False
            self._turn, self._context = said, row["payload"]
        self._rollout.turn_context(self._context, time_ns)
        return True

    def _started(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """The start of a turn of the thread's own."""
        if self._rollout.thread.history or not is_alone(data, at, stop):
            return False
        self._rollout.started(time_ns)
        return True

    def _completed(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """The end of a turn in which nothing went wrong."""
        rollout = self._rollout
        if (
            rollout.trouble
            or rollout.at_fault
            or data[at + TO : at + TO + 2] not in (b'",', b'"}')
            or not is_alone(data, at, stop)
        ):
            return False
        rollout.completed(time_ns)
        return True

    def _tool_ended(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """What an event tells of a call: decoded, for there is no telling where."""
        if not is_alone(data, at, stop):
            return False
        try:
            row = orjson.loads(data[at:stop])
        except ValueError:
            return False
        event = row["payload"]
        if row["type"] != "event_msg" or not isinstance(event, dict):  # a key may stand there twice
            return False
        type_ = event.get("type")
        if not isinstance(type_, str) or type_ not in TOOL_ENDS:
            return False
        self._rollout.tool_ended(event, time_ns)
        return True
