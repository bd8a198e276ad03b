"""Turns: the half of a session that asks, one question at a time."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sessionlog.conversation.turns.drive import AsyncStream, Course, Stream
from sessionlog.conversation.turns.line import Line
from sessionlog.conversation.turns.loops import check_no_loop
from sessionlog.conversation.turns.output import check_schema, checked, read_output
from sessionlog.conversation.turns.pieces import Done, Response
from sessionlog.conversation.turns.signals import unwatch, watch
from sessionlog.conversation.turns.stop import Stop
from sessionlog.conversation.turns.turn import Turn
from sessionlog.messages.message import ContentPart, Message
from sessionlog.messages.message_json import content_from_json

Input = str | Message | Iterable[str | ContentPart] | None


class Turns:
    """Asks a session's agent. Whatever happens to a turn, what was said is kept."""

    def __init__(self, session_id: str, line: Line) -> None:
        self._session_id, self._line = session_id, line
        self._busy = threading.Lock()
        self._course: Callable[[], Course | None] = lambda: None
        self._at_end: Callable[[], object] = lambda: None
        self._is_closed = False

    @property
    def ends_on_interrupt(self) -> bool:
        """Whether Ctrl-C, SIGTERM or a cancelled task within a turn ends the session in its log, as `cancelled`.

        True by default. Who catches it and goes on, as a prompt does, sets it to False.
        """
        return self._line.ends_on_interrupt

    @ends_on_interrupt.setter
    def ends_on_interrupt(self, value: bool) -> None:
        self._line.ends_on_interrupt = value

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
            AgentError: The agent failed. The question and what was said are kept, and the next turn goes on from there.
            SessionNotSaved: The store failed: before the agent was asked, then nothing was said; or after, then the
                answer is in the history.
            StaleSession: The stored session was saved, or the log was written to, by somebody else meanwhile.
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
        return self._stream(self._turn(input, options))

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
        return self._stream_async(self._turn(input, options))

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
        turn = self._turn(input, options, _wanted(schema))
        return _structured(turn, _last(self._stream(turn)))

    async def json_async(
        self,
        input: Input = None,  # noqa: A002 - see run
        *,
        schema: Any = None,
        **options: Any,
    ) -> Response:
        """Do as `json` in an event loop."""
        turn = self._turn(input, options, _wanted(schema))
        return _structured(turn, await _last_async(self._stream_async(turn)))

    def cancel(self) -> bool:
        """End the turn that is under way, from another thread, a task or a signal handler; whether there was one.

        It ends after the piece at hand; where an event loop waits for that, it waits no longer. What was said is kept,
        and the response says `cancelled`. A call that blocks its thread cannot be ended.
        """
        course = self._course()
        if course is None:
            return False
        course.stop.request()
        return True

    def begun(self, stream: Course) -> None:
        """A stream begins its turn."""
        self._claim()
        self._course = weakref.ref(stream)  # weak: a stream that nobody reads any more is closed
        watch(stream)
        try:
            self._line.enter()
        except BaseException:
            self.ended(stream)
            raise

    def ended(self, stream: Course) -> None:
        """A stream is over."""
        unwatch(stream)
        self._course = lambda: None
        self._busy.release()
        at_end, self._at_end = self._at_end, lambda: None
        at_end()

    def _claim(self) -> None:
        """Take the session for oneself; whoever does releases `_busy`."""
        if self._is_closed:
            raise RuntimeError(
                f"session {self._session_id!r} is closed; Session.resume or Session.load goes on with it"
            )
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"session {self._session_id!r} is busy with another turn; read its stream to the end, close it, or "
                "cancel() it first"
            )

    def _turn(self, said: Input, options: dict[str, Any], schema: Any = None) -> Turn:
        given = {name: value for name, value in options.items() if value is not None}
        message = _message(said)
        if message is None and not self._line.conversation.message_count:
            raise ValueError('there is nothing to answer yet; say something: run("...")')
        return Turn(self._line, message, Stop(), given, schema)

    def _stream(self, turn: Turn) -> Stream:
        if self._line.agent.is_async:
            check_no_loop()
        return Stream(turn.steps(), turn.stop, self)

    def _stream_async(self, turn: Turn) -> AsyncStream:
        return AsyncStream(turn.steps(), turn.stop, self)


def _message(said: Input) -> Message | None:
    if said is None:
        return None
    if isinstance(said, Message):
        if said.role not in {"user", "tool"}:
            raise ValueError(
                f"input is a message of role {said.role!r}; it is what a user says, or a tool's result. "
                "add_message(...) adds any other, and run() goes on from there"
            )
        return said
    if isinstance(said, list | tuple):
        return Message.user(content_from_json(said, "input"))
    if isinstance(said, str | ContentPart):
        return Message.user(said)
    raise TypeError(f"input is {type(said).__name__}; it is a text, a Message, or a list of texts and ContentPart")


def _wanted(schema: Any) -> Any:
    """A schema that can be used; an empty one is any JSON."""
    if schema is not None:
        check_schema(schema)
    return {} if schema is None else schema


def _structured(turn: Turn, response: Response) -> Response:
    """A response with what its text says; the agent may have read it itself."""
    if response.status == "cancelled":
        return response
    if turn.reply is not None and turn.reply.has_output:
        is_json = isinstance(turn.schema, Mapping)
        return replace(response, output=checked(response.output, turn.schema)) if is_json else response
    return replace(response, output=read_output(response.text, turn.schema))


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
