"""fold_events: steps → events of the native types, so that replay, context and export read every agent alike.

This fold counts no tokens: the log is scanned first, and each response gets the record of that scan, so that a report
and a replay cannot disagree. It decides the order: an answer is complete when the next one, a prompt or a compaction
begins; then its request (with the messages that are new since the last one), the response, and the results of its tools
are yielded. Answers of sub-agents are outside the conversation and have the name of the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from sessionlog.events.billing import Billed
from sessionlog.events.envelope import Event
from sessionlog.events.money import usd
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.times import format_time
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.contents import content_of, read_json, reasoning_of, text_of
from sessionlog.sources.record import CopyRank, Record, ScannedSession
from sessionlog.sources.sent_prompts import SentPrompts
from sessionlog.sources.steps import (
    Compaction,
    MoreInput,
    Prompt,
    PromptPart,
    Request,
    Response,
    SentRequest,
    Session,
    Step,
    Text,
    ToolCall,
    ToolResult,
)

_MS = 1_000_000
_COPIED = int(CopyRank.COPIED)
_MOST_KNOWN = 100_000  # records in memory, of at most a kilobyte each
_BEGINNINGS = (Text, ToolCall)
_OTHERS = (Request, Prompt, Compaction)
_SHORT = 60  # a short output of one line is also the error's text; a longer one is not repeated there


class _Call(Struct):
    """A tool call, with or without its result."""

    key: str
    id: str
    name: str
    input: Any
    time_ns: int | None
    is_decoded: bool = False

    @property
    def arguments(self) -> Any:
        """The tool's arguments; a text that holds JSON is decoded."""
        if not self.is_decoded:
            given = read_json(self.input) if isinstance(self.input, Raw) else self.input
            decoded = read_json(given) if isinstance(given, str) and given.startswith("{") else given
            self.input, self.is_decoded = given if decoded is None else decoded, True
        return self.input


class _Answer(Struct):
    """An answer that is not complete yet."""

    key: str = ""
    record: Record | None = None
    counted: bool = False
    final: bool = False
    finish: str = ""
    error: str = ""
    model: str = ""
    request: str = ""
    head: PromptPart | None = None
    inherited: bool = False
    time_ns: int | None = None
    part_ns: int | None = None
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[_Call] = []
    results: list[ToolResult] = []

    @property
    def words(self) -> str:
        """Its text."""
        return "\n".join(self.text)

    @property
    def calls_data(self) -> list[dict[str, Any]]:
        """Its tool calls, as messages have them."""
        return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.calls]


