"""The fast lane: rows that Claude Code wrote as it always does are accounted for from their bytes, without decoding.

Such a row is proven by what it begins with, what it ends with, and by no second row or block between; every other row
is refused, and the scan decodes it. Both ways lead to the same account; the tests demand it. What is not looked for is
damage inside a text that nobody counts: a row that is whole at both ends counts as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from sessionlog.sources.claude_code.account import ENDS, FEW_TOKENS, Account, Answer, Head, Session
from sessionlog.sources.claude_code.shapes import (
    BLOCK,
    CALL,
    COPY,
    ENDING,
    HEAD,
    HEAD_AT,
    NO_ECHO,
    NUMBERS,
    OPENING,
    OUTPUT,
    PARENT,
    PROMPT,
    PROMPT_END,
    REQUEST,
    ROW,
    SIMPLE_SYSTEM,
    STOP,
    counts_of,
    time_at,
)  # fmt: skip
from sessionlog.sources.gather import server_of
from sessionlog.sources.record import Standing

_NONE = b"\x00"
_PARENT_TO, _HEAD_FROM = len(PARENT), HEAD_AT - 2
_COMMA = b'",'
_STAMP_AT = len('2026-11-10T10:05:12.345Z"}\n')
_PROMPT_TAIL = len('"},"uuid":"') + 36 + len('","timestamp":"') + _STAMP_AT
_RESULT = b'"type":"user","message":{"role":"user","content":[{"tool_use_id":"'
_CONTENT = b'","type":"tool_result","content":"'
_CLOSED = b'}]},"uuid":"'
_STAMP = len(_CLOSED) + 36 + len('","timestamp":"')
_NEXT = b'","'
_FAILED, _FINE = b'","is_error":true', b'","is_error":false'
_ROW = b'{"parentUuid"'
_SNAPSHOT = b'{"type":"file-history-snapshot"'
_FORKED = b'"forkedFrom":'
_SIDE, _REAL = int(Standing.SIDE), int(Standing.REAL)
_WHOLE = b"}\n"
_QUOTE = ord('"')
_LONGEST_NAME = 200
_LONGEST_ENDING = 1000
_REMEMBERED = 256
_STOPS = {
    stop and stop.encode(): stop
    for stop in (None, *ENDS, "tool_use", "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded")
}


class Lane:
    """What is known of the rows before: most rows repeat their beginnings."""

    def __init__(self, account: Account, read_head: Callable[[Mapping[str, Any]], Head]) -> None:
        self._account, self._read_head = account, read_head
        self._heads: dict[bytes, Head | None] = {}
        self._segment, self._at = _NONE, 0
        self._head: Head | None = None
        self._session: Session | None = None  # of that head, once a row of it is accounted for
        self._opening = self._message_id = b""
        self._model = ""
        self._request: bytes | None = None
        self._answer: Answer | None = None
        self._window = _LONGEST_ENDING
        self._tools: dict[bytes, tuple[str, str]] = {}

    def take(self, line: bytes) -> bool:
        """Account for a whole line; False when it has to be decoded."""
        if (
            line.startswith(self._segment, HEAD_AT)
            and line[_HEAD_FROM:HEAD_AT] == _COMMA
            and line[:_PARENT_TO] == PARENT
        ):
            at = self._at
        else:
            at = self._enter(line)
        head = self._head
        if head is None or not at:
            return line.startswith(_SNAPSHOT) and _is_whole(line, 1)
        opening = self._opening
        if opening and line.startswith(opening, at):
            return self._answered(line, at + len(opening), head)
        if line.startswith(_RESULT, at):
            return self._returned(line, at + len(_RESULT), head)
        begun = OPENING.match(line, at)
        if begun is None:
            return self._others(line, at, head)
        self._opening = begun.group()
        model, self._message_id = begun.groups()
        self._model, self._answer = model.decode(), None
        return self._answered(line, begun.end(), head)

    def _enter(self, line: bytes) -> int:
        """Read a row's head; where it ends, 0 for none."""
        begun = HEAD.match(line)
        if begun is None:
            return 0
        segment = begun.group(1)
        if segment != self._segment:
            if segment not in self._heads:
                if len(self._heads) > _REMEMBERED:
                    self._heads.clear()
                self._heads[segment] = self._read(segment)
            self._segment, self._head, self._session = segment, self._heads[segment], None
            self._at = HEAD_AT + len(segment)
        return begun.end()

    def _read(self, segment: bytes) -> Head | None:
        try:
            return self._read_head(orjson.loads(b"{%s}" % segment[:-1]))
        except ValueError:
            return None

    def _answered(self, line: bytes, at: int, head: Head) -> bool:
        size = len(line)
        block = BLOCK.match(line, at)
        ending = ENDING.search(line, size - self._window) or ENDING.search(line, max(0, size - _LONGEST_ENDING))
        if block is None or ending is None:
            return False
        start, inside = ending.start(), block.end()
        self._window = size - start + 16
        if CALL.search(line, inside, start) or ROW.search(line, inside, start):
            return False
        time_ns, stop = time_at(line, size - _STAMP_AT), _STOPS.get(ending.group(STOP), "")
        if time_ns is None or stop == "":
            return False
        account = self._account
        session = self._begin(head, time_ns)
        answer, request = self._answer, ending.group(REQUEST)
        if answer is None or request != self._request or not answer.open or answer.head is not head:
            answer = self._open(request, head, time_ns)
        else:
            answer.given = True
            if answer.last_ns is not None and time_ns >= answer.last_ns:
                answer.last_ns = time_ns
            else:
                answer.at(time_ns)
        account.model, answer.failed, answer.stop = self._model, False, stop
        if not head.side:
            account.status = "success" if stop in ENDS else None
        output = int(ending.group(OUTPUT))
        if output > answer.output:
            answer.output, answer.told = output, ending
        elif output == answer.output and (answer.told is None or answer.told.group(*NUMBERS) != ending.group(*NUMBERS)):
            answer.counts = max(answer.counts, counts_of(ending))
        if output <= FEW_TOKENS:
            answer.unread.append(line)
        key, name = block.groups()
        if key is not None:
            tool, server = self._tools.get(name) or self._name(name)
            account.call(head, session, key.decode(), tool, server, time_ns)
        return True

    def _begin(self, head: Head, time_ns: int) -> Session:
        session = self._session
        if session is None:
            session = self._session = self._account.enter(head)
        self._account.begin(session, time_ns)
        return session

    def _open(self, request: bytes | None, head: Head, time_ns: int) -> Answer:
        family = self._message_id.decode()
        standing = _SIDE if head.side else _REAL
        key = f"{family}:{(request or b'').decode()}"
        answer = self._answer = self._account.answer(key, family, standing, head, time_ns)
        self._request = request
        answer.model = answer.model or self._model
        return answer

    def _name(self, name: bytes) -> tuple[str, str]:
        if len(self._tools) > _REMEMBERED:
            self._tools.clear()
        told = self._tools[name] = server_of(name.decode())
        return told

    def _others(self, line: bytes, at: int, head: Head) -> bool:
        """Words of the user, the end of a turn, progress; only the time of it is news."""
        if NO_ECHO.match(line, at):
            return _is_whole(line, at)
        account, size = self._account, len(line)
        end = size - _PROMPT_TAIL
        begun = PROMPT.match(line, at)
        if begun is not None:
            told = head.side or account.prompt
            if not told or not PROMPT_END.match(line, end) or line.find(_NEXT, begun.end(), end) >= 0:
                return False
        elif not SIMPLE_SYSTEM.match(line, at):
            return False
        time_ns = time_at(line, size - _STAMP_AT)
        if time_ns is None:
            return False
        self._begin(head, time_ns)
        if begun is not None:
            account.asked[head.side] = time_ns
            if not head.side:
                account.status = None
        return True

    def _returned(self, line: bytes, at: int, head: Head) -> bool:
        """A user's row that is the result of one tool, a text."""
        quote = line.find(b'"', at, at + _LONGEST_NAME)
        start = quote + len(_CONTENT)
        stop = line.find(_CLOSED, start)
        copy = COPY.match(line, stop) if stop > 0 and line.startswith(_CONTENT, quote) else None
        if copy is None:
            return False
        failed, end = False, stop - 1
        if line[end] != _QUOTE:
            failed = line.startswith(_FAILED, stop - len(_FAILED))
            end = stop - len(_FAILED if failed else _FINE)
            if not failed and not line.startswith(_FINE, end):
                return False
        if end < start:
            return False
        after = copy.end()
        if line.startswith(line[start:end], after):
            after += end - start  # told twice, so it is one text: what is no text cannot follow a second quote
        elif line.find(_NEXT, start, end) >= 0:
            return False
        if after < len(line) and not _is_whole(line, after):
            return False
        key, time_ns = line[at:quote], time_at(line, stop + _STAMP)
        if time_ns is None or b"\\" in key or not key.isascii():
            return False
        account = self._account
        self._begin(head, time_ns)
        account.result(key.decode(), time_ns, failed=failed, output_bytes=end - start)
        account.asked[head.side] = time_ns
        if not head.side:
            account.status = None
        return True


def _is_whole(line: bytes, place: int) -> bool:
    """Whether a row has an end, and from that place on nothing that says more of it, or is another row."""
    return (
        line.endswith(_WHOLE)
        and line.find(_ROW, place) < 0
        and line.find(_SNAPSHOT, place) < 0
        and line.find(_FORKED, place) < 0
    )
