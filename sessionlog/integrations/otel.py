"""OpenTelemetry: a span processor that records the GenAI spans of an instrumented app in sessions.

    provider = TracerProvider()
    provider.add_span_processor(SessionLogSpanProcessor())

It works with any instrumentation that follows the GenAI conventions, present or former. A session is a conversation
(`gen_ai.conversation.id`), whose log later traces continue; else what is inside one outermost span of this process. It
ends with the outermost span and all that has begun inside. Some spans never end, as those of streams that are not read
to their end: of many sessions that wait for such spans the oldest are ended.

Only spans of inference are requests: agents and workflows repeat the sum of theirs. A request may have several spans,
of a framework around a client, of a client around a server, or of a server beside the client: it counts once. So an
inner span waits for the end of the span around it; the outer one counts if it has tokens, unless it sums up several.

Spans have their content when they end, so a request is written with its response. Messages are recorded where the
instrumentation captures them; those that it captures in events need the processor at the logger provider as well:
`logger_provider.add_log_record_processor(processor)`. Spans that are not sampled are recorded nowhere.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sessionlog.errors import InvalidSessionId
from sessionlog.events.tokens import TokenUsage
from sessionlog.integrations.runs import Guard, Runs, library, take_call_id
from sessionlog.locks import RLock
from sessionlog.logger.ids import check_session_id
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.genai import (
    AGENT,
    CONVERSATION,
    DETAILS,
    FINISH_REASONS,
    FIRST_CHUNK,
    MODEL,
    PROVIDER,
    RESPONSE_ID,
    RESPONSE_MODEL,
    SEARCHES,
    SERVICE_TIER,
    TOOL,
    TOOL_CALL,
    TOOL_INPUT,
    TOOL_OUTPUT,
    UNIQUE,
    first_text,
    kind_of,
    read_span_usage,
)
from sessionlog.messages.genai_messages import answer_fields, last_prompt, sent_messages

with library("opentelemetry", "opentelemetry-sdk"):
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import StatusCode

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan, Span

Json = Any
_SETTINGS = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max_tokens", "seed": "seed",
    "stop_sequences": "stop",
}  # fmt: skip
_CANCELLATIONS = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
_MOST_COMPARED = 1000
"""Requests and requested tool calls of a trace that a later span is compared with."""

_MOST_OPEN = 100_000
"""Open spans that are remembered: a host may begin spans that never end."""

_MOST_LATE = 100
"""Sessions that stay open for spans inside after their outermost span has ended: each has a file open."""


class SessionLogSpanProcessor(SpanProcessor):
    """Records GenAI spans in sessions.

    Args:
        log: The logger of all spans, which its owner ends; None for a session for each conversation, or each outermost
            span, that has a call of a model or a tool.
        options: Arguments of `SessionLogger` for these sessions.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    def __init__(self, log: SessionLogger | None = None, **options: Any) -> None:
        self._runs, self._ends_sessions = Runs(log, options), log is None
        self._outside = log or SessionLogger(**options)  # counts errors where there is no session
        self._open: dict[int, _Open] = {}
        self._running: Counter[str] = Counter()  # outermost spans of each session
        self._late: dict[_Trace, None] = {}  # with a session, and without their outermost span; the oldest first
        self._lock = RLock()  # a hook that redacts may begin spans of its own

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        """Remember a span until it ends."""
        with Guard(self._outside), self._lock:
            around = self._open.get(span.parent.span_id) if span.parent is not None else None
            self._open[span.context.span_id] = _Open(span, around)
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Read the messages of a request from its event."""
        with Guard(self._outside):
            record = log_record.log_record
            if record.event_name == DETAILS and (found := self._open.get(record.span_id or 0)):
                found.details = dict(record.attributes or {})

    def on_end(self, span: ReadableSpan) -> None:
        """Write what the span has done."""
        ended = self._open.pop(span.context.span_id, None)
        if ended is None:  # it began before this processor was there
            return
        trace = ended.trace
        try:
            with Guard(trace.log or self._outside):
                ended.is_open = False
                fields = dict(span.attributes or {})  # the SDK's mapping locks for each of its items
                kind = kind_of(fields)
                if kind == "tool":
                    self._tool(ended, span, fields)
                elif kind == "call":
                    self._call(ended, _Call(span, {**ended.details, **fields}))
        finally:
            with self._lock:
                trace.open -= 1
                if trace.outermost is ended:
                    trace.end = span
                over, log = self._take_over(trace)
            if log is not None:
                self._end(over, log)

    def shutdown(self) -> None:
        """Close the sessions of spans that have not ended; they count as unfinished."""
        with self._lock:
            logs = {id(one.trace.log): one.trace.log for one in self._open.values() if one.trace.log is not None}
            self._open.clear()
            self._late.clear()
        for log in logs.values() if self._ends_sessions else ():
            log.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002 - the SDK's signature
        """Do nothing: each event is written when its span ends."""
        return True

    def _call(self, ended: _Open, call: _Call) -> None:
        outer = next((one for one in ended.around() if one.is_open and one.kind == "call"), None)
        if outer is not None:
            outer.inner += [*_requests(call, ended.inner)]
            return
        trace, marks = ended.trace, ended.marks()
        with self._lock:
            found = [one for one in _requests(call, ended.inner) if trace.add(one)]
        for one in found:
            answer = one.write(self._session(ended, one), marks)
            with self._lock:
                trace.output = answer.get("content") or trace.output
                trace.requested = [*trace.requested, *(answer.get("tool_calls") or ())][-_MOST_COMPARED:]

    def _tool(self, ended: _Open, span: ReadableSpan, fields: Mapping[str, Json]) -> None:
        error, is_cancelled = _error_of(span)
        name, given = first_text(fields, TOOL) or span.name, _parsed(fields.get(TOOL_INPUT))
        with self._lock:
            call_id = first_text(fields, TOOL_CALL) or take_call_id(ended.trace.requested, name, given)
        self._session(ended).tool_call(
            name,
            given,
            output=_parsed(fields.get(TOOL_OUTPUT)),
            duration_ms=_milliseconds(span),
            error="cancelled" if is_cancelled else error,
            id=call_id,
            **ended.marks(),
        )

    def _session(self, ended: _Open, call: _Call | None = None) -> SessionLogger:
        """Return the logger of the session that a span belongs to; its first call or tool begins it."""
        trace = ended.trace
        with self._lock:
            if trace.log is None:
                chain = [ended, *ended.around()]
                trace.session = next(
                    filter(None, (first_text(one.fields, *CONVERSATION) for one in reversed(chain))), ""
                )
                self._running[trace.key] += 1
                trace.log = self._begin(trace, chain, call)
            return trace.log

    def _begin(self, trace: _Trace, chain: Sequence[_Open], call: _Call | None) -> SessionLogger:
        agent = next(filter(None, (first_text(one.fields, AGENT) for one in reversed(chain))), "")
        known: dict[str, Any] = {"session_id": session_id_of(trace.session) if trace.session else None}
        if agent:
            known["metadata"] = {"agent": agent}
        if call is not None:
            known |= call.start_fields()
        return self._runs.begin(trace.key, **known)

    def _take_over(self, trace: _Trace) -> tuple[_Trace, SessionLogger | None]:
        """Return a trace that is over, and its logger, which it has no more; None for none.

        That is the trace in which a span has ended, or the oldest of too many that wait for spans inside.
        """
        if trace.end is not None and trace.log is not None:
            self._late[trace] = None
            over = trace if not trace.open else next(iter(self._late))
            if not trace.open or len(self._late) > _MOST_LATE:
                del self._late[over]
                log, over.log = over.log, None
                return over, log
        return trace, None

    def _end(self, trace: _Trace, log: SessionLogger) -> None:
        with self._lock:
            self._running[trace.key] -= 1
            if self._running[trace.key]:  # another trace of the conversation goes on
                return
            del self._running[trace.key]
        with Guard(log):
            error, is_cancelled = _error_of(trace.end)
            if self._ends_sessions and (error or is_cancelled):
                log.end("cancelled" if is_cancelled else "error", error=error)
        self._runs.end(trace.key, output=trace.output)


def session_id_of(conversation: str) -> str:
    """Return the id of a conversation's session: its own if that can be a file name, else a hash of it."""
    try:
        return check_session_id(conversation)
    except InvalidSessionId:
        return f"conversation-{hashlib.blake2b(conversation.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


