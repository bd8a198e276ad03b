"""How a session begins: anew, with given messages, from its store, or from its log, which is the truth where it is.

A fork begins where another session is, and goes its own way; its log names its parent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from sessionlog.conversation.agents.answerer import Answerer
from sessionlog.conversation.history.conversation import Conversation, TokenCounter
from sessionlog.conversation.history.rules import check_history
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.parts import check_parts
from sessionlog.conversation.stores.catch_up import catch_up
from sessionlog.conversation.stores.protocol import SessionStore
from sessionlog.conversation.stores.shelf import Shelf, restore, saved_id
from sessionlog.conversation.turns.line import Line
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_from_dict

if TYPE_CHECKING:
    from sessionlog.conversation.log.remember import Remembered

_SECOND = 1_000_000_000


class Opened(NamedTuple):
    """A session that may begin.

    Attributes:
        session_id: Its id.
        line: Its parts.
        shelf: Its place in a store.
    """

    session_id: str
    line: Line
    shelf: Shelf


def open_session(
    agent: Any,
    session_id: str | None,
    system: str | None,
    messages: Iterable[Message] | None,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
) -> Opened:
    """Open a session with the history that is there: the log's, else the store's, else the given messages.

    Raises:
        ValueError: Messages are given, and there is a history already; or the log is another session's.
        InvalidHistory: What is there cannot be used. It is left as it is.
    """
    opened = _new(agent, session_id, store, logger, settings, system=system)
    line, shelf = opened.line, opened.shelf
    logged = _logged(logger)
    stored = None if logged else shelf.load()
    if messages is not None and (logged or stored is not None):
        where = f"the log {logged.path}" if logged else "the store"
        raise ValueError(
            f"there is a history of this session in {where} already; leave out messages=, or change the id"
        )
    if logged:
        _go_on(line, shelf, logged, settings)
    elif stored is not None:
        restore(line, stored, settings)
    elif messages is not None:
        found = [
            message_from_dict(one, f"messages[{n}]") if isinstance(one, Mapping) else one
            for n, one in enumerate(messages)
        ]
        line.conversation.replace_messages(found)
        check_history(found)
        line.state = state_of(found)
    return _settled(opened)


def open_saved(
    data: Mapping[str, Any],
    agent: Any,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
) -> Opened:
    """Open what was saved.

    Raises:
        InvalidHistory: It is no session.
        ValueError: The logger has a history already.
    """
    opened = _new(agent, saved_id(data), store, logger, settings)
    opened.shelf.seen(data)
    restore(opened.line, data, settings)
    if logger is not None and not logger.is_new():
        raise ValueError(f"{logger.path} has a history already: Session.resume goes on with it")
    return _settled(opened)


def open_log_of(
    remembered: Remembered, agent: Any, store: SessionStore | None, settings: ConversationSettings | None
) -> Opened:
    """Open a session as its log tells it, to go on with both.

    Raises:
        InvalidHistory: The log cannot be written.
    """
    from sessionlog.conversation.log.remember import open_log  # noqa: PLC0415 - it reads every kind of log

    opened = _new(agent, None, store, open_log(remembered), settings)
    _go_on(opened.line, opened.shelf, remembered, settings)
    return _settled(opened)


def open_fork_of_log(
    remembered: Remembered,
    agent: Any,
    session_id: str | None,
    directory: str | os.PathLike[str] | None,
    store: SessionStore | None,
    settings: ConversationSettings | None,
) -> Opened:
    """Open a new session where a log is, with a log of its own: in a folder, else beside a log of ours.

    Raises:
        ValueError: There is a log of the new session's id already.
    """
    check_parts(session_id=session_id, store=store, settings=settings)
    beside = directory if directory is not None or remembered.closed else os.path.dirname(remembered.path)
    logger = SessionLogger(beside, session_id)
    if not logger.is_new():
        raise ValueError(f"{logger.path}: there is a log of session {logger.session_id!r} already")
    opened = _new(agent, None, store, logger, settings)
    _inherit(opened.line, remembered, settings)
    _settled(opened).line.begin(remembered.as_parent())
    return opened


def open_fork(parent: Line, parent_id: str, store: SessionStore | None, session_id: str | None) -> Opened:
    """Open a new session where another one is; with a log beside its log, if it has one.

    Raises:
        ValueError: There is a log, or a stored session, of that id already; or it is the parent's own.
    """
    check_parts(session_id=session_id)
    if session_id == parent_id:
        raise ValueError(f"{session_id!r} is this session's own id; a fork has another, or leave it out for a new one")
    recorder = parent.recorder
    mine = recorder.sibling(session_id)
    chosen = session_id or mine.session_id or str(uuid4())
    if store is not None and store.exists(chosen):
        raise ValueError(f"there is a session {chosen!r} in the store already")
    if recorder.path is not None:
        parent.begin()
    line = Line(
        agent=parent.agent,
        system=parent.system,
        conversation=Conversation(parent.conversation.settings, messages=parent.conversation.messages),
        recorder=mine,
        state=state_of(parent.conversation.messages),
    )
    line.begin(recorder.parent())
    return Opened(chosen, line, Shelf(store, chosen))


def _new(
    agent: Any,
    session_id: str | None,
    store: SessionStore | None,
    logger: SessionLogger | None,
    settings: ConversationSettings | None,
    *,
    system: str | None = None,
) -> Opened:
    """A session that nothing is known of yet; its system's text is None unless it was given."""
    check_parts(session_id=session_id, system=system, store=store, logger=logger, settings=settings)
    asked = agent if isinstance(agent, Answerer) else Answerer(agent)
    chosen = _choose_id(session_id, logger)
    line = Line(agent=asked, system=system, conversation=Conversation(settings), recorder=Recorder(logger))
    return Opened(chosen, line, Shelf(store, chosen))


