"""Opening a session: empty, with given messages, from its store, or from its log, which takes precedence.

A fork starts with the history of another session; its log names the parent. All arguments are checked here, so that a
wrong one raises at once and not in the first turn.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sessionlog.conversation.agents.base import BaseAgent
from sessionlog.conversation.history.conversation import Conversation, TokenCounter
from sessionlog.conversation.history.rules import check_history
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.log.recorder import Recorder, check_new
from sessionlog.conversation.state import SessionState
from sessionlog.conversation.stores.protocol import SessionStore, StoreSlot
from sessionlog.conversation.stores.snapshot import catch_up, restore, save_changed, saved_id
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_from_dict

if TYPE_CHECKING:
    from sessionlog.conversation.log.logged_session import LoggedSession

AnyPath = str | os.PathLike[str]
_STORE = ("save", "load", "delete", "list_sessions", "exists")
_LOGGER = ("emit", "is_new", "end", "path", "session_id")


def open_session(
    agent: Any,
    session_id: str | None,
    system: str | None,
    messages: Iterable[Message] | None,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
) -> SessionState:
    """Open a session with the log's history, else the store's, else the given messages.

    Raises:
        ValueError: Messages are given although there is a history already, or the log is another session's.
        InvalidHistory: The stored or logged history cannot be used. It is left unchanged.
    """
    state = _new(agent, session_id, store, logger, settings, system=system)
    logged = _logged(logger)
    stored = None if logged else state.slot.load()
    if messages is not None and (logged or stored is not None):
        where = f"the log {logged.path}" if logged else "the store"
        raise ValueError(f"this session has a history in {where} already; leave out messages=, or change the id")
    if logged:
        _continue_log(state, logged)
    elif stored is not None:
        restore(state, stored, settings)
    elif messages is not None:
        found = [
            message_from_dict(one, f"messages[{n}]") if isinstance(one, Mapping) else one
            for n, one in enumerate(messages)
        ]
        state.conversation.replace_messages(found)
        check_history(found)
        state.turn = state_of(found)
    return state


def open_saved(
    data: Mapping[str, Any],
    agent: Any,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
) -> SessionState:
    """Open a session from a snapshot.

    Raises:
        InvalidHistory: The data is no valid session.
        ValueError: The logger has a history already.
    """
    state = _new(agent, saved_id(data), store, logger, settings)
    state.slot.set_version(data)
    restore(state, data, settings)
    if logger is not None and not logger.is_new():
        raise ValueError(f"{logger.path} has a history already: Session.resume continues it")
    return state


def open_log_of(
    target: AnyPath,
    agent: Any,
    directory: AnyPath | None,
    store: SessionStore | None,
    settings: ConversationSettings | None,
    *,
    skip_damage: bool,
) -> SessionState:
    """Open a session from its log, and continue the log; raises as `Session.resume` does."""
    from sessionlog.conversation.log.logged_session import (
        find_logged_session,
        open_log,
    )

    logged = find_logged_session(target, directory=directory, skip_damage=skip_damage)
    state = _new(agent, None, store, open_log(logged), settings)
    _continue_log(state, logged)
    return state


def open_fork_of_log(
    target: AnyPath,
    agent: Any,
    session_id: str | None,
    directory: AnyPath | None,
    store: SessionStore | None,
    settings: ConversationSettings | None,
    *,
    at: int | None,
    skip_damage: bool,
) -> SessionState:
    """Open a new session with a log's history; its own log is in `directory`, else next to a log of ours.

    Raises as `Session.fork_from` does.
    """
    from sessionlog.conversation.log.logged_session import find_logged_session

    logged = find_logged_session(target, directory=directory, at=at, skip_damage=skip_damage)
    _check_parts(session_id=session_id, store=store, settings=settings)
    folder = directory if directory is not None or logged.closed else os.path.dirname(logged.path)
    state = _new(agent, None, store, check_new(SessionLogger(folder, session_id)), settings)
    _inherit(state, logged)
    return _start_fork(state, logged.as_parent())


def open_fork(parent: SessionState, session_id: str | None) -> SessionState:
    """Open a new session with another's history; if that has a log, the new log is in the same folder.

    Raises:
        ValueError: A log or a stored session has that id already, or it is the parent's own.
    """
    _check_parts(session_id=session_id)
    if session_id == parent.session_id:
        raise ValueError(
            f"{session_id!r} is this session's own id; give the fork another, or leave it out for a new one"
        )
    recorder, store = parent.recorder.sibling(session_id), parent.slot.store
    chosen = session_id or recorder.session_id or str(uuid4())
    if store is not None and store.exists(chosen):
        raise ValueError(f"session {chosen!r} is in the store already")
    if recorder.path is not None:
        parent.begin()
    history = parent.conversation.messages
    fork = _new(parent.agent, chosen, store, None, parent.conversation.settings, system=parent.system)
    fork.conversation.replace_messages(history)
    fork.recorder, fork.turn, fork.unanswered = recorder, state_of(history), parent.unanswered
    return _start_fork(fork, parent.recorder.as_parent())


def _start_fork(fork: SessionState, parent: Mapping[str, Any] | None) -> SessionState:
    """Write the fork's start, with its `parent`, to its log and store."""
    fork.use_system_of_agent()
    fork.begin(parent)
    save_changed(fork)
    return fork