class _Trace:
    """What is inside one outermost span.

    Attributes:
        outermost: That span.
        end: The same, ended; None while it is open.
        open: How many spans have not ended.
        session: The id of its conversation; "" for none.
        log: Its logger; None before its first call.
        calls: The last requests that are written, by the response's id and by their tokens.
        output: The last answer.
        requested: The last tool calls that models have requested.
    """

    __slots__ = ("calls", "end", "log", "open", "outermost", "output", "requested", "session")

    def __init__(self, outermost: _Open) -> None:
        self.outermost, self.open, self.session = outermost, 0, ""
        self.end: ReadableSpan | None = None
        self.log: SessionLogger | None = None
        self.calls: dict[str | TokenUsage, _Call] = {}
        self.output: str | None = None
        self.requested: list[dict[str, Json]] = []

    @property
    def key(self) -> str:
        """Identifies its session among those that are open."""
        return self.session or f"span {self.outermost.span.context.span_id}"

    def add(self, call: _Call) -> bool:
        """Return whether a call is of a request that is not written yet, and remember it."""
        names = [name for name in (call.response_id, call.usage) if name]
        known = [self.calls[name] for name in names if name in self.calls]
        if any(one.is_same(call) or call.is_same(one) for one in known):
            return False
        for name in names:
            self.calls[name] = call
        while len(self.calls) > _MOST_COMPARED:  # a call may have added two names
            del self.calls[next(iter(self.calls))]
        return True


