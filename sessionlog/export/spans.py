"""Spans of OpenTelemetry for sessions, requests and tool calls, by the GenAI conventions.

One `chat` span for each request, one `execute_tool` span for each tool call, and around those of a session one
`invoke_agent` span, which has no tokens: whoever sums up tokens over all spans gets the ledger's. The input includes
cached tokens. The ledger knows whether a request failed, not why: `error.type` is `_OTHER`, the conventions' word.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from sessionlog._version import __version__
from sessionlog.events.names import UNKNOWN
from sessionlog.export.items import Call, Item, Request, Session, is_main, root_of
from sessionlog.messages.genai import (
    AGENT,
    CONVERSATION,
    FOLDER,
    MODEL,
    OPERATION,
    PROVIDER,
    RESPONSE_MODEL,
    STATUS,
    TOOL,
    TOOL_SERVER,
    span_usage,
)

SCOPE = InstrumentationScope("sessionlog", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_FAILED = ("error",)
"""The status of a session that is an error; a cancelled one is none."""

Attributes = dict[str, str | int]


def span_of(item: Item) -> ReadableSpan:
    """Return the span of a request or a tool call."""
    return _request(item) if isinstance(item, Request) else _call(item)


def root_span(session: Session, items: Iterable[Item]) -> ReadableSpan:
    """Return the span around a session; it spans at least those of its items that are exported now."""
    inside = [item for item in items if item.row == session.row]
    starts = [item.start_ns for item in inside] + ([] if session.start_ns is None else [session.start_ns])
    ends = [item.end_ns for item in inside] + ([] if session.end_ns is None else [session.end_ns])
    attributes: Attributes = {
        OPERATION: "invoke_agent", AGENT: session.harness, CONVERSATION[0]: session.session,
        "sessionlog.source": session.source, STATUS: "unfinished" if session.status is None else session.status,
    }  # fmt: skip
    return ReadableSpan(
        f"invoke_agent {session.harness}",
        context=context_of(session.trace, session.id),
        resource=resource_of(session.harness, UNKNOWN, session.project),
        attributes=_failed(attributes) if session.status in _FAILED else attributes,
        kind=SpanKind.INTERNAL,
        status=_status(failed=session.status in _FAILED),
        start_time=min(starts),
        end_time=max(ends),
        instrumentation_scope=SCOPE,
    )


def request_names(item: Request) -> Attributes:
    """Return the attributes that a request's span and its metrics have in common; `unknown` is a name like others."""
    attributes: Attributes = {OPERATION: "chat", PROVIDER[0]: item.provider, MODEL[0]: item.model}
    return attributes if item.response_model == UNKNOWN else attributes | {RESPONSE_MODEL[0]: item.response_model}


@lru_cache(4096)
def resource_of(service: str, version: str = UNKNOWN, project: str = UNKNOWN) -> Resource:
    """Return the resource: the program that made the requests, as a service, and its working folder."""
    attributes = {"service.name": service, "service.version": version, FOLDER: project}
    return Resource({name: value for name, value in attributes.items() if value and value != UNKNOWN})


def request_attributes(item: Request) -> Attributes:
    """Return the attributes of a request's span, and of its event."""
    attributes: Attributes = {CONVERSATION[0]: item.session, **request_names(item)}
    if not item.failed or item.usage.total:
        attributes |= span_usage(item.usage)
    if not is_main(item.agent):
        attributes[AGENT] = item.agent
    if not item.requests:
        attributes["sessionlog.granularity"] = "session"
    return _failed(attributes) if item.failed else attributes


def _request(item: Request) -> ReadableSpan:
    return _span(f"chat {item.model}", item, item.version, request_attributes(item), SpanKind.CLIENT)


def _call(item: Call) -> ReadableSpan:
    attributes: Attributes = {OPERATION: "execute_tool", CONVERSATION[0]: item.session, TOOL: item.tool}
    if item.server:
        attributes[TOOL_SERVER] = item.server
    if not is_main(item.agent):
        attributes[AGENT] = item.agent
    attributes = _failed(attributes) if item.failed else attributes
    return _span(f"execute_tool {item.tool}", item, UNKNOWN, attributes, SpanKind.INTERNAL)


def _span(name: str, item: Request | Call, version: str, attributes: Attributes, kind: SpanKind) -> ReadableSpan:
    return ReadableSpan(
        name,
        context=context_of(item.trace, item.id),
        parent=context_of(item.trace, root_of(item.trace)),
        resource=resource_of(item.harness, version, item.project),
        attributes=attributes,
        kind=kind,
        status=_status(failed=item.failed),
        start_time=item.start_ns,
        end_time=item.end_ns,
        instrumentation_scope=SCOPE,
    )


def context_of(trace: int, span: int) -> SpanContext:
    """Return the ids of a span."""
    return SpanContext(trace, span, is_remote=False, trace_flags=_SAMPLED)


def _failed(attributes: Attributes) -> Attributes:
    return attributes | {"error.type": "_OTHER"}


def _status(*, failed: bool) -> Status:
    return Status(StatusCode.ERROR if failed else StatusCode.UNSET)
