"""Session: a conversation with an agent that is kept, whatever happens to a turn, and can be resumed anywhere.

What a user says is in the history, the log and the store before the agent is asked; what the agent says is in the
history and the log before anybody is shown it. With a logger the log is the session, and a store has a snapshot of it.
One turn runs at a time.
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
from sessionlog.conversation.turns.output import structured, usable_schema
from sessionlog.conversation.turns.pieces import Done, Response
from sessionlog.conversation.turns.streams import AsyncStream, BaseStream, Stream, unwatch, watch
from sessionlog.conversation.turns.turn import Input, Turn, message_of
from sessionlog.errors import StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, Role

_STATUS: Mapping[TurnState, str] = {"failed": "error", "cancelled": "cancelled", "interrupted": "cancelled"}


class Session:
    """A conversation with an agent; also a context manager, which ends it in its log.

    Whatever happens to a turn, what was said is kept. Every change of the history by hand (`add_message`, `undo`,
    `clear`, `truncate`) raises `StaleSession` where another writer has appended to the log or saved the session
    meanwhile, and RuntimeError while a turn is under way.

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
        made._begin(state)  # noqa: SLF001 - its own class's
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
        target: AnyPath,
        agent: Any,
        *,
        directory: AnyPath | None = None,
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
        return cls._of(
            open_fork_of_log(target, agent, session_id, directory, store, settings, at=at, skip_damage=skip_damage)
        )

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._state.session_id

    @property
    def system(self) -> str | None:
        """What the agent is told to be."""
        return self._state.system

    @property
    def agent(self) -> BaseAgent:
        """Who is asked."""
        return self._state.agent

    @property
    def path(self) -> str | None:
        """Its log's file; None without a logger."""
        return self._state.recorder.path

    @property
    def conversation(self) -> Conversation:
        """Its history with all that is known of it.

        What is changed there by hand is logged, and saved, by the next turn or change of the session, or when it is
        forked, saved or closed. `add_message`, `undo`, `clear` and `truncate` of the session do it at once.
        """
        return self._state.conversation

    @property
    def settings(self) -> ConversationSettings:
        """The budget of the history, and how failures are tried again."""
        return self._state.conversation.settings

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all its answers."""
        return self._state.conversation.token_counter.usage

    @property
    def messages(self) -> list[Message]:
        """The history, in a list of its own."""
        return self._state.conversation.get_history()

    @property
    def state(self) -> TurnState:
        """`new`, or how its last turn ended: `complete`, `failed`, `cancelled` or `interrupted`."""
        return self._state.turn

    @property
    def ends_on_interrupt(self) -> bool:
        """Whether Ctrl-C, SIGTERM or a cancelled task within a turn ends the session in its log, as `cancelled`.

        True by default. Who catches it and goes on, as a prompt does, sets it to False.
        """
        return self._state.ends_on_interrupt

    @ends_on_interrupt.setter
    def ends_on_interrupt(self, value: bool) -> None:
        self._state.ends_on_interrupt = value

    def history(self) -> list[Message]:
        """Return the history, in a list of its own."""
        return self.messages

    def run(
        self,
        input: Input = None,  # noqa: A002 - the seed's word
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        metadata: Any = None,
        **options: Any,
    ) -> Response:
        """Say something, and return the answer.

        Args:
            input: A text, a user's message, or texts and pieces; a tool's message answers a call that is open; None
                lets the agent go on without a word.
            temperature: As for any other option: the agent gets it if it is given.
            max_tokens: As above.
            metadata: As above.
            **options: What else the agent takes.

        Raises:
            AgentError: The agent failed. The question and what was answered are kept, and the next turn goes on from
                there. `run()` asks again without a new question; so does the same question, where nothing was answered.
            SessionNotSaved: The store failed: before the agent was asked, then nothing was said; or after, then the
                answer is in the history.
            StaleSession: The stored session was saved, or the log was written to, by another process meanwhile.
            ValueError: `input` is a message of the system or of an assistant, or a tool's that answers no open call; or
                it is None, and there is nothing to answer yet.
            RuntimeError: Another turn is under way; or the agent is async and an event loop runs here: `run_async`.
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
        """Do as `run` in an event loop; an agent that is not async, and its tools, run in threads."""
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
        """Say something, and give the pieces of the answer as they come; the last one is `Done`.

        The turn begins with the first piece. A stream that is closed or forgotten before its end keeps what was shown.
        It raises as `run` does.
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
        """Ask for a structured answer; the response has it as `.output`.

        Args:
            input: As for `run`.
            schema: A pydantic model or any type (which needs pydantic), a JSON schema, or None for any JSON.
            **options: As for `run`.

        Raises:
            AgentError: As for `run`; or the answer is not what was asked for. It is kept in the history.
            MissingExtra: A type needs pydantic.
        """
        turn = self._turn(input, options, usable_schema(schema))
        response = _last(self._stream_of(turn))
        return structured(turn.reply, turn.schema, response)

    async def json_async(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        schema: Any = None,
        **options: Any,
    ) -> Response:
        """Do as `json` in an event loop."""
        turn = self._turn(input, options, usable_schema(schema))
        response = await _last_async(AsyncStream(turn.steps(), turn.stop, self))
        return structured(turn.reply, turn.schema, response)

    def cancel(self) -> bool:
        """End the turn that is under way, from another thread, a task or a signal handler; whether there was one.

        It ends after the piece at hand; where an event loop waits for that, it waits no longer. What was said is kept,
        and the response says `cancelled`. A call that blocks its thread cannot be ended.
        """
        stream = self._stream()
        if stream is not None:
            stream.stop.request()
        return stream is not None

    def add_message(self, role: Role | Message, content: Any = None, **extra: Any) -> Message:
        """Add a message to the history; see `Conversation.add_message`.

        A tool's message answers a call that is open. Before any other, open calls are closed.

        Raises:
            InvalidHistory: It is no message, or answers no open call; the history is as it was.
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
        """Take the newest turn back, the user's message and all that followed, and return it."""
        with self._between_turns() as state:
            history = state.conversation.messages
            left = history[: last_turn(history)]
            state.conversation.replace_messages(left)
            state.record()
            if left != history:
                state.turn = state_of(left)
        return list(history[len(left) :])

    def clear(self) -> None:
        """Forget the history; the id, the system's text, and what was used stay."""
        with self._between_turns() as state:
            state.conversation.replace_messages(())
            state.recorder.cleared()
            state.turn = "new"

    def truncate(self) -> Truncation:
        """Cut the history now, if it has reached its threshold, and say what that did.

        Raises:
            InvalidHistory: The strategy or the summary of the settings gave what cannot be used. Whatever is raised, by
                them too, the history is as it was.
        """
        with self._between_turns() as state:
            before = state.conversation.messages
            cut = state.conversation.truncate_history(state.system_estimate())
            state.recorder.truncated(before, state.conversation.messages, cut)
        return cut

    def fork(self, session_id: str | None = None) -> Self:
        """Return a new session that goes on from here on its own; with a log, a new log that names its parent.

        Raises:
            ValueError: There is a log, or a stored session, of that id already.
        """
        self._record_changes()
        return self._of(open_fork(self._state, session_id))

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON value that `from_dict` takes: its id, the system's text and the messages."""
        return session_to_dict(self._state)

    def save(self, store: SessionStore | None = None) -> None:
        """Save it, by default in its own store.

        Raises:
            ValueError: It has no store, and none is given.
            StaleSession: Somebody else has saved it since it was loaded.
            SessionNotSaved: It could not be saved.
        """
        own = self._state.slot
        slot = own if store is None or store is own.store else StoreSlot(store, self.session_id)
        if slot.store is None:
            raise ValueError(f"session {self.session_id!r} has no store; save(store) saves it in one")
        self._record_changes()
        save(self._state, slot)

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
        stream, state = self._stream(), self._state
        if stream is not None and stream.is_suspended:
            stream.abandon()
        self._claim()
        self._busy.release()
        self._is_closed = True
        with closing(state.recorder), suppress(StaleSession):  # nothing is written behind what another writer appended
            if state.is_begun:
                state.enter()
                if state.is_touched or not state.is_resumed or status or error:  # else it was only looked at
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
        count = self._state.conversation.message_count
        return f"{type(self).__name__}({self.session_id!r}, {self.agent!r}, {count} messages, {self.state})"

    def begun(self, stream: BaseStream) -> None:
        """A stream begins its turn."""
        self._claim()
        self._stream = weakref.ref(stream)  # weak: a forgotten stream is closed
        watch(stream)
        try:
            self._state.enter()
        except BaseException:
            self.ended(stream)
            raise

    def ended(self, stream: BaseStream) -> None:
        """A stream is over."""
        unwatch(stream)
        self._stream = lambda: None
        self._busy.release()
        at_end, self._at_end = self._at_end, lambda: None
        at_end()

    def interrupted_by(self, error: BaseException) -> None:
        """Wait for the exception, which ends the `with` block."""

    def _claim(self) -> None:
        """Acquire the turn lock `_busy`; the caller releases it."""
        if self._is_closed:
            raise RuntimeError(f"session {self.session_id!r} is closed; Session.resume or Session.load goes on with it")
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"session {self.session_id!r} is busy with another turn; read its stream to the end, close it, or "
                "cancel() it first"
            )

    @contextmanager
    def _between_turns(self) -> Iterator[SessionState]:
        """Change the history between two turns; then it is saved."""
        self._claim()
        try:
            self._state.enter()
            yield self._state
            save_changed(self._state)
        finally:
            self._busy.release()

    def _record_changes(self) -> None:
        """Log what was changed by hand; not in the midst of a turn, nor in a log that another writer has continued."""
        if self._state.is_begun and not self._is_closed and self._stream() is None:
            with suppress(StaleSession):
                self._state.enter()

    def _turn(self, asked: Input, options: dict[str, Any], schema: Any = None) -> Turn:
        given = {name: value for name, value in options.items() if value is not None}
        message = message_of(asked)
        if message is None and not self._state.conversation.message_count:
            raise ValueError('there is nothing to answer yet; say something: run("...")')
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
    """How an exception ends a session; None leaves it to the last turn."""
    if error is None or (isinstance(error, SystemExit) and error.code in {None, 0}):
        return None
    return "error" if isinstance(error, Exception) else "cancelled"
