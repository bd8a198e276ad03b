"""The fold: events in, blocks out, each as soon as it can be told, in memory that does not grow with the log.

It decides what is worth showing and what has been shown; how it looks is the layout's. Bad data never raises: a payload
that is none is a note, and the next event is as good as any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import (
    UNREPEATED,
    Compaction,
    HistoryChange,
    LLMDelta,
    LLMRequest,
    LLMResponse,
    Payload,
    PlanningTurn,
    SessionEnd,
    SessionStart,
    ToolCall,
)
from sessionlog.messages.entry import content_text
from sessionlog.messages.read import read_entry
from sessionlog.render.replay.account import Account, Price
from sessionlog.render.replay.blocks import (
    Answered,
    Block,
    Call,
    Failed,
    Opened,
    Ran,
    Rewritten,
    Said,
    Served,
)
from sessionlog.render.replay.calls import error_text, read_calls, text_of
from sessionlog.render.replay.exact import compact_json, exact
from sessionlog.render.replay.partial import Partial
from sessionlog.render.replay.remarks import (
    asked_block,
    block_of,
    change_note,
    exact_elements,
    payload_of,
    problem_note,
    said_block,
    unknown_note,
)
from sessionlog.transcript.fold import ConversationFold
from sessionlog.transcript.splice import Splice, answer_entry

QUIET = frozenset({"progress", "llm.delta"})
"""Event types that are shown only when asked for by name: they say piecemeal what other events say whole."""


def fold_replay(
    events: Iterable[Event | Problem],
    *,
    own: bool = True,
    session_id: str = "",
    all_messages: bool = False,
    named: Callable[[str], bool] = lambda _: False,
    price: Price | None = None,
) -> Iterator[Block]:
    """Turn the events of a session into the blocks of its replay.

    Args:
        events: In file order, with the problems the reader met.
        own: Whether requests hold whole prompts unless they say otherwise, as in our own logs.
        session_id: The session's name, which is its file's; the first event's id where it is empty.
        all_messages: Also show the messages that have been shown before.
        named: Tells whether a type was asked for by name; `QUIET` types and requests are shown only then.
        price: Gives the cost of a response that records none.
    """
    fold = _Fold(session_id, all_messages, named, price, own=own)
    for item in events:
        yield from fold.problem(item) if isinstance(item, Problem) else fold.event(item)
    yield from fold.close()


class _Fold:
    """Folds events into blocks, one after the other."""

    def __init__(
        self, session_id: str, all_messages: bool, named: Callable[[str], bool], price: Price | None, *, own: bool
    ) -> None:
        self._session_id = session_id
        self._all_messages = all_messages
        self._named = named
        self._account = Account(price)
        self._conversation = ConversationFold(own=own)
        self._tools: dict[str, str] = {}  # names of calls, by id
        self._prompt = ""  # of the head, which the first request repeats
        self._partial = Partial()
        self._pending = Pending()
        self._opened = self._started = self._ended = False
        self._is_again = False  # what is left of a history that was cut is being told again
        self._answer = ""
        self._handlers: Mapping[str, Callable[[Event, Any, Sequence[Splice]], Iterator[Block]]] = {
            "session.start": self._on_start,
            "llm.request": self._on_request,
            "llm.delta": self._on_delta,
            "llm.response": self._on_response,
            "tool.call": self._on_tool,
            "session.end": self._on_end,
            "history.add": self._on_change,
            "history.pop": self._on_change,
            "history.clear": self._on_change,
        }

    def problem(self, problem: Problem) -> Iterator[Block]:
        """Show a damaged piece at its place; `check` reports problems that lost nothing."""
        if problem.severity == "damage":
            self._account.damage()
            yield problem_note(problem)

    def event(self, event: Event) -> Iterator[Block]:
        """One event; what a sub-agent did bears its name."""
        agent = event.data.get("agent") if isinstance(event.data, Mapping) else None
        blocks = self._event(event)
        if event.type not in ("llm.response", "tool.call") or not isinstance(agent, str) or not agent:
            yield from blocks
            return
        for block in blocks:
            yield structs.replace(block, agent=agent) if isinstance(block, Answered | Failed | Ran) else block

    def _event(self, event: Event) -> Iterator[Block]:
        self._account.pass_time(event.time_ns)
        value = payload_of(event)
        splices = self._conversation.take(_with_data(event))
        if not self._opened and (value is None or event.type != "session.start"):
            yield self._open(event, None)
        handler = self._handlers.get(event.type)
        told = event.type not in QUIET or self._named(event.type)
        if value is None or event.type in QUIET:
            yield from (unknown_note(event),) if told else ()
        elif handler is None:
            yield from self._remark(event, value)
        if value is not None and handler is not None:
            yield from handler(event, value, splices)
        elif event.type == "llm.response":  # a request was made, whatever is left of its answer
            self._account.served(event, LLMResponse(), self._partial, failed=False)
            self._ended = False

    def _remark(self, event: Event, value: Payload) -> Iterator[Block]:
        if isinstance(value, PlanningTurn) and (value.plan or "").strip() == self._answer:
            return  # its llm.response has just said it
        self._is_again = self._is_again or (isinstance(value, Compaction) and value.dropped is not None)
        yield block_of(event, value)

    def close(self) -> Iterator[Block]:
        """The log is over: tell what is still open, and that there is no end where there is none."""
        yield from self._settle(self._account.time_ns)
        if self._opened and not self._ended:
            yield self._account.ending(None, None, said=self._answer)

    def _open(self, event: Event, start: SessionStart | None) -> Opened:
        self._opened = True
        self._account.begin(start, event.time_ns)
        title = self._session_id or event.session_id
        return Opened(
            type="session.start", time_ns=event.time_ns, session_id=title, logged_id=event.session_id, start=start
        )

    def _on_start(self, event: Event, start: SessionStart, splices: Sequence[Splice]) -> Iterator[Block]:
        del splices
        yield from self._settle(event.time_ns)
        if self._started:
            yield unknown_note(event)  # the first one counts
            return
        self._started = True
        yield self._open(event, start)
        for role, text in (("system", start.system_prompt), ("user", start.prompt)):
            if text:
                yield Said(type=event.type, time_ns=event.time_ns, role=role, text=text)
        self._prompt = start.prompt or ""

    def _on_request(self, event: Event, request: LLMRequest, splices: Sequence[Splice]) -> Iterator[Block]:
        yield from self._break_off(event.time_ns)
        self._ended = self._is_again = False
        self._account.asked(request.model)
        ran, said = self._sort(event, splices)
        yield from ran
        yield from self._unanswered(event.time_ns)
        if self._all_messages or self._named(event.type):
            yield asked_block(event, request)
        yield from (
            Rewritten(type=event.type, time_ns=event.time_ns, left_out=splice.left_out, kept=splice.kept)
            for splice in splices
            if splice.left_out
        )
        if self._all_messages:
            elements = [(read_entry(value), value) for value in request.messages or ()]
            messages = [(message, *element) for element in elements for message in element[0].messages]
            tools = {call.id: call.name for message, _, _ in messages for call in message.tool_calls}
            exactly = exact_elements(event)
            yield from (said_block(event, *one, tools, exactly) for one in messages)
        else:
            yield from said

    def _sort(self, event: Event, splices: Iterable[Splice]) -> tuple[list[Ran], list[Said]]:
        """What is new in the conversation: results of open calls, and what is said."""
        ran: list[Ran] = []
        said: list[Said] = []
        exactly = exact_elements(event)
        for splice in splices:
            for one in splice.added if splice.cause not in ("answer", "partial", "result") else ():
                for message in one.new:
                    self._tools.update((call.id, call.name) for call in message.tool_calls)
                    text, call = content_text(message)[0], self._pending.take_id(message.tool_call_id or "")
                    if message.role == "tool" and call is not None:
                        self._account.tool(failed=False)
                        ran.append(Ran(type="tool.call", time_ns=event.time_ns, call=call, output=text))
                    elif message.role == "user" and text.strip() == self._prompt.strip():
                        self._prompt = ""  # shown with the head
                    else:
                        said.append(said_block(event, message, one.entry, one.raw, self._tools, exactly))
        return ran, said

    def _on_change(self, event: Event, change: HistoryChange, splices: Sequence[Splice]) -> Iterator[Block]:
        """A history that changes between requests: told in a line, but what no request will say is shown."""
        _, said = self._sort(event, splices)
        if event.type in {"history.clear", "history.pop"}:
            self._is_again = True
        elif change.reason not in UNREPEATED:
            if not said or any(block.role != "user" for block in said):
                yield change_note(event, change)
            yield from said
            return
        elif self._is_again or change.reason == "long":
            yield from said
            return
        yield change_note(event, change)
        if change.reason == "fork":
            yield from said

    def _on_delta(self, event: Event, delta: LLMDelta, splices: Sequence[Splice]) -> Iterator[Block]:
        del event, splices
        self._partial.add(delta)
        yield from ()

    def _on_response(self, event: Event, response: LLMResponse, splices: Sequence[Splice]) -> Iterator[Block]:
        del splices
        yield from self._unanswered(event.time_ns)
        streamed = self._partial.text
        error = error_text(exact(event, "error"))
        served = self._account.served(event, response, self._partial, failed=bool(error))
        self._partial.clear()
        self._ended = False
        text = response.content or ""
        head: dict[str, Any] = {"type": event.type, "time_ns": event.time_ns, "served": served}
        head["request"] = 0 if "agent" in (event.data or {}) else self._conversation.requests
        if error:
            yield Failed(**head, error=error, text=text or streamed)
            return
        calls = read_calls(exact(event, "tool_calls"))
        self._answer = text.strip()
        self._pending.ask(calls)
        self._tools = {call.id: call.name for call in calls}
        count = response.tool_calls if type(response.tool_calls) is int else len(calls)
        yield Answered(**head, text=text, calls=count, thought=_thought(event.data or {}))

    def _on_tool(self, event: Event, tool: ToolCall, splices: Sequence[Splice]) -> Iterator[Block]:
        del splices
        given = isinstance(event.data, Mapping) and "input" in event.data
        ran = Call(id=tool.id or "", name=tool.tool or "", arguments=exact(event, "input"), given=given)
        asked = self._pending.take(ran)
        if asked is not None:
            ran = Call(id=ran.id or asked.id, name=ran.name, arguments=ran.arguments, given=given)
        self._ended = False
        output = text_of(tool.output)
        error = error_text(exact(event, "error"))
        self._account.tool(failed=bool(error))
        yield Ran(
            type=event.type,
            time_ns=event.time_ns,
            call=ran,
            output=output,
            error=error,
            duration_ms=tool.duration_ms,
        )

    def _on_end(self, event: Event, end: SessionEnd, splices: Sequence[Splice]) -> Iterator[Block]:
        del splices
        yield from self._settle(event.time_ns)
        self._ended = True
        yield self._account.ending(event, end, said=self._answer)

    def _settle(self, time_ns: int | None) -> Iterator[Block]:
        """Tell what nothing will answer any more."""
        yield from self._unanswered(time_ns)
        yield from self._break_off(time_ns)

    def _unanswered(self, time_ns: int | None) -> Iterator[Block]:
        for call in self._pending.drain():
            yield Ran(type="tool.call", time_ns=time_ns, call=call, answered=False)

    def _break_off(self, time_ns: int | None) -> Iterator[Block]:
        """Show a stream that no response closed."""
        partial = self._partial
        provider, usage = self._account.unnamed(partial.provider), self._account.usage(partial.usage)
        yield from partial.blocks(time_ns, Served(model=partial.model, provider=provider, usage=usage))
        partial.clear()


def _thought(data: Mapping[str, Any]) -> str:
    """What a model thought, where the log has the text."""
    if not ("reasoning" in data or isinstance(data.get("message"), Mapping)):
        return ""
    return "\n".join(piece.text for piece in answer_entry(data).pieces if piece.kind == "thinking")


def _with_data(event: Event) -> Event:
    """An event whose writer put its fields beside the envelope has them in `data`."""
    return replace(event, data=event.extra) if event.data is None and event.extra else event


class Pending:
    """The open calls of the last answer, in its order."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def ask(self, calls: Iterable[Call]) -> None:
        """Add the calls of an answer."""
        self._calls.extend(calls)

    def take(self, call: Call) -> Call | None:
        """Take out the open call that an executed one belongs to: by id, else by name and arguments, else by name."""
        by_id = self.take_id(call.id)
        if by_id is not None:
            return by_id
        same_name = [left for left in self._calls if left.name == call.name]
        arguments = compact_json(call.arguments)
        same = [left for left in same_name if compact_json(left.arguments) == arguments]
        found = next(iter(same or same_name), None)
        if found is not None:
            self._calls.remove(found)
        return found

    def take_id(self, call_id: str) -> Call | None:
        """Take out the open call of that id."""
        found = next((call for call in self._calls if call_id and call.id == call_id), None)
        if found is not None:
            self._calls.remove(found)
        return found

    def drain(self) -> list[Call]:
        """Take out all that are left."""
        left, self._calls = self._calls, []
        return left
