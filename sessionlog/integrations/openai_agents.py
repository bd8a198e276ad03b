"""OpenAI's Agents SDK: a trace processor that records each trace as a session.

    agents.add_trace_processor(SessionLogProcessor())       # beside the exporter to OpenAI
    agents.set_trace_processors([SessionLogProcessor()])    # instead of it

`generation` and `response` spans are requests, `function` spans are tool calls. The SDK fills in most of a span before
it ends: a request is then written with its response, and nothing of the call is in the log if the process dies before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from sessionlog.integrations.runs import Guard, Runs, library, take_call_id
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.logger.tool_timer import is_cancellation
from sessionlog.messages.content_text import get

with library("agents", "openai-agents"):
    from agents.tracing import TracingProcessor

if TYPE_CHECKING:
    from agents.tracing import Span, Trace

Json = Any
_RECORDED = ("generation", "response", "function")


class SessionLogProcessor(TracingProcessor):
    """Records traces in sessions, one for each trace.

    The SDK keeps all errors of processors from the host, also those of `on_error="raise"`.

    Args:
        log: The logger of all traces, which its owner ends; None for a session for each trace.
        options: Arguments of `SessionLogger` for these sessions, such as `provider`, which spans do not name.

    Raises:
        TypeError: There are both a logger and options, or an option is unknown.
        ValueError: An option has a value that does not exist.
    """

    def __init__(self, log: SessionLogger | None = None, **options: Any) -> None:
        self._runs, self._ends_sessions = Runs(log, options), log is None
        self._traces: dict[str, _Trace] = {}

    def on_trace_start(self, trace: Trace) -> None:
        """Begin a session."""
        self._begin(trace.trace_id)

    def on_trace_end(self, trace: Trace) -> None:
        """End the session; by the error that is leaving the trace, if there is one."""
        self._end(trace.trace_id)

    def on_span_start(self, span: Span[Any]) -> None:
        """Note when the span began; write its request if that is known already."""
        begun = self._traces.get(span.trace_id)
        if begun is None:  # a run that is resumed reports no start of its trace: it ends with its outermost span
            begun = self._begin(span.trace_id)
            begun.outermost = span.span_id
        with Guard(begun.log):
            data = span.span_data
            if data.type in _RECORDED:
                call = begun.calls[span.span_id] = _Call(span)
                if data.type != "function" and data.input is not None:
                    call.write_request(begun.log)
            elif data.type == "agent":
                begun.log.emit("progress", {"phase": "agent", "state": "start", "subject": data.name})

    def on_span_end(self, span: Span[Any]) -> None:
        """Write what the span has done."""
        begun = self._traces.get(span.trace_id)
        if begun is None:
            return
        with Guard(begun.log):
            begun.error = _error_text(span.error) or begun.error
            data = span.span_data
            call = begun.calls.pop(span.span_id, None)
            if call is not None:
                self._record(begun, call, is_cancelled=is_cancellation(call.raised.now()))
            elif data.type == "handoff":
                message = f"{data.from_agent} → {data.to_agent}"
                begun.log.emit("progress", {"phase": "handoff", "message": message, "subject": data.to_agent})
            elif data.type == "guardrail" and data.triggered:
                begun.log.emit("progress", {"phase": "guardrail", "state": "triggered", "subject": data.name})
        if span.span_id == begun.outermost:
            self._end(span.trace_id)

    def shutdown(self) -> None:
        """Close the sessions of traces that have not ended; they count as unfinished."""
        while self._traces:
            _, begun = self._traces.popitem()
            if self._ends_sessions:
                begun.log.close()

    def force_flush(self) -> None:
        """Do nothing: each event is written when it happens."""

    def _begin(self, trace_id: str) -> _Trace:
        begun = self._traces[trace_id] = _Trace(self._runs.begin(trace_id))
        return begun

    def _end(self, trace_id: str) -> None:
        begun = self._traces.pop(trace_id, None)
        if begun is None:
            return
        with Guard(begun.log):
            for call in begun.calls.values():  # generators that the host has left: their spans end later, if at all
                self._record(begun, call, is_cancelled=True)
            error = begun.raised.now()
            if error is not None and self._ends_sessions:  # a span's error is redacted where the host wants that
                is_cancelled = is_cancellation(error)
                text = None if is_cancelled else begun.error or f"{type(error).__name__}: {error}"
                begun.log.end("cancelled" if is_cancelled else "error", error=text)
        self._runs.end(trace_id, output=begun.output)

    def _record(self, begun: _Trace, call: _Call, *, is_cancelled: bool) -> None:
        milliseconds = round((monotonic_ns() - call.started) / 1e6, 3)
        data, error = call.span.span_data, _error_text(call.span.error)
        if data.type == "function":
            begun.log.tool_call(
                data.name,
                _parsed(data.input),
                output=data.output,
                duration_ms=milliseconds,
                error=error or ("cancelled" if is_cancelled else None),
                id=take_call_id(begun.requested, data.name, data.input),
            )
            return
        if not call.is_written:
            with Guard(begun.log):  # a response without its request still counts
                call.write_request(begun.log)
        fields = _response_fields(data)
        begun.requested += fields.get("tool_calls") or []
        begun.output = fields.get("content") or begun.output
        if error is not None:
            fields["error"] = error
        elif is_cancelled and not fields.get("finish_reason"):  # a host may leave a stream at its last event
            fields["partial"] = "cancelled"
        asked = getattr(data, "model", None) or fields["model"]
        begun.log.llm_response(**fields, requested_model=asked, latency_ms=milliseconds)


class _Raised:
    """Reads the exception that is leaving the current block: spans do not hold those that cancel.

    The one that was handled when this was made is of the host, which called from an `except` block.
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before = sys.exc_info()[1]

    def now(self) -> BaseException | None:
        """Return the exception; None where there is none."""
        error = sys.exc_info()[1]
        return None if error is self._before else error


