"""The fast lane's echoes: rows of a sub-agent that a progress row embeds in its parent's log."""

from __future__ import annotations

from sessionlog.sources.claude_code.account import FEW_TOKENS, Account
from sessionlog.sources.claude_code.beginnings import Beginning
from sessionlog.sources.claude_code.shapes import (
    BLOCKS,
    ECHO,
    ECHO_ENDING,
    OPENING,
    OUTPUT,
    REQUEST,
    ROW,
    STAMP_SIZE,
    STOP,
    STOPS,
    time_at,
)
from sessionlog.sources.record import CopyRank

_ECHO = int(CopyRank.EMBEDDED)
_LONGEST_ENDING = 4000  # it repeats the sub-agent's prompt


class Echoes:
    """What is known of the echoes before."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._window = _LONGEST_ENDING

    def take(self, line: bytes, at: int, beginning: Beginning) -> bool:
        """Account for an echo; False when it has to be decoded, or is none."""
        embedded = ECHO.match(line, at)
        opening = embedded and OPENING.match(line, embedded.end())
        if not embedded or not opening:
            return False
        size, inside = len(line), opening.end()
        ending = ECHO_ENDING.search(line, max(inside, size - self._window)) or ECHO_ENDING.search(
            line, max(inside, size - _LONGEST_ENDING)
        )
        if ending is None or line.find(ROW, inside) >= 0:
            return False
        stop, output, request = ending.group(STOP, OUTPUT, REQUEST)
        stop, time_ns = STOPS.get(stop, ""), time_at(line, embedded.start(1))
        if time_ns is None or stop == "" or time_at(line, size - STAMP_SIZE) is None:
            return False
        start, count = ending.start(), int(output)
        self._window = size - start + 16
        model, message_id = opening.group(1).decode(), opening.group(2).decode()
        account, head = self._account, beginning.echo
        account.session(head.session_id)
        answer = account.answer(f"{message_id}:{(request or b'').decode()}", message_id, _ECHO, head, time_ns)
        answer.model = answer.model or model
        answer.failed, answer.stop = False, stop
        answer.tell_later(ending, count)
        if count <= FEW_TOKENS:
            answer.unread.append(b'{"message":{"content":%s]}}' % line[inside - len(BLOCKS) : start + 1])
        return True
