"""Snapshots: a session saved to, and restored from, a store as a JSON object.

Where a session has a log as well, the log takes precedence over a snapshot that it has continued, for example with an
undo. But a log that could not be written (a full disk) is behind: then the snapshot has the newer messages, which must
not be lost.
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
"""The key of the number of the log's last event at the time of the snapshot."""
_TURNS: tuple[str, ...] = get_args(TurnState)
_REDACTED = "[redacted]"


def session_to_dict(state: SessionState) -> dict[str, Any]:
    """Return a session's id, system text and messages as JSON."""
    messages = [message_to_dict(message, nulls=True) for message in state.conversation.messages]
    return {"session_id": state.session_id, "system": state.system, "messages": messages}


def saved_id(data: Mapping[str, Any]) -> str | None:
    """Return the id in a saved session; None without one.

    Raises:
        InvalidHistory: It is not a valid id.
    """
    found = data.get("session_id") if isinstance(data, Mapping) else None
    if found is not None and (not isinstance(found, str) or not found):
        raise InvalidHistory(f"session_id: {found!r:.80}; it is a text")
    return found


def save_changed(state: SessionState) -> None:
    """Save a session after a change, if it has a store and `auto_save` is set; raises as `save` does."""
    if state.is_saved:
        save(state, state.slot)


def save(state: SessionState, slot: StoreSlot) -> None:
    """Save a session in a store.

    Raises:
        StaleSession: Another writer has saved it since it was loaded.
        SessionNotSaved: It could not be saved, or could not be loaded again.
    """
    try:
        check_history(state.conversation.messages)
    except InvalidHistory as error:
        next_step = "undo() removes the newest turn, clear() all of them"
        raise SessionNotSaved(
            f"session {slot.session_id!r} was not saved, because nothing could load it again: {error}; {next_step}"
        ) from error
    data = {"schema": SCHEMA, **state.conversation.to_serializable(), **session_to_dict(state), "state": state.turn}
    if state.recorder.last_seq is not None:
        data[LOG_SEQ] = state.recorder.last_seq
    try:
        slot.write(data)
    except (StaleSession, SessionNotSaved):
        raise
    except Exception as error:
        kept = "the history in memory is complete, and save() tries again"
        raise SessionNotSaved(f"session {slot.session_id!r} was not saved: {describe(error)}; {kept}") from error


def catch_up(state: SessionState, logged: LoggedSession) -> None:
    """Add the messages of the stored snapshot that the log lacks to a state made from the log; they are logged later.

    Raises:
        InvalidHistory: The log and the snapshot have diverged.
    """
    try:
        data = state.slot.load() or {"messages": []}
    except InvalidHistory:
        state.slot.version = None  # unreadable, but the log has everything: overwrite it
        return
    snapshot, conversation = Conversation(), state.conversation
    try:
        snapshot.restore_from(data, settings=conversation.settings)
    except InvalidHistory:
        return
    known, saved = conversation.messages, snapshot.messages
    if _is_prefix(saved, known):
        return
    seq = data.get(LOG_SEQ)
    is_newer = isinstance(seq, int) and logged.last_seq is not None and logged.last_seq > seq
    has_gap = any(problem.kind == "seq_gap" for problem in logged.problems)
    if _is_prefix(known, saved) and (has_gap or not is_newer):
        conversation.replace_messages([*known, *saved[len(known) :]])
        state.turn = _saved_turn(data, conversation)
        if snapshot.token_counter.requests > conversation.token_counter.requests:
            conversation.token_counter = snapshot.token_counter
    elif not is_newer:
        raise InvalidHistory(
            f"the log {logged.path} ({len(known)} messages) and the snapshot stored as {state.session_id!r} "
            f"({len(saved)} messages) have diverged; Session.resume without the store continues from the log, "
            "Session.load without the logger from the store"
        )


def restore(state: SessionState, data: Mapping[str, Any], settings: ConversationSettings | None) -> None:
    """Fill a new state from a snapshot; all of it is checked before anything changes.

    Raises:
        MissingField: A required field is missing.
        InvalidHistory: It is no saved session; the message states where and why.
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
    """The saved state; without one, derived from the history."""
    return read_state(data.get("state"), "complete" if conversation.message_count else "new")


def _is_prefix(messages: Sequence[Message], whole: Sequence[Message]) -> bool:
    return len(messages) <= len(whole) and all(map(_is_alike, messages, whole))


def _is_alike(one: Message, other: Message) -> bool:
    """Whether both are the same message, although a log redacts secrets and cannot hold every text and number."""
    if one == other:
        return True
    if (one.role, one.tool_call_id, _calls(one)) != (other.role, other.tool_call_id, _calls(other)):
        return False
    texts = one.text, other.text
    return any(_REDACTED in text for text in texts) or _writable(texts[0]) == _writable(texts[1])


def _calls(message: Message) -> list[tuple[str, str]]:
    return [(request.id, request.name) for request in message.tool_calls]


def _writable(text: str) -> str:
    """The text as a log can hold it, without unpaired surrogates."""
    return text.encode("utf-8", "replace").decode().replace("\N{REPLACEMENT CHARACTER}", "?")