def _settled(opened: Opened) -> Opened:
    """What neither the caller nor the history says of the system, the agent does."""
    if opened.line.system is None:
        opened.line.system = opened.line.agent.system
    return opened


def _choose_id(session_id: str | None, logger: SessionLogger | None) -> str:
    """The id that is given, else the log's, else a new one. A log begins under its own name, whatever the session's."""
    if logger is None:
        return str(uuid4()) if session_id is None else session_id
    if session_id not in {None, logger.session_id} and not logger.is_new():
        raise ValueError(
            f"session {session_id!r} cannot go on in the log of {logger.session_id!r}; "
            f"give it SessionLogger(session_id={session_id!r})"
        )
    return logger.session_id if session_id is None else session_id


def _go_on(line: Line, shelf: Shelf, remembered: Remembered, settings: ConversationSettings | None) -> None:
    """Give a new line the history that its log tells, and what the store has beyond it.

    Raises:
        InvalidHistory: The log and the store went on in different ways.
    """
    began = remembered.start_time
    _inherit(line, remembered, settings, began_ns=None if began is None else int(began.timestamp() * _SECOND))
    line.conversation.token_counter = TokenCounter(remembered.usage, remembered.requests)
    line.state, line.is_begun, line.is_resumed = remembered.state, True, True
    line.system = line.agent.system if line.system is None else line.system  # the log is told, if it has none
    line.recorder.go_on(remembered, system=line.system)
    line.opened_at = line.last_seq
    catch_up(line, shelf, remembered)


def _inherit(
    line: Line, remembered: Remembered, settings: ConversationSettings | None, *, began_ns: int | None = None
) -> None:
    """Give a new line a history that begins with a log's."""
    clock = time_ns if began_ns is None else lambda: began_ns
    line.conversation = Conversation(settings, messages=remembered.messages, clock=clock)
    line.system = remembered.system if line.system is None else line.system
    line.state = state_of(remembered.messages)


def _logged(logger: SessionLogger | None) -> Remembered | None:
    """What a log tells, None if it is new, or has no more than its start."""
    if logger is None or logger.is_new():
        return None
    from sessionlog.conversation.log.remember import remember_log  # noqa: PLC0415 - only where there is a log already

    found = remember_log(logger.path)
    return found if found.messages or found.requests or found.parent else None
