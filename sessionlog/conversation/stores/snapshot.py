"""A session in a store: a snapshot of it as a JSON object, and which version of it was seen last.

Where a session has a log as well, the log is the session, and what is stored is a snapshot of it: so the log is right
wherever it went on after the snapshot, as by taking something back. But a log that could not be written (a full disk)
is behind: then the snapshot has what was said since, and nothing of that may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.rules import check_history
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.fold import TurnState, read_state
from sessionlog.conversation.state import SessionState
from sessionlog.conversation.stores.protocol import StoreSlot
from sessionlog.errors import InvalidHistory, SessionNotSaved, StaleSession
from sessionlog.logger.tool_timer import describe
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_to_dict

if TYPE_CHECKING:
    from sessionlog.conversation.log.logged_session import LoggedSession

SCHEMA = "sessionlog.session/1"
LOG_SEQ = "log_seq"
"""What a snapshot calls the number of the last event that the log had then."""
_TURNS: tuple[str, ...] = get_args(TurnState)
_REDACTED = "[redacted]"


def session_to_dict(state: SessionState) -> dict[str, Any]:
    """Return what a session is to others: its id, its system's text, and its messages."""
    messages = [message_to_dict(message, nulls=True) for message in state.conversation.messages]
    return {"session_id": state.session_id, "system": state.system, "messages": messages}


def saved_id(data: Mapping[str, Any]) -> str | None:
    """Return the id in a saved session, None without one.

    Raises:
        InvalidHistory: It is none.
    """
    found = data.get("session_id") if isinstance(data, Mapping) else None
    if found is not None and (not isinstance(found, str) or not found):
        raise InvalidHistory(f"session_id: {found!r:.80}; it is a text")
    return found


def save_changed(state: SessionState) -> None:
    """Save a session after a change, where it has a store and its settings say so; raises what `save` does."""
    if state.is_saved:
        save(state, state.slot)


def save(state: SessionState, slot: StoreSlot) -> None:
    """Put a session into a store.

    Raises:
        StaleSession: Another writer has saved it since it was seen.
        SessionNotSaved: It could not be saved, or could not be loaded again.
    """
    try:
        check_history(state.conversation.messages)
    except InvalidHistory as error:
        unwanted = "undo() takes the newest turn back, clear() all of them"
        raise SessionNotSaved(
            f"session {slot.session_id!r} was not saved, for nothing could load it again: {error}; {unwanted}"
        ) from error
    data = {"schema": SCHEMA, **state.conversation.to_serializable(), **session_to_dict(state), "state": state.turn}
    if state.recorder.last_seq is not None:
        data[LOG_SEQ] = state.recorder.last_seq
    try:
        slot.write(data)
    except (StaleSession, SessionNotSaved):
        raise
    except Exception as error:
        kept = "the history in memory has all of it, and save() tries again"
        raise SessionNotSaved(f"session {slot.session_id!r} was not saved: {describe(error)}; {kept}") from error


def catch_up(state: SessionState, logged: LoggedSession) -> None:
    """Take what is stored where the log, from which the state was made, is behind it; the next step logs it.

    Raises:
        InvalidHistory: Both went on from the same place, each in its own way.
    """
    try:
        data = state.slot.load() or {"messages": []}
    except InvalidHistory:
        state.slot.version = None  # it cannot be read, and the log has all of it: save over it
        return
    snapshot, conversation = Conversation(), state.conversation
    try:
        snapshot.restore_from(data, settings=conversation.settings)
    except InvalidHistory:
        return
    known, saved = conversation.messages, snapshot.messages
    if _is_beginning(saved, known):
        return
    seq = data.get(LOG_SEQ)
    is_newer = isinstance(seq, int) and logged.last_seq is not None and logged.last_seq > seq
    has_gap = any(problem.kind == "seq_gap" for problem in logged.problems)
    if _is_beginning(known, saved) and (has_gap or not is_newer):
        conversation.replace_messages([*known, *saved[len(known) :]])
        state.turn = _saved_turn(data, conversation)
        if snapshot.token_counter.requests > conversation.token_counter.requests:
            conversation.token_counter = snapshot.token_counter
    elif not is_newer:
        raise InvalidHistory(
            f"the log {logged.path} ({len(known)} messages) and what is stored as {state.session_id!r} "
            f"({len(saved)} messages) went on in different ways; Session.resume without the store goes on from the "
            "log, Session.load without the logger from the store"
        )


def restore(state: SessionState, data: Mapping[str, Any], settings: ConversationSettings | None) -> None:
    """Make a new state what was saved; it is checked whole before anything changes.

    Raises:
        MissingField: Something is not there without which it is no session.
        InvalidHistory: It is no saved session; the message says where and why.
    """
    if not isinstance(data, Mapping):
        raise InvalidHistory(f"a saved session is an object, not {type(data).__name__}")
    schema, system, turn = data.get("schema", SCHEMA), data.get("system"), data.get("state")
    if schema != SCHEMA:
        raise InvalidHistory(f"schema: {schema!r:.80}; this version reads {SCHEMA!r}")
    if not isinstance(system, str | None):
        raise InvalidHistory(f"system: {type(system).__name__}; it is a text or null")
    if turn is not None and turn not in _TURNS:
        raise InvalidHistory(f"state: {turn!r:.80}; it is one of {', '.join(_TURNS)}")
    state.conversation.restore_from(data, settings=settings)
    state.system = system if state.system is None else state.system
    state.turn = _saved_turn(data, state.conversation)


def _saved_turn(data: Mapping[str, Any], conversation: Conversation) -> TurnState:
    """The state that was saved; where none was, what the history shows."""
    return read_state(data.get("state"), "complete" if conversation.message_count else "new")


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
