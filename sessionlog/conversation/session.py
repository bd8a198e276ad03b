"""Session: a conversation with an agent that is kept whatever happens to a turn, and can be resumed anywhere.

A user's message is in the history, the log and the store before the request is sent; the answer's pieces are in the
history and the log before they are passed on. With a logger, the log is the truth, and a store holds a snapshot of it.
Only one turn runs at a time.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

from sessionlog.conversation.agents.base import BaseAgent
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.rules import last_turn
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.fold import TurnState, state_of
from sessionlog.conversation.opening import AnyPath, open_fork, open_fork_of_log, open_log_of, open_saved, open_session
from sessionlog.conversation.state import SessionState
from sessionlog.conversation.stores.protocol import SessionStore, StoreSlot
from sessionlog.conversation.stores.snapshot import save, save_changed, session_to_dict
from sessionlog.conversation.turns.loops import check_no_loop
from sessionlog.conversation.turns.output import checked_schema, with_output
from sessionlog.conversation.turns.pieces import Done, Response
from sessionlog.conversation.turns.streams import AsyncStream, BaseStream, Stream, unwatch, watch
from sessionlog.conversation.turns.turn import Input, Turn, message_of
from sessionlog.errors import StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, Role

_STATUS: Mapping[TurnState, str] = {"failed": "error", "cancelled": "cancelled", "interrupted": "cancelled"}


class Session:
    """A conversation with an agent; also a context manager, which writes session.end on exit.

    The messages of a failed or interrupted turn are kept. Every direct change of the history (`add_message`, `undo`,
    `clear`, `truncate`) raises `StaleSession` if another writer has appended to the log or saved the session
    meanwhile, and RuntimeError during a turn.

    Args:
        agent: An `Agent`, or a value for its `call` argument.
        session_id: The id; by default that of the logger, else a new UUID.
        system: The system prompt; by default the stored one, else the agent's.
        messages: A history to start with; it is copied.
        store: Where the session is saved after every turn. A session that it has already is restored.
        logger: Where the session is recorded. A log with a history is continued.
        settings: The budget of the history, and how failed requests are retried.

    Raises:
        TypeError: `agent` cannot be used as one.
        ValueError: `messages` are given for a session that has a history already, or the log is another session's.
        InvalidHistory: The stored or logged data is no valid session. It is left unchanged.
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
        self._begin(open_session(agent, session_id, system, messages, store, logger, settings))

    def _begin(self, state: SessionState) -> None:
        state.use_system_of_agent()
        self._state = state
        self._busy = threading.Lock()
        self._stream: Callable[[], BaseStream | None] = lambda: None
        self._at_end: Callable[[], object] = lambda: None
        self._is_closed = False

    @classmethod
    def _of(cls, state: SessionState) -> Self:
        made = cls.__new__(cls)
        made._begin(state)  # noqa: SLF001 - of this class
        return made

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
        """Create a session from the data of `to_dict` or a store; it gets a new id if the data has none.

        Raises:
            MissingField: A required field is missing, such as a message's role.
            InvalidHistory: The data is no valid session; the message states where and why.
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
        """Continue a session from a store.

        Raises:
            LookupError: The store has no session with this id.
            InvalidHistory: The stored data is no valid session. It is left unchanged.
        """
        if not store.exists(session_id):
            raise LookupError(f"there is no session {session_id!r} in the store")
        return cls(agent, session_id, store=store, logger=logger, settings=settings)

    @classmethod
    def resume(
        cls,
        target: AnyPath,
        agent: Any,
        *,
        directory: AnyPath | None = None,
        store: SessionStore | None = None,
        settings: ConversationSettings | None = None,
        skip_damage: bool = False,
    ) -> Self:
        """Restore a session from its log alone, and continue the log.

        Args:
            target: The log's path, or the session's id or its first characters.
            agent: As for a new session.
            directory: The folder of logs, instead of the default.
            store: Where the session is saved as well.
            settings: As for a new session.
            skip_damage: Skip parts of the log that cannot be read.

        Raises:
            LogNotReadable: No log matches, or it cannot be read.
            AmbiguousSession: Several sessions match.
            InvalidHistory: The log is damaged, or cannot be appended to. It is left unchanged.
        """
        return cls._of(open_log_of(target, agent, directory, store, settings, skip_damage=skip_damage))

    @classmethod
    def fork_from(
        cls,
        target: AnyPath,
        agent: Any,
        *,
        at: int | None = None,
        session_id: str | None = None,
        directory: AnyPath | None = None,
        store: SessionStore | None = None,
        settings: ConversationSettings | None = None,
        skip_damage: bool = False,
    ) -> Self:
        """Start a new session, with its own log, from any point of any log, other agents' logs included.

        Args:
            target: The log's path, or the session's id or its first characters.
            agent: As for a new session.
            at: The number (`seq`) of the last event to use; None uses the whole log.
            session_id: The new session's id.
            directory: The folder of our logs and of the new one; by default the new log is next to a log of ours, else
                in the default folder.
            store: Where the new session is saved.
            settings: As for a new session.
            skip_damage: Skip parts of the log that cannot be read.

        Raises:
            LookupError: No event, or several, have the number `at`.
            LogNotReadable: No log matches, or it cannot be read.
            AmbiguousSession: Several sessions match.
            InvalidHistory: The log is damaged.
            ValueError: The new session's id has a log already.
        """
        return cls._of(
            open_fork_of_log(target, agent, session_id, directory, store, settings, at=at, skip_damage=skip_damage)
        )

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._state.session_id

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return self._state.system

    @property
    def agent(self) -> BaseAgent:
        """The agent."""
        return self._state.agent

    @property
    def path(self) -> str | None:
        """The path of the log; None without a logger."""
        return self._state.recorder.path

    @property
    def conversation(self) -> Conversation:
        """The history, its settings and its token usage.

        Direct changes of it are logged and saved by the next turn or change of the session, or when it is forked,
        saved or closed. `add_message`, `undo`, `clear` and `truncate` of the session log and save at once.
        """
        return self._state.conversation

    @property
    def settings(self) -> ConversationSettings:
        """The budget of the history, and how failed requests are retried."""
        return self._state.conversation.settings

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all answers."""
        return self._state.conversation.token_counter.usage

    @property
    def messages(self) -> list[Message]:
        """A copy of the history."""
        return self._state.conversation.get_history()

    @property
    def state(self) -> TurnState:
        """`new`, or how its last turn ended: `complete`, `failed`, `cancelled` or `interrupted`."""
        return self._state.turn

    @property
    def ends_on_interrupt(self) -> bool:
        """Whether Ctrl-C, SIGTERM or a cancelled task during a turn writes session.end with status `cancelled`.

        True by default. Set it to False if the program catches the interrupt and continues, as a prompt does.
        """
        return self._state.ends_on_interrupt

    @ends_on_interrupt.setter
    def ends_on_interrupt(self, value: bool) -> None:
        self._state.ends_on_interrupt = value

    def history(self) -> list[Message]:
        """Return a copy of the history."""
        return self.messages

    def run(
        self,
        input: Input = None,  # noqa: A002 - the name in the public API
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Response:
        """Send a message, and return the answer.

        Args:
            input: A text, a user message, or a list of texts and content parts; or a tool message for an open call;
                None requests an answer without a new message.
            temperature: An option like any other: passed to the agent if given.
            max_tokens: As above.
            metadata: As above.
            **options: Other options of the agent.

        Raises:
            AgentError: The agent failed. The question and a partial answer are kept, and the next turn continues from
                there. `run()` retries without a new question; so does the same question, if there was no answer.
            SessionNotSaved: The store failed: before the request, then the question is not in the history; or after,
                then the answer is.
            StaleSession: Another process has saved the session or appended to its log meanwhile.
            ValueError: `input` is a system or assistant message, or a tool message without an open call; or it is
                None, and there is nothing to answer yet.
            RuntimeError: Another turn is running; or the agent is async and an event loop runs here: use `run_async`.
        """
        return _last(self.stream(input, temperature=temperature, max_tokens=max_tokens, metadata=metadata, **options))

    async def run_async(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Response:
        """Do as `run` in an event loop; a sync agent and its tools run in threads."""
        return await _last_async(
            self.stream_async(input, temperature=temperature, max_tokens=max_tokens, metadata=metadata, **options)
        )

    def stream(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Stream:
        """Send a message, and iterate over the pieces of the answer as they come; the last one is `Done`.

        The turn starts with the first `next()`. If the stream is closed or garbage-collected early, the text so far is
        kept. Raises as `run` does.
        """
        options |= {"temperature": temperature, "max_tokens": max_tokens, "metadata": metadata}
        return self._stream_of(self._turn(input, options))

    def stream_async(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> AsyncStream:
        """Do as `stream` in an event loop."""
        options |= {"temperature": temperature, "max_tokens": max_tokens, "metadata": metadata}
        turn = self._turn(input, options)
        return AsyncStream(turn.steps(), turn.stop, self)

    def json(self, input: Input = None, *, schema: Any = None, **options: Any) -> Response:  # noqa: A002 - see run
        """Request a structured answer; the response has it as `.output`.

        Args:
            input: As for `run`.
            schema: A pydantic model or any type (which needs pydantic), a JSON schema, or None for any JSON.
            **options: As for `run`.

        Raises:
            AgentError: As for `run`; or the answer does not match the schema. It is kept in the history.
            MissingExtra: pydantic or jsonschema is needed and not installed.
        """
        turn = self._turn(input, options, checked_schema(schema))
        response = _last(self._stream_of(turn))
        return with_output(turn.reply, turn.schema, response)

    async def json_async(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        schema: Any = None,
        **options: Any,
    ) -> Response:
        """Do as `json` in an event loop."""
        turn = self._turn(input, options, checked_schema(schema))
        response = await _last_async(AsyncStream(turn.steps(), turn.stop, self))
        return with_output(turn.reply, turn.schema, response)

    def cancel(self) -> bool:
        """Cancel the running turn, from another thread, a task or a signal handler; return whether there was one.

        The turn ends after the current piece; in an event loop, the wait for that piece is cancelled. The text so far
        is kept, and the response has status `cancelled`. A call that blocks its thread cannot be cancelled.
        """
        stream = self._stream()
        if stream is not None:
            stream.stop.request()
        return stream is not None

    def add_message(self, role: Role | Message, content: Any = None, **extra: Any) -> Message:
        """Add a message to the history; see `Conversation.add_message`.

        A tool message has to answer an open call. Before any other message, open calls get a placeholder result.

        Raises:
            InvalidHistory: The message is invalid, or answers no open call; the history is unchanged.
        """
        with self._between_turns() as state:
            message = state.conversation.add_message(role, content, **extra)
            state.conversation.pop_last_message()
            if message.role == "tool":
                state.check_answer(message)
            else:
                state.close_calls()
            state.conversation.add_message(message)
            state.record()
        return message

    def undo(self) -> list[Message]:
        """Remove the newest turn, the user message and all that followed, and return its messages."""
        with self._between_turns() as state:
            history = state.conversation.messages
            left = history[: last_turn(history)]
            state.conversation.replace_messages(left)
            state.record()
            if left != history:
                state.turn = state_of(left)
        return list(history[len(left) :])

    def clear(self) -> None:
        """Remove all messages; the id, the system text and the token usage stay."""
        with self._between_turns() as state:
            state.conversation.replace_messages(())
            state.recorder.cleared()
            state.turn = "new"

    def truncate(self) -> Truncation:
        """Truncate the history now, if it has reached its threshold, and return what that did.

        Raises:
            InvalidHistory: The strategy or summary function of the settings returned something unusable. Exceptions
                raised by these functions pass through. Either way the history is unchanged.
        """
        with self._between_turns() as state:
            before = state.conversation.messages
            cut = state.conversation.truncate_history(state.system_estimate())
            state.recorder.truncated(before, state.conversation.messages, cut)
        return cut

    def fork(self, session_id: str | None = None) -> Self:
        """Return a new session with a copy of this history; with a logger, it has a new log that names its parent.

        Raises:
            ValueError: A log or a stored session has that id already.
        """
        self._record_changes()
        return self._of(open_fork(self._state, session_id))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value for `from_dict`: the id, the system text and the messages."""
        return session_to_dict(self._state)

    def save(self, store: SessionStore | None = None) -> None:
        """Save the session, by default in its own store.

        Raises:
            ValueError: The session has no store, and none is given.
            StaleSession: Another writer has saved the session since it was loaded.
            SessionNotSaved: The session could not be saved.
        """
        own = self._state.slot
        slot = own if store is None or store is own.store else StoreSlot(store, self.session_id)
        if slot.store is None:
            raise ValueError(f"session {self.session_id!r} has no store; save(store) saves it in one")
        self._record_changes()
        save(self._state, slot)

    def close(self, status: str | None = None, *, error: BaseException | None = None) -> None:
        """Write session.end and close the log. The history can still be read.

        Args:
            status: `success`, `error` or `cancelled`; by default that of the last turn.
            error: The reason, for the log.

        Raises:
            RuntimeError: A turn is running in another thread or task.
        """
        if self._is_closed:
            return
        stream = self._stream()
        if stream is not None and stream.is_suspended:
            stream.abandon()
        self._claim()
        try:
            self._finish(status, error)
        finally:
            self._busy.release()

    def _finish(self, status: str | None, error: BaseException | None) -> None:
        """Write session.end and close the log; the caller holds the turn lock, so that no turn begins meanwhile."""
        self._is_closed = True
        state = self._state
        with closing(state.recorder), suppress(StaleSession):  # write nothing after another writer's events
            if state.is_begun:
                state.enter()
                if state.is_touched or not state.is_resumed or status or error:  # else it was only read
                    own = _STATUS.get(state.turn, "success") if state.is_touched else "success"
                    state.recorder.end(status or own, error=error)

    def __enter__(self) -> Self:
        self._state.begin()
        watch(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unwatch(self)
        status = _status(error)
        stream = self._stream()
        if stream is not None and status == "cancelled" and error is not None:
            stream.interrupted_by(error)
        reason = error if status == "error" else None
        try:
            self.close(status, error=reason)
        except RuntimeError as busy:
            if error is None or not self.cancel():
                raise
            self._at_end = partial(self._finish, status, reason)
            error.add_note(f"{busy}; the turn was cancelled, and the session ends with it")

    async def __aenter__(self) -> Self:
        """Do as `with`."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        count = self._state.conversation.message_count
        return f"{type(self).__name__}({self.session_id!r}, {self.agent!r}, {count} messages, {self.state})"

    def begun(self, stream: BaseStream) -> None:
        """Start the turn of a stream: acquire the lock, and log direct changes of the history."""
        self._claim()
        self._stream = weakref.ref(stream)  # weak: a stream without references is closed
        watch(stream)
        try:
            self._state.enter()
        except BaseException:
            self.ended(stream)
            raise

    def ended(self, stream: BaseStream) -> None:
        """End the turn of a stream, and the session if that waits for it: release the lock."""
        unwatch(stream)
        self._stream = lambda: None
        at_end, self._at_end = self._at_end, lambda: None
        try:
            at_end()
        finally:
            self._busy.release()

    def interrupted_by(self, error: BaseException) -> None:
        """Do nothing: the exception ends the `with` block, which closes the session."""

    def _claim(self) -> None:
        """Acquire the turn lock `_busy`; the caller releases it."""
        if self._is_closed:
            raise RuntimeError(f"session {self.session_id!r} is closed; Session.resume or Session.load continues it")
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"session {self.session_id!r} is busy with another turn; read its stream to the end, close it, or "
                "cancel() it first"
            )

    @contextmanager
    def _between_turns(self) -> Iterator[SessionState]:
        """Hold the turn lock for a change of the history; save the session afterwards."""
        self._claim()
        try:
            self._state.enter()
            yield self._state
            save_changed(self._state)
        finally:
            self._busy.release()

    def _record_changes(self) -> None:
        """Log direct changes of the history, except during a turn, or if another writer has continued the log."""
        if self._state.is_begun and not self._is_closed and self._stream() is None:
            with suppress(StaleSession):
                self._state.enter()

    def _turn(self, input_: Input, options: dict[str, Any], schema: Any = None) -> Turn:
        given = {name: value for name, value in options.items() if value is not None}
        message = message_of(input_)
        if message is None and not self._state.conversation.message_count:
            raise ValueError('there is nothing to answer yet; send a message: run("...")')
        return Turn(self._state, message, given, schema)

    def _stream_of(self, turn: Turn) -> Stream:
        if self.agent.is_async:
            check_no_loop()
        return Stream(turn.steps(), turn.stop, self)


def _last(stream: Stream) -> Response:
    for piece in stream:
        if isinstance(piece, Done):
            return piece.response
    raise RuntimeError("the stream has ended before its turn")


async def _last_async(stream: AsyncStream) -> Response:
    async for piece in stream:
        if isinstance(piece, Done):
            return piece.response
    raise RuntimeError("the stream has ended before its turn")


def _status(error: BaseException | None) -> str | None:
    """The status that an exception gives a session; None leaves it to the last turn."""
    if error is None or (isinstance(error, SystemExit) and error.code in {None, 0}):
        return None
    return "error" if isinstance(error, Exception) else "cancelled"
