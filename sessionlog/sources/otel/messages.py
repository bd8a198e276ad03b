"""Messages of GenAI spans: attributes since 1.37, events before; only where the program chose to record them.

A span repeats the whole history. `Conversation` tells each message once: the n-th of equal ones is new only where fewer
than n have been told, so agents that take turns in one session do not repeat each other's words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from sessionlog.events.envelope import Event
from sessionlog.sources.gather import first_words, text_size
from sessionlog.sources.otel.spans import Span
from sessionlog.sources.record import Record, read_name
from sessionlog.sources.transcript import Transcript

Json = Any
_Logged = tuple[Json, str]

_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_DETAILS = "gen_ai.client.inference.operation.details"


class Message(NamedTuple):
    """One message: what it says, and the tools that it calls or answers for.

    Attributes:
        role: system, user, assistant or tool.
        text: What it says.
        reasoning: What was thought before.
        calls: Tool calls, `{"id", "name", "arguments"}`.
        results: Tools' results, (call id, output).
        finish_reason: Why an answer ended.
    """

    role: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[dict[str, Json], ...] = ()
    results: tuple[tuple[str, Json], ...] = ()
    finish_reason: str | None = None

    @property
    def likeness(self) -> str:
        """What equal messages have in common."""
        ids = [call["id"] for call in self.calls] + [name for name, _ in self.results]
        return "\x00".join([self.role, self.text, *ids])


def messages_of(span: Span) -> tuple[list[Message], list[Message]]:
    """Return what a call was sent, the system's words first, and what it answered."""
    sent, answered = _logged(span)
    return [read_message(*one) for one in sent], [read_message(*one) for one in answered]


def prompts_of(span: Span) -> list[Message]:
    """Return the words of a user in a span, which repeats those of the spans before."""
    asked = (one for one in _logged(span)[0] if (read_name(_object(one[0]).get("role")) or one[1]) == "user")
    return [prompt for prompt in (read_message(*one) for one in asked) if first_words(prompt.text)]


def _logged(span: Span) -> tuple[list[_Logged], list[_Logged]]:
    """What a call was sent and what it answered, as recorded, each with whose it is unless it says so itself."""
    attributes = dict(span.attributes)
    for name, told in span.events:
        if name == _DETAILS:
            attributes = {**told, **attributes}
    system = structured(attributes.get("gen_ai.system_instructions"))
    sent: list[_Logged] = [({"parts": system}, "system")] if isinstance(system, list) and system else []
    answered: list[_Logged] = []
    for name, messages, role in (("input", sent, "user"), ("output", answered, "assistant")):
        value = structured(attributes.get(f"gen_ai.{name}.messages"))
        messages += [(one, role) for one in (value if isinstance(value, list) else [])]
    for name, told in span.events:
        if name in _EVENTS:
            sent.append((told, _EVENTS[name]))
        elif name == "gen_ai.choice":
            answered.append(({**told, **_object(told.get("message"))}, "assistant"))
    return sent, answered


def read_message(value: Json, role: str) -> Message:
    """Read a message of parts, or one with `content` and `tool_calls` as chat APIs have them."""
    fields = _object(value)
    parts = structured(fields.get("parts"))
    if not isinstance(parts, list):
        content = structured(fields.get("content"))
        parts = content if _is_parts(content) else [{"type": "text", "content": fields.get("content")}]
    calls = structured(fields.get("tool_calls"))
    parts = [*parts, *({**_object(call), "type": "tool_call"} for call in (calls if isinstance(calls, list) else []))]
    role = read_name(fields.get("role")) or role
    texts: list[str] = []
    thoughts: list[str] = []
    tools: list[dict[str, Json]] = []
    results: list[tuple[str, Json]] = []
    for part in map(_object, parts):
        kind, text = part.get("type"), part.get("content", part.get("text"))
        function = _object(part.get("function"))
        call_id = read_name(part.get("id") or fields.get("id") or fields.get("tool_call_id")) or ""
        if kind in ("tool_call", "function_call"):
            name = read_name(part.get("name") or function.get("name")) or "unknown"
            given = structured(part.get("arguments", function.get("arguments")))
            tools.append({"id": call_id, "name": name, "arguments": given})
        elif kind in ("tool_call_response", "tool_result") or role == "tool":
            results.append((call_id, next((part[key] for key in ("response", "result") if key in part), text)))
        elif isinstance(text, str):
            (thoughts if kind in ("reasoning", "thinking") else texts).append(text)
        elif kind != "text":
            texts.append(f"[{read_name(part.get('modality')) or read_name(kind) or 'unknown'}]")
    why = read_name(fields.get("finish_reason"))
    return Message(role, "\n".join(texts), "\n".join(thoughts), tuple(tools), tuple(results), why)


