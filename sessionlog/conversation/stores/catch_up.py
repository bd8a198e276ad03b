"""Where a session has a log and a store: which of the two knows more.

The log is the session, and what is stored is a snapshot of it; so the log is right wherever it went on after the
snapshot, as by taking something back. But a log that could not be written (a full disk) is behind: then the snapshot
has what was said since, and nothing of that may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.stores.shelf import LOG_SEQ, Shelf, saved_state
from sessionlog.conversation.turns.line import Line
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

if TYPE_CHECKING:
    from sessionlog.conversation.log.remember import Remembered

_REDACTED = "[redacted]"


def catch_up(line: Line, shelf: Shelf, remembered: Remembered) -> None:
    """Take what is stored where the log, from which the line comes, is behind it; the log is told at the next step.

    Raises:
        InvalidHistory: Both went on from the same place, each in its own way.
    """
    try:
        stored = shelf.load()
    except InvalidHistory:
        shelf.forget()  # it cannot be read, and the log has all of it
        return
    snapshot = Conversation()
    try:
        snapshot.restore_from(stored or {"messages": []}, settings=line.conversation.settings)
    except InvalidHistory:
        return
    logged, saved = line.conversation.messages, snapshot.messages
    if _is_beginning(saved, logged):
        return
    seq = (stored or {}).get(LOG_SEQ)
    is_newer = isinstance(seq, int) and remembered.last_seq is not None and remembered.last_seq > seq
    has_gap = any(problem.kind == "seq_gap" for problem in remembered.problems)
    if _is_beginning(logged, saved) and (has_gap or not is_newer):
        line.conversation.replace_messages([*logged, *saved[len(logged) :]])
        line.state = saved_state(stored or {}, line.conversation)
        if snapshot.token_counter.requests > line.conversation.token_counter.requests:
            line.conversation.token_counter = snapshot.token_counter
    elif not is_newer:
        raise InvalidHistory(
            f"the log {remembered.path} ({len(logged)} messages) and what is stored as {shelf.session_id!r} "
            f"({len(saved)} messages) went on in different ways; Session.resume without the store goes on from the "
            "log, Session.load without the logger from the store"
        )


def _is_beginning(messages: Sequence[Message], whole: Sequence[Message]) -> bool:
    return len(messages) <= len(whole) and all(map(_is_alike, messages, whole))


def _is_alike(one: Message, other: Message) -> bool:
    """Whether both are the same message: a log redacts secrets, and cannot hold every text and number."""
    if one == other:
        return True
    if (one.role, one.tool_call_id, _asked(one)) != (other.role, other.tool_call_id, _asked(other)):
        return False
    texts = one.text, other.text
    return any(_REDACTED in text for text in texts) or _plain(texts[0]) == _plain(texts[1])


def _asked(message: Message) -> list[tuple[str, str]]:
    return [(request.id, request.name) for request in message.tool_calls]


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\N{REPLACEMENT CHARACTER}", "?")
