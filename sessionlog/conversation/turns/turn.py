"""Turn: one question until its answer, as a generator of pieces and steps that a stream performs; it never waits.

Wherever a turn ends, the text so far is kept, as a whole answer or as one marked as partial. The user's message is in
the log and the store before anything else happens, even before the history is summarised. The agent's pieces are kept
before they are passed on. A request that fails for a transient reason is retried, unless some text was passed on.

The history is truncated before the request, and the request is sent even if that fails: a summary is a user's function,
often a model's answer, and the question matters more than old messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, Literal

from sessionlog.conversation.history.rules import open_calls, repair_history
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.state import SessionState
from sessionlog.conversation.stores.snapshot import save_changed
from sessionlog.conversation.turns.loops import END, CancelToken, TurnCancelled
from sessionlog.conversation.turns.pieces import (
    AgentRequest,
    Done,
    NextRequest,
    Reply,
    Response,
    TextDelta,
    ToolCalled,
    ToolReturned,
)
from sessionlog.conversation.turns.retry import pause_before_retry
from sessionlog.conversation.turns.streams import Do, Pause, Step, Steps, StreamClosed, source_of
from sessionlog.conversation.turns.tool import call_tool, error_message, result_message
from sessionlog.errors import AgentError, InvalidHistory, NotRecorded, SessionNotSaved, StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.tool_timer import describe
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.messages.message_json import content_from_json

Input = str | Message | Iterable[str | ContentPart] | None
"""The input of a turn."""

Partial = Literal["failed", "cancelled", "interrupted"]


class Turn:
    """One question and its answer.

    Args:
        state: The session.
        message: The user's message; None requests an answer to the history as it is.
        options: Options for the agent.
        schema: The type or JSON schema of a structured answer.

    Attributes:
        stop: Cancels the turn from outside.
        schema: As given.
    """

    def __init__(
        self, state: SessionState, message: Message | None, options: Mapping[str, Any], schema: Any = None
    ) -> None:
        self.stop, self.schema = CancelToken(), schema
        self._state, self._message, self._options = state, message, options
        self._replies: list[Reply] = []
        self._texts: list[str] = []  # of the current answer
        self._attempt, self._is_asked, self._asked_at = 1, False, 0.0
        self._truncation: Truncation | None = None
        self._partial: Message | None = None
        self._is_prepared = False
        self._first = 0  # the index of the turn's first message

    @property
    def _save(self) -> Do:
        return Do(partial(save_changed, self._state), blocking=self._state.is_saved, shielded=True)

    @property
    def reply(self) -> Reply | None:
        """The last whole answer."""
        return self._replies[-1] if self._replies else None

    def steps(self) -> Steps:
        """Yield the steps of the turn; the last one is `Done`, unless the stream is closed before."""
        started = monotonic()
        try:
            yield from self._prepare()
            try:
                yield from self._rounds()
                self._state.turn = "complete"
            except TurnCancelled:
                self._keep_partial("cancelled")
            yield self._save
        except StreamClosed:
            self._keep_partial("interrupted")
            yield self._save
            return
        except Exception as error:
            if not self._is_prepared or isinstance(error, SessionNotSaved | StaleSession):
                raise
            self._keep_partial("failed", error)
            failure = self._failure(error)
            yield from self._save_after(failure)
            if failure is error:
                raise
            raise failure from error
        except BaseException as error:
            self._keep_partial("cancelled", error)
            if self._state.ends_on_interrupt:
                self._state.recorder.end("cancelled")
            yield from self._save_after(error)
            raise
        yield Done(self._response(monotonic() - started))

    def _prepare(self) -> Steps:
        """Add the question to the history, the log and the store; if that fails, nothing is added.

        Then truncate the history if needed: that may take long, and the question is saved already.
        """
        state, conversation = self._state, self._state.conversation
        before, former = conversation.messages, state.turn
        self._add_question()
        needs_truncation = state.needs_truncation()
        is_recorded = state.is_saved or needs_truncation  # else the request, which follows at once, holds the question
        state.turn = "interrupted"  # the state to restore if the process dies now
        try:
            if is_recorded:
                state.record()
            yield self._save
        except Exception:
            conversation.replace_messages(before)
            state.turn = former
            if is_recorded:
                with suppress(NotRecorded):  # the first exception is raised
                    state.record(None if former == state_of(before) else former)
            raise
        self._is_prepared = True
        if needs_truncation:
            added = conversation.message_count - self._first
            self._truncation = yield from _truncate(state)
            self._first = conversation.message_count - added

    def _add_question(self) -> None:
        """Add the message; open calls get placeholder results before it, or after it if it is a tool message.

        A question whose turn failed without any answer is in the history already.
        """
        state, message = self._state, self._message
        history = state.conversation.messages
        self._first = len(history)
        if message is not None and state.is_unanswered(message):
            self._first -= 1
        elif message is not None and message.role == "tool":
            state.check_answer(message)
            state.conversation.add_message(message)
            state.close_calls()
        else:
            self._first += len(state.close_calls())
            if message is not None:
                state.conversation.add_message(message)

    def _rounds(self) -> Steps:
        """Send a request, run the tools that the answer calls, and repeat."""
        agent, conversation = self._state.agent, self._state.conversation
        most = conversation.settings.max_tool_rounds
        self.stop.check()
        for n in range(most + 1):
            yield from self._request_with_retries()
            calls = open_calls(conversation.messages)
            if calls and (not agent.tools or agent.runs_tools):
                self._state.record("complete")  # the caller runs the tools: none was interrupted
                return
            if not calls:
                return
            if n == most:
                raise AgentError(f"the model called tools in too many rounds; max_tool_rounds is {most}")
            yield from self._run_tools(calls)

    def _request_with_retries(self) -> Steps:
        """Send a request until there is an answer."""
        for number in count(1):  # `_attempt` restarts when an agent sends further requests itself
            self._attempt = number
            self._record_request()
            try:
                yield from self._stream_answer()
            except Exception as error:
                settings = self._state.conversation.settings
                pause = pause_before_retry(error, number, settings) if self._may_retry() else None
                if pause is None:
                    raise
                self._record_response(None, error=error)
            else:
                return
            yield Pause(pause)
            self.stop.check()

    def _may_retry(self) -> bool:
        """Whether no text of this answer was passed on, and the history can be answered."""
        history = self._state.conversation.messages
        return not self._texts and bool(history) and history[-1].role != "assistant" and not open_calls(history)

    def _record_request(self) -> None:
        state, agent = self._state, self._state.agent
        state.recorder.request(
            state.conversation.messages,
            model=agent.model,
            provider=agent.provider,
            tools=agent.tools,
            attempt=self._attempt,
            options=self._options,
        )
        self._texts, self._is_asked, self._asked_at = [], True, monotonic()

    def _record_response(self, message: Message | None, **more: Any) -> None:
        self._texts, self._is_asked = [], False
        taken_ms = round((monotonic() - self._asked_at) * 1000, 3)
        self._state.recorder.response(message, latency_ms=taken_ms, attempt=self._attempt, **more)

    def _stream_answer(self) -> Steps:
        """Send the request once; keep each piece, and pass it on."""
        state = self._state
        request = AgentRequest(
            messages=messages_to_send(state.conversation.messages),
            system=state.system,
            tools=state.agent.tools,
            schema=self.schema,
            options=self._options,
        )
        source = source_of(state.agent.adapter.answer(request))
        try:
            while (piece := (yield Do(source.next, blocking=source.is_blocking))) is not END:
                yield from self._keep_piece(piece)
                self.stop.check()
        finally:
            yield Do(source.close, shielded=True)
        if self._is_asked:
            if not self._texts:
                raise AgentError("the agent returned no answer")
            yield from self._add_answer(Reply(message=Message.assistant("".join(self._texts))))

    def _keep_piece(self, piece: Any) -> Steps:
        """Record a piece, and yield what the stream passes on."""
        if isinstance(piece, TextDelta | Reply | NextRequest) and not self._is_asked:
            self._attempt = 1
            self._record_request()  # an agent that runs its tools itself sends the next request
        if isinstance(piece, TextDelta):
            if piece.text:
                self._texts.append(piece.text)
                self._state.recorder.delta(piece.text)
                yield piece
        elif isinstance(piece, Reply):
            yield from self._add_answer(piece)
        elif isinstance(piece, ToolCalled):
            yield piece
        elif isinstance(piece, ToolReturned):
            self._check_result(piece)
            yield self._add_result(piece)
        elif not isinstance(piece, NextRequest):
            raise AgentError(f"the agent yielded {type(piece).__name__}; a piece is a TextDelta, a Reply or a tool's")

    def _check_result(self, piece: ToolReturned) -> None:
        """Refuse a result without its call: that history could not be read back."""
        try:
            if piece.message.role != "tool":
                raise AgentError(
                    f"the agent yielded a tool's result of role {piece.message.role!r}; it has to be 'tool'"
                )
            self._state.check_answer(piece.message)
        except InvalidHistory as error:
            name = piece.request.name
            raise AgentError(f"the agent yielded a result of {name!r} that no answer has called: {error}") from None

    def _add_answer(self, reply: Reply) -> Steps:
        """Add a whole answer to the history; yield its text if none of it was passed on yet."""
        message = reply.message
        if message.role != "assistant":
            raise AgentError(f"the agent answered with a message of role {message.role!r}; an answer is 'assistant'")
        is_streamed = bool(self._texts)
        self._replies.append(reply)
        self._state.conversation.add_message(message)
        self._state.conversation.token_counter.add(reply.used)
        self._record_response(message, reply=reply)
        if message.text and not is_streamed:
            yield TextDelta(message.text)

    def _add_result(self, piece: ToolReturned) -> ToolReturned:
        self._state.conversation.add_message(piece.message)
        self._state.recorder.tool(piece)
        return piece

    def _run_tools(self, calls: Sequence[ToolRequest]) -> Steps:
        """Run tools; an exception in one becomes its result."""
        tools = {tool.name: tool for tool in self._state.agent.tools}
        for request in calls:
            yield ToolCalled(request)
            self.stop.check()
            started, error, found = monotonic(), None, tools.get(request.name)
            do = Do(partial(call_tool, tools, request), blocking=found is not None and not found.is_async)
            try:
                message = result_message(request, (yield do))
            except Exception as failure:  # noqa: BLE001 - a tool may raise anything, and the model gets the error
                error = describe(failure)
                message = error_message(request, error)
            taken_ms = round((monotonic() - started) * 1000, 3)
            yield self._add_result(ToolReturned(request, message, error=error, duration_ms=taken_ms))
            self.stop.check()

    def _keep_partial(self, turn: Partial, error: BaseException | None = None) -> None:
        """Keep the text of an unfinished answer, marked as partial, and set the turn's state."""
        state, text = self._state, "".join(self._texts)
        history = state.conversation.messages
        state.turn, state.unanswered = turn, history[-1] if history and not text else None
        self._partial = Message.assistant(text, partial=turn) if text else None
        if self._partial is not None:
            state.conversation.add_message(self._partial)
        with suppress(NotRecorded):  # the first exception is raised
            if self._is_asked:
                self._record_response(self._partial, error=error, partial=turn)
            else:
                state.record(turn)

    def _failure(self, error: Exception) -> Exception:
        """Return the exception to raise: an AgentError, unless the log could not be written."""
        if isinstance(error, NotRecorded):
            return error
        text, attempts = self._partial.text if self._partial else "", self._attempt
        if isinstance(error, AgentError):
            error.partial, error.attempts = text, attempts
            return error
        times = f" after {attempts} attempts" if attempts > 1 else ""
        kept = "the partial answer is kept in the session" if text else "the question is kept in the session"
        return AgentError(f"the agent failed{times}: {describe(error)}; {kept}", partial=text, attempts=attempts)

    def _save_after(self, error: BaseException) -> Steps:
        """Save the session although `error` will be raised; a failure becomes a note of it."""
        try:
            yield self._save
        except (SessionNotSaved, StaleSession) as failure:
            error.add_note(f"the session could not be saved either: {failure}")

    def _response(self, seconds: float) -> Response:
        usages = [reply.used for reply in self._replies if reply.used is not None]
        costs = [reply.cost_usd for reply in self._replies if reply.cost_usd is not None]
        last = self.reply or Reply(message=Message.assistant(partial="cancelled"))
        return Response(
            message=self._partial or last.message,
            messages=self._state.conversation.messages[self._first :],
            usage=sum(usages, TokenUsage()) if usages else None,
            usage_is_partial=len(usages) < len(self._replies),
            cost_usd=sum(costs) if costs and len(costs) == len(self._replies) else None,
            output=last.output,
            model=last.model or self._state.agent.model,
            finish_reason=last.finish_reason,
            status="cancelled" if self._state.turn == "cancelled" else "success",
            requests=len(self._replies),
            duration_ms=round(seconds * 1000, 3),
            truncation=self._truncation,
        )


