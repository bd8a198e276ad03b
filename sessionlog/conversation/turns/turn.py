"""Turn: one question until its answer, as a generator of pieces and of things to do; it does no I/O and never waits.

Wherever a turn is left, what was shown is kept: as a whole answer, or as one that is marked as partial. The user's
message is in the log and in the store before anything else happens, a summary of the history included.

The history is cut before the agent is asked, and whatever fails in that, the agent is asked: a summary is somebody's
own function, and often a model's answer, and no question is lost for the sake of what was said long ago.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, Literal

from sessionlog.conversation.history.rules import open_calls, repaired
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.turns.drive import Do, Pause, Step, Steps
from sessionlog.conversation.turns.line import Line
from sessionlog.conversation.turns.loops import END, source_of
from sessionlog.conversation.turns.pieces import Ask, Asking, Done, Reply, Response, TextDelta, ToolCalled, ToolReturned
from sessionlog.conversation.turns.stop import Closed, Stop, Stopped
from sessionlog.conversation.turns.tool import call_tool, error_message, result_message
from sessionlog.errors import AgentError, InvalidHistory, NotRecorded, SessionNotSaved, StaleSession
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import Message, ToolRequest

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


class Turn:
    """One question.

    Args:
        line: The session's parts.
        message: What the user says; None goes on without a word.
        stop: Ends it from outside.
        options: What the agent is given besides the history.
        schema: What the answer has to be.
    """

    def __init__(
        self, line: Line, message: Message | None, stop: Stop, options: Mapping[str, Any], schema: Any = None
    ) -> None:
        self._line, self._message = line, message
        self.stop, self.schema = stop, schema
        self._answering = Answering(line=line, stop=stop, options=options, schema=schema)
        self._truncation: Truncation | None = None
        self._partial: Message | None = None
        self._is_prepared = False
        self._first = 0

    @property
    def reply(self) -> Reply | None:
        """The last whole answer."""
        return self._answering.replies[-1] if self._answering.replies else None

    def steps(self) -> Steps:
        """Go through the turn; it ends with `Done`, unless the stream is closed before."""
        started = monotonic()
        save = Do(self._line.save, blocking=True, whole=True)
        try:
            yield from self._prepare(save)
            try:
                yield from self._rounds()
                self._line.state = "complete"
            except Stopped:
                self._keep("cancelled")
            yield save
        except Closed:
            self._keep("interrupted")
            yield save
            return
        except Exception as error:
            if not self._is_prepared or isinstance(error, SessionNotSaved | StaleSession):
                raise
            self._keep("failed", error)
            failure = self._failure(error)
            yield from self._save_beside(failure, save)
            if failure is error:
                raise
            raise failure from error
        except BaseException as error:
            self._keep("cancelled", error)
            if self._line.ends_on_interrupt:
                self._line.recorder.end("cancelled")
            yield from self._save_beside(error, save)
            raise
        yield Done(self._response(monotonic() - started))

    def _prepare(self, save: Do) -> Steps:
        """Bring the question into the history, the log and the store; where that fails, nothing is added.

        Then the history is cut, if it needs to be: that may take long, and the question is safe.
        """
        line, conversation = self._line, self._line.conversation
        before, state = conversation.messages, line.state
        self._take_question()
        needs_truncation = line.needs_truncation()
        is_told = line.is_saved or needs_truncation  # else the request, which comes at once, tells it
        line.state = "interrupted"  # which is found if nothing is saved after this
        try:
            if is_told:
                line.tell()
            yield save
        except Exception:
            conversation.replace_messages(before)
            line.state = state
            if is_told:
                with suppress(NotRecorded):  # something else is on its way already
                    line.tell(None if state == state_of(before) else state)
            raise
        self._is_prepared = True
        if needs_truncation:
            behind = conversation.message_count - self._first
            self._truncation = yield from truncated(line)
            self._first = conversation.message_count - behind

    def _take_question(self) -> None:
        """Add the message; calls that nobody has answered are closed before it, and behind a tool's result."""
        line, message = self._line, self._message
        if message is not None and message.role == "tool":
            line.check_answer(message)
            self._first = line.conversation.message_count
            line.conversation.add_message(message)
            line.close_calls()
            return
        line.close_calls()
        self._first = line.conversation.message_count
        if message is not None:
            line.conversation.add_message(message)

    def _rounds(self) -> Steps:
        """Ask, run the tools that are asked for, and ask again."""
        agent, conversation = self._line.agent, self._line.conversation
        most = conversation.settings.max_tool_rounds
        self.stop.check()
        for n in range(most + 1):
            yield from self._answering.ask()
            calls = open_calls(conversation.messages)
            if calls and (not agent.tools or agent.runs_tools):
                self._line.tell("complete")  # the calls are somebody else's: no tool was interrupted
                return
            if not calls:
                return
            if n == most:
                raise AgentError(f"the model asks for tools again and again; max_tool_rounds is {most}")
            yield from self._run(calls)

    def _run(self, calls: Sequence[ToolRequest]) -> Steps:
        """Run tools; what goes wrong in one is its result."""
        tools = {tool.name: tool for tool in self._line.agent.tools}
        for request in calls:
            yield ToolCalled(request)
            self.stop.check()
            started, error, found = monotonic(), None, tools.get(request.name)
            do = Do(partial(call_tool, tools, request), blocking=found is not None and not found.is_async)
            try:
                message = result_message(request, (yield do))
            except Exception as failure:  # noqa: BLE001 - a tool may raise anything, and the model is told
                error = f"{type(failure).__name__}: {failure}".rstrip(": ")
                message = error_message(request, error)
            taken_ms = round((monotonic() - started) * 1000, 3)
            yield self._answering.returned(ToolReturned(request, message, error=error, duration_ms=taken_ms))
            self.stop.check()

    def _keep(self, state: Partial, error: BaseException | None = None) -> None:
        self._line.state = state
        self._partial = self._answering.keep(state, error)

    def _failure(self, error: Exception) -> Exception:
        """What is raised for an error: an AgentError, unless it is of the log."""
        if isinstance(error, NotRecorded):
            return error
        said, attempts = self._partial.text if self._partial else "", self._answering.attempt
        if isinstance(error, AgentError):
            error.partial, error.attempts = said, attempts
            return error
        times = f" after {attempts} attempts" if attempts > 1 else ""
        kept = "what was said is kept in the session" if said else "the question is kept in the session"
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        return AgentError(f"the agent failed{times}: {why}; {kept}", partial=said, attempts=attempts)

    def _save_beside(self, error: BaseException, save: Do) -> Steps:
        """Save while something worse is on its way."""
        try:
            yield save
        except (SessionNotSaved, StaleSession) as failure:
            error.add_note(f"the session could not be saved either: {failure}")

    def _response(self, seconds: float) -> Response:
        replies = self._answering.replies
        usages = [reply.usage for reply in replies if reply.usage is not None]
        costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
        last = self.reply or Reply(message=Message.assistant(partial="cancelled"))
        return Response(
            message=self._partial or last.message,
            messages=self._line.conversation.messages[self._first :],
            usage=sum(usages, TokenUsage()) if usages else None,
            usage_is_partial=len(usages) < len(replies),
            cost_usd=sum(costs) if costs and len(costs) == len(replies) else None,
            output=last.output,
            model=last.model or self._line.agent.model,
            finish_reason=last.finish_reason,
            status="cancelled" if self._line.state == "cancelled" else "success",
            requests=len(replies),
            duration_ms=round(seconds * 1000, 3),
            truncation=self._truncation,
        )


