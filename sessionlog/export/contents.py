"""Contents: the messages of exported requests, read again from their logs, as events of the GenAI conventions.

The ledger has no messages. Those of a request are of the response in its log that has the same token counts and is
nearest in time, at most ten seconds away, because an agent may log a response's counts and its words apart. What was
sent is what the log has of it: with `sessionlog.earlier_messages` only the messages after so many. Well-known secrets
are replaced, as in our own logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.redact import redact_line
from sessionlog.events.usage import read_usage
from sessionlog.export.items import Request
from sessionlog.export.spans import SCOPE, context_of, request_attributes, resource_of
from sessionlog.messages.genai import ANSWERED, DETAILS, SENT
from sessionlog.messages.genai_messages import genai_message
from sessionlog.messages.read import read_entry
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import source_of

_NEAR_NS = 10 * 1_000_000_000
_Counts = tuple[int, ...]


def read_events(items: Sequence[Request]) -> Iterator[tuple[Request, ReadableLogRecord, int]]:
    """Yield the requests of one session in one log with their events and these events' sizes in bytes.

    Requests that the log has no words of are left out.

    Raises:
        LogNotReadable: The log cannot be read, is gone, or its source is not installed.
        MissingExtra: A .zst file without a decoder.
    """
    waiting: dict[_Counts, list[Request]] = {}
    for item in items:
        waiting.setdefault(item.state[3:], []).append(item)
    request: Mapping[str, Any] = {}
    for event in _source(items[0]).read(items[0].path, items[0].session):
        if isinstance(event, Problem):
            continue
        if event.type == "llm.request":
            request = _data(event)
        elif event.type == "llm.response":
            found = _take_nearest(waiting, event)
            if found is not None:
                yield _event(found, request, _data(event))
            request = {}


def _source(item: Request) -> Source:
    try:
        return source_of(item.source)
    except StopIteration as error:
        raise LogNotReadable(f"{item.path}: there is no source {item.source!r}") from error


def _data(event: Event) -> Mapping[str, Any]:
    return event.data if isinstance(event.data, Mapping) else {}


def _take_nearest(waiting: Mapping[_Counts, list[Request]], event: Event) -> Request | None:
    """Return the request that a response is of, and take it out of those that wait; None if there is none."""
    usage, time_ns = read_usage(_data(event).get("usage"))[0], event.time_ns
    counts = usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning
    found = waiting.get(counts)
    if not found or time_ns is None:
        return None
    nearest = min(found, key=lambda item: abs(item.end_ns - time_ns))
    if abs(nearest.end_ns - time_ns) > _NEAR_NS:
        return None
    found.remove(nearest)
    return nearest


def _event(
    item: Request, request: Mapping[str, Any], response: Mapping[str, Any]
) -> tuple[Request, ReadableLogRecord, int]:
    answer = response.get("message") or {"content": response.get("content"), "tool_calls": response.get("tool_calls")}
    given = request.get("messages")
    sent = [one for value in given or () for one in read_entry(value).messages] if isinstance(given, list) else []
    answered = read_entry({**answer, "role": "assistant"}).messages if isinstance(answer, Mapping) else ()
    finish = response.get("finish_reason")
    messages = {
        SENT: [genai_message(message) for message in sent],
        ANSWERED: [{**genai_message(one), **({"finish_reason": finish} if finish else {})} for one in answered],
    }
    text = redact_line(orjson.dumps(messages, default=str))
    attributes = {**request_attributes(item), **{name: found for name, found in orjson.loads(text).items() if found}}
    if isinstance(earlier := request.get("earlier_messages"), int):
        attributes["sessionlog.earlier_messages"] = earlier
    record = LogRecord(
        timestamp=item.end_ns,
        observed_timestamp=item.end_ns,
        context=set_span_in_context(NonRecordingSpan(context_of(item.trace, item.id))),
        event_name=DETAILS,
        attributes=attributes,
    )
    resource = resource_of(item.harness, item.version, item.project)
    return item, ReadableLogRecord(record, resource, SCOPE), len(text)