def message_of(value: Input) -> Message | None:
    """Return the input of a turn as a message.

    Raises:
        ValueError: It is a message with another role than user or tool.
        TypeError: It is not an `Input`.
    """
    if value is None:
        return None
    if isinstance(value, Message):
        if value.role not in {"user", "tool"}:
            raise ValueError(
                f"input is a message of role {value.role!r}; it has to be a user message or a tool's result. "
                "add_message(...) adds any other, and run() continues from there"
            )
        return value
    if isinstance(value, list | tuple):
        return Message.user(content_from_json(value, "input"))
    if isinstance(value, str | ContentPart):
        return Message.user(value)
    raise TypeError(f"input is {type(value).__name__}; it is a text, a Message, or a list of texts and ContentPart")


def messages_to_send(history: Sequence[Message]) -> list[Message]:
    """Return the messages of a history for a request.

    Empty answers are left out, and so are calls without results and results without calls; partial messages lose their
    mark.
    """
    return repair_history([
        message if message.partial is None else replace(message, partial=None)
        for message in history
        if not (message.role == "assistant" and message.is_empty)
    ])  # fmt: skip


def _truncate(state: SessionState) -> Generator[Step, Any, Truncation | None]:
    """Truncate the history, and log that; return None if nothing was dropped and there is no warning."""
    conversation, estimate = state.conversation, state.system_estimate()
    before = conversation.messages
    try:
        cut: Truncation = yield Do(lambda: conversation.truncate_history(estimate), blocking=True, shielded=True)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; the response has the warning
        cut = _drop_oldest(state, estimate, error)
    after = conversation.messages
    state.recorder.truncated(before, after, cut)
    return cut if cut.warning or before != after else None


def _drop_oldest(state: SessionState, estimate: int, error: Exception) -> Truncation:
    """Drop the oldest messages because the chosen strategy failed; `warning` states why."""
    conversation, chosen = state.conversation, state.conversation.settings
    conversation.settings = replace(chosen, truncation_strategy="drop_oldest", summary=None)
    try:
        cut = conversation.truncate_history(estimate)
    finally:
        conversation.settings = chosen
    strategy = chosen.truncation_strategy
    named = "the summary" if isinstance(strategy, str) else getattr(strategy, "__name__", "the truncation")
    why = f"{named} failed: {describe(error)}"
    how = "the oldest were dropped without one" if isinstance(strategy, str) else "the oldest were dropped instead"
    cut.warning = "; ".join(filter(None, (why, how if cut.dropped else "nothing was dropped", cut.warning)))
    return cut