def _new(
    agent: Any,
    session_id: str | None,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
    *,
    system: str | None = None,
) -> SessionState:
    """Create an empty session; its system text is None unless given."""
    _check_parts(session_id=session_id, system=system, store=store, logger=logger, settings=settings)
    chosen = _choose_id(session_id, logger)
    return SessionState(
        session_id=chosen,
        agent=agent if isinstance(agent, BaseAgent) else BaseAgent(agent),
        conversation=Conversation(settings),
        recorder=Recorder(logger),
        slot=StoreSlot(store, chosen),
        system=system,
    )


def _choose_id(session_id: str | None, logger: SessionLogger | None) -> str:
    """The given id, else the log's, else a new one. An empty log may have another name than the session."""
    if logger is None:
        return str(uuid4()) if session_id is None else session_id
    if session_id not in {None, logger.session_id} and not logger.is_new():
        raise ValueError(
            f"session {session_id!r} cannot continue the log of {logger.session_id!r}; "
            f"give it SessionLogger(session_id={session_id!r})"
        )
    return logger.session_id if session_id is None else session_id


def _continue_log(state: SessionState, logged: LoggedSession) -> None:
    """Give a new session the history of its log, and newer messages of the store.

    Raises:
        InvalidHistory: The log and the store have diverged.
    """
    start_ns = logged.start_ns
    if start_ns is not None:
        state.conversation = Conversation(state.conversation.settings, clock=lambda: start_ns)
    _inherit(state, logged)
    state.conversation.token_counter = TokenCounter(logged.usage, logged.requests)
    state.turn, state.is_begun, state.is_resumed = logged.state, True, True
    state.unanswered = logged.messages[-1] if logged.is_unanswered else None
    state.use_system_of_agent()  # the next request logs it, if the log has none
    state.recorder.continue_log(logged, system=state.system)
    state.opened_at = state.recorder.last_seq
    catch_up(state, logged)


def _inherit(state: SessionState, logged: LoggedSession) -> None:
    """Give a new session the history, the system text and the state of a log."""
    state.conversation.replace_messages(logged.messages)
    state.system = logged.system if state.system is None else state.system
    state.turn = state_of(logged.messages)


def _logged(logger: SessionLogger | None) -> LoggedSession | None:
    """Read a log; None if it is new or has only its start."""
    if logger is None or logger.is_new():
        return None
    from sessionlog.conversation.log.logged_session import read_logged_session

    found = read_logged_session(logger.path)
    return found if found.messages or found.requests or found.parent else None


def _check_parts(
    *, session_id: Any = None, system: Any = None, store: Any = None, logger: Any = None, settings: Any = None
) -> None:
    """Check the types of a session's arguments; None means not given.

    Raises:
        TypeError: An argument has a wrong type; the message names it and the right one.
        ValueError: The id is empty.
    """
    if not isinstance(session_id, str | None):
        raise TypeError(f"session_id is {_kind(session_id)}; it is a text; a store is given as store=…")
    if session_id == "":
        raise ValueError("session_id is empty; leave it out, and the session gets a new one")
    if not isinstance(system, str | None):
        raise TypeError(f"system is {_kind(system)}; it is a text")
    if store is not None and (isinstance(store, type) or not _has(store, _STORE)):
        raise TypeError(f"store is {_kind(store)}; it has {', '.join(_STORE)}, as FileStore('a folder') does")
    if logger is not None and (isinstance(logger, type) or not _has(logger, _LOGGER)):
        raise TypeError(f"logger is {_kind(logger)}; it is a SessionLogger: logger=SessionLogger()")
    if not isinstance(settings, ConversationSettings | None):
        raise TypeError(f"settings is {_kind(settings)}; it is ConversationSettings(...)")


def _has(value: Any, names: tuple[str, ...]) -> bool:
    return all(hasattr(value, name) for name in names)


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
