"""The tools of the fast lane: a call or what it gave back, a long text each, which is not looked into."""

from __future__ import annotations

import re

from sessionlog.sources.codex.heads import TO, is_alone
from sessionlog.sources.codex.scan import Rollout
from sessionlog.sources.codex.tools import tells_failure
from sessionlog.sources.gather import server_of
from sessionlog.sources.record import LONGEST_NAME

_CALL = re.compile(
    rb'",(?:"id":"[^"\\]*",)?(?:"status":"[^"\\]*",)?(?:"call_id":"([^"\\]{1,400})",)?"name":"([^"\\]{1,400})",'
    rb'"(?:arguments|input)":"'
)
_FUNCTION_OUTPUT = b'call_output","call_id":"'
_CUSTOM_OUTPUT = b'ol_call_output","call_id":"'
_FUNCTION_ID, _CUSTOM_ID = TO + len(_FUNCTION_OUTPUT), TO + len(_CUSTOM_OUTPUT)
_TEXT = b'","output":"'
_TEXT_END = b'"}}'
_CALL_ID = b'","call_id":"'
_TO_ID = len(_CALL_ID) - 1
_QUOTE, _ESCAPE = b'"\\'  # as numbers: `in` takes five times as long to look for bytes of one letter
_VALUE = b'":"'
"""Inside a text the quotes before and behind a colon are escaped: where this stands, another key or row does."""


class ToolRows:
    """Accounts for the tool rows of one log."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._tools = rollout.tools
        self._usual = b"\n"  # what stands before the text of the last call: of most calls
        self._usual_tool = ("", "")

    def function(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """A `function_…` row."""
        if data.startswith(_FUNCTION_OUTPUT, at + TO):
            return self._returned(data, at + _FUNCTION_ID, stop, time_ns)
        return data.startswith(b"call", at + TO) and self._called(data, at + TO + 4, stop, time_ns)

    def custom(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """A `custom_to…` row."""
        if data.startswith(_CUSTOM_OUTPUT, at + TO):
            return self._returned(data, at + _CUSTOM_ID, stop, time_ns)
        return data.startswith(b"ol_call", at + TO) and self._called(data, at + TO + 7, stop, time_ns)

    def _returned(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        id_end = data.find(b'"', at, stop)
        start, end = id_end + len(_TEXT), stop - len(_TEXT_END)
        if (
            id_end < 0
            or not data.startswith(_TEXT, id_end)
            or end < start
            or data[end] != _QUOTE
            or data[end - 1] == _ESCAPE
            or not is_alone(data, start - TO, end)
        ):
            return False
        call_id = data[at:id_end]
        if not call_id or len(call_id) > LONGEST_NAME or _ESCAPE in call_id:
            return False
        try:
            name = call_id.decode()
        except UnicodeDecodeError:
            return False
        rollout = self._rollout
        if rollout.touch(time_ns):
            rollout.asked_ns = time_ns
            self._tools.result(name, time_ns, tells_failure(data, start, end), end - start)
        return True

    def _called(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        called = None
        if data.startswith(self._usual, at):
            start, (tool, server) = at + len(self._usual), self._usual_tool
        else:
            head = _CALL.match(data, at, stop)
            if head is None:
                return False
            start = head.end()
            called, name = head.groups()
            try:
                tool, server = server_of(name.decode())
            except UnicodeDecodeError:
                return False
            if called is None:
                self._usual, self._usual_tool = data[at:start], (tool, server)
        end = stop - len(_TEXT_END)
        if end < start or data[end] != _QUOTE or data[end - 1] == _ESCAPE:
            return False
        last = end  # of the text that the tool was given
        if called is None:
            place = data.rfind(b'"', start - 1, end)
            last = place - _TO_ID
            called = data[place + 1 : end]
            if not called or last < start or len(called) > LONGEST_NAME or not data.startswith(_CALL_ID, last):
                return False
        elif not is_alone(data, start - TO, end):
            return False
        if _ESCAPE in called or data.find(_VALUE, start, last + 1) >= 0:
            return False
        try:
            call_id = called.decode()
        except UnicodeDecodeError:
            return False
        if self._rollout.touch(time_ns):
            self._tools.call(call_id, tool, server, time_ns)
        return True
