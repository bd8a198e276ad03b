"""Turn: one question until its answer, as a generator of pieces and of things to do; it does no I/O and never waits.

Wherever a turn is left, what was shown is kept: as a whole answer, or as one that is marked as partial. The user's
message is in the log and in the store before anything else happens, a summary of the history included. The agent's
pieces are kept before anybody is shown them; a failure that passes by itself is tried again, while nothing of the
answer was shown.

The history is cut before the agent is asked, and whatever fails in that, the agent is asked: a summary is a
user's function, often a model's answer, and no question may be lost for the sake of old messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, Literal

from sessionlog.conversation.history.rules import open_calls, repaired
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
"""What a session is asked."""

Partial = Literal["failed", "cancelled", "interrupted"]


class Turn:
    """One question.

    Args:
        state: The session.
        message: What the user says; None goes on without a word.
        options: What the agent is given besides the history.
        schema: What the answer has to be.

    Attributes:
        stop: Ends it from outside.
        schema: What the answer has to be.
    """

    def __init__(
        self, state: SessionState, message: Message | None, options: Mapping[str, Any], schema: Any = None
    ) -> None:
        self.stop, self.schema = CancelToken(), schema
        self._state, self._message, self._options = state, message, options
        self._replies: list[Reply] = []
        self._texts: list[str] = []  # of the answer under way
        self._attempt, self._is_asked, self._asked_at = 1, False, 0.0
        self._truncation: Truncation | None = None
        self._partial: Message | None = None
        self._is_prepared = False
        self._first = 0  # the index of the turn's first message

    @property
    def _save(self) -> Do:
        return Do(partial(save_changed, self._state), blocking=self._state.is_saved, whole=True)

    @property
    def reply(self) -> Reply | None:
        """The last whole answer."""
        return self._replies[-1] if self._replies else None

    def steps(self) -> Steps:
        """Go through the turn; it ends with `Done`, unless the stream is closed before."""
        started = monotonic()
        try:
            yield from self._prepare()
            try:
                yield from self._rounds()
                self._state.turn = "complete"
            except TurnCancelled:
                self._keep("cancelled")
            yield self._save
        except StreamClosed:
            self._keep("interrupted")
            yield self._save
            return
        except Exception as error:
            if not self._is_prepared or isinstance(error, SessionNotSaved | StaleSession):
                raise
            self._keep("failed", error)
            failure = self._failure(error)
            yield from self._save_beside(failure)
            if failure is error:
                raise
            raise failure from error
        except BaseException as error:
            self._keep("cancelled", error)
            if self._state.ends_on_interrupt:
                self._state.recorder.end("cancelled")
            yield from self._save_beside(error)
            raise
        yield Done(self._response(monotonic() - started))

    def _prepare(self) -> Steps:
        """Bring the question into the history, the log and the store; where that fails, nothing is added.

        Then the history is cut, if it needs to be: that may take long, and the question is safe.
        """
        state, conversation = self._state, self._state.conversation
        before, former = conversation.messages, state.turn
        self._take_question()
        needs_truncation = state.needs_truncation()
        is_recorded = state.is_saved or needs_truncation  # else the request, which comes at once, holds it
        state.turn = "interrupted"  # which is found if nothing is saved after this
        try:
            if is_recorded:
                state.record()
            yield self._save
        except Exception:
            conversation.replace_messages(before)
            state.turn = former
            if is_recorded:
                with suppress(NotRecorded):  # something else is on its way already
                    state.record(None if former == state_of(before) else former)
            raise
        self._is_prepared = True
        if needs_truncation:
            behind = conversation.message_count - self._first
            self._truncation = yield from _truncated(state)
            self._first = conversation.message_count - behind

    def _take_question(self) -> None:
        """Add the message; open calls are closed before it, and behind a tool's result.

        A question that failed before anything was answered is in the history already.
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
        """Ask, run the tools that are asked for, and ask again."""
        agent, conversation = self._state.agent, self._state.conversation
        most = conversation.settings.max_tool_rounds
        self.stop.check()
        for n in range(most + 1):
            yield from self._ask()
            calls = open_calls(conversation.messages)
            if calls and (not agent.tools or agent.runs_tools):
                self._state.record("complete")  # the caller answers the calls: no tool was interrupted
                return
            if not calls:
                return
            if n == most:
                raise AgentError(f"the model asks for tools again and again; max_tool_rounds is {most}")
            yield from self._run(calls)

    def _ask(self) -> Steps:
        """Ask until there is an answer."""
        for number in count(1):  # an agent that asks its model again numbers its attempts anew
            self._attempt = number
            self._request()
            try:
                yield from self._pieces()
            except Exception as error:
                settings = self._state.conversation.settings
                pause = pause_before_retry(error, number, settings) if self._may_repeat() else None
                if pause is None:
                    raise
                self._respond(None, error=error)
            else:
                return
            yield Pause(pause)
            self.stop.check()

    def _may_repeat(self) -> bool:
        """Nothing of this answer was shown, and the history is one that can be answered."""
        history = self._state.conversation.messages
        return not self._texts and bool(history) and history[-1].role != "assistant" and not open_calls(history)

    def _request(self) -> None:
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

    def _respond(self, message: Message | None, **more: Any) -> None:
        self._texts, self._is_asked = [], False
        taken_ms = round((monotonic() - self._asked_at) * 1000, 3)
        self._state.recorder.response(message, latency_ms=taken_ms, attempt=self._attempt, **more)

    def _pieces(self) -> Steps:
        """Ask once, keep each piece and pass it on."""
        state = self._state
        ask = AgentRequest(
            messages=sent(state.conversation.messages),
            system=state.system,
            tools=state.agent.tools,
            schema=self.schema,
            options=self._options,
        )
        source = source_of(state.agent.adapter.answer(ask))
        try:
            while (piece := (yield Do(source.next, blocking=source.is_blocking))) is not END:
                yield from self._take(piece)
                self.stop.check()
        finally:
            yield Do(source.close, whole=True)
        if self._is_asked:
            if not self._texts:
                raise AgentError("the agent gave no answer")
            yield from self._add_answer(Reply(message=Message.assistant("".join(self._texts))))

    def _take(self, piece: Any) -> Steps:
        if isinstance(piece, TextDelta | Reply | NextRequest) and not self._is_asked:
            self._attempt = 1
            self._request()  # an agent that runs its tools itself asks its model again
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
            self._check_asked_for(piece)
            yield self._add_result(piece)
        elif not isinstance(piece, NextRequest):
            raise AgentError(f"the agent gave {type(piece).__name__}; a piece is a TextDelta, a Reply or a tool's")

    def _check_asked_for(self, piece: ToolReturned) -> None:
        """Refuse a result without its call: such a history could not be read back."""
        try:
            if piece.message.role != "tool":
                raise AgentError(f"the agent gave a tool's result of role {piece.message.role!r}; it is 'tool'")
            self._state.check_answer(piece.message)
        except InvalidHistory as error:
            name = piece.request.name
            raise AgentError(f"the agent gave a result of {name!r} that no answer has asked for: {error}") from None

    def _add_answer(self, reply: Reply) -> Steps:
        """A whole answer enters the history; where none of it was shown yet, its text is."""
        message = reply.message
        if message.role != "assistant":
            raise AgentError(f"the agent answered with a message of role {message.role!r}; an answer is 'assistant'")
        is_shown = bool(self._texts)
        self._replies.append(reply)
        self._state.conversation.add_message(message)
        self._state.conversation.token_counter.add(reply.usage)
        self._respond(message, reply=reply)
        if message.text and not is_shown:
            yield TextDelta(message.text)

    def _add_result(self, piece: ToolReturned) -> ToolReturned:
        self._state.conversation.add_message(piece.message)
        self._state.recorder.tool(piece)
        return piece

    def _run(self, calls: Sequence[ToolRequest]) -> Steps:
        """Run tools; what goes wrong in one is its result."""
        tools = {tool.name: tool for tool in self._state.agent.tools}
        for request in calls:
            yield ToolCalled(request)
            self.stop.check()
            started, error, found = monotonic(), None, tools.get(request.name)
            do = Do(partial(call_tool, tools, request), blocking=found is not None and not found.is_async)
            try:
                message = result_message(request, (yield do))
            except Exception as failure:  # noqa: BLE001 - a tool may raise anything, and the model is told
                error = describe(failure)
                message = error_message(request, error)
            taken_ms = round((monotonic() - started) * 1000, 3)
            yield self._add_result(ToolReturned(request, message, error=error, duration_ms=taken_ms))
            self.stop.check()

    def _keep(self, turn: Partial, error: BaseException | None = None) -> None:
        """Keep the text of an answer that does not come to its end, marked."""
        state, text = self._state, "".join(self._texts)
        history = state.conversation.messages
        state.turn, state.unanswered = turn, history[-1] if history and not text else None
        self._partial = Message.assistant(text, partial=turn) if text else None
        if self._partial is not None:
            state.conversation.add_message(self._partial)
        with suppress(NotRecorded):  # something else is on its way already
            if self._is_asked:
                self._respond(self._partial, error=error, partial=turn)
            else:
                state.record(turn)

    def _failure(self, error: Exception) -> Exception:
        """What is raised for an error: an AgentError, unless it is of the log."""
        if isinstance(error, NotRecorded):
            return error
        text, attempts = self._partial.text if self._partial else "", self._attempt
        if isinstance(error, AgentError):
            error.partial, error.attempts = text, attempts
            return error
        times = f" after {attempts} attempts" if attempts > 1 else ""
        kept = "what was said is kept in the session" if text else "the question is kept in the session"
        return AgentError(f"the agent failed{times}: {describe(error)}; {kept}", partial=text, attempts=attempts)

    def _save_beside(self, error: BaseException) -> Steps:
        """Save while something worse is on its way."""
        try:
            yield self._save
        except (SessionNotSaved, StaleSession) as failure:
            error.add_note(f"the session could not be saved either: {failure}")

    def _response(self, seconds: float) -> Response:
        usages = [reply.usage for reply in self._replies if reply.usage is not None]
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


