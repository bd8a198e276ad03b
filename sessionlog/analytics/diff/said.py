"""Said: one thing that was said in a session, known by a digest of what it means.

The invariant: equal digests mean the same words of the same role, the same tool with the same arguments, the same
result. Ids, times, blanks at the ends, the order of keys in arguments and the spelling of JSON do not count; nor does
reasoning, which is not said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessionlog.hashes import digest_of
from sessionlog.messages.entry import Entry, Piece
from sessionlog.messages.json_value import decode_json, json_text

Json = Any
KEPT = 4_000
"""Characters of one text that are kept unless all is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call as it was asked for.

    Attributes:
        tool: Its name.
        arguments: JSON text, keys sorted.
        call_id: The id that joins it with its result; empty where the log has none.
    """

    tool: str
    arguments: str
    call_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing said.

    Attributes:
        role: system, user, assistant or tool.
        text: What it says, or its beginning.
        left_out: Characters of it that are not kept.
        calls: The tools that it calls.
        tool: Of a tool's result, the tool's name where it is known.
        call_id: Of a tool's result, the id of its call where it is known.
        failed: A tool's result that is an error.
        partial: An answer that broke off.
        digest: What it means.
        number: Its place in the session, from 1.
        turn: Its turn, from 1; 0 before the first prompt.
        seq: The number of the event that tells it.
    """

    role: str
    text: str
    digest: bytes
    left_out: int = 0
    calls: tuple[Called, ...] = ()
    tool: str = ""
    call_id: str = ""
    failed: bool = False
    partial: bool = False
    number: int = 0
    turn: int = 0
    seq: int = field(default=0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; `left_out` characters of the text are missing at its end."""
        return {
            "message": self.number,
            "turn": self.turn,
            "role": self.role,
            "tool": self.tool or None,
            "text": self.text,
            "left_out": self.left_out,
            "calls": [call.to_dict() for call in self.calls],
            "failed": self.failed,
            "partial": self.partial,
        }


def make_said(
    role: str,
    text: str,
    *,
    calls: Sequence[Called] = (),
    tool: str = "",
    call_id: str = "",
    failed: bool = False,
    partial: bool = False,
) -> Said:
    """Return something said, with its digest."""
    same = text.replace("\r\n", "\n").strip()
    meant = _plain_json(same) if role == "tool" else same
    digest = digest_of(role, meant, *(word for call in calls for word in (call.tool, call.arguments)))
    return Said(
        role=role, text=text, digest=digest, calls=tuple(calls), tool=tool, call_id=call_id, failed=failed,
        partial=partial,
    )  # fmt: skip


def cut_to(said: Said, most: int | None) -> Said:
    """Return the same with at most so much of its texts; None keeps all. The digest stays that of the whole."""
    if most is None or (len(said.text) <= most and all(len(call.arguments) <= most for call in said.calls)):
        return said
    calls = tuple(
        call if len(call.arguments) <= most else replace(call, arguments=f"{call.arguments[: max(0, most - 1)]}…")
        for call in said.calls
    )
    return replace(said, text=said.text[:most], calls=calls, left_out=max(0, len(said.text) - most))


def said_in(message: Entry) -> Iterator[Said]:
    """Yield what a message says: its words with its calls, then each tool's result that it brings."""
    words = [part for part in message.pieces if part.kind in ("system", "user", "assistant")]
    calls = [_called(part) for part in message.pieces if part.kind == "tool_call"]
    if words or calls:
        spoken = words[0].kind if words else "assistant"
        text = "\n".join(part.text for part in words if part.text)
        if text.strip() or calls:
            yield make_said(spoken, text, calls=calls)
    for part in message.pieces:
        if part.kind == "tool_return":
            yield make_said("tool", part.text, tool=part.name or "", call_id=part.call_id or "", failed=part.failed)


def make_called(tool: str, arguments: Json, call_id: str = "") -> Called:
    """Return a call; arguments that are a text of JSON are spelled as JSON is."""
    value = decode_json(arguments)
    text = "" if value is None else value if isinstance(value, str) else _sorted_json(value)
    return Called(tool=tool, arguments=text, call_id=call_id)


def _called(part: Piece) -> Called:
    return make_called(part.name or "", part.text if part.arguments is None else part.arguments, part.call_id or "")


def _plain_json(text: str) -> str:
    """A result that is JSON, spelled in one way."""
    value = decode_json(text)
    return text if isinstance(value, str) else _sorted_json(value)


def _sorted_json(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return json_text(value)


def in_order_of_calls(said: Sequence[Said]) -> list[Said]:
    """Results in the order of their calls: tools that run side by side end in any order."""
    ordered: list[Said] = []
    order: dict[str, int] = {}
    group: list[Said] = []
    for one in said:
        if one.role == "tool":
            group.append(one)
            continue
        ordered += sorted(group, key=lambda result: order.get(result.call_id, len(order)))
        group = []
        ordered.append(one)
        if one.calls:
            order = {call.call_id: index for index, call in enumerate(one.calls)}
    return [*ordered, *sorted(group, key=lambda result: order.get(result.call_id, len(order)))]


def numbered(said: Sequence[Said]) -> tuple[Said, ...]:
    """The same with places and turns; prompts without an answer between them are one turn."""
    turn, is_answered, placed = 0, True, []
    for number, one in enumerate(said, 1):
        if one.role == "user" and is_answered:
            turn, is_answered = turn + 1, False
        elif one.role == "assistant":
            is_answered = True
        placed.append(replace(one, number=number, turn=turn))
    return tuple(placed)