class _Records:
    """The records of a scan by key, each of which belongs to one response.

    Of a large log that is scanned as it is read, only the latest are kept.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Record] = {}
        self._taken: dict[str, None] = {}
        self._ranks: dict[str, int] = {}  # by family the highest one, from COPIED on: lower ones do not count then

    def add(self, record: Record) -> None:
        """Add a record; of several with one key the greatest is kept, of equal ones the first."""
        key = record.key
        if key in self._taken:
            return
        if (known := self._waiting.get(key)) is not None and _weight(known) >= _weight(record):
            return
        self._waiting[key] = record
        if record.family and record.copy_rank >= max(_COPIED, self._ranks.get(record.family, _COPIED)):
            self._ranks[record.family] = record.copy_rank
            _forget_old(self._ranks)
        if len(self._waiting) > _MOST_KNOWN:
            for key in list(self._waiting)[: _MOST_KNOWN // 2]:
                if not _is_sum(self._waiting[key]):
                    del self._waiting[key]

    def take(self, key: str) -> Record | None:
        """Take and return a record; None if there is none, or if it is a copy of a response that counts itself."""
        record = self._waiting.pop(key, None)
        if record is None:
            return None
        self._taken[key] = None
        _forget_old(self._taken)
        return None if self._is_copy(record) else record

    def sums(self) -> list[Record]:
        """Return the records of sums that no response has taken."""
        return [record for record in self._waiting.values() if _is_sum(record) and not self._is_copy(record)]

    def _is_copy(self, record: Record) -> bool:
        """Whether another record of its family counts in its place."""
        return bool(record.family) and record.copy_rank < self._ranks.get(record.family, record.copy_rank)


def _is_sum(record: Record) -> bool:
    return record.granularity == "session" or not record.requests


def _forget_old(names: dict[str, Any]) -> None:
    """Keep the latest names."""
    if len(names) > _MOST_KNOWN:
        for name in list(names)[: _MOST_KNOWN // 2]:
            del names[name]


class EventFold:
    """Makes the events of one session."""

    def __init__(
        self,
        sessions: Sequence[ScannedSession],
        *,
        own_id: str,
        only: str | None = None,
        facts: Callable[[], ScannedSession | None] | None = None,
    ) -> None:
        """Begin.

        Args:
            sessions: The result of a scan of the log.
            own_id: The session that steps belong to before a `Session` step names one.
            only: The session whose steps make events; None = all of the log's.
            facts: Returns the session as far as a running scan has read it; its records are passed to `know`.
        """
        self._only = only
        wanted = only or own_id
        scanned = next((s for s in sessions if s.session_id == wanted), sessions[0] if sessions else None)
        self._facts = facts or (lambda: scanned)
        self._session_id = only or ""
        self._records = _Records()
        for one in sessions:
            if only in {None, one.session_id}:
                self.know(one.records)
        self._current, self._thread, self._inherited = own_id, "", False
        self._is_other = only is not None and own_id != only
        self._context = Session()
        self._agents: dict[str, str] = {}
        self._seq = 0
        self._used = TokenUsage()
        self._ts = ""
        self._new: list[dict[str, Any]] = []  # messages since the last request
        self._earlier = 0
        self._asked_ns: int | None = None
        self._calls: dict[str, _Call] = {}
        self._main = _Answer()
        self._side: dict[str, _Answer] = {}
        self._done: list[tuple[str, _Answer]] = []  # of sub-agents, until the main answer is complete
        self._prompts = SentPrompts()
        self._takes: dict[type, Callable[[Any], Sequence[Event]]] = {
            Session: self._enter,
            PromptPart: self._take_sent,
            SentRequest: self._take_sent,
            Prompt: self._take_prompt,
            Request: self._take_request,
            ToolResult: self._take_result,
            Compaction: self._take_compaction,
            Text: self._take_part,
            ToolCall: self._take_part,
            MoreInput: self._take_part,
            Response: self._take_part,
        }

    def know(self, records: Iterable[Record]) -> None:
        """Add records of a running scan."""
        for record in records:
            self._records.add(record)

    def take(self, step: Step) -> Sequence[Event]:
        """Add a step; return the events that it completes."""
        kind = type(step)
        if kind is Session or not (self._thread or self._is_other):
            take = self._takes.get(kind)
            return () if take is None else take(step)
        if not self._is_other:
            self._take_side(step)
        return ()

    def _take_sent(self, step: PromptPart | SentRequest) -> Sequence[Event]:
        self._prompts.take(step)
        return ()

    def _take_prompt(self, step: Prompt) -> Sequence[Event]:
        content = content_of(step.text)
        if not content:
            return ()
        completed = self._complete()
        message: dict[str, Any] = {"role": step.role, "content": content}
        if step.inherited or self._inherited:
            message["inherited"] = True
        self._new.append(message)
        self._asked_ns = step.time or self._asked_ns
        return completed

    def _take_request(self, step: Request) -> Sequence[Event]:
        completed = self._complete()
        self._asked_ns = step.time or self._asked_ns
        return completed

    def _take_result(self, step: ToolResult) -> Sequence[Event]:
        if step.pending:
            return ()
        is_remembered = step.key in self._calls
        if any(call.key == step.key for call in self._main.calls) or (self._main.counted and not is_remembered):
            self._main.results.append(step)
            return ()
        return [*self._start(step.time), self._result(step)]

    def _take_compaction(self, step: Compaction) -> Sequence[Event]:
        events = [*self._complete(), *self._start(step.time)]
        self._earlier = min(self._earlier, 1)
        facts = {"success": True, "summary": text_of(step.summary) or None, **(step.facts or {})}
        return [*events, self._event("compaction.end", step.time, facts)]

    def _take_part(self, step: Text | ToolCall | MoreInput | Response) -> Sequence[Event]:
        if isinstance(step, Response) and step.parent:
            self._take_inner(step)
            return ()
        completed = self._complete() if _is_next(self._main, step) else ()
        self._add(self._main, step)
        return completed

    def _enter(self, step: Session) -> Sequence[Event]:
        if step.id:
            self._current = step.id
            self._is_other = self._only is not None and step.id != self._only
        if step.id or step.thread is not None:
            self._thread = step.thread or ""
        if step.agent:
            self._agents[self._thread] = step.agent
        if self._is_other:
            return ()
        if step.inherited is not None:
            self._inherited = step.inherited
        for name in ("branch", "version", "provider", "model", "system_prompt", "context_window"):
            value = getattr(step, name)
            if value:
                setattr(self._context, name, value)
        return ()

    def _add(self, answer: _Answer, step: Step) -> None:
        """Add a part of an answer, or the result of one of its tools."""
        if type(step) is Response:
            self._add_row(answer, step)
        elif type(step) in _PARTS:
            _PARTS[type(step)](answer, step)

    def _add_row(self, answer: _Answer, step: Response) -> None:
        answer.final = step.final
        if not answer.counted:
            answer.counted = True
            answer.record = self._records.take(step.key)
            if answer.record is None and (step.tokens is not None or step.failed):
                return  # a late row, or a copy of a response that counts elsewhere
            answer.key, answer.request, answer.head = step.key, step.request, self._prompts.head
            answer.inherited = self._inherited
        if step.text is not None:
            _add_words(answer.text, text_of(step.text))
        if step.reasoning is not None:
            _add_words(answer.reasoning, reasoning_of(step.reasoning))
        answer.finish = step.finish or answer.finish
        answer.error = step.error or answer.error
        answer.model = step.model or answer.model
        answer.time_ns = step.time or answer.time_ns

    def _complete(self) -> Sequence[Event]:
        """Return the events of the open answer, of its results, and of sub-agents meanwhile."""
        answer, self._main = self._main, _Answer()
        events = list[Event]()
        if answer.counted and answer.key:  # of one without a key only the calls are new
            self._add_answered(answer, events)
        elif not answer.counted and (answer.text or answer.reasoning or answer.calls):
            events += self._begun(answer)
        self._remember(answer.calls)
        events += map(self._result, answer.results)
        if self._done:
            done, self._done, self._side = self._done, [], {}
            for agent, side in done:
                events += self._beside(agent, side)
        return events

    def _add_answered(self, answer: _Answer, events: list[Event]) -> None:
        record, time_ns = answer.record, answer.time_ns
        if answer.part_ns is not None and (time_ns is None or answer.final):
            time_ns = answer.part_ns
        events += self._start(time_ns)
        sent = self._prompts.sent(answer.request, answer.head) if answer.request or answer.head is not None else None
        events.append(self._request(time_ns, answer.model or (record.model if record else ""), sent))
        data = self._response_data(answer)
        events.append(self._event("llm.response", time_ns, data))
        if not (record is not None and record.failed):
            message: dict[str, Any] = {"role": "assistant", "content": answer.words}
            if answer.calls:
                message["tool_calls"] = data["tool_calls"]
            self._new.append(message)
            self._prompts.add_answer(message)
        self._asked_ns = None

    def _response_data(self, answer: _Answer) -> dict[str, Any]:
        record, text = answer.record, answer.words
        data: dict[str, Any] = {"content": text}
        failed = record is not None and record.failed
        if failed and text == answer.error:
            data["content"] = ""
        if answer.reasoning:
            data["reasoning"] = "\n".join(answer.reasoning)
        if answer.calls:
            data["tool_calls"] = answer.calls_data
        if answer.finish:
            data["finish_reason"] = answer.finish
        if failed:
            data["error"] = answer.error or text or "the request failed"
        if record is None:
            if answer.model:
                data["model"] = answer.model
            return data
        usage = record.usage
        self._used += usage
        if usage or not failed:
            data["usage"] = usage.to_dict()
        if record.cost_nano is not None:
            data["cost_usd"] = usd(record.cost_nano)
        if record.latency_ms is not None:
            data["latency_ms"] = record.latency_ms
        if record.model != UNKNOWN:
            data["model"] = record.model
        if self._context.context_window:
            data["context_window"] = self._context.context_window
        attempt = self._attempt(record)
        if attempt:
            data["attempt"] = attempt
        data |= {name: value for name in Billed._fields if (value := getattr(record, name))}
        data["key"] = record.key
        if record.quality != "exact":
            data["quality"] = record.quality
        if answer.inherited:
            data["inherited"] = True
        return data

    def _attempt(self, record: Record) -> dict[str, Any]:
        attempt = {}
        if record.provider and record.provider not in (self._context.provider, UNKNOWN):
            attempt["provider_system"] = record.provider
        if record.response_model and record.response_model != record.model:
            attempt["response_model"] = record.response_model
        return attempt

    def _begun(self, answer: _Answer) -> Iterator[Event]:
        """Yield an answer without token counts: it was cut off, or the log's version does not write counts."""
        yield from self._start(answer.part_ns)
        if self._new:
            yield self._request(answer.part_ns, "")
        data = {"content": answer.words or None, "reasoning_content": "\n".join(answer.reasoning) or None}
        yield self._event("llm.delta", answer.part_ns, data)

    def _take_side(self, step: Step) -> None:
        """Keep what a sub-agent does until the main answer is complete."""
        if isinstance(step, Response) and step.parent:
            self._take_inner(step)
            return
        if isinstance(step, _OTHERS):
            self._side.pop(self._thread, None)
            return
        answer = self._side.get(self._thread)
        if answer is None or _is_next(answer, step):
            answer = self._side[self._thread] = _Answer()
            self._done.append((self._agents.get(self._thread, MAIN), answer))
        self._add(answer, step)

    def _take_inner(self, step: Response) -> None:
        """Keep a response inside another one, which is outside the conversation and has its kind as its agent."""
        inner = _Answer()
        self._add_row(inner, step)
        if inner.record is not None:
            self._done.append((step.kind, inner))

    def take_beside(self, log: str, step: Step) -> None:
        """Add a step of a sub-agent's own log, which is outside the conversation."""
        if isinstance(step, Session):
            self._agents[log] = step.agent or self._agents.get(log, MAIN)
            return
        thread, self._thread = self._thread, log
        self._take_side(step)
        self._thread = thread

    def _beside(self, agent: str, answer: _Answer) -> Iterator[Event]:
        is_new = answer.record is not None if answer.counted else answer.text or answer.reasoning or answer.calls
        if is_new:
            yield from self._start(answer.time_ns)
            kind = "llm.response" if answer.counted else "llm.delta"
            yield self._event(kind, answer.time_ns or answer.part_ns, {**self._response_data(answer), "agent": agent})
        self._remember(answer.calls)
        for result in answer.results:
            yield from self._start(result.time)
            yield self._result(result, agent=agent)

    def _remember(self, calls: list[_Call]) -> None:
        for call in calls:
            self._calls[call.key] = call

    def _result(self, step: ToolResult, agent: str = "") -> Event:
        """Return a tool.call event of a call and its result, which the next request sends."""
        call = self._calls.pop(step.key, None) or _Call(step.key, step.key, step.tool or UNKNOWN, None, None)
        duration_ms, called_ns = step.duration_ms, call.time_ns
        if duration_ms is None and called_ns is not None and step.time is not None and step.time >= called_ns:
            duration_ms = (step.time - called_ns) / _MS
        output = read_json(step.output) if not isinstance(step.output, str) else step.output
        output = content_of(output) or output
        if not agent:
            self._new.append({"role": "tool", "tool_call_id": call.id, "content": output})
            self._asked_ns = step.time or self._asked_ns
        is_short = isinstance(output, str) and 0 < len(output) <= _SHORT and "\n" not in output
        data = {
            "tool": call.name, "id": call.id, "input": call.arguments, "output": output, "duration_ms": duration_ms,
            "error": (output if is_short else "failed") if step.failed else None, "agent": agent or None,
        }  # fmt: skip
        return self._event("tool.call", step.time, data)

    def _request(self, time_ns: int | None, model: str, sent: Mapping[str, Any] | None = None) -> Event:
        """Return an llm.request event with the new messages; `sent` is the whole prompt, if it is known."""
        asked: dict[str, Any] = {"model": model} if model else {}
        asked["messages"] = self._new
        if self._earlier:
            asked["earlier_messages"] = self._earlier
        if sent is not None:
            asked["sent"] = sent
        request = self._event("llm.request", self._asked_ns if self._asked_ns is not None else time_ns, asked)
        self._earlier += len(self._new)
        self._new = []
        return request

    def _start(self, time_ns: int | None) -> Sequence[Event]:
        """Return session.start before the first other event; its `v` means that token classes are disjoint."""
        if self._seq:
            return ()
        scanned, context = self._facts(), self._context
        start_ns = scanned.start_ns if scanned is not None and scanned.start_ns is not None else time_ns
        agent = self._agents.get("", "")
        metadata = {
            "branch": context.branch, "version": context.version, "agent": "" if agent == MAIN else agent,
            "forked_from": scanned.parent if scanned is not None else "",
        }  # fmt: skip
        data = {
            "v": 1,
            "provider": context.provider or None,
            "model": context.model or None,
            "work_dir": scanned.project if scanned is not None and scanned.project != UNKNOWN else None,
            "system_prompt": context.system_prompt or None,
            "metadata": {name: value for name, value in metadata.items() if value and value != UNKNOWN} or None,
        }
        return (self._event("session.start", start_ns, data),)

    def _event(self, type_: str, time_ns: int | None, data: dict[str, Any]) -> Event:
        """Return the next event; `data` is its own, and loses what is None."""
        if time_ns is not None:
            self._ts = format_time(time_ns)
        if None in data.values():
            data = {key: value for key, value in data.items() if value is not None}
        if not self._session_id:
            scanned = self._facts()
            self._session_id = scanned.session_id if scanned is not None else self._current
        event = Event(session_id=self._session_id, seq=self._seq, type=type_, ts=self._ts, data=data)
        self._seq += 1
        return event

    def end(self) -> Iterator[Event]:
        """Yield the open answers, and session.end if the log has one."""
        yield from self._complete()
        if any(message["role"] == "user" for message in self._new):  # nothing answers the user's last words
            yield from self._start(self._asked_ns)
            yield self._request(None, "")
        scanned = self._facts()
        if scanned is None or not self._seq:
            return
        totals = self._totals()
        if scanned.status is not None or totals:
            data = {"status": scanned.status, "error": scanned.error or None, **totals}
            yield self._event("session.end", scanned.last_ns, data)

    def _totals(self) -> dict[str, Any]:
        """The session's total usage, if its log has sums beyond the responses."""
        sums = [record for record in self._records.sums() if record.usage]
        if not sums:
            return {}
        costs = [record.cost_nano for record in sums if record.cost_nano is not None]
        usage = sum((record.usage for record in sums), self._used)
        return {"tokens": usage.to_dict(), "cost_usd": usd(sum(costs)) if costs else None}


