"""Session: a conversation with an agent that is kept, whatever happens to a turn, and can be gone on with anywhere.

Everything a person says is in the history, the log and the store before the agent is asked; everything the agent says
is in the history and the log before anybody is shown it. With a logger the log is the session, and a store has a
snapshot of it. One turn runs at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from sessionlog.conversation.agents.answerer import Answerer
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.message import Message, Role
from sessionlog.conversation.history.rules import last_turn, open_calls
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.keeping import Shelf, session_to_dict
from sessionlog.conversation.opening import (
    Opened,
    open_fork,
    open_fork_of_log,
    open_log_of,
    open_saved,
    open_session,
)
from sessionlog.conversation.stores.protocol import SessionStore
from sessionlog.conversation.turns.line import Line, State
from sessionlog.conversation.turns.signals import unwatch, watch
from sessionlog.conversation.turns.turns import Turns
from sessionlog.errors import InvalidHistory
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger

_STATUS: Mapping[State, str] = {"failed": "error", "cancelled": "cancelled", "interrupted": "cancelled"}


class Session(Turns):
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
        Turns.__init__(self, opened.session_id, opened.line)
        self._shelf = opened.shelf
        opened.line.save = self._auto_save

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
    def conversation(self) -> Conversation:
        """Its history with all that is known of it."""
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

    def add_message(self, role: Role | Message, content: Any = None, **extra: Any) -> Message:
        """Add a message to the history; see `Conversation.add_message`.

        A tool's message answers a call that is open. Before any other, the calls that nobody has answered are closed.

        Raises:
            InvalidHistory: It is no message, or answers no open call; the history is as it was.
        """
        with self._between_turns() as line:
            conversation, waiting = line.conversation, open_calls(line.conversation.messages)
            message, closed = conversation.add_message(role, content, **extra), []
            if message.role != "tool":
                conversation.pop_last_message()
                closed = line.close_calls()
                conversation.add_message(message)
            elif message.tool_call_id not in {request.id for request in waiting}:
                conversation.pop_last_message()
                open_ids = ", ".join(request.id for request in waiting) or "none"
                raise InvalidHistory(f"no open call has the id {message.tool_call_id!r:.80}; open are {open_ids}")
            line.recorder.added([*closed, message])
        return message

    def undo(self) -> list[Message]:
        """Take the newest turn back, the user's message and all that followed, and return it."""
        with self._between_turns() as line:
            history = line.conversation.messages
            gone = history[last_turn(history) :]
            for _ in gone:
                line.conversation.pop_last_message()
            line.recorder.popped(len(gone))
        return list(gone)

    def clear(self) -> None:
        """Forget the history; the id, the system's text, and what was used stay."""
        with self._between_turns() as line:
            used = line.conversation.token_counter
            line.conversation.clear_history()
            line.conversation.token_counter = used
            line.recorder.cleared()
            line.state = "new"

    def fork(self, session_id: str | None = None) -> Self:
        """Return a new session that goes on from here on its own; with a log, a new log that names its parent.

        Raises:
            ValueError: There is a log, or a stored session, of that id already.
        """
        opened = open_fork(self._line, self._shelf.store, session_id)
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
        shelf = self._shelf if store in {None, self._shelf.store} else Shelf(store, self._session_id)
        if shelf.store is None:
            raise ValueError(f"session {self._session_id!r} has no store; save(store) saves it in one")
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
        if line.is_begun:
            line.recorder.end(status or _STATUS.get(line.state, "success"), error=error)
        line.recorder.close()

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
        self.close(status, error=error if status == "error" else None)

    def interrupted_by(self, error: BaseException) -> None:
        """Wait for the exception, which ends the `with` block."""

    def _leave(self) -> None:
        """See that no turn is under way; one whose stream is suspended ends here."""
        course = self._course()
        if course is not None and course.is_suspended:
            course.abandon()
        self._claim()
        self._busy.release()

    @contextmanager
    def _between_turns(self) -> Iterator[Line]:
        """Change the history while nobody is asked; then it is saved."""
        self._claim()
        try:
            self._line.begin()
            yield self._line
            self._auto_save()
        finally:
            self._busy.release()

    def _auto_save(self) -> None:
        if self.settings.auto_save:
            self._shelf.save(self._line)


def _status(error: BaseException | None) -> str | None:
    """How an exception ends a session; None leaves it to the last turn."""
    if error is None or (isinstance(error, SystemExit) and error.code in {None, 0}):
        return None
    return "error" if isinstance(error, Exception) else "cancelled"