class _Open:
    """A span that has begun.

    Attributes:
        span: The span.
        outer: The span around it.
        trace: What it belongs to.
        is_open: It has not ended.
        details: Attributes of the event with its messages.
        inner: Requests of spans inside this one that have ended.
    """

    __slots__ = ("details", "inner", "is_open", "outer", "span", "trace")

    def __init__(self, span: Span, outer: _Open | None) -> None:
        self.span, self.outer, self.is_open = span, outer, True
        self.details: dict[str, Json] = {}
        self.inner: list[_Call] = []
        self.trace: _Trace = _Trace(self) if outer is None else outer.trace
        self.trace.open += 1

    @property
    def fields(self) -> Mapping[str, Json]:
        """Its attributes so far."""
        return self.span.attributes or {}

    @property
    def kind(self) -> str:
        """What it counts for, as far as that is known."""
        return kind_of(self.fields)

    def around(self) -> Iterator[_Open]:
        """Yield the spans around it, the nearest first."""
        outer = self.outer
        while outer is not None:
            yield outer
            outer = outer.outer

    def marks(self) -> dict[str, str]:
        """Return the name of the agent that it belongs to, as a field of events, if that runs inside another agent."""
        sums = (one.fields for one in self.around() if one.kind == "sum")
        agents = [name for fields in sums if (name := first_text(fields, AGENT))]
        return {"agent": agents[0]} if agents and agents[0] != agents[-1] else {}


