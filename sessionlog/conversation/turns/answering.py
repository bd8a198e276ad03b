"""Answering: the agent is asked, and its pieces are kept in the history and the log before anybody is shown them.

A failure that passes by itself is tried again, while nothing of the answer was shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal

from sessionlog.conversation.history.rules import open_calls, repaired
from sessionlog.conversation.turns.drive import Do, Pause, Steps
from sessionlog.conversation.turns.line import Line
from sessionlog.conversation.turns.pieces import Ask, Asking, Reply, TextDelta, ToolCalled, ToolReturned
from sessionlog.conversation.turns.source import END, source_of
from sessionlog.conversation.turns.stop import Stop
from sessionlog.errors import AgentError, InvalidHistory, NotRecorded
from sessionlog.messages.message import Message

Partial = Literal["failed", "cancelled", "interrupted"]


@dataclass(slots=True, kw_only=True)
class Answering:
    """The answers of one turn.

    Attributes:
        line: The session's parts.
        stop: Ends it from outside.
        options: What the agent is given besides the history.
        schema: What the answer has to be.
        replies: The whole answers.
        attempt: The number of the last attempt.
    """

    line: Line
    stop: Stop
    options: Mapping[str, Any]
    schema: Any = None
    replies: list[Reply] = field(default_factory=list)
    attempt: int = 1
    _said: list[str] = field(default_factory=list)
    _is_asked: bool = False
    _asked_at: float = 0.0

    def ask(self) -> Steps:
        """Ask until there is an answer."""
        attempts = self.line.attempts(self.line.conversation.settings)
        while True:
            self._request(attempts.number)
            try:
                yield from self._pieces()
            except Exception as error:
                pause = attempts.failed(error) if self._may_repeat() else None
                if pause is None:
                    raise
                self._respond(None, error=error)
            else:
                return
            yield Pause(pause)
            self.stop.check()

    def returned(self, piece: ToolReturned) -> ToolReturned:
        """Keep what a tool has said."""
        self.line.conversation.add_message(piece.message)
        self.line.recorder.tool(piece.request, piece.message, duration_ms=piece.duration_ms, error=piece.error)
        return piece

    def keep(self, partial: Partial, error: BaseException | None = None) -> Message | None:
        """Keep what was said of an answer that does not come to its end, marked; None if nothing was."""
        said = "".join(self._said)
        message = Message.assistant(said, partial=partial) if said else None
        if message is not None:
            self.line.conversation.add_message(message)
        with suppress(NotRecorded):  # something else is on its way already
            if self._is_asked:
                self._respond(message, error=error, partial=partial)
            else:
                self.line.tell(partial)
        return message

    def _may_repeat(self) -> bool:
        """Nothing of this answer was shown, and the history is one that can be answered."""
        history = self.line.conversation.messages
        return not self._said and bool(history) and history[-1].role != "assistant" and not open_calls(history)

    def _request(self, attempt: int) -> None:
        agent = self.line.agent
        self.line.recorder.request(
            self.line.conversation.messages,
            model=agent.model,
            provider=agent.provider,
            tools=agent.tools,
            attempt=attempt,
            options=self.options,
        )
        self.attempt, self._said, self._is_asked, self._asked_at = attempt, [], True, monotonic()

    def _respond(self, message: Message | None, *, reply: Reply | None = None, **more: Any) -> None:
        told = Reply(message=Message.assistant()) if reply is None else reply
        self._said, self._is_asked = [], False
        self.line.recorder.response(
            message,
            usage=told.usage,
            model=told.model,
            provider=told.provider,
            cost_usd=told.cost_usd,
            latency_ms=round((monotonic() - self._asked_at) * 1000, 3),
            finish_reason=told.finish_reason,
            attempt=self.attempt,
            **more,
        )

    def _pieces(self) -> Steps:
        ask = Ask(
            messages=sent(self.line.conversation.messages),
            system=self.line.system,
            tools=self.line.agent.tools,
            schema=self.schema,
            options=self.options,
        )
        source = source_of(self.line.agent.answers.answer(ask))
        try:
            while (piece := (yield Do(source.next, blocking=source.is_blocking))) is not END:
                yield from self._take(piece)
                self.stop.check()
        finally:
            yield Do(source.close, whole=True)
        if self._is_asked:
            if not self._said:
                raise AgentError("the agent gave no answer")
            yield from self._enter(Reply(message=Message.assistant("".join(self._said))))

    def _take(self, piece: Any) -> Steps:
        """Keep a piece, and pass it on."""
        if isinstance(piece, TextDelta | Reply | Asking) and not self._is_asked:
            self._request(1)  # an agent that runs its tools itself asks its model again
        if isinstance(piece, TextDelta):
            if piece.text:
                self._said.append(piece.text)
                self.line.recorder.delta(piece.text)
                yield piece
        elif isinstance(piece, Reply):
            yield from self._enter(piece)
        elif isinstance(piece, ToolCalled):
            yield piece
        elif isinstance(piece, ToolReturned):
            self._check_asked_for(piece)
            yield self.returned(piece)
        elif not isinstance(piece, Asking):
            raise AgentError(f"the agent gave {type(piece).__name__}; a piece is a TextDelta, a Reply or a tool's")

    def _check_asked_for(self, piece: ToolReturned) -> None:
        """A result that nobody waits for would make a history that cannot be read again."""
        try:
            if piece.message.role != "tool":
                raise AgentError(f"the agent gave a tool's result of role {piece.message.role!r}; it is 'tool'")
            self.line.check_answer(piece.message)
        except InvalidHistory as error:
            name = piece.request.name
            raise AgentError(f"the agent gave a result of {name!r} that no answer has asked for: {error}") from None

    def _enter(self, reply: Reply) -> Steps:
        """A whole answer enters the history; where none of it was shown yet, its text is."""
        message = reply.message
        if message.role != "assistant":
            raise AgentError(f"the agent answered with a message of role {message.role!r}; an answer is 'assistant'")
        is_shown = bool(self._said)
        self.replies.append(reply)
        self.line.conversation.add_message(message)
        self.line.conversation.token_counter.add(reply.usage)
        self._respond(message, reply=reply)
        if message.text and not is_shown:
            yield TextDelta(message.text)


def sent(history: Sequence[Message]) -> list[Message]:
    """Return what an agent is sent of a history.

    Empty answers are left out, and so are calls and results that somebody's own history has without each other; of
    partial messages only the mark is.
    """
    return repaired([
        message if message.partial is None else replace(message, partial=None)
        for message in history
        if not (message.role == "assistant" and message.is_empty)
    ])  # fmt: skip
