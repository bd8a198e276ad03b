"""Fold events into blocks, each as soon as it is complete, in memory that does not grow with the log.

The fold decides what is shown, and leaves out what was shown before; `layout` decides how it looks. Bad data never
raises: an event with an unreadable payload becomes a note, and the fold continues with the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from msgspec import structs

from sessionlog.analytics.sessions import SessionSummary
from sessionlog.errors import Problem
from sessionlog.events.envelope import OBJECTS, Event
from sessionlog.events.money import read_usd
from sessionlog.events.payload_json import payload, read_fields
from sessionlog.events.payloads import (
    PAYLOADS,
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
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.entry import content_text
from sessionlog.messages.json_value import valid_text
from sessionlog.render.replay.blocks import (
    Block,
    Call,
    Cost,
    MessageBlock,
    RequestBlock,
    ResponseBlock,
    RewriteBlock,
    Served,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)
from sessionlog.render.replay.exact import compact_json, error_of, exact, exact_elements, read_calls, text_of
from sessionlog.render.replay.partial import Partial
from sessionlog.render.replay.remarks import (
    block_of,
    change_note,
    message_block,
    pictures_in_result,
    pictures_of,
    problem_note,
    unknown_note,
)
from sessionlog.render.replay.served import Price, ResponseReader
from sessionlog.sources import values
from sessionlog.sources.native import read_milliseconds
from sessionlog.transcript.fold import ConversationFold
from sessionlog.transcript.splice import Added, Splice, answer_entry

_NO_PARTIAL = Partial()
"""The stream until a delta comes; nothing is added to it."""

QUIET = frozenset({"progress", "llm.delta"})
"""Event types that are shown only when chosen by name: other events repeat their content as a whole."""

_MOST_HELD = 100
"""Blocks that are held from an end on: a few notes may follow it, and any number of damaged pieces."""


Subagents = Literal["inline", "none", "only"]

Totals = Callable[[], SessionSummary | None]
"""Returns the totals of the session as reports have them (see `session_totals`); None if they do not list it."""


def fold_replay(
    events: Iterable[Event | Problem],
    *,
    own: bool = True,
    session_id: str = "",
    all_messages: bool = False,
    chosen: Callable[[str], bool] | None = None,
    subagents: Subagents = "inline",
    price: Price | None = None,
    totals: Totals | None = None,
) -> Iterator[Block]:
    """Turn the events of a session into the blocks of its replay.

    Args:
        events: In file order, with the problems found by the reader.
        own: Whether requests hold whole prompts by default, as in logs of sessionlog.
        session_id: The session's name, as its file has it; where it is empty, the id of the first event.
        all_messages: Also show messages that were shown before.
        chosen: Whether an event type is shown; None chooses all but `QUIET` types and requests. Damage is always shown.
        subagents: Whether the work of sub-agents is shown among the rest, not at all, or alone.
        price: Returns the cost of a response that records none.
        totals: Called for the last end of the session, if it is shown. Without it an end has only what it reports
            itself.
    """
    if chosen is not None and not chosen("session.end"):
        totals = None

    def is_wanted(block: Block) -> bool:
        if chosen is not None and block.type != "problem" and not chosen(block.type):
            return False
        return (
            subagents == "inline"
            or bool(block.agent) == (subagents == "only")
            or isinstance(block, SessionStartBlock | SessionEndBlock)
        )

    fold = _Fold(session_id, all_messages, chosen or (lambda _: False), price, totals, own=own)
    wanted = None if chosen is None and subagents == "inline" else is_wanted  # None: all, without a call for each
    for item in events:
        yield from filter(wanted, fold.problem(item) if isinstance(item, Problem) else fold.event(item))
    yield from filter(wanted, fold.close())


class _Fold:
    """Folds events into blocks, one after the other."""

    def __init__(
        self,
        session_id: str,
        all_messages: bool,
        named: Callable[[str], bool],
        price: Price | None,
        totals: Totals | None,
        *,
        own: bool,
    ) -> None:
        self._session_id = session_id
        self._all_messages = all_messages
        self._named = named
        self._responses = ResponseReader(price)
        self._totals = totals
        self._counts: Counter[str] = Counter()  # of tool calls and damage
        self._time_ns: int | None = None  # the last one
        self._conversation = ConversationFold(own=own)
        self._splices: Sequence[Splice] = ()  # of the event
        self._tools: dict[str, str] = {}  # names of calls, by id
        self._prompt = ""  # of the head, which the first request repeats
        self._partial = _NO_PARTIAL
        self._pending: list[Call] = []  # calls of the last answer, without those that have results
        self._opened = self._started = self._ended = False
        self._held: list[Block] = []  # an end and what follows it, until it is known whether the session goes on
        self._ends = 0
        self._is_repeated = False  # after a cut, the rest of the history is logged again
        self._answer = ""
        self._handlers: Mapping[type, Callable[[Event, Any], list[Block]]] = {
            SessionStart: self._on_start,
            SessionEnd: self._on_end,
            HistoryChange: self._on_change,
        }
        self._frequent: Mapping[str, tuple[type[Payload], Callable[[Event, Mapping[str, Any]], list[Block]]]] = {
            "llm.request": (LLMRequest, self._on_request),
            "llm.response": (LLMResponse, self._on_response),
            "tool.call": (ToolCall, self._on_tool),
        }

    def problem(self, problem: Problem) -> list[Block]:
        """Return the note on a damaged piece; other problems lost nothing and are left to `check`."""
        if problem.severity != "damage":
            return []
        self._counts["damaged piece"] += 1
        return self._hold([problem_note(problem)])

    def event(self, event: Event) -> list[Block]:
        """Return the blocks of an event, with the name of its sub-agent if it has one."""
        self._logged = event
        if event.data is None and event.type in PAYLOADS:
            event = replace(event, data=event.extra)  # some writers put the fields into the envelope
        time_ns = event.time_ns
        self._time_ns = self._time_ns if time_ns is None else time_ns
        self._splices = self._conversation.apply(event)
        kind, data, blocks = event.type, event.data, self._event(event)
        agent = values.text(data, "agent") if kind in ("llm.response", "tool.call") else ""
        stamped = [
            structs.replace(
                block,
                type=block.type or kind,
                time_ns=time_ns,
                agent=agent if agent and isinstance(block, ResponseBlock | ToolCallBlock) else "",
            )
            for block in blocks
        ]
        return self._hold(stamped) if self._ended or self._held else stamped

    def close(self) -> list[Block]:
        """Return what is still open at the end of the log, and its end, also where it has no session.end."""
        blocks = [structs.replace(block, time_ns=self._time_ns) for block in self._close_open()]
        if self._ended:
            return [*self._release(is_last=True), *blocks]
        if self._opened:
            self._held = [self._end_block(None, {}, self._time_ns)]
        return [*blocks, *self._release(is_last=True)]

    def _event(self, event: Event) -> list[Block]:
        frequent = self._frequent.get(event.type)
        if frequent is not None and self._opened and isinstance(event.data, OBJECTS):
            cls, handle = frequent
            return handle(event, read_fields(cls, event.data))
        value = payload(event)
        if not self._opened and not isinstance(value, SessionStart):
            return [self._open(event, None), *self._event(event)]
        if event.type not in QUIET:
            return self._handlers.get(type(value), self._on_other)(event, value)
        if isinstance(value, LLMDelta):
            if self._partial is _NO_PARTIAL:
                self._partial = Partial()
            self._partial.add(value)
        return [unknown_note(self._logged)] if self._named(event.type) else []

    def _on_other(self, event: Event, value: Payload | None) -> list[Block]:
        if isinstance(value, PlanningTurn) and (value.plan or "").strip() == self._answer:
            return []  # the llm.response before has the same text
        self._is_repeated |= isinstance(value, Compaction) and value.dropped is not None
        if event.type == "llm.response":  # its payload is unreadable
            self._ended = False
        return [block_of(event, value)]

    def _open(self, event: Event, start: SessionStart | None) -> SessionStartBlock:
        self._opened = True
        self._responses.start = start or self._responses.start
        return SessionStartBlock(
            session_id=self._session_id or event.session_id, logged_id=event.session_id, start=start
        )

    def _on_start(self, event: Event, start: SessionStart) -> list[Block]:
        blocks = self._close_open()
        if self._started:
            return [*blocks, unknown_note(self._logged)]  # the first one counts
        self._started = True
        blocks.append(self._open(event, start))
        for role, text in (("system", start.system_prompt), ("user", start.prompt)):
            if text:
                blocks.append(MessageBlock(role=role, text=text))
        self._prompt = (start.prompt or "").strip()
        return blocks

    def _on_request(self, event: Event, request: Mapping[str, Any]) -> list[Block]:
        blocks = self._break_off()
        self._ended = self._is_repeated = False
        self._responses.requested_model = model = request.get("model") or ""
        results, messages = self._new_blocks(event)
        blocks += results
        blocks += self._unanswered()
        if self._all_messages or self._named(event.type):
            # The oldest logs have a count of messages instead of messages.
            count = len(request.get("messages") or ()) or request.get("messages_count") or 0
            blocks.append(RequestBlock(messages=count, tools=len(request.get("tools") or ()), model=model))
        for splice in self._splices:
            if splice.left_out:
                blocks.append(RewriteBlock(left_out=splice.left_out, kept=splice.kept))
        if self._all_messages:
            elements = map(Added, request.get("messages") or ())
            all_of_it = [(message, one) for one in elements for message in one.entry.messages]
            tools = {call.id: call.name for message, _ in all_of_it for call in message.tool_calls}
            exact_of = exact_elements(event)
            messages = [message_block(message, one, tools, exact_of) for message, one in all_of_it]
        return [*blocks, *messages]

    def _new_blocks(self, event: Event) -> tuple[list[ToolCallBlock], list[MessageBlock]]:
        """Return the new results of open tool calls, and the other new messages."""
        results: list[ToolCallBlock] = []
        messages: list[MessageBlock] = []
        elements = exact_elements(event)
        splices = [splice for splice in self._splices if splice.cause not in ("answer", "partial", "result")]
        for one in chain.from_iterable([splice.added for splice in splices]):
            if one.role:
                text = valid_text(one.text)
                if one.is_new and not self._is_shown_prompt(one.role, text):
                    messages.append(MessageBlock(role=one.role, text=text))
                continue
            for message in one.new:
                for asked in message.tool_calls:
                    self._tools[asked.id] = asked.name
                text = content_text(message)[0]
                call = self._pending_call(message.tool_call_id) if message.role == "tool" else None
                if call is not None:
                    self._pending.remove(call)
                    self._counts["tool"] += 1
                    results.append(ToolCallBlock(call=call, output=text, pictures=pictures_of(message)))
                elif not self._is_shown_prompt(message.role, text):
                    messages.append(message_block(message, one, self._tools, elements))
        return results, messages

    def _is_shown_prompt(self, role: str, text: str) -> bool:
        """Whether a message is the prompt that was shown with the head; it is repeated only once."""
        if role != "user" or text.strip() != self._prompt:
            return False
        self._prompt = ""
        return True

    def _pending_call(self, call_id: str | None) -> Call | None:
        """Return the open call with an id; None for no id."""
        return next((call for call in self._pending if call.id and call.id == call_id), None)

    def _on_change(self, event: Event, change: HistoryChange) -> list[Block]:
        """Return a line for a history that changes between requests, with the messages that no request will repeat."""
        _, messages = self._new_blocks(event)
        if event.type in {"history.clear", "history.pop"}:
            self._is_repeated = True
        elif change.reason not in UNREPEATED:
            is_noted = not messages or any(block.role != "user" for block in messages)
            return [*([change_note(event, change)] if is_noted else []), *messages]
        elif self._is_repeated or change.reason == "long":
            return [*messages]
        return [change_note(event, change), *(messages if change.reason == "fork" else [])]

    def _on_response(self, event: Event, response: Mapping[str, Any]) -> list[Block]:
        blocks = self._unanswered()
        error = error_of(event)
        served = self._responses.read(event.data, response, self._partial, event.time_ns)
        text, streamed = response.get("content") or "", self._partial.text
        self._partial = _NO_PARTIAL
        self._ended = False
        request = 0 if "agent" in event.data else self._conversation.requests
        if error:
            return [*blocks, ResponseBlock(served=served, request=request, error=error, text=text or streamed)]
        given = response.get("tool_calls")
        calls = read_calls(exact(event, "tool_calls")) if given else []
        self._answer = text.strip()
        self._pending += calls
        self._tools = {call.id: call.name for call in calls}
        count = given if type(given) is int else len(calls)
        thought = _thought(event.data)
        blocks.append(ResponseBlock(served=served, request=request, text=text, calls=count, thought=thought))
        return blocks

    def _on_tool(self, event: Event, tool: Mapping[str, Any]) -> list[Block]:
        name, arguments = tool.get("tool") or "", exact(event, "input")
        call = Call(id=tool.get("id") or "", name=name, arguments=arguments, given="input" in event.data)
        if self._pending:
            self._close(call)
        self._ended = False
        error = error_of(event)
        self._counts["tool"] += 1
        if error:
            self._counts["failed tool"] += 1
        output, milliseconds = tool.get("output"), tool.get("duration_ms")
        pictures = pictures_in_result(output)
        return [
            ToolCallBlock(call=call, output=text_of(output), error=error, duration_ms=milliseconds, pictures=pictures)
        ]

    def _close(self, ran: Call) -> None:
        """Remove the open call that matches an executed one: by id, else by name and arguments, else by name."""
        matchers: tuple[Callable[[Call], bool], ...] = (
            lambda call: bool(call.id) and call.id == ran.id,
            lambda call: call.name == ran.name and compact_json(call.arguments) == compact_json(ran.arguments),
            lambda call: call.name == ran.name,
        )
        found = next((call for matches in matchers for call in self._pending if matches(call)), None)
        if found is not None:
            self._pending.remove(found)

    def _on_end(self, event: Event, end: SessionEnd) -> list[Block]:
        blocks = self._close_open()
        self._ended = True
        self._ends += 1
        return [*blocks, self._end_block(end, event.data, event.time_ns)]

    def _end_block(self, end: SessionEnd | None, data: Mapping[str, Any], time_ns: int | None) -> SessionEndBlock:
        """Return an end with what it reports itself; an output that repeats the last answer is left out."""
        logged = end or SessionEnd()
        output, (nano, _) = logged.output or "", read_usd(logged.cost_usd)
        return SessionEndBlock(
            time_ns=time_ns,
            start=self._responses.start,
            end=end,
            totals=Counter(self._counts),
            usage=self._responses.usage(logged.tokens) or TokenUsage(),
            cost=None if nano is None else Cost(nano=nano, unchecked=True),
            duration_ms=read_milliseconds(data.get("duration_ms")) or None,
            output="" if output.strip() == self._answer else output,
        )

    def _hold(self, blocks: list[Block]) -> list[Block]:
        """Return the blocks that can be shown now, of those that are held and of the next ones."""
        if blocks and isinstance(blocks[-1], SessionEndBlock):
            shown = [*self._release(is_last=False), *blocks[:-1]]
            self._held = blocks[-1:]
            return shown
        if not (self._held and self._ended):
            return [*self._release(is_last=False), *blocks]
        self._held += blocks
        return self._release(is_last=True) if len(self._held) > _MOST_HELD else []

    def _release(self, *, is_last: bool) -> list[Block]:
        """Return a held end and what follows it; the last end of the session has the totals."""
        held, self._held = self._held, []
        if not (held and is_last and isinstance(held[0], SessionEndBlock)):
            return held
        found = self._totals() if self._totals is not None else None
        return held if found is None else [with_totals(held[0], found, is_only_end=self._ends == 1), *held[1:]]

    def _close_open(self) -> list[Block]:
        """Return open calls without a result, and a stream without a response."""
        return self._unanswered() + self._break_off()

    def _unanswered(self) -> list[Block]:
        if not self._pending:
            return []
        calls, self._pending = self._pending, []
        return [ToolCallBlock(call=call, answered=False) for call in calls]

    def _break_off(self) -> list[Block]:
        """Return a stream that no response completed."""
        if self._partial is _NO_PARTIAL:
            return []
        partial, self._partial = self._partial, _NO_PARTIAL
        provider, usage = self._responses.other_provider(partial.provider), self._responses.usage(partial.usage)
        return list(partial.blocks(Served(model=partial.model, provider=provider, usage=usage)))


def with_totals(end: SessionEndBlock, found: SessionSummary, *, is_only_end: bool) -> SessionEndBlock:
    """Return an end with the totals of its session.

    Where the session has this end only, `end_cost` is what it reports if that is less.
    """
    known = found.known_nano
    reported = end.cost if is_only_end else None
    # A difference of up to a nano-dollar per response is rounding.
    is_less = reported is not None and (known or 0) - reported.nano > found.requests
    nano = None if known is None and found.estimated_nano is None else (known or 0) + (found.estimated_nano or 0)
    is_estimated = bool(found.estimated_nano) or known is None
    return structs.replace(
        end,
        totals=Counter({**end.totals, "request": found.requests, "failed request": found.failed_requests}),
        usage=TokenUsage(
            input=found.input_tokens,
            output=found.output_tokens,
            cache_read=found.cache_read_tokens,
            cache_write=found.cache_write_tokens,
            reasoning=found.reasoning_tokens,
        ),
        cost=None if nano is None else Cost(nano=nano, estimated=is_estimated, partial=found.cost_is_partial),
        end_cost=reported if is_less else None,
        duration_ms=found.duration_ms or end.duration_ms,
    )


def _thought(data: Mapping[str, Any]) -> str:
    """Return the model's reasoning, where the log has its text."""
    if not ("reasoning" in data or ("message" in data and isinstance(data["message"], Mapping))):
        return ""
    return "\n".join(piece.text for piece in answer_entry(data).pieces if piece.kind == "thinking")
