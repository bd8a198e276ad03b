"""How messages stand in a log, and back: answers and tool results in events of their own, and messages as anybody's.

An answer is spelled in the fields that every reader knows (`content`, `tool_calls`, `partial`); where these do not give
the very same message again, it stands beside them as `message`. Logs written without a session hold messages in their
provider's spelling: what belongs to tools is taken out of the content (`tool_use`, `tool_result`), so that one of them
may be several messages here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionlog.conversation.history.fitted import size_of
from sessionlog.errors import InvalidHistory
from sessionlog.messages.json_value import json_text, json_value
from sessionlog.messages.message import Content, Message, ToolRequest
from sessionlog.messages.message_json import (
    content_from_json,
    message_from_dict,
    message_to_dict,
    request_from_dict,
    request_to_dict,
)

Json = Any
_OTHER_ROLES = {"developer": "system", "function": "tool"}


def spell_answer(message: Message) -> dict[str, Json]:
    """Return the fields of `llm.response` that say what an answer says."""
    return {
        "content": message.text,
        "tool_calls": [request_to_dict(call) for call in message.tool_calls] or None,
        "partial": message.partial,
    }


def answer_of(data: Mapping[str, Json], streamed: str = "", place: str = "llm.response") -> Message | None:
    """Return the answer that an `llm.response` tells; None where it says nothing.

    Args:
        data: The payload.
        streamed: The pieces before it, which stand for an answer without a text.
        place: Where it was found, for the error's words.

    Raises:
        InvalidHistory: What it says is no message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    calls = read_calls(data.get("tool_calls"), place)
    content, word = data.get("content"), data.get("partial")
    partial = word if isinstance(word, str) else "failed" if data.get("error") else None
    if content is None and not calls and not streamed:
        return None
    said = content_of(streamed if content is None else content, f"{place}: content")
    return Message("assistant", said, tool_calls=calls, partial=partial)


def spell_result(request: ToolRequest, message: Message) -> dict[str, Json]:
    """Return the fields of `tool.call` that say what was called and what it said."""
    content = message.content
    output = content if isinstance(content, str) else message_to_dict(message)["content"]
    return {"tool": request.name, "id": request.id, "input": request.arguments, "output": output}


def result_of(data: Mapping[str, Json], request: ToolRequest, place: str = "tool.call") -> Message:
    """Return the result that a `tool.call` tells of a call.

    Raises:
        InvalidHistory: What it says is no message.
    """
    if isinstance(data.get("message"), Mapping):
        return message_from_dict(data["message"], f"{place}: message")
    output = data.get("output")
    said = data.get("error") if output is None else output
    return Message("tool", loose_content(said), tool_call_id=request.id, name=request.name)


def read_message(value: Json, place: str, *, is_transcript: bool = False) -> tuple[Message, ...]:
    """Return what one logged message is here: mostly one, none or several where results of tools are inside.

    Args:
        value: The message.
        place: Where it was found, for the error's words.
        is_transcript: It is made of another agent's log: its content may be anything, and it may be marked `inherited`.

    Raises:
        InvalidHistory: It is no message; the error names the place.
    """
    if not isinstance(value, Mapping):
        raise InvalidHistory(f"{place}: a {type(value).__name__}; a message is an object")
    role = value.get("role")
    role = _OTHER_ROLES.get(role, role) if isinstance(role, str) else role
    spelled = dict(value) | ({"role": role} if role is not None else {})
    if is_transcript:
        spelled.pop("inherited", None)
        spelled.setdefault("content", None)
    if spelled.get("tool_calls") is not None:
        calls = read_calls(spelled.pop("tool_calls"), place)
        spelled["tool_calls"] = [request_to_dict(call) for call in calls]
    content = spelled.get("content")
    if (is_transcript and not _can_be_read(content)) or (role == "tool" and not _is_content(content)):
        content = spelled["content"] = json_text(content)
    if not isinstance(content, list | tuple) or not any(_kind(part) in ("tool_use", "tool_result") for part in content):
        return (message_from_dict(spelled, place),)
    return tuple(_apart(spelled, content, place))


def read_calls(value: Json, place: str) -> tuple[ToolRequest, ...]:
    """Return the calls of a `tool_calls` list; what is no list, as the count of the oldest logs, gives none.

    A call without an id is given one, by its place in the list.

    Raises:
        InvalidHistory: One of them is no call.
    """
    if not isinstance(value, list | tuple):
        return ()
    calls = []
    for n, item in enumerate(value):
        if isinstance(item, Mapping) and not item.get("id"):
            item = {**item, "id": f"call-{n}"}  # noqa: PLW2901 - the same call, named
        calls.append(request_from_dict(item, f"{place}: tool_calls[{n}]"))
    return tuple(calls)


def content_of(value: Json, place: str) -> Content:
    """Return a content; None is an empty text.

    Raises:
        InvalidHistory: It is neither a text nor pieces.
    """
    return content_from_json(value, place)


def loose_content(value: Json) -> Content:
    """Return what a tool says: a text, pieces, or any other value as JSON."""
    return content_from_json(value) if _is_content(value) else json_text(value)


def text_of(value: Json) -> str:
    """Return the text of a system prompt, which may be in pieces."""
    if isinstance(value, list | tuple):
        texts = (part.get("text") for part in value if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else ""


def spell_tool(tool: Any) -> Json:
    """Return what a request says of a tool: a JSON value as it is, of an object its name, description, parameters."""
    if isinstance(tool, Mapping):
        return dict(tool)
    return {key: getattr(tool, key, None) for key in ("name", "description", "parameters")}


def pieces_of(messages: Sequence[Message], size: int) -> Iterator[Sequence[Message]]:
    """Cut messages into pieces of about so many characters, each of at least one message."""
    start = held = 0
    for n, message in enumerate(messages):
        held += size_of(message)
        if held > size and n > start:
            yield messages[start:n]
            start, held = n, size_of(message)
    if start < len(messages):
        yield messages[start:]


def _apart(message: Mapping[str, Json], content: Sequence[Json], place: str) -> list[Message]:
    """Results first, each a message of its own; then what else is said, with the calls."""
    made: list[Message] = []
    calls: list[Json] = list(message.get("tool_calls") or ())
    rest: list[Json] = []
    for n, part in enumerate(content):
        match _kind(part):
            case "tool_result":
                call_id = part.get("tool_use_id")
                if not isinstance(call_id, str):
                    raise InvalidHistory(f"{place}.content[{n}]: a tool result without its tool_use_id")
                made.append(Message("tool", loose_content(part.get("content")), tool_call_id=call_id))
            case "tool_use":
                calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("input") or {}})
            case _:
                rest.append(part)
    if rest or calls:
        spelled = {key: item for key, item in message.items() if key != "tool_calls"} | {"content": rest or None}
        made.append(message_from_dict(spelled | ({"tool_calls": calls} if calls else {}), place))
    return made


def _kind(part: Json) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _is_content(value: Json) -> bool:
    if value is None or isinstance(value, str):
        return True
    return isinstance(value, list | tuple) and all(isinstance(part, str) or _kind(part) for part in value)


def _can_be_read(content: Json) -> bool:
    try:
        content_from_json(content)
    except InvalidHistory:
        return False
    return True


def json_options(options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options that are JSON; other objects belong to the caller's program and may hold secrets."""
    return {name: value for name, value in options.items() if _is_json(value)}


def _is_json(value: object) -> bool:
    try:
        json_value(value, odd="refuse")
    except InvalidHistory:
        return False
    return True
