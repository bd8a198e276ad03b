"""Assistants' rows in which everything is as the CLI writes it, accounted for with as few looks as can be.

More than half of a transcript's rows are such, and several tell the same response: what they repeat is compared, not
read again. A row in which anything is unusual is left to the scan; both ways lead to the same account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from sessionlog.events.times import SECOND, parse_time
from sessionlog.events.tokens import MAX_COUNT
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.claude_code.account import FEW_TOKENS, Account, Answer, Counts, Head, Session
from sessionlog.sources.record import LONGEST_NAME, UNKNOWN, Standing, read_name

SYNTHETIC = "<synthetic>"
"""The model of notices that the CLI words itself."""

ENDS = frozenset({"end_turn", "stop_sequence"})
"""Why a response that ends a turn has stopped."""

_REMEMBERED = 256
_MOST_MINUTES = 4096

_BEGINNING = ("parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch")
_END = ("message", "requestId", "type", "uuid", "timestamp")
_SHAPES = frozenset((*_BEGINNING, *more, *_END) for more in ((), ("agentId",), ("slug",), ("agentId", "slug")))
"""The keys of an assistant's row that says nothing unusual."""
_HEAD_OF = itemgetter("sessionId", "cwd", "gitBranch", "version", "isSidechain")
_MESSAGE_OF = itemgetter("model", "id", "content", "stop_reason", "usage")
_USAGE_OF = itemgetter("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_SPLIT_OF = itemgetter("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


_minutes: dict[str, int] = {}
_seconds: dict[str, int] = {}
_USUAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d\.\d{3}Z\Z", re.ASCII)


def time_of(stamp: str) -> int | None:
    """Return a time as `parse_time` does; minutes and the seconds in them repeat from row to row."""
    try:
        return _minutes[stamp[:17]] + _seconds[stamp[17:]]
    except KeyError:
        pass
    time_ns = parse_time(stamp)
    if time_ns is not None and _USUAL_TIME.match(stamp):
        part = int(stamp[17:19]) * SECOND + int(stamp[20:23]) * 1_000_000
        if len(_minutes) > _MOST_MINUTES:
            _minutes.clear()
        _minutes[stamp[:17]], _seconds[stamp[17:]] = time_ns - part, part
    return time_ns


class UsualAnswers:
    """What is known of the last such row."""

    def __init__(self, account: Account, read_head: Callable[[Mapping[str, Any]], Head]) -> None:
        self._account, self._read_head = account, read_head
        self._usual: dict[tuple[Any, ...], tuple[Head, Session]] = {}
        self._message_id = self._request_id = self._model = ""
        self._last: Answer | None = None

    def take(self, row: Row, rows: Rows) -> bool:
        """Account for an assistant's row in which everything is as the CLI writes it; False for all others."""
        try:
            model, message_id, content, stop, usage = _MESSAGE_OF(row["message"])
            told, stamp = _HEAD_OF(row), row["timestamp"]
            known, counts = self._usual.get(told), _read_counts(usage)
        except (KeyError, TypeError):
            return False
        request_id = row.get("requestId")
        if counts is None or tuple(row) not in _SHAPES or type(content) is not list or type(stamp) is not str:
            return False
        if stop is not None and type(stop) is not str:
            return False
        if message_id != self._message_id or request_id != self._request_id or model != self._model:
            if model == SYNTHETIC or not all(map(_is_name, (model, message_id, request_id))):
                return False
            self._message_id, self._request_id, self._model, self._last = message_id, request_id, model, None
        head, session = known or self._enter(told, row)
        account, answer, time_ns = self._account, self._last, time_of(stamp)
        account.begin(session, time_ns)
        if answer is None or not answer.open or answer.head is not head:
            standing = Standing.SIDE if head.side else Standing.REAL
            answer = self._last = account.answer(f"{message_id}:{request_id}", message_id, standing, head, time_ns)
            answer.model = answer.model or model
        else:
            answer.given = True
            answer.at(time_ns)
        account.model, answer.failed, answer.stop = model, False, stop or None
        if not head.side:
            account.status = "success" if stop in ENDS else None
        answer.counts = max(answer.counts, counts)
        if counts[0] <= FEW_TOKENS:
            answer.unread.append(content)
        for number, part in enumerate(content):
            if type(part) is dict and part.get("type") == "tool_use":
                key, name = read_name(part.get("id")), read_name(part.get("name")) or UNKNOWN
                account.call(head, session, key or f"{rows.place}#{number}", name, time_ns)
        return True

    def _enter(self, told: tuple[Any, ...], row: Row) -> tuple[Head, Session]:
        if len(self._usual) > _REMEMBERED:
            self._usual.clear()
        head = self._read_head(row)
        entered = self._usual[told] = (head, self._account.enter(head))
        return entered


def _is_name(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= LONGEST_NAME


def _read_counts(usage: Any) -> Counts | None:
    """Return the tokens of a usage object of whole numbers; None for any other."""
    input_, output, read, written = numbers = _USAGE_OF(usage)
    hour, split = 0, usage.get("cache_creation")
    if split is not None:
        five_minutes, hour = parts = _SPLIT_OF(split)
        if not (type(five_minutes) is type(hour) is int) or min(parts) < 0 or max(parts) > MAX_COUNT:
            return None
        written = max(written, five_minutes + hour)
    if not (type(input_) is type(output) is type(read) is type(numbers[3]) is int):
        return None
    if min(numbers) < 0 or max(numbers) > MAX_COUNT:
        return None
    return output, input_ + read + written + output, input_, read, written, hour