class _Trace:
    """A trace that has begun: its logger, open spans, the calls that models requested, and how it may end."""

    __slots__ = ("calls", "error", "log", "outermost", "output", "raised", "requested")

    def __init__(self, log: SessionLogger) -> None:
        self.log, self.raised = log, _Raised()
        self.calls: dict[str, _Call] = {}
        self.requested: list[dict[str, Json]] = []
        self.outermost: str | None = None  # the span that ends the session, where the trace itself does not
        self.error: str | None = None
        self.output: str | None = None


class _Call:
    """An open span of a model or a tool."""

    __slots__ = ("is_written", "raised", "span", "started")

    def __init__(self, span: Span[Any]) -> None:
        self.span, self.raised, self.is_written = span, _Raised(), False
        self.started = monotonic_ns()

    def write_request(self, log: SessionLogger) -> None:
        """Write the request as far as the span has it: a response span has its input only after a success."""
        self.is_written = True
        data = self.span.span_data
        response = data.response if data.type == "response" else None
        if response is None:
            given = getattr(data, "model_config", None) or {}
            settings = {name: given.get(name) for name in ("temperature", "top_p", "max_tokens")}
        else:
            settings = {"temperature": response.temperature, "top_p": response.top_p}
            settings["max_tokens"] = response.max_output_tokens
        messages = [{"role": "user", "content": data.input}] if isinstance(data.input, str) else list(data.input or ())
        instructions = get(response, "instructions")
        if isinstance(instructions, str):
            messages.insert(0, {"role": "system", "content": instructions})
        tools = [tool.model_dump(exclude_none=True) for tool in get(response, "tools") or ()] or None
        model = getattr(data, "model", None) if response is None else response.model
        log.llm_request(messages, model=model, tools=tools, **settings)


def _response_fields(data: Any) -> dict[str, Json]:
    """Return the fields of llm.response for the data of a generation or response span."""
    response = data.response if data.type == "response" else None
    listed = data.output if data.type == "generation" else ()
    if response is None and listed and get(listed[0], "object") == "response":  # a streamed chat completion
        response = listed[0]
    fields = {
        "model": get(response, "model") or getattr(data, "model", None),
        "usage": data.usage or get(response, "usage"),
        "finish_reason": get(response, "status"),
        "service_tier": get(response, "service_tier"),
        "searches": get(get(get(response, "tool_usage"), "web_search"), "num_requests"),
    }
    return fields | _answer(listed or () if response is None else get(response, "output") or ())


def _answer(items: Iterable[Any]) -> dict[str, Json]:
    """Return text, calls and thoughts of items of the Responses API or of messages of chat completions."""
    texts, calls, thoughts = [], [], []
    for item in items:
        kind, content = get(item, "type"), get(item, "content")
        if kind == "function_call":
            calls.append({name: get(item, key) for name, key in _CALL_FIELDS})
        elif kind == "reasoning":
            thoughts += [get(part, "text") for part in get(item, "summary") or content or ()]
        elif isinstance(content, str):
            texts.append(content)
        else:
            texts += [get(part, "text") or get(part, "refusal") or "" for part in content or ()]
        for call in get(item, "tool_calls") or ():
            function = get(call, "function")
            calls.append(
                {"id": get(call, "id"), "name": get(function, "name"), "arguments": get(function, "arguments")}
            )
    text = "".join(texts)
    fields: dict[str, Json] = {"content": text or None, "tool_calls": calls or None}
    if any(thoughts):
        parts = [{"type": "thinking", "text": thought} for thought in thoughts if thought]
        parts += [{"type": "text", "text": text}] if text else []
        fields["message"] = {"role": "assistant", "content": parts} | ({"tool_calls": calls} if calls else {})
    return fields


def _error_text(error: Mapping[str, Any] | None) -> str | None:
    """Return the error of a span in one line: its message, and the detail in its data."""
    if not error:
        return None
    data = error.get("data") or {}
    detail = data.get("error") or data.get("message") or ", ".join(f"{name} {value}" for name, value in data.items())
    return f"{error.get('message')}: {detail}" if detail else str(error.get("message"))


def _parsed(arguments: Json) -> Json:
    """Return the arguments of a tool as an object if they are one in JSON, else as they are."""
    with suppress(TypeError, ValueError):
        parsed = json.loads(arguments)
        return parsed if isinstance(parsed, dict) else arguments
    return arguments


_CALL_FIELDS = (("id", "call_id"), ("name", "name"), ("arguments", "arguments"))
