"""Make the blocks that depend on one event only: messages, routing, pins, compaction, and notes."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import (
    Compaction,
    HistoryChange,
    Override,
    Payload,
    PlanningTurn,
    ReasoningStall,
    RoutingDecision,
)
from sessionlog.messages.entry import content_text
from sessionlog.messages.message import ContentPart, Message
from sessionlog.messages.read import read_result
from sessionlog.render.replay.blocks import Block, MessageBlock, NoteBlock, PayloadBlock, Picture
from sessionlog.render.replay.exact import calls_in, exact
from sessionlog.transcript.splice import Added

Json = Any
_TEXTS = {"progress": "message", "llm.delta": "content"}
"""Event type → the field that its note shows."""

_MANY = 1_000_000_000  # messages; a larger count in a log is not plausible


def message_block(
    message: Message, one: Added, tools: Mapping[str, str], elements: Callable[[Json], Json]
) -> MessageBlock:
    """Return the block of a message.

    Args:
        message: The message.
        one: The element of the history that holds it.
        tools: The names of calls by id, for results that do not name theirs.
        elements: Returns the exact form of that element (`exact_elements`).
    """
    role: str = message.role
    if one.entry.problems:  # not a message: show the role as logged
        given = one.raw.get("role") if isinstance(one.raw, Mapping) else None
        role = given if isinstance(given, str) and given else "unknown"
    tool = message.name or tools.get(message.tool_call_id or "", "") if message.role == "tool" else ""
    calls = calls_in(message, elements(one.raw)) if message.tool_calls else ()
    return MessageBlock(role=role, text=content_text(message)[0], calls=calls, tool=tool, pictures=pictures_of(message))


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """Return the pictures in a message, those whose bytes are in the log."""
    parts = () if isinstance(message.content, str) else message.content
    return tuple(found for part in parts if part.is_media and (found := _picture(part)) is not None)


def pictures_in_result(output: Any) -> tuple[Picture, ...]:
    """Return the pictures in a tool's output."""
    if not isinstance(output, list):
        return ()
    return tuple(found for one in read_result(output, call_id=None).messages for found in pictures_of(one))


def _picture(part: ContentPart) -> Picture | None:
    if part.data is not None:
        return Picture(media_type=part.media_type or "", data=part.data)
    head, comma, data = (part.image_url or "").partition(";base64,")
    if not comma or not head.startswith("data:"):
        return None
    try:
        return Picture(media_type=head.removeprefix("data:"), data=b64decode(data, validate=True))
    except ValueError:
        return None


def block_of(event: Event, value: Payload | None) -> Block:
    """Return the block of an event that depends on no other; a note where there is no known payload."""
    match value:
        case RoutingDecision() | Override() | Compaction():
            return PayloadBlock(payload=value)
        case PlanningTurn():
            return MessageBlock(role="plan", text=value.plan or "")
        case ReasoningStall():
            after = "" if value.timeout_ms is None else f" after {value.timeout_ms:g} ms"
            text = f"{value.model or 'the model'} reasoned without end and was stopped{after}"
            return NoteBlock(kind="stall", text=text, more=value.reasoning_tail or "")
        case _:
            return unknown_note(event)


def change_note(event: Event, change: HistoryChange) -> NoteBlock:
    """Return the note on a changed history."""
    count = change.count if event.type == "history.pop" else len(change.messages or ())
    many = f"{count or 0:,} messages" if 0 <= (count or 0) <= _MANY else "some messages"
    messages = "1 message" if count == 1 else many
    parent = (change.parent or {}).get("session")
    if event.type == "history.clear":
        text = "cleared: a new history begins"
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
    return NoteBlock(kind="history", text=text)


def unknown_note(event: Event) -> NoteBlock:
    """Return the note on any other event: its text if its type has one, else its data."""
    data = exact(event)
    values = data if isinstance(data, Mapping) else {}
    if event.type == "log.gap":
        return _gap(values)
    text = values.get(_TEXTS.get(event.type))
    return NoteBlock(kind=event.type, text=text) if isinstance(text, str) else NoteBlock(kind=event.type, data=data)


def problem_note(problem: Problem) -> NoteBlock:
    """Return the note on a damaged piece of the log."""
    return NoteBlock(type="problem", kind="damage", text=str(problem), severity="damage")


def _gap(values: Mapping[str, Any]) -> NoteBlock:
    count, reason = values.get("events"), values.get("reason")
    what = f"{count} events were" if isinstance(count, int) and count != 1 else "an event was"
    why = f": {reason}" if isinstance(reason, str) and reason else ""
    text = f"{what} not recorded{why}"
    return NoteBlock(kind="gap", text=text, severity="damage")
