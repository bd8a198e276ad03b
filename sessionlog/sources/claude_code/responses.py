"""The rows of responses in the fast lane.

The first row of a response is matched with a pattern. The rows after it repeat its numbers but for the output, so they
are compared with it, which takes a quarter of the time.
"""

from __future__ import annotations

import re

from sessionlog.sources.claude_code.account import ENDS, FEW_TOKENS, Account
from sessionlog.sources.claude_code.answer import Answer, Head
from sessionlog.sources.claude_code.beginnings import Beginning
from sessionlog.sources.claude_code.shapes import (
    BLOCK,
    CONTENT,
    ENDING,
    HEAD_AT,
    OPENING,
    OUTPUT,
    REQUEST,
    ROW,
    STAMP_SIZE,
    STOP,
    STOPS,
    TAIL,
    TAIL_SIZE,
    USAGE,
    USE,
    time_at,
)  # fmt: skip
from sessionlog.sources.gather import server_of
from sessionlog.sources.record import CopyRank

NEVER = b"\x00"
"""What no row holds."""

_SIDE, _REAL = int(CopyRank.SIDECHAIN), int(CopyRank.ORIGINAL)
_LONGEST_ENDING = 1000
_LONGEST_COUNT = 15
_REMEMBERED = 256
_WORDED = {
    b'}],"stop_reason":%s,"stop_sequence":null,' % (b'"%s"' % name if name else b"null"): stop
    for name, stop in STOPS.items()
}
_LONGEST_STOP = max(map(len, _WORDED))
_Told = tuple[int, str | None, int]  # where a row's content ends, why the model stopped, its count of output


class Responses:
    """The response whose rows go by, and how the first of them ended.

    Attributes:
        begun: What its rows share between their parent's id and what they say.
        result: The same of a row with the result of the last tool call, up to the result's text.
        called: The id of that call.
        caller: The beginning of the row that called.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._beginning: Beginning | None = None
        self.called, self.result = "", NEVER
        self.caller: Beginning | None = None
        self.begun, self._inside = NEVER, 0
        self._model = self._message_id = ""
        self._answer: Answer | None = None
        self._ending: re.Match[bytes] | None = None
        self._request: bytes | None = None
        self._before = self._after = NEVER  # its count of output, in that ending
        self._window = _LONGEST_ENDING
        self._tools: dict[bytes, tuple[str, str]] = {}

    def begin(self, line: bytes, at: int, beginning: Beginning) -> bool | None:
        """Account for the first row of a response; None when the row has another kind."""
        opening = OPENING.match(line, at)
        if opening is None:
            return None
        model, message_id = opening.groups()
        self._model, self._message_id, self._answer = model.decode(), message_id.decode(), None
        self._beginning, self.begun = beginning, beginning.spelled + opening.group()
        return self._take(line, opening.end(), beginning)

    def go_on(self, line: bytes) -> bool:
        """Account for a row with that beginning."""
        return self._beginning is not None and self._take(line, HEAD_AT + len(self.begun), self._beginning)

    def _take(self, line: bytes, at: int, beginning: Beginning) -> bool:
        block, size = BLOCK.match(line, at), len(line)
        told = block and (self._repeated(line, size) or self._read(line, size))
        if not told or block is None:
            return False
        start, stop, output = told
        inside = block.end()
        if line.find(USE, inside, start) >= 0 or line.find(ROW, inside, start) >= 0:
            return False
        time_ns = time_at(line, size - STAMP_SIZE)
        if time_ns is None:
            return False
        account, answer, head = self._account, self._answer, beginning.head
        session = beginning.at(time_ns)
        if answer is None or not answer.open:
            answer = self._open(head, time_ns)
        else:
            answer.given = True
            if answer.last_ns is not None and time_ns >= answer.last_ns:
                answer.last_ns = time_ns
            else:
                answer.at(time_ns)
        account.model, answer.failed, answer.stop = self._model, False, stop
        if not head.side:
            account.status = "success" if stop in ENDS else None
        if self._ending is not None:
            answer.tell_later(self._ending, output)
        if output <= FEW_TOKENS:
            answer.unread.append(line)
        key, name = block.groups()
        if key is not None:
            tool, server = self._tools.get(name) or self._name(name)
            self.called, self.result, self.caller = key.decode(), beginning.result + key + CONTENT, beginning
            account.call(head, session, self.called, tool, server, time_ns)
        return True

    def _repeated(self, line: bytes, size: int) -> _Told | None:
        """Read an ending that differs from the one before in what came out, and why that stopped."""
        to = size - TAIL_SIZE
        if not line.endswith(self._after, 0, to):
            return None
        end = to - len(self._after)
        count = line.rfind(b":", end - _LONGEST_COUNT - 1, end) + 1
        output = line[count:end]
        if not output.isdigit() or not line.endswith(self._before, 0, count) or not TAIL.match(line, to):
            return None
        begin = count - len(self._before)
        start = line.rfind(b"}", begin - _LONGEST_STOP, begin)
        stop = _WORDED.get(line[start:begin], "")
        return None if stop == "" else (start, stop, int(output))

    def _read(self, line: bytes, size: int) -> _Told | None:
        """Read an ending, and remember it."""
        ending = ENDING.search(line, size - self._window) or ENDING.search(line, max(0, size - _LONGEST_ENDING))
        if ending is None:
            return None
        start, (count, end) = ending.start(), ending.span(OUTPUT)
        stop, output, request = ending.group(STOP, OUTPUT, REQUEST)
        stop = STOPS.get(stop, "")
        if stop == "":
            return None
        if request != self._request:
            self._request, self._answer = request, None
        self._ending, self._window = ending, size - start + 16
        self._before = line[line.find(USAGE, start) : count]
        self._after = line[end : size - TAIL_SIZE]
        return start, stop, int(output)

    def _open(self, head: Head, time_ns: int) -> Answer:
        message_id = self._message_id
        key = f"{message_id}:{(self._request or b'').decode()}"
        answer = self._account.answer(key, message_id, _SIDE if head.side else _REAL, head, time_ns)
        answer.model = answer.model or self._model
        self._answer = answer
        return answer

    def _name(self, name: bytes) -> tuple[str, str]:
        if len(self._tools) > _REMEMBERED:
            self._tools.clear()
        told = self._tools[name] = server_of(name.decode())
        return told