def truncated(line: Line) -> Generator[Step, Any, Truncation | None]:
    """Cut the history, and tell the log; returns what that did, None if nothing was done and nothing is to be said."""
    conversation, beside = line.conversation, line.beside()
    before = conversation.messages
    try:
        cut: Truncation = yield Do(lambda: conversation.truncate_history(beside), blocking=True, whole=True)
    except Exception as error:  # noqa: BLE001 - somebody's own function may raise anything, and the response tells it
        cut = _without_it(line, beside, error)
    after = conversation.messages
    line.recorder.truncated(before, after, cut)
    return cut if cut.warning or before != after else None


def _without_it(line: Line, beside: int, error: Exception) -> Truncation:
    """Drop the oldest messages, and say why."""
    conversation, chosen = line.conversation, line.conversation.settings
    conversation.settings = replace(chosen, truncation_strategy="drop_oldest", summary=None)
    try:
        cut = conversation.truncate_history(beside)
    finally:
        conversation.settings = chosen
    strategy = chosen.truncation_strategy
    named = "the summary" if isinstance(strategy, str) else getattr(strategy, "__name__", "the truncation")
    why = f"{named} failed: {type(error).__name__}: {error}".rstrip(": ")
    how = "the oldest were dropped without one" if isinstance(strategy, str) else "the oldest were dropped instead"
    return Truncation(
        cut.dropped,
        strategy=cut.strategy,
        tokens_before=cut.tokens_before,
        tokens_after=cut.tokens_after,
        is_over_budget=cut.is_over_budget,
        warning="; ".join(filter(None, (why, how if cut.dropped else "nothing was dropped", cut.warning))),
    )
