"""Message histories of every kind, read into one small value: the only place that knows how others spell a message.

Three kinds are read, also mixed: pydantic-ai's messages as objects, the same as stored JSON (`kind`, `parts`,
`part_kind`), and the messages of logs and providers (`role`, `content`, `tool_calls`; OpenAI's and Anthropic's content
parts). Objects are known by their attributes; pydantic-ai is never imported. Nothing raises: an odd shape becomes text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.context.snapshots.spelling import decoded, get, item_text, spell, text_of
from sessionlog.context.steps import utc_time
from sessionlog.context.usage import Counts, read_counts

Json = Any
Kind = Literal["system", "user", "assistant", "thinking", "tool_call", "tool_return"]

_PARTS: Mapping[str, Kind] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "tool-return": "tool_return",
    "builtin-tool-return": "tool_return",
    "retry-prompt": "tool_return",
    "retry-feedback": "tool_return",
    "text": "assistant",
    "thinking": "thinking",
    "tool-call": "tool_call",
    "builtin-tool-call": "tool_call",
}
_ROLES: Mapping[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool_return",
    "function": "tool_return",
}
_CALLS = {"tool_use", "server_tool_use", "function_call", "tool_call"}
_RETURNS = {"tool_result", "function_call_output", "web_search_tool_result"}
_THINKING = {"thinking", "redacted_thinking", "reasoning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a message.

    Attributes:
        kind: What it is.
        text: What it says; of a tool call its arguments.
        name: The tool that is called, or that answers.
        call_id: The id that joins a call and its answer.
        arguments: The arguments of a call as JSON value, also where they were given as a text of JSON.
        failed: The answer of a tool is an error, or asks to try again.
    """

    kind: Kind
    text: str
    name: str | None = None
    call_id: str | None = None
    arguments: Json = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message.

    Attributes:
        is_response: The model said it.
        parts: Its pieces in their order.
        timestamp: RFC 3339; None where nobody says.
        usage: What the response used; None where nobody says.
        instructions: What is sent as system prompt beside the parts.
    """

    is_response: bool
    parts: tuple[Part, ...]
    timestamp: str | None = None
    usage: Counts | None = None
    instructions: str | None = None

    @property
    def is_prompt(self) -> bool:
        """Whether a user speaks in it; a message that brings the answers of tools goes on with the turn."""
        kinds = {part.kind for part in self.parts}
        return "user" in kinds and "tool_return" not in kinds

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools it calls, one name a call."""
        return tuple(part.name or "unknown" for part in self.parts if part.kind == "tool_call")


def read_messages(history: Iterable[object]) -> tuple[Message, ...]:
    """Read a whole history."""
    return tuple(map(read_message, history))


def read_message(value: object) -> Message:
    """Read one message of any kind."""
    if isinstance(value, Message):
        return value
    kind = get(value, "kind")
    if kind in ("request", "response"):
        return _read_pydantic(value, is_response=kind == "response")
    if isinstance(value, Mapping):
        return _read_logged(value)
    return Message(is_response=False, parts=(Part(kind="user", text=text_of(value)),))


def _read_pydantic(value: object, *, is_response: bool) -> Message:
    listed = get(value, "parts")
    parts = [item for item in listed if item is not None] if isinstance(listed, list | tuple) else []
    times = [get(value, "timestamp"), *(get(part, "timestamp") for part in reversed(parts))]
    usage = get(value, "usage") if is_response else None
    instructions = get(value, "instructions")
    return Message(
        is_response=is_response,
        parts=tuple(_pydantic_part(part, is_response=is_response) for part in parts),
        timestamp=next((stamp for time in times if (stamp := utc_time(time))), None),
        usage=None if usage is None else read_counts(usage),
        instructions=instructions if isinstance(instructions, str) and instructions else None,
    )


def _pydantic_part(part: object, *, is_response: bool) -> Part:
    word = str(get(part, "part_kind") or "").replace("_", "-")
    kind = _PARTS.get(word, "assistant" if is_response else "system")
    if kind == "tool_call":
        return _call(get(part, "tool_name"), get(part, "tool_call_id"), get(part, "args"))
    failed = word.startswith("retry") or get(part, "outcome") not in (None, "success")
    return Part(
        kind=kind,
        text=text_of(get(part, "content")),
        name=_word(get(part, "tool_name")),
        call_id=_word(get(part, "tool_call_id")),
        failed=kind == "tool_return" and failed,
    )


def _read_logged(value: Mapping[str, Json]) -> Message:
    kind = _ROLES.get(str(value.get("role")))
    usage = value.get("usage")
    parts = tuple(_logged_parts(value, kind))
    is_response = kind == "assistant" or (kind is None and any(p.kind in ("tool_call", "thinking") for p in parts))
    return Message(
        is_response=is_response,
        parts=parts,
        timestamp=utc_time(value.get("timestamp") or value.get("ts")),
        usage=read_counts(usage) if is_response and isinstance(usage, Mapping) else None,
    )


def _logged_parts(value: Mapping[str, Json], kind: Kind | None) -> Iterator[Part]:
    content = value.get("content", value.get("parts"))
    if kind is None:  # an item of the Responses API, which has a type and no role
        yield from _content_part(value, "user")
        return
    if kind == "tool_return":
        failed = bool(value.get("is_error"))
        call_id = _word(value.get("tool_call_id") or value.get("call_id"))
        yield Part(kind=kind, text=text_of(content), name=_word(value.get("name")), call_id=call_id, failed=failed)
        return
    if kind == "assistant":
        said = value.get("reasoning_content") or value.get("reasoning")
        if isinstance(said, str):
            yield Part(kind="thinking", text=said)
    if isinstance(content, list | tuple) and not all(isinstance(item, str) for item in content):
        for item in content:
            yield from _content_part(item, kind)
    elif (text := text_of(content)) or kind == "user":
        yield Part(kind=kind, text=text)
    for item in value.get("tool_calls") or () if isinstance(value.get("tool_calls"), list | tuple) else ():
        if isinstance(item, Mapping):
            yield _logged_call(item)


def _content_part(item: Json, kind: Kind) -> Iterator[Part]:
    if not isinstance(item, Mapping):
        yield Part(kind=kind, text=text_of(item))
        return
    word = str(item.get("type"))
    if word in _CALLS:
        yield _logged_call(item)
    elif word in _RETURNS:
        call_id = _word(item.get("tool_use_id") or item.get("call_id"))
        text = text_of(item.get("content", item.get("output")))
        yield Part(kind="tool_return", text=text, call_id=call_id, failed=bool(item.get("is_error")))
    elif word in _THINKING:
        yield Part(kind="thinking", text=item_text(item))
    elif text := item_text(item):
        yield Part(kind=kind, text=text)


def _logged_call(item: Mapping[str, Json]) -> Part:
    function = item.get("function")
    inner = function if isinstance(function, Mapping) else item
    given = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    call_id = item.get("call_id") or item.get("id") or item.get("tool_call_id")
    return _call(inner.get("name") or item.get("tool_name"), call_id, given)


def _call(name: Json, call_id: Json, arguments: Json) -> Part:
    text = arguments if isinstance(arguments, str) else "" if arguments is None else spell(arguments)
    return Part(kind="tool_call", text=text, name=_word(name), call_id=_word(call_id), arguments=decoded(arguments))


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) and value else str(value) if isinstance(value, int) else None