class _Call:
    """An ended span of inference, with the messages of its event and what spans of its request inside it know.

    Attributes:
        fields: Attributes; empty once they are written.
        models: The names of its model, without those of routers before them.
        response_id: The response's id, where it is its provider's; else "".
        usage: Its tokens; None for none.
        maker: Who made the span.
        start: Its start in nanoseconds.
        end: Its end.
    """

    __slots__ = ("_error", "_is_cancelled", "_ms", "end", "fields", "maker", "models", "response_id", "start", "usage")

    def __init__(self, span: ReadableSpan, fields: dict[str, Json]) -> None:
        self.start, self.end, self._ms = span.start_time or 0, span.end_time or 0, _milliseconds(span)
        self.maker = span.kind, span.instrumentation_scope.name if span.instrumentation_scope else ""
        self._error, self._is_cancelled = _error_of(span)
        found = read_span_usage(fields)
        self.usage: TokenUsage | None = found[0] if found else None
        self._know(fields)

    def _know(self, fields: dict[str, Json]) -> None:
        self.fields = fields
        self.models = {first_text(fields, name).rpartition("/")[2] for name in MODEL} - {""}
        known = first_text(fields, RESPONSE_ID)
        self.response_id = known if len(known) >= UNIQUE else ""

    def is_same(self, later: _Call) -> bool:
        """Return whether another span is of the same request: it names the same response, or was made inside its time.

        The latter by a server or another library, of the same model with the same counts.
        """
        if self.response_id and later.response_id:
            return self.response_id == later.response_id
        return (
            self.usage is not None
            and self.usage == later.usage
            and self.maker != later.maker
            and self.start <= later.start
            and later.end <= self.end
            and not self.models.isdisjoint(later.models)
        )

    def differs(self, inner: _Call) -> bool:
        """Return whether a call and the one inside it are two requests: other responses with other counts."""
        counts = {self.usage, inner.usage} - {None, TokenUsage()}
        return len(counts) == len({self.response_id, inner.response_id} - {""}) == 2

    def absorb(self, inner: _Call) -> None:
        """Add what a span of the same request inside this one knows more."""
        self.usage = self.usage or inner.usage
        self._know({**inner.fields, **self.fields})

    def start_fields(self) -> dict[str, Any]:
        """Return what it knows for session.start."""
        fields = self.fields
        provider, model = first_text(fields, *PROVIDER) or None, first_text(fields, *MODEL) or None
        return {"prompt": last_prompt(sent_messages(fields)), "model": model, "provider": provider}

    def write(self, log: SessionLogger, marks: Mapping[str, Json]) -> dict[str, Json]:
        """Write the request and its response, and return the fields of the answer."""
        fields, self.fields = self.fields, {}
        model = first_text(fields, *MODEL) or None
        request = {"model": model, "messages": sent_messages(fields) or None}
        request |= {name: fields.get(f"gen_ai.request.{key}") for key, name in _SETTINGS.items()}
        request["tools"] = _parsed(fields.get("gen_ai.tool.definitions"))
        log.emit("llm.request", {name: value for name, value in request.items() if value is not None} | dict(marks))
        answer = answer_fields(fields)
        answer["finish_reason"] = answer.get("finish_reason") or _finish_reason(fields)
        first = next((fields[name] for name in FIRST_CHUNK if isinstance(fields.get(name), int | float)), None)
        log.llm_response(
            **answer,
            usage=self.usage,
            model=first_text(fields, *RESPONSE_MODEL) or model,
            requested_model=model,
            provider=first_text(fields, *PROVIDER) or None,
            latency_ms=self._ms,
            time_to_first_token_ms=None if first is None else round(first * 1000, 3),
            response_id=first_text(fields, RESPONSE_ID) or None,
            service_tier=first_text(fields, *SERVICE_TIER) or None,
            searches=fields.get(SEARCHES),
            error=self._error,
            partial="cancelled" if self._is_cancelled else None,
            **marks,
        )
        return answer


def _requests(call: _Call, inner: Iterable[_Call]) -> list[_Call]:
    """Return the requests that a span of inference and those inside it stand for."""
    found: list[_Call] = []
    for one in inner:
        if not any(other.is_same(one) or one.is_same(other) for other in found):
            found.append(one)
    if len(found) == 1 and not call.differs(found[0]):
        call.absorb(found[0])
        return [call]
    return [call, *found] if len(found) < 2 else found


def _finish_reason(fields: Mapping[str, Json]) -> str | None:
    """Return the first finish reason of a span's attributes; some instrumentations have a text in place of a list."""
    reasons = fields.get(FINISH_REASONS)
    first = reasons[0] if isinstance(reasons, list | tuple) and reasons else reasons
    return first if isinstance(first, str) and first else None


def _error_of(span: ReadableSpan | None) -> tuple[str | None, bool]:
    """Return why a span failed, in one line, None for a success; and whether it was cancelled instead."""
    if span is None:
        return None, False
    kind = first_text(span.attributes or {}, "error.type")
    if span.status.status_code is not StatusCode.ERROR and not kind:
        return None, False
    raised = next((event.attributes or {} for event in reversed(span.events) if event.name == "exception"), {})
    kind = kind or first_text(raised, "exception.type")
    text = span.status.description or first_text(raised, "exception.message")
    if kind.rpartition(".")[2] in _CANCELLATIONS:
        return None, True
    return (
        text if text and kind.rpartition(".")[2] in text else ": ".join(filter(None, (kind, text)))
    ) or "failed", False


def _milliseconds(span: ReadableSpan) -> float:
    return round(((span.end_time or 0) - (span.start_time or 0)) / 1e6, 3)


def _parsed(value: Json) -> Json:
    """Return the value of a JSON text; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
