"""The fast lane: rows that Claude Code wrote as it always does are accounted for from their bytes, without decoding.

Such a row is proven by what it begins with, what it ends with, and by no second row or block between; every other row
is refused, and the scan decodes it. Both ways lead to the same account; the tests demand it. What is not looked for is
damage inside a text that nobody counts: a row that is whole at both ends counts as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sessionlog.reader.search import find
from sessionlog.sources.claude_code.account import Account
from sessionlog.sources.claude_code.answer import Head
from sessionlog.sources.claude_code.beginnings import Beginning, Beginnings
from sessionlog.sources.claude_code.echoes import Echoes
from sessionlog.sources.claude_code.responses import NEVER, Responses
from sessionlog.sources.claude_code.shapes import (
    CONTENT,
    COPY,
    HEAD,
    HEAD_AT,
    NO_ECHO,
    PARENT,
    PROMPT,
    PROMPT_END,
    RESULT,
    ROW,
    SIMPLE_SYSTEM,
    STAMP_SIZE,
    time_at,
)

_PARENT_TO, _HEAD_FROM = len(PARENT), HEAD_AT - 2
_PROGRESS = b'"type":"progress",'
_COMMA = b'",'
_PROMPT_TAIL = len('"},"uuid":"') + 36 + len('","timestamp":"') + STAMP_SIZE
_CLOSED = b'}]},"uuid":"'
_STAMP = len(_CLOSED) + 36 + len('","timestamp":"')
_NEXT = b'","'
_FAILED, _FINE = b'","is_error":true', b'","is_error":false'
_SNAPSHOT = b'{"type":"file-history-snapshot"'
_FORKED = b'"forkedFrom":'
_WHOLE = b"}\n"
_QUOTE = ord('"')
_LONGEST_NAME = 200
_LONGEST_REST = 400


class Lane:
    """What is known of the rows before: most rows repeat their beginnings."""

    def __init__(self, account: Account, read_head: Callable[[Mapping[str, Any]], Head]) -> None:
        self._account = account
        self._responses, self._echoes = Responses(account), Echoes(account)
        self._beginnings = Beginnings(account, read_head)
        self._beginning: Beginning | None = None
        self._spelled = NEVER
        self._rest = NEVER  # of the last result, behind its text told twice

    def take(self, line: bytes) -> bool:
        """Account for a whole line; False when it has to be decoded."""
        beginning, at = self._beginning, 0
        if line[:_PARENT_TO] == PARENT and line[_HEAD_FROM:HEAD_AT] == _COMMA:
            responses = self._responses
            if line.startswith(responses.begun, HEAD_AT):
                return responses.go_on(line)
            if line.startswith(responses.result, HEAD_AT) and responses.caller is not None:
                return self._returned(line, HEAD_AT + len(responses.result), responses.called, responses.caller)
            if line.startswith(self._spelled, HEAD_AT):
                at = HEAD_AT + len(self._spelled)
        if not at:
            begun = HEAD.match(line)
            beginning = begun and self._enter(begun.group(1))
            if begun is None or beginning is None:
                return line.startswith(_SNAPSHOT) and _is_whole(line, 1)
            at = begun.end()
        if beginning is None:
            return False
        if line.startswith(RESULT, at):
            return self._returned_late(line, at + len(RESULT), beginning)
        answered = self._responses.begin(line, at, beginning)
        return self._others(line, at, beginning) if answered is None else answered

    def _enter(self, segment: bytes) -> Beginning | None:
        beginning = self._beginnings.of(segment)
        if beginning is not None:
            self._beginning, self._spelled = beginning, segment
        return beginning

    def _others(self, line: bytes, at: int, beginning: Beginning) -> bool:
        """Words of the user, the end of a turn, progress; only the time of it is news."""
        if line.startswith(_PROGRESS, at):
            if NO_ECHO.match(line, at):
                return _is_whole(line, at)
            return self._echoes.take(line, at, beginning)
        account, head, size = self._account, beginning.head, len(line)
        end = size - _PROMPT_TAIL
        begun = PROMPT.match(line, at)
        if begun is not None:
            told = head.side or account.prompt
            if not told or not PROMPT_END.match(line, end) or line.find(_NEXT, begun.end(), end) >= 0:
                return False
        elif not SIMPLE_SYSTEM.match(line, at):
            return False
        time_ns = time_at(line, size - STAMP_SIZE)
        if time_ns is None:
            return False
        beginning.at(time_ns)
        if begun is not None:
            account.asked[head.side] = time_ns
            if not head.side:
                account.status = None
                account.turn(time_ns)
        return True

    def _returned_late(self, line: bytes, at: int, beginning: Beginning) -> bool:
        """A result of a call that is not the last one."""
        quote = line.find(b'"', at, at + _LONGEST_NAME)
        key = line[at:quote]
        if not line.startswith(CONTENT, quote) or b"\\" in key or not key.isascii():
            return False
        return self._returned(line, quote + len(CONTENT), key.decode(), beginning)

    def _returned(self, line: bytes, start: int, key: str, beginning: Beginning) -> bool:
        """A user's row that is the result of one tool, a text."""
        stop = find(line, _CLOSED, start, len(line))
        copy = COPY.match(line, stop) if stop > 0 else None
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
        rest = line[after:]
        if rest != self._rest:
            if not _is_whole(rest or line[stop:], 0):
                return False
            self._rest = rest if 0 < len(rest) < _LONGEST_REST else NEVER
        time_ns = time_at(line, stop + _STAMP)
        if time_ns is None:
            return False
        account, side = self._account, beginning.head.side
        beginning.at(time_ns)
        account.result(key, time_ns, failed=failed, output_bytes=end - start)
        account.asked[side] = time_ns
        if not side:
            account.status = None
        return True


def _is_whole(line: bytes, place: int) -> bool:
    """Whether a row has an end, and from that place on nothing that says more of it, or is another row."""
    return (
        line.endswith(_WHOLE)
        and line.find(ROW, place) < 0
        and line.find(_SNAPSHOT, place) < 0
        and line.find(_FORKED, place) < 0
    )
