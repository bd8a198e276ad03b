"""A session as a JSON object, and its place in a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.rules import check_history
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.stores.protocol import Saved, SessionStore
from sessionlog.conversation.turns.line import Line, State
from sessionlog.errors import InvalidHistory, SessionNotSaved, StaleSession
from sessionlog.messages.message_json import message_to_dict

SCHEMA = "sessionlog.session/1"
LOG_SEQ = "log_seq"
"""What a snapshot calls the number of the last event that the log had then."""
_STATES: tuple[str, ...] = get_args(State)


def session_to_dict(session_id: str, line: Line) -> dict[str, Any]:
    """Return what a session is to others: its id, its system's text, and its messages."""
    messages = [message_to_dict(message, nulls=True) for message in line.conversation.messages]
    return {"session_id": session_id, "system": line.system, "messages": messages}


def restore(line: Line, data: Mapping[str, Any], settings: ConversationSettings | None) -> None:
    """Make a new line what was saved; it is checked whole before anything changes.

    Raises:
        MissingField: Something is not there without which it is no session.
        InvalidHistory: It is no saved session; the message says where and why.
    """
    if not isinstance(data, Mapping):
        raise InvalidHistory(f"a saved session is an object, not {type(data).__name__}")
    schema, system = data.get("schema", SCHEMA), data.get("system")
    if schema != SCHEMA:
        raise InvalidHistory(f"schema: {schema!r:.80}; this version reads {SCHEMA!r}")
    if not isinstance(system, str | None):
        raise InvalidHistory(f"system: {type(system).__name__}; it is a text or null")
    state = data.get("state")
    if state is not None and state not in _STATES:
        raise InvalidHistory(f"state: {state!r:.80}; it is one of {', '.join(_STATES)}")
    line.conversation.restore_from(data, settings=settings)
    line.system = system if line.system is None else line.system
    line.state = saved_state(data, line.conversation)


def saved_state(data: Mapping[str, Any], conversation: Conversation) -> State:
    """Return the state that was saved; where none was, what the history shows."""
    state = data.get("state")
    return cast("State", state) if state in _STATES else "complete" if conversation.message_count else "new"


def saved_id(data: Mapping[str, Any]) -> str | None:
    """Return the id in a saved session, None without one.

    Raises:
        InvalidHistory: It is none.
    """
    found = data.get("session_id") if isinstance(data, Mapping) else None
    if found is not None and (not isinstance(found, str) or not found):
        raise InvalidHistory(f"session_id: {found!r:.80}; it is a text")
    return found


class Shelf:
    """One session's place in a store, and the version of it that was seen last.

    Attributes:
        store: The store; None keeps nothing.
        session_id: What the session is called there.
    """

    __slots__ = ("_version", "session_id", "store")

    def __init__(self, store: SessionStore | None, session_id: str) -> None:
        self.store, self.session_id = store, session_id
        self._version: int | None = 0  # which no stored session has

    def seen(self, data: Mapping[str, Any]) -> None:
        """Take the version of what was loaded."""
        self._version = data.version if isinstance(data, Saved) else None

    def forget(self) -> None:
        """Save over whatever is there."""
        self._version = None

    def load(self) -> Mapping[str, Any] | None:
        """Return what is there, None if nothing is."""
        data = None if self.store is None else self.store.load(self.session_id)
        if data is not None:
            self.seen(data)
        return data

    def save(self, line: Line) -> None:
        """Put a session there; does nothing without a store.

        Raises:
            StaleSession: Somebody else has saved it since it was seen.
            SessionNotSaved: It could not be saved, or could not be loaded again.
        """
        if self.store is None:
            return
        try:
            check_history(line.conversation.messages)
        except InvalidHistory as error:
            unwanted = "undo() takes the newest turn back, clear() all of them"
            raise SessionNotSaved(
                f"session {self.session_id!r} was not saved, for nothing could load it again: {error}; {unwanted}"
            ) from error
        data = {**line.conversation.to_serializable(), **session_to_dict(self.session_id, line)}
        logged = {} if line.last_seq is None else {LOG_SEQ: line.last_seq}
        whole = Saved({"schema": SCHEMA, **data, "state": line.state, **logged}, version=self._version)
        try:
            self._version = self.store.save(self.session_id, whole)
        except (StaleSession, SessionNotSaved):
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}".rstrip(": ")
            kept = "the history in memory has all of it, and save() tries again"
            raise SessionNotSaved(f"session {self.session_id!r} was not saved: {why}; {kept}") from error
