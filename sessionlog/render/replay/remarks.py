"""Blocks that need no memory of other events: routing, pins, compaction, and everything that is worth a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payload_json import read_payload
from sessionlog.events.payloads import (
    PAYLOADS,
    Compaction,
    HistoryChange,
    LLMRequest,
    Override,
    Payload,
    PlanningTurn,
    ReasoningStall,
    RejectedOverride,
    RoutingDecision,
)
from sessionlog.messages.entry import Entry, content_text
from sessionlog.messages.message import Message
from sessionlog.render.replay.blocks import Asked, Block, Compacted, Noted, Pinned, Routed, Said
from sessionlog.render.replay.calls import calls_in
from sessionlog.render.replay.exact import exact

Json = Any
_MANY = 1_000_000_000  # messages; a log that takes more back is not to be believed


def payload_of(event: Event) -> Payload | None:
    """The payload; of the fields beside the envelope where a writer put them there and left `data` out."""
    cls = PAYLOADS.get(event.type)
    if cls is None or not (event.data is None or isinstance(event.data, Mapping)):
        return None
    return read_payload(cls, event.extra if event.data is None else event.data)


def asked_block(event: Event, request: LLMRequest) -> Asked:
    """The line that begins a request; the oldest logs have a count of messages instead of messages."""
    messages = len(request.messages or ()) or request.messages_count or 0
    tools = len(request.tools or ())
    return Asked(type=event.type, time_ns=event.time_ns, messages=messages, tools=tools, request=request)


def said_block(
    event: Event,
    message: Message,
    entry: Entry,
    logged: Json,
    tools: Mapping[str, str],
    elements: Callable[[Json], Json],
) -> Said:
    """The block of a message.

    Args:
        event: The event that tells it.
        message: The message.
        entry: The element that holds it.
        logged: That element as it was logged.
        tools: The names of calls by id, for results that do not name theirs.
        elements: Gives that element with every digit (`exact_elements`).
    """
    text, _ = content_text(message)
    role: str = message.role
    if entry.problems:  # not a message: show the role as logged
        given = logged.get("role") if isinstance(logged, Mapping) else None
        role = given if isinstance(given, str) and given else "unknown"
    tool = message.name or tools.get(message.tool_call_id or "", "") if message.role == "tool" else ""
    calls = calls_in(message, elements(logged)) if message.tool_calls else ()
    return Said(type=event.type, time_ns=event.time_ns, role=role, text=text, calls=calls, tool=tool)


def exact_elements(event: Event) -> Callable[[Json], Json]:
    """Return what gives an element of the event's `messages` with every digit; the event is decoded again but once."""
    listed = event.data.get("messages") if isinstance(event.data, Mapping) else None
    found: dict[int, Json] = {}

    def element(logged: Json) -> Json:
        if not found and isinstance(listed, list | tuple):
            found.update((id(one), whole) for one, whole in zip(listed, exact(event, "messages"), strict=False))
        return found.get(id(logged), logged)

    return element


def block_of(event: Event, value: Payload) -> Block:
    """The block of an event that needs no memory of others."""
    kind, when = event.type, event.time_ns
    match value:
        case RoutingDecision():
            return Routed(type=kind, time_ns=when, decision=value)
        case RejectedOverride():
            return Pinned(type=kind, time_ns=when, override=value, rejected=value.rejection_error or "")
        case Override():
            return Pinned(type=kind, time_ns=when, override=value)
        case Compaction():
            return Compacted(type=kind, time_ns=when, compaction=value, done=kind == "compaction.end")
        case PlanningTurn():
            return Said(type=kind, time_ns=when, role="plan", text=value.plan or "")
        case ReasoningStall():
            after = "" if value.timeout_ms is None else f" after {value.timeout_ms:g} ms"
            text = f"{value.model or 'the model'} reasoned without end and was stopped{after}"
            return Noted(type=kind, time_ns=when, word="stall", text=text, more=value.reasoning_tail or "")
        case _:
            return unknown_note(event)


def change_note(event: Event, change: HistoryChange) -> Noted:
    """A line for a history that was changed."""
    count = change.count if event.type == "history.pop" else len(change.messages or ())
    many = f"{count or 0:,} messages" if 0 <= (count or 0) <= _MANY else "some messages"
    messages = "1 message" if count == 1 else many
    parent = (change.parent or {}).get("session")
    if event.type == "history.clear":
        text = "cleared: what follows begins anew"
    elif event.type == "history.pop":
        text = f"{messages} taken back"
    elif change.state and not count:
        text = f"the turn was {change.state}"
    elif change.reason == "fork":
        text = f"{messages} inherited" + (f" from {parent}" if isinstance(parent, str) and parent else "")
        missing = (change.parent or {}).get("missing")
        text += f"; missing: {missing}" if isinstance(missing, str) and missing else ""
    else:
        text = f"{messages} {'restored' if change.reason == 'restored' else 'added'}"
    return Noted(type=event.type, time_ns=event.time_ns, word="history", text=text)


def unknown_note(event: Event) -> Noted:
    """A line for an event without a form of its own: what it says of itself, else its data."""
    data = exact(event)
    values = data if isinstance(data, Mapping) else {}
    if event.type == "log.gap":
        return _gap(event, values)
    told = values.get("message") if event.type == "progress" else None
    if event.type == "llm.delta":
        told = values.get("content")
    if isinstance(told, str):
        return Noted(type=event.type, time_ns=event.time_ns, word=event.type, text=told)
    return Noted(type=event.type, time_ns=event.time_ns, word=event.type, data=data)


def problem_note(problem: Problem) -> Noted:
    """A line for a piece of the log that could not be read."""
    return Noted(type="problem", word="damage", text=str(problem), severity="damage")


def _gap(event: Event, values: Mapping[str, Any]) -> Noted:
    count, reason = values.get("events"), values.get("reason")
    what = f"{count} events were" if isinstance(count, int) and count != 1 else "an event was"
    why = f": {reason}" if isinstance(reason, str) and reason else ""
    text = f"{what} not recorded{why}"
    return Noted(type=event.type, time_ns=event.time_ns, word="gap", text=text, severity="damage")