def _is_next(answer: _Answer, step: Step) -> bool:
    """Whether a step begins another answer."""
    if type(step) is Response:
        return answer.counted and answer.key != step.key
    return answer.final and type(step) in _BEGINNINGS


def _add_text(answer: _Answer, step: Text) -> None:
    answer.part_ns = step.time or answer.part_ns
    is_piece = step.is_piece and not answer.results
    _add_words(answer.text, text_of(step.text), is_piece=is_piece)
    _add_words(answer.reasoning, reasoning_of(step.reasoning), is_piece=is_piece)


def _add_call(answer: _Answer, step: ToolCall) -> None:
    answer.part_ns = step.time or answer.part_ns
    name = f"{step.server}/{step.tool}" if step.server else step.tool
    answer.calls.append(_Call(step.key, step.id or step.key, name, step.input, step.time))


def _add_input(answer: _Answer, step: MoreInput) -> None:
    if answer.calls and isinstance(answer.calls[-1].input, str):
        answer.calls[-1].input += step.text


def _add_result(answer: _Answer, step: ToolResult) -> None:
    if not step.pending:
        answer.results.append(step)


_PARTS: Mapping[type, Callable[[_Answer, Any], None]] = {
    Text: _add_text,
    ToolCall: _add_call,
    MoreInput: _add_input,
    ToolResult: _add_result,
}


def _add_words(known: list[str], words: str, *, is_piece: bool = False) -> None:
    if is_piece and known:
        known[-1] += words
    elif words:
        known.append(words)


def _weight(record: Record) -> tuple[int, int, int]:
    return int(record.copy_rank), record.usage.output, record.usage.total
