"""Unread: how much the session's logs may have used since the ledger has read them.

Reading a log takes the modules of its source, which takes longer than all else that a hook does. Before a tool call it
is put off while it cannot matter: the new responses are counted by a mark in the unread bytes, each is taken for four
times the largest one of the session, and if even so no budget reaches its next level, the ledger decides as it is.
A new log, a new model, a rewritten log or many unread bytes are read at once, and so is everything before a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog import files
from sessionlog.analytics.sums import TOTAL_TOKENS, Row, read_rows
from sessionlog.errors import LogNotReadable
from sessionlog.guard.hook import subagent_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionlog.analytics.conditions import Query
    from sessionlog.guard.hook import Hook

_MOST_BYTES = 1 << 18
_TIMES = 4
"""How many times as much as the largest response of its session a response uses at most."""

_MODEL, _MODEL_TEXT = b'"model":', b'"model":"'
_LOGS = """SELECT f.path, f.offset FROM files f
    WHERE f.id IN (SELECT t.file_id FROM log_sessions t WHERE t.session_id = :id) AND NOT f.missing"""
_LARGEST = {"usd": "MAX(COALESCE(r.cost_nano, r.estimate_nano, 0))", "tokens": f"MAX({TOTAL_TOKENS})"}
_RESPONSES = """FROM responses r JOIN labels l ON l.id = r.label_id
    WHERE r.file_id IN (SELECT t.file_id FROM log_sessions t WHERE t.session_id = :id)"""
_MODELS = {"model": "l.model", "response_model": "l.response_model"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Responses that are not in the ledger yet.

    Attributes:
        count: How many there are at most.
        largest: What the largest response of their session has used: unit → amount in the unit's inner one.
    """

    count: int
    largest: Mapping[str, int]

    def most(self, unit: str) -> int:
        """Return what they have used at most, in a unit's inner one: nano-dollars, tokens or requests."""
        return self.count * (1 if unit == "requests" else _TIMES * self.largest[unit])


def find_unread(query: Query, hook: Hook, session: int | None) -> Unread | None:
    """Return what the ledger has not read of a session's logs; None if they have to be read to know that.

    Args:
        query: Runs a statement on the ledger.
        hook: The call of the hook.
        session: The session's number in the ledger; None for none.
    """
    if session is None:
        return None
    offsets: dict[str, int] = dict(query(_LOGS, {"id": session}))
    responses = read_rows(query, Row, _LARGEST, _RESPONSES, {"id": session}, by=_MODELS)
    if not responses or not _own_logs(hook) <= offsets.keys():
        return None
    new = _new_bytes(offsets)
    if new is None or not _models(new) <= {name for row in responses for name in row.keys.values()}:
        return None
    return Unread(
        count=max(new.count(mark) for mark in hook.agent.usage_marks),
        largest={unit: max(getattr(row, unit) for row in responses) for unit in _LARGEST},
    )


def _own_logs(hook: Hook) -> set[str]:
    """The logs that the session has now, as far as their names show it."""
    return {hook.log, hook.call_log, *(subagent_logs(hook.log) if hook.agent.has_subagent_logs else ())}


def _new_bytes(offsets: Mapping[str, int]) -> bytes | None:
    """Return what these logs have after these offsets; None if that is much, or a log was changed before."""
    pieces: list[bytes] = []
    try:
        for path, offset in offsets.items():
            status = files.stat_path(path)
            if status is None or not offset <= status.st_size <= offset + _MOST_BYTES:
                return None
            if status.st_size > offset:
                with files.open_log(path, buffer=0) as file:
                    pieces.append(files.read_at(file.fileno(), offset, status.st_size - offset))
    except (OSError, LogNotReadable):  # it has gone meanwhile
        return None
    return b"".join(pieces)


def _models(new: bytes) -> set[str]:
    """Return the names of models in rows; a name that cannot be read is one that no session has."""
    texts = new.split(_MODEL_TEXT)
    is_other = new.count(_MODEL) + 1 != len(texts)
    return {text.partition(b'"')[0].decode("utf-8", "replace") for text in texts[1:]} | ({""} if is_other else set())
