"""Session: a conversation with an agent that is kept, whatever happens to a turn, and can be gone on with anywhere.

Everything a person says is in the history, the log and the store before the agent is asked; everything the agent says
is in the history and the log before anybody is shown it. With a logger the log is the session, and a store has a
snapshot of it. One turn runs at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from sessionlog.conversation.agents.answerer import Answerer
from sessionlog.conversation.changes import Changes
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.opening import (
    Opened,
    open_fork,
    open_fork_of_log,
    open_log_of,
    open_saved,
    open_session,
)
from sessionlog.conversation.stores.protocol import SessionStore
from sessionlog.conversation.stores.shelf import Shelf, session_to_dict
from sessionlog.conversation.turns.line import State
from sessionlog.conversation.turns.signals import unwatch, watch
from sessionlog.conversation.turns.turns import Turns
from sessionlog.errors import StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message

_STATUS: Mapping[State, str] = {"failed": "error", "cancelled": "cancelled", "interrupted": "cancelled"}


class Session(Changes):
    """A conversation with an agent; also a context manager, which ends it in its log.

    Args:
        agent: An `Agent`, or what it takes.
        session_id: Its id; that of the logger, else a new UUID by default.
        system: What the agent is told to be; what is kept, else what the agent itself says by default.
        messages: A history to begin with; it is copied.
        store: Where it is saved after every turn. A session that is there already is restored.
        logger: Where it is recorded. A log that has a history already is gone on with.
        settings: The budget of the history, and how failures are tried again.

    Raises:
        TypeError: `agent` is nothing that answers.
        ValueError: `messages` are given for a session that has a history already, or the log is another session's.
        InvalidHistory: What is stored or logged is no session. It is left as it is.
    """

    def __init__(
        self,
        agent: Any,
        session_id: str | None = None,
        system: str | None = None,
        messages: Iterable[Message] | None = None,
        store: SessionStore | None = None,
        logger: SessionLogger | None = None,
        *,
        settings: ConversationSettings | None = None,
    ) -> None:
        self._open(open_session(agent, session_id, system, messages, store, logger, settings))

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        agent: Any,
        *,
        store: SessionStore | None = None,
        logger: SessionLogger | None = None,
        settings: ConversationSettings | None = None,
    ) -> Self:
        """Make a session of what `to_dict` or a store gave; one without an id gets a new one.

        Raises:
            MissingField: Something is not there without which it is no session, as a message's role.
            InvalidHistory: It is no session; the message says where and why.
            ValueError: The logger has a history already.
        """
        return cls._of(open_saved(data, agent, store, logger, settings))

    @classmethod
    def load(
        cls,
        session_id: str,
        agent: Any,
        store: SessionStore,
        *,
        logger: SessionLogger | None = None,
        settings: ConversationSettings | None = None,
    ) -> Self:
        """Go on with a session of a store.

        Raises:
            LookupError: There is none of this id.
            InvalidHistory: What is stored is no session. It is left as it is.
        """
        if not store.exists(session_id):
            raise LookupError(f"there is no session {session_id!r} in the store")
        return cls(agent, session_id, store=store, logger=logger, settings=settings)

    @classmethod
    def resume(
        cls,
        target: str | os.PathLike[str],
        agent: Any,
        *,
        directory: str | os.PathLike[str] | None = None,
        store: SessionStore | None = None,
        settings: ConversationSettings | None = None,
        skip_damage: bool = False,
    ) -> Self:
        """Go on with a session from its log alone, and with the log.

        Args:
            target: The log's path, or the session's id or its beginning.
            agent: Who is asked from now on.
            directory: Where logs are, instead of the usual place.
            store: Where it is saved as well.
            settings: As for a new session.
            skip_damage: Go on although parts of the log cannot be read.

        Raises:
            LogNotReadable: Nothing matches, or what does cannot be read.
            AmbiguousSession: Several sessions match.
            InvalidHistory: The log is damaged, or cannot be written. It is left as it is.
        """
        from sessionlog.conversation.log.remember import remember  # noqa: PLC0415 - it reads every kind of log

        remembered = remember(target, directory=directory, skip_damage=skip_damage)
        return cls._of(open_log_of(remembered, agent, store, settings))

    @classmethod
    def fork_from(
        cls,
        target: str | os.PathLike[str],
        agent: Any,
        *,
        at: int | None = None,
        session_id: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        store: SessionStore | None = None,
        settings: ConversationSettings | None = None,
        skip_damage: bool = False,
    ) -> Self:
        """Begin a new session, with a log of its own, from any point of any log, other agents' logs included.

        Args:
            target: The log's path, or the session's id or its beginning.
            agent: Who is asked from now on.
            at: The number (`seq`) of the last event that counts; None is the whole log.
            session_id: The new session's id.
            directory: Where our logs are, and where the new one goes; by default the usual place, and beside a log of
                ours.
            store: Where the new one is saved.
            settings: As for a new session.
            skip_damage: Go on although parts of the log cannot be read.

        Raises:
            LookupError: No event, or several, have the number `at`.
            LogNotReadable: Nothing matches, or what does cannot be read.
            AmbiguousSession: Several sessions match.
            InvalidHistory: The log is damaged.
            ValueError: There is a log of the new session's id already.
        """
        from sessionlog.conversation.log.remember import remember  # noqa: PLC0415 - see resume

        remembered = remember(target, directory=directory, at=at, skip_damage=skip_damage)
        opened = open_fork_of_log(remembered, agent, session_id, directory, store, settings)
        made = cls._of(opened)
        opened.line.save()
        return made

    @classmethod
    def _of(cls, opened: Opened) -> Self:
        made = cls.__new__(cls)
        made._open(opened)  # noqa: SLF001 - its own class's
        return made

    def _open(self, opened: Opened) -> None:
        Changes.__init__(self, opened)

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._session_id

    @property
    def system(self) -> str | None:
        """What the agent is told to be."""
        return self._line.system

    @property
    def agent(self) -> Answerer:
        """Who is asked."""
        return self._line.agent

    @property
    def path(self) -> str | None:
        """Its log's file; None without a logger."""
        return self._line.recorder.path

    @property
    def conversation(self) -> Conversation:
        """Its history with all that is known of it.

        What is changed there by hand is told to the log, and saved, by the next turn or change of the session, or when
        it is forked, saved or closed. `add_message`, `undo`, `clear` and `truncate` of the session do it at once.
        """
        return self._line.conversation

    @property
    def settings(self) -> ConversationSettings:
        """The budget of the history, and how failures are tried again."""
        return self._line.conversation.settings

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all its answers."""
        return self._line.conversation.token_counter.usage

    @property
    def messages(self) -> list[Message]:
        """The history, in a list of its own."""
        return self._line.conversation.get_history()

    @property
    def state(self) -> State:
        """`new`, or how its last turn ended: `complete`, `failed`, `cancelled` or `interrupted`."""
        return self._line.state

    def history(self) -> list[Message]:
        """Return the history, in a list of its own."""
        return self.messages

    def fork(self, session_id: str | None = None) -> Self:
        """Return a new session that goes on from here on its own; with a log, a new log that names its parent.

        Raises:
            ValueError: There is a log, or a stored session, of that id already.
        """
        self._tell()
        opened = open_fork(self._line, self._session_id, self._shelf.store, session_id)
        made = self._of(opened)
        opened.line.save()
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON value that `from_dict` takes: its id, the system's text and the messages."""
        return session_to_dict(self._session_id, self._line)

    def save(self, store: SessionStore | None = None) -> None:
        """Save it, by default in its own store.

        Raises:
            ValueError: It has no store, and none is given.
            StaleSession: Somebody else has saved it since it was loaded.
            SessionNotSaved: It could not be saved.
        """
        shelf = self._shelf if store is None or store is self._shelf.store else Shelf(store, self._session_id)
        if shelf.store is None:
            raise ValueError(f"session {self._session_id!r} has no store; save(store) saves it in one")
        self._tell()
        shelf.save(self._line)

    def close(self, status: str | None = None, *, error: BaseException | None = None) -> None:
        """End the session in its log, and let go of the log. What is known of it can still be read.

        Args:
            status: `success`, `error` or `cancelled`; by default what its last turn came to.
            error: Why.

        Raises:
            RuntimeError: A turn is under way in another thread or task.
        """
        if self._is_closed:
            return
        self._leave()
        self._is_closed = True
        line = self._line
        try:
            if line.is_begun:
                line.enter()
                self._end(status, error)
        except StaleSession:  # the log is somebody else's now: nothing is written behind what they wrote
            pass
        finally:
            line.recorder.close()

    def _end(self, status: str | None, error: BaseException | None) -> None:
        """Write the end, unless the log was only looked at; what a fork inherits is no failure of its own."""
        line = self._line
        if line.is_touched or not line.is_resumed or status or error:
            own = _STATUS.get(line.state, "success") if line.is_touched else "success"
            line.recorder.end(status or own, error=error)

    def __enter__(self) -> Self:
        self._line.begin()
        watch(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwatch(self)
        status = _status(error)
        course = self._course()
        if course is not None and status == "cancelled" and error is not None:
            course.interrupted_by(error)
        end = partial(self.close, status, error=error if status == "error" else None)
        try:
            end()
        except RuntimeError as busy:
            if error is None or not self.cancel():
                raise
            self._at_end = end
            error.add_note(f"{busy}; it was cancelled, and the session ends with it")

    async def __aenter__(self) -> Self:
        """Do as `with`."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        count = self._line.conversation.message_count
        return f"{type(self).__name__}({self._session_id!r}, {self._line.agent!r}, {count} messages, {self.state})"

    def interrupted_by(self, error: BaseException) -> None:
        """Wait for the exception, which ends the `with` block."""

    def _leave(self) -> None:
        """See that no turn is under way; one whose stream is suspended ends here."""
        course = self._course()
        if course is not None and course.is_suspended:
            course.abandon()
        self._claim()
        self._busy.release()


def _status(error: BaseException | None) -> str | None:
    """How an exception ends a session; None leaves it to the last turn."""
    if error is None or (isinstance(error, SystemExit) and error.code in {None, 0}):
        return None
    return "error" if isinstance(error, Exception) else "cancelled"


for _half in (Turns, Changes):  # what errors call them: the halves are nobody's business
    for _name, _method in vars(_half).items():
        if callable(_method) and not _name.startswith("_"):
            _method.__qualname__ = f"Session.{_name}"
