"""Saved messages: convert messages to JSON and back without loss, pictures and unknown fields included.

Errors name the path (`messages[3].content[0]: …`). The format of OpenAI's chat completions is accepted, too. A message
and its JSON share no values: changing one does not change the other.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Container, Mapping
from typing import Any

from sessionlog.errors import InvalidHistory, MissingField
from sessionlog.messages.json_value import json_value
from sessionlog.messages.message import FIELDS, Content, ContentPart, Message, ToolRequest

Json = Any

_CALL = frozenset({"id", "name", "arguments"})
_KINDS = {
    dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number", bool: "a boolean",
    type(None): "null",
}  # fmt: skip


def message_to_dict(message: Message, *, nulls: bool = False) -> dict[str, Json]:
    """Return the JSON object of a message; bytes are base64.

    Args:
        message: The message.
        nulls: Write `name`, `tool_call_id`, `tool_calls`, and a part's `text` and `image_url` even if they are None;
            else they are left out.
    """
    value: dict[str, Json] = {"role": message.role, "content": _content_to_json(message.content, nulls=nulls)}
    for key in ("name", "tool_call_id"):
        found = getattr(message, key)
        if nulls or found is not None:
            value[key] = found
    if nulls or message.tool_calls:
        value["tool_calls"] = [request_to_dict(call) for call in message.tool_calls] or None
    if message.partial is not None:
        value["partial"] = message.partial
    value.update(json_value(message.extra))
    return value


def message_from_dict(value: Json, place: str = "message") -> Message:
    """Return the message of a JSON value.

    Args:
        value: As `message_to_dict` writes it, or in the format of OpenAI's chat completions.
        place: The path of the value, for the error message.

    Raises:
        MissingField: There is no role, or neither content nor tool calls.
        InvalidHistory: The value is not a message for another reason.
    """
    _check_mapping(value, place, "a message")
    if "role" not in value:
        raise MissingField(f"{place}: no 'role'; a message must have one")
    calls = _list(value.get("tool_calls"), f"{place}.tool_calls", "tool calls")
    if "content" not in value and not calls:
        raise MissingField(f"{place}: no 'content'; a message without tool calls must have it")
    content = content_from_json(value.get("content"), f"{place}.content")
    requests = [request_from_dict(call, f"{place}.tool_calls[{n}]") for n, call in enumerate(calls)]
    texts = {key: value.get(key) for key in ("tool_call_id", "name", "partial")}
    try:
        return Message(value["role"], content, tool_calls=tuple(requests), extra=_without(value, FIELDS), **texts)
    except InvalidHistory as error:
        raise _at(place, error) from None


def messages_from(value: Json) -> tuple[Message, ...]:
    """Return the messages of a list; raises what `message_from_dict` raises."""
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"messages: {_kind(value)}; it must be a list of messages")
    return tuple(message_from_dict(item, f"messages[{n}]") for n, item in enumerate(value))


def request_to_dict(request: ToolRequest) -> dict[str, Json]:
    """Return the JSON object of a tool request."""
    value = {"id": request.id, "name": request.name, "arguments": json_value(request.arguments)}
    value.update(json_value(request.extra))
    return value


def request_from_dict(value: Json, place: str = "tool call") -> ToolRequest:
    """Return the tool request of a JSON value; arguments that are JSON text of an object are decoded.

    Raises:
        MissingField: There is no id or no name.
        InvalidHistory: The value is not a tool request for another reason.
    """
    _check_mapping(value, place, "a tool call")
    found: Mapping[str, Json] = value
    make: Callable[..., ToolRequest] = ToolRequest
    if isinstance(value.get("function"), Mapping):  # OpenAI's format, with the model's JSON text
        found, make = _without(value, {"function", "type"}) | dict(value["function"]), ToolRequest.of_model
    for key in ("id", "name"):
        if key not in found:
            raise MissingField(f"{place}: no {key!r}; a tool call must have one")
    try:
        return make(found["id"], found["name"], found.get("arguments", {}), extra=_without(found, _CALL))
    except InvalidHistory as error:
        raise _at(place, error) from None


def content_from_json(value: Json, place: str = "content") -> Content:
    """Return the content of a message from its JSON: a text, or a list of texts and parts.

    Raises:
        InvalidHistory: It is neither.
    """
    if value is None or isinstance(value, str):
        return value or ""
    pieces = _list(value, place, "pieces, or a text")
    return tuple(_piece(item, f"{place}[{n}]") for n, item in enumerate(pieces))


def _at(place: str, error: InvalidHistory) -> InvalidHistory:
    return type(error)(f"{place}: {error}")


def _content_to_json(content: Content, *, nulls: bool) -> Json:
    if isinstance(content, str):
        return content
    return [_piece_to_dict(piece, nulls=nulls) for piece in content]


def _piece_to_dict(piece: ContentPart, *, nulls: bool) -> dict[str, Json]:
    value: dict[str, Json] = {"type": piece.type}
    for key in ("text", "image_url"):
        found = getattr(piece, key)
        if nulls or found is not None:
            value[key] = found
    if piece.data is not None:
        value["data"] = base64.b64encode(piece.data).decode("ascii")
    if piece.media_type is not None:
        value["media_type"] = piece.media_type
    value.update(json_value(piece.extra))
    return value


def _piece(value: Json, place: str) -> ContentPart:
    if isinstance(value, ContentPart):
        return value
    if isinstance(value, str):
        return ContentPart.of_text(value)
    _check_mapping(value, place, "a piece of content")
    if "type" not in value:
        raise MissingField(f"{place}: no 'type'; a piece of content must have one, as 'text'")
    found = _flatten_image_url(dict(value), place)
    known = {"type", "text", "image_url", "media_type"}
    data = None
    if found.get("media_type") is not None:
        known.add("data")  # without a media type, `data` is a field of the provider
        data = _bytes(found.get("data"), place)
    texts = {key: found.get(key) for key in ("text", "image_url", "media_type")}
    try:
        return ContentPart(type=found["type"], data=data, extra=_without(found, known), **texts)
    except InvalidHistory as error:
        raise _at(place, error) from None


def _flatten_image_url(value: dict[str, Json], place: str) -> dict[str, Json]:
    """Move a picture's address to the top level; OpenAI has it in an object, with other fields."""
    url = value.get("image_url")
    if not isinstance(url, Mapping):
        return value
    if not isinstance(url.get("url"), str):
        raise InvalidHistory(f"{place}: image_url without its 'url', a text")
    return {key: item for key, item in url.items() if key != "url"} | value | {"image_url": url["url"]}


def _bytes(value: Json, place: str) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InvalidHistory(f"{place}: data is not base64") from None


def _without(value: Mapping[str, Json], known: Container[str]) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in known}


def _list(value: Json, place: str, what: str) -> list[Json] | tuple[Json, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"{place}: {_kind(value)}; it must be a list of {what}")
    return value


def _check_mapping(value: Json, place: str, what: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidHistory(f"{place}: {_kind(value)}; {what} must be an object")


def _kind(value: Json) -> str:
    return _KINDS.get(type(value)) or f"a {type(value).__name__}"
