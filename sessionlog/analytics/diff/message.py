"""DiffMessage: one message of a session as a diff shows it, identified by a digest (see `transcript.digests`)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from sessionlog.messages.entry import arguments_text, content_text
from sessionlog.messages.message import Message
from sessionlog.transcript.digests import canonical_json, digest_text

KEPT = 4_000
"""Characters of one text that are kept, unless all are requested."""

MOST_HELD = 12_000_000
"""Characters of a session's texts after which less of each is kept, so that a long log fits into memory."""

KEPT_LATER = 300
"""Characters of one text that are kept after that."""


class DiffCall(msgspec.Struct, frozen=True):
    """A tool call of a message.

    Attributes:
        tool: Its name.
        arguments: JSON text, keys sorted.
        call_id: The id that its result has too; empty if the log has none.
    """

    tool: str
    arguments: str
    call_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"tool": self.tool, "arguments": self.arguments}


class DiffMessage(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        role: system, user, assistant or tool.
        text: Its text, or the beginning of it.
        digest: The digest of its whole content.
        left_out: Characters of the text that are not kept.
        tool: Of a tool result, the tool's name if known.
        call_id: Of a tool result, the id of its call if known.
        failed: Whether it is a tool result that is an error.
        partial: Whether it is an incomplete response.
        number: Its position in the session, from 1.
        turn: Its turn, from 1; 0 before the first prompt.
        seq: The number of the event that it comes from.
        calls: Its tool calls.
    """

    role: str
    text: str
    digest: bytes
    left_out: int = 0
    tool: str = ""
    call_id: str = ""
    failed: bool = False
    partial: bool = False
    number: int = 0
    turn: int = 0
    seq: int = 0
    calls: tuple[DiffCall, ...] = ()

    @property
    def length(self) -> int:
        """The number of kept characters."""
        return len(self.text) + sum(len(call.arguments) for call in self.calls) if self.calls else len(self.text)

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


def diff_message(message: Message, digest: bytes, *, role: str = "") -> DiffMessage:
    """Convert a message whose digest is known; a `role` replaces the message's own, also in its digest."""
    text = content_text(message)[0]
    calls = [DiffCall(call.name, canonical_json(arguments_text(call)), call.id) for call in message.tool_calls]
    return DiffMessage(
        role or message.role, text, digest_text(role, text, message.tool_calls) if role else digest,
        tool=message.name or "" if message.role == "tool" else "", call_id=message.tool_call_id or "",
        failed=message.failed, partial=bool(message.partial), calls=tuple(calls),
    )  # fmt: skip


def cut_to(message: DiffMessage, most: int | None) -> DiffMessage:
    """Return the message with its texts cut to `most` characters; None keeps all. The digest does not change."""
    if most is None or (len(message.text) <= most and all(len(call.arguments) <= most for call in message.calls)):
        return message
    calls = tuple(
        call
        if len(call.arguments) <= most
        else DiffCall(call.tool, f"{call.arguments[: max(0, most - 1)]}…", call.call_id)
        for call in message.calls
    )
    left_out = max(0, len(message.text) - most)
    return structs.replace(message, text=message.text[:most], calls=calls, left_out=left_out)