def message_of(asked: Input) -> Message | None:
    """Return what is asked as a message.

    Raises:
        ValueError: It is a message of another role than user or tool.
        TypeError: It is nothing that can be asked.
    """
    if asked is None:
        return None
    if isinstance(asked, Message):
        if asked.role not in {"user", "tool"}:
            raise ValueError(
                f"input is a message of role {asked.role!r}; it is what a user says, or a tool's result. "
                "add_message(...) adds any other, and run() goes on from there"
            )
        return asked
    if isinstance(asked, list | tuple):
        return Message.user(content_from_json(asked, "input"))
    if isinstance(asked, str | ContentPart):
        return Message.user(asked)
    raise TypeError(f"input is {type(asked).__name__}; it is a text, a Message, or a list of texts and ContentPart")


def sent(history: Sequence[Message]) -> list[Message]:
    """Return what an agent is sent of a history.

    Empty answers are left out, and so are calls and results that stand without each other in a given history; of
    partial messages only the mark is.
    """
    return repaired([
        message if message.partial is None else replace(message, partial=None)
        for message in history
        if not (message.role == "assistant" and message.is_empty)
    ])  # fmt: skip


def _truncated(state: SessionState) -> Generator[Step, Any, Truncation | None]:
    """Cut the history, and log it; returns what that did, None if nothing was done and there is no warning."""
    conversation, beside = state.conversation, state.system_estimate()
    before = conversation.messages
    try:
        cut: Truncation = yield Do(lambda: conversation.truncate_history(beside), blocking=True, whole=True)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; the response has the warning
        cut = _without_summary(state, beside, error)
    after = conversation.messages
    state.recorder.truncated(before, after, cut)
    return cut if cut.warning or before != after else None


def _without_summary(state: SessionState, beside: int, error: Exception) -> Truncation:
    """Drop the oldest messages, and say why."""
    conversation, chosen = state.conversation, state.conversation.settings
    conversation.settings = replace(chosen, truncation_strategy="drop_oldest", summary=None)
    try:
        cut = conversation.truncate_history(beside)
    finally:
        conversation.settings = chosen
    strategy = chosen.truncation_strategy
    named = "the summary" if isinstance(strategy, str) else getattr(strategy, "__name__", "the truncation")
    why = f"{named} failed: {describe(error)}"
    how = "the oldest were dropped without one" if isinstance(strategy, str) else "the oldest were dropped instead"
    cut.warning = "; ".join(filter(None, (why, how if cut.dropped else "nothing was dropped", cut.warning)))
    return cut
