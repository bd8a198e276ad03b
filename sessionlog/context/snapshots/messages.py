"""Message histories of every kind, read into one small value: the only place that knows how others spell a message.

Three kinds are read, also mixed: pydantic-ai's messages as objects, the same as stored JSON (`kind`, `parts`,
`part_kind`), and the messages of logs and providers (`role`, `content`, `tool_calls`; OpenAI's and Anthropic's content
parts). Objects are known by their attributes; pydantic-ai is never imported. Nothing raises: an odd shape becomes text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sessionlog.context.steps import utc_time
from sessionlog.context.usage import Counts, read_counts
from sessionlog.messages.content_text import get, item_text, part_words, text_of, words_of
from sessionlog.messages.json_value import decode_arguments, json_text

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
_NEVER_RAN = {  # what pydantic-ai answers to calls that end a run, or that its end has made needless
    "Final result processed.",
    "Output tool not used - a final result was already processed.",
    "Tool not executed - a final result was already processed.",
}


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
        pictures: How many pictures and the like, which the text only names.
        is_output: The call is a structured answer, or came too late: no tool runs for it.
    """

    kind: Kind
    text: str
    name: str | None = None
    call_id: str | None = None
    arguments: Json = None
    failed: bool = False
    pictures: int = 0
    is_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message.

    Attributes:
        is_response: The model said it.
        parts: Its pieces in their order.
        timestamp: RFC 3339; None where nobody says.
        usage: What the response used; None where nobody says.
        instructions: What is sent as system prompt beside the parts.
        run: The id of the run it is of, None where nobody says.
        is_marked: Its parts say themselves what is a prompt; elsewhere a user's words beside results are a reminder.
    """

    is_response: bool
    parts: tuple[Part, ...]
    timestamp: str | None = None
    usage: Counts | None = None
    instructions: str | None = None
    run: str | None = None
    is_marked: bool = False

    @property
    def is_prompt(self) -> bool:
        """Whether a user speaks in it; a message that brings only the answers of tools goes on with the turn."""
        return any(part.kind == "user" for part in self.parts) and (self.is_marked or not self.has_results)

    @property
    def has_results(self) -> bool:
        """Whether it brings the answers of tools."""
        return any(part.kind == "tool_return" for part in self.parts)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools it calls, one name a call; a structured answer is no call."""
        return tuple(part.name or "unknown" for part in self.parts if part.kind == "tool_call" and not part.is_output)


def read_messages(history: Iterable[object]) -> tuple[Message, ...]:
    """Read a whole history; what answers a call shows whether a tool ran for it."""
    messages: list[Message] = []
    needless: set[str | None] = set()  # ids of calls until the response that holds them: other responses reuse ids
    for message in reversed([read_message(value) for value in history]):
        read = message
        if message.is_response:
            if needless:
                read = replace(message, parts=tuple(_output(part, needless) for part in message.parts))
            needless = set()
        else:
            needless |= {p.call_id for p in message.parts if p.kind == "tool_return" and p.text in _NEVER_RAN}
        messages.append(read)
    return tuple(reversed(messages))


def _output(part: Part, needless: Collection[str | None]) -> Part:
    return replace(part, is_output=True) if part.kind == "tool_call" and part.call_id in needless else part


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
        run=_word(get(value, "run_id")),
        is_marked=True,
    )


def _pydantic_part(part: object, *, is_response: bool) -> Part:
    word = str(get(part, "part_kind") or "").replace("_", "-")
    kind = _PARTS.get(word, "assistant" if is_response else "system")
    if kind == "tool_call":
        return _call(get(part, "tool_name"), get(part, "tool_call_id"), get(part, "args"))
    failed = word.startswith("retry") or get(part, "outcome") not in (None, "success")
    text, pictures = words_of(get(part, "content"))
    return Part(
        kind=kind,
        text=text,
        pictures=pictures,
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
        yield _return(value.get("tool_call_id") or value.get("call_id"), content, value)
        return
    if kind == "assistant":
        said = value.get("reasoning_content") or value.get("reasoning")
        if isinstance(said, str):
            yield Part(kind="thinking", text=said)
    if isinstance(content, list | tuple) and not all(isinstance(item, str) for item in content):
        for item in content:
            yield from _content_part(item, kind)
    else:
        text, pictures = words_of(content)
        if text or kind == "user":
            yield Part(kind=kind, text=text, pictures=pictures)
    for item in value.get("tool_calls") or () if isinstance(value.get("tool_calls"), list | tuple) else ():
        if isinstance(item, Mapping):
            yield _logged_call(item)


def _content_part(item: Json, kind: Kind) -> Iterator[Part]:
    if not isinstance(item, Mapping):
        text, pictures = words_of(item)
        yield Part(kind=kind, text=text, pictures=pictures)
        return
    word = str(item.get("type"))
    if word in _CALLS:
        yield _logged_call(item)
    elif word in _RETURNS:
        yield _return(item.get("tool_use_id") or item.get("call_id"), item.get("content", item.get("output")), item)
    elif word in _THINKING:
        yield Part(kind="thinking", text=item_text(item))
    else:
        text, pictures = part_words(item)
        if text:
            yield Part(kind=kind, text=text, pictures=pictures)


def _return(call_id: Json, content: Json, item: Mapping[str, Json]) -> Part:
    text, pictures = words_of(content)
    name, failed = _word(item.get("name")), bool(item.get("is_error"))
    return Part(
        kind="tool_return", text=text, pictures=pictures, name=name, call_id=_word(call_id), failed=failed
    )  # fmt: skip


def _logged_call(item: Mapping[str, Json]) -> Part:
    function = item.get("function")
    inner = function if isinstance(function, Mapping) else item
    given = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    call_id = item.get("call_id") or item.get("id") or item.get("tool_call_id")
    return _call(inner.get("name") or item.get("tool_name"), call_id, given)


def _call(name: Json, call_id: Json, arguments: Json) -> Part:
    text = arguments if isinstance(arguments, str) else "" if arguments is None else json_text(arguments)
    return Part(
        kind="tool_call", text=text, name=_word(name), call_id=_word(call_id), arguments=decode_arguments(arguments)
    )


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) and value else str(value) if isinstance(value, int) else None