def _is_parts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def structured(value: Json) -> Json:
    """Return what a JSON text stands for; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return value


def _object(value: Json) -> Mapping[str, Json]:
    value = structured(value)
    return value if isinstance(value, dict) else {}


def result_of(span: Span) -> Json:
    """Return what a tool gave back; None where it was not recorded."""
    return structured(span.attributes.get("gen_ai.tool.call.result"))


def result_size(span: Span) -> int:
    """Bytes of a tool's result, as UTF-8; what is nested too deep to be written again counts as it was recorded."""
    output = result_of(span)
    if output is None:
        return 0
    if not isinstance(output, str):
        try:
            return len(orjson.dumps(output, default=str))
        except (TypeError, RecursionError):
            return text_size(span.attributes.get("gen_ai.tool.call.result"))
    return text_size(output)


class Conversation:
    """Spans of one session in the order of time, told as a transcript."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._told: Counter[str] = Counter()
        self._open: dict[str, str] = {}  # call id -> tool
        self._done: set[str] = set()

    def call(self, span: Span, record: Record, error: str) -> Iterator[Event]:
        """Tell what is new in a call, and its answer."""
        sent, answered = messages_of(span)
        seen: Counter[str] = Counter()
        for message in sent:
            seen[message.likeness] += 1
            if seen[message.likeness] <= self._told[message.likeness]:
                continue
            self._told[message.likeness] += 1
            for call_id, output in message.results:
                if call_id not in self._done:
                    yield self._result(span.start_ns, call_id, output)
            if message.text:
                typed = message.role != "user" or first_words(message.text)
                self._transcript.hear(message.role if typed else "system", message.text, span.start_ns)
        for message in answered:
            self._told[message.likeness] += 1
        calls = [call for message in answered for call in message.calls]
        self._open.update((call["id"], call["name"]) for call in calls)
        reasons = span.attributes.get("gen_ai.response.finish_reasons")
        reason = reasons[0] if isinstance(reasons, list) and reasons else None
        told = record.quality == "exact" and not (record.failed and not record.usage)
        yield from self._transcript.response(
            span.end_ns, content="\n".join(message.text for message in answered if message.text), tool_calls=calls,
            reasoning="\n".join(message.reasoning for message in answered if message.reasoning),
            usage=record.usage if told else None, model=record.response_model or record.model,
            provider=record.provider, latency_ms=record.latency_ms, error=error or None, key=record.key,
            finish_reason=read_name(reason) or next((one.finish_reason for one in answered), None),
            quality=None if record.quality == "exact" else record.quality,
        )  # fmt: skip

    def tool(self, span: Span, name: str, error: str) -> Iterator[Event]:
        """Tell a tool's use; without an id it answers the first open call of that tool."""
        call_id = read_name(span.attributes.get("gen_ai.tool.call.id"))
        if call_id is None:
            call_id = next((one for one, tool in self._open.items() if tool == name), f"{span.trace}:{span.id}")
        given = structured(span.attributes.get("gen_ai.tool.call.arguments"))
        if call_id not in self._open:
            self._transcript.call(call_id, name, given, span.start_ns)
        took = None if span.start_ns is None or span.end_ns is None else (span.end_ns - span.start_ns) / 1_000_000
        output = error if error and result_of(span) is None else result_of(span)
        yield self._result(span.end_ns, call_id, output, failed=bool(error), duration_ms=took)

    def _result(
        self, ts: int | None, call_id: str, output: Json, *, failed: bool = False, duration_ms: float | None = None
    ) -> Event:
        self._done.add(call_id)
        self._open.pop(call_id, None)
        return self._transcript.result(ts, call_id, output, failed=failed, duration_ms=duration_ms)
