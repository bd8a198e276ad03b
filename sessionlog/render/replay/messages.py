"""Reading the messages of a request, whatever provider's shape they have, and telling them apart by digest.

A message is known by digests of what it says, never by its text: a log of gigabytes is replayed in megabytes. A digest
has 128 bits, so that nobody can hide a message behind another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from sessionlog.hashes import digest_of
from sessionlog.messages.json_value import decode_json
from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import Digits, compact_json

Json = Any
_TEXT_KEYS = ("text", "thinking", "content", "input_text", "output_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A tool's result inside a message."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a request.

    Attributes:
        role: As logged.
        text: What it says, its parts joined.
        calls: Tool calls that it makes.
        replies: Tool results that it carries.
        place: Its index in the request.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    replies: tuple[Reply, ...] = ()
    place: int = 0

    @property
    def identity(self) -> bytes:
        """Digest of what it means: equal in two requests though cache marks or other trimmings differ."""
        calls = (compact_json([call.id, call.name, call.arguments]) for call in self.calls)
        replies = (part for reply in self.replies for part in (reply.id, reply.text))
        return digest_of(self.role, self.text, *calls, *replies)


def spelling(value: Json) -> bytes:
    """Digest of a message's JSON: what is spelled alike means the same, and is compared at the speed of C."""
    try:
        return blake2b(orjson.dumps(value), digest_size=16).digest()
    except (TypeError, ValueError, RecursionError):
        return digest_of(compact_json(value))


def read_message(value: Json, place: int = 0) -> Message:
    """Read one element of `messages`; never raises, odd shapes become text."""
    if not isinstance(value, dict):
        return Message(role="unknown", text=value if isinstance(value, str) else compact_json(value), place=place)
    role = _word(value.get("role")) or "unknown"
    content = value.get("content")
    calls = [*read_calls(value.get("tool_calls")), *_part_calls(content)]
    if role == "tool":
        reply = Reply(id=_word(value.get("tool_call_id")), text=text_of(content))
        return Message(role=role, replies=(reply,), place=place)
    replies = tuple(_part_replies(content))
    return Message(role=role, text=text_of(content), calls=tuple(calls), replies=replies, place=place)


def error_text(value: Json) -> str:
    """An error as logged: a text, or whatever else a writer put there; "" for what says that there is none."""
    return text_of(value) if value else ""


def read_calls(value: Json) -> list[Call]:
    """Read `tool_calls`; a count, as in the oldest logs, gives none."""
    if not isinstance(value, list | tuple):
        return []
    return [_read_call(item) for item in value if isinstance(item, dict)]


def text_of(content: Json) -> str:
    """Return what a content says: a string, or parts of which the text is joined and the rest is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and all(map(_is_part, content)):
        return "\n".join(text for part in content if (text := _part_text(part)))
    return compact_json(content)


def said_keys(role: str, text: str, calls: Sequence[Call] = ()) -> tuple[bytes, ...]:
    """Digests of something said, the surest first; blanks around the text do not count, writers trim them."""
    keys = []
    if calls and all(call.id for call in calls):
        keys.append(digest_of("calls", *(call.id for call in calls)))
    asked = [compact_json([call.name, call.arguments]) for call in calls]
    return (*keys, digest_of("said", role, text.strip(), *asked))


def reply_keys(call_id: str, text: str) -> tuple[bytes, ...]:
    """Digests of a tool's result: its call's id, which survives a cut result, and its text."""
    by_id = (digest_of("reply", call_id),) if call_id else ()
    return (*by_id, digest_of("result", text.strip()))


def _read_call(item: Mapping[str, Json]) -> Call:
    function = item.get("function")
    inner = function if isinstance(function, dict) else item
    key = next((key for key in ("arguments", "input", "args") if key in inner), None)
    return Call(
        id=_word(item.get("id")) or _word(item.get("tool_call_id")),
        name=_word(inner.get("name")) or _word(item.get("tool_name")),
        arguments=decode_json(inner[key], parse_float=Digits) if key else None,
        given=key is not None,
    )


def _part_calls(content: Json) -> list[Call]:
    return [_read_call(part) for part in _parts(content, "tool_use")]


def _part_replies(content: Json) -> list[Reply]:
    return [
        Reply(id=_word(part.get("tool_use_id")), text=text_of(part.get("content")))
        for part in _parts(content, "tool_result")
    ]


def _parts(content: Json, kind: str) -> list[Mapping[str, Json]]:
    if not isinstance(content, list | tuple):
        return []
    return [part for part in content if isinstance(part, dict) and part.get("type") == kind]


def _is_part(value: Json) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("type"), str))


def _part_text(part: Json) -> str:
    if isinstance(part, str):
        return part
    kind = part["type"]
    if kind in {"tool_use", "tool_result"}:
        return ""
    for key in _TEXT_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
    return f"[{kind}]"


def _word(value: Json) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
