"""Read messages in the format of any provider into `Message` values.

The formats may be mixed in one history:

- OpenAI's chat completions, and our own saved messages: `role`, `content`, `tool_calls`, `tool_call_id`.
- OpenAI's Responses items: `type` (`message`, `function_call`, `function_call_output`, `reasoning`).
- Anthropic: content blocks `text`, `thinking`, `image`, `tool_use`, `tool_result`.
- Google: `role`, `parts` with `text`, `thought`, `functionCall`, `functionResponse`, `inlineData`.
- pydantic-ai: objects or stored JSON with `kind`, `parts`, `part_kind`, recognised by their attributes; pydantic-ai is
  not imported.
- A plain text is a user's message.

Nothing raises: a value in an unknown format becomes text, and `Entry.problems` describes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sessionlog.errors import InvalidHistory
from sessionlog.events.times import utc_time
from sessionlog.messages.content_text import MIME, get, is_content, split_media, text_of
from sessionlog.messages.entry import Entry
from sessionlog.messages.json_value import json_text, json_value
from sessionlog.messages.message import FIELDS, INLINE, Content, ContentPart, Message, Role, ToolRequest, content_of
from sessionlog.messages.message_json import message_from_dict

Json = Any

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_CALLS = frozenset({"tool_use", "server_tool_use", "function_call", "tool_call"})
_RESULTS = frozenset({"tool_result", "function_call_output", "web_search_tool_result"})
_FOREIGN = _CALLS | _RESULTS | {"input_text", "output_text"}
_PYDANTIC: Mapping[str, str] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "tool-return": "tool",
    "builtin-tool-return": "tool",
    "retry-prompt": "tool",
    "retry-feedback": "tool",
    "text": "assistant",
    "thinking": "thinking",
    "tool-call": "call",
    "builtin-tool-call": "call",
}
_NOT_RUN = (  # results that pydantic-ai gives to calls that end a run, or come after its end
    "Final result processed.",
    "Output tool not used - a final result was already processed.",
    "Tool not executed - a final result was already processed.",
)


def read_entries(history: Iterable[object]) -> tuple[Entry, ...]:
    """Read a whole history; the results of calls show for which of them no tool ran (`Entry.not_run`)."""
    entries: list[Entry] = []
    not_run: set[str] = set()  # ids of calls in the nearest earlier response: others may reuse them
    for entry in reversed([read_entry(value) for value in history]):
        if entry.is_response:
            entries.append(replace(entry, not_run=frozenset(not_run)) if not_run else entry)
            not_run = set()
        else:
            not_run.update(m.tool_call_id or "" for m in entry.messages if m.role == "tool" and m.content in _NOT_RUN)
            entries.append(entry)
    return tuple(reversed(entries))


def read_entry(value: object) -> Entry:
    """Read one element of a history."""
    if isinstance(value, Entry):
        return value
    try:
        return _entry(value)
    except (InvalidHistory, RecursionError) as error:  # nested deeper than a message may be
        return Entry(messages=(Message("user", json_text(value)),), problems=(str(error),))


def _entry(value: object) -> Entry:
    if isinstance(value, Message):
        return Entry(messages=(value,), is_response=value.role == "assistant")
    kind = get(value, "kind")
    if kind in ("request", "response"):
        return _pydantic_entry(value, is_response=kind == "response")
    if isinstance(value, Mapping):
        return _mapping_entry(value)
    problems = () if isinstance(value, str) else (f"a message that is {type(value).__name__}",)
    return Entry(messages=(Message("user", text_of(value)),), problems=problems)


def read_result(output: Json, *, call_id: str | None, name: str | None = None, failed: bool = False) -> Entry:
    """Return the entry for a tool's output, which may be any JSON value."""
    builder = _Builder()
    builder.result(call_id, output, name=name, failed=failed)
    return Entry(messages=builder.messages())


class _Builder:
    """Collects the messages of one element: results of tools first, then one message for each run of a role."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._results: list[Message] = []
        self._groups: list[tuple[Role, list[ContentPart], list[ToolRequest]]] = []

    def part(self, role: Role, part: ContentPart) -> None:
        """Add a part of a role's content."""
        self._group(role)[1].append(part)

    def call(self, call: ToolRequest) -> None:
        """Add a tool call."""
        self._group("assistant")[2].append(call)

    def result(self, call_id: Json, content: Json, *, name: Json = None, failed: bool = False) -> None:
        """Add the result of a tool."""
        extra = {"is_error": True} if failed else {}
        result = Message(
            "tool", _result_content(content), tool_call_id=_identifier(call_id), name=_identifier(name), extra=extra
        )
        self._results.append(result)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages."""
        made = (Message(role, _content(parts), tool_calls=tuple(calls)) for role, parts, calls in self._groups)
        return (*self._results, *made)

    def _group(self, role: Role) -> tuple[Role, list[ContentPart], list[ToolRequest]]:
        if not self._groups or self._groups[-1][0] != role:
            self._groups.append((role, [], []))
        return self._groups[-1]


def _mapping_entry(value: Mapping[str, Json]) -> Entry:
    given = value.get("role")
    role = ROLES.get(given) if isinstance(given, str) else None
    builder = _Builder()
    saved = _read_saved(value, role)
    if saved is not None:
        messages: tuple[Message, ...] = (saved,)
    elif role is None:
        if given is not None:
            builder.problems.append(f"unknown role {given!r:.40}")
        elif not isinstance(value.get("type"), str):
            builder.problems.append("neither a role nor a type")
        _add_item(builder, value, "user")
        messages = builder.messages()
    elif role == "tool":
        messages = (_result(value),)
    else:
        if not value.keys() & {"content", "parts", "tool_calls"}:
            builder.problems.append("neither content nor tool calls")
        _add_content(builder, value.get("content", value.get("parts")), role)
        messages = _with_fields(value, role, builder)
    is_response = role == "assistant" or (role is None and any(m.role == "assistant" for m in messages))
    return Entry(
        messages=messages,
        is_response=is_response,
        timestamp=utc_time(value.get("timestamp") or value.get("ts")),
        usage=value.get("usage") if is_response else None,
        problems=tuple(builder.problems),
    )


def _read_saved(value: Mapping[str, Json], role: Role | None) -> Message | None:
    """Read our own saved format, which includes OpenAI's chat completions; None for any other format."""
    content = value.get("content")
    if role is None or (isinstance(content, list | tuple) and any(map(_is_foreign, content))):
        return None
    try:
        return message_from_dict({**value, "role": role})
    except InvalidHistory:
        return None


def _is_foreign(part: Json) -> bool:
    """Whether a part of a content has a provider's format that our saved messages represent in another way."""
    if not isinstance(part, Mapping):
        return False
    kind, source = part.get("type"), part.get("source")
    if kind in ("image", "document") and isinstance(source, Mapping):
        return source.get("type") in ("base64", "url", "text")
    return not isinstance(kind, str) or kind in _FOREIGN


def _result(value: Mapping[str, Json]) -> Message:
    return Message(
        "tool",
        _result_content(value.get("content", value.get("output"))),
        tool_call_id=_identifier(value.get("tool_call_id") or value.get("call_id")),
        name=_identifier(value.get("name")),
        partial=_text(value.get("partial")),
        extra=_extra(value),
    )


def _with_fields(value: Mapping[str, Json], role: Role, builder: _Builder) -> tuple[Message, ...]:
    """Return the messages; the last one gets the fields beside `content`."""
    given = value.get("tool_calls")
    listed = given if isinstance(given, list | tuple) else ()  # the oldest logs have only their number
    calls = tuple(_call(item) for item in listed if isinstance(item, Mapping))
    if len(calls) < len(listed):
        builder.problems.append("a tool call that is not an object")
    *before, last = builder.messages() or (Message(role),)
    if last.role == "tool":
        if not calls:
            return (*before, last)
        before, last = [*before, last], Message("assistant")
    calls = (*last.tool_calls, *calls)
    made = Message(
        "assistant" if calls else role,
        last.content,
        tool_calls=calls,
        name=_text(value.get("name")),
        tool_call_id=_text(value.get("tool_call_id")),
        partial=_text(value.get("partial")),
        extra=_extra(value),
    )
    return (*before, made)


def _add_content(builder: _Builder, content: Json, role: Role) -> None:
    if not content:
        return
    if isinstance(content, str):
        builder.part(role, ContentPart.of_text(content))
    elif is_content(content):
        for item in content:
            _add_item(builder, item, role)
    else:
        builder.problems.append(f"content that is {type(content).__name__}")
        for part in _json_parts(content):
            builder.part(role, part)


def _add_item(builder: _Builder, item: Json, role: Role) -> None:
    """Add an item of a content, or a whole item of the Responses API."""
    kind = _text(item.get("type")) if isinstance(item, Mapping) else None
    if not isinstance(item, Mapping):
        builder.part(role, _part(item))
    elif kind in _CALLS:
        builder.call(_call(item))
    elif kind in _RESULTS:
        content = item.get("content", item.get("output"))
        call_id = item.get("tool_use_id") or item.get("call_id")
        if not isinstance(call_id, str):
            builder.problems.append("a tool result without the id of its call")
        builder.result(call_id, content, name=item.get("name"), failed=bool(item.get("is_error")))
    elif isinstance(item.get("functionCall"), Mapping):
        builder.call(_call(item["functionCall"]))
    elif isinstance(item.get("functionResponse"), Mapping):
        _add_google_result(builder, item["functionResponse"])
    else:
        builder.part("assistant" if kind == "reasoning" else role, _part(item))


def _add_google_result(builder: _Builder, given: Mapping[str, Json]) -> None:
    response = given.get("response")
    error = response.get("error") if isinstance(response, Mapping) else None
    output = response.get("output", response) if isinstance(response, Mapping) else response
    builder.result(
        given.get("id"), output if error is None else error, name=given.get("name"), failed=error is not None
    )


def _pydantic_entry(value: object, *, is_response: bool) -> Entry:
    listed = get(value, "parts")
    parts = [item for item in listed if item is not None] if isinstance(listed, list | tuple) else []
    builder = _Builder()
    for part in parts:
        _add_pydantic(builder, part, is_response=is_response)
    times = [get(value, "timestamp"), *(get(part, "timestamp") for part in reversed(parts))]
    instructions = get(value, "instructions")
    return Entry(
        messages=builder.messages(),
        is_response=is_response,
        is_marked=True,
        timestamp=next((stamp for time in times if (stamp := utc_time(time))), None),
        usage=get(value, "usage") if is_response else None,
        instructions=instructions if isinstance(instructions, str) and instructions else None,
        run=_identifier(get(value, "run_id")),
    )


def _add_pydantic(builder: _Builder, part: object, *, is_response: bool) -> None:
    word = str(get(part, "part_kind") or "").replace("_", "-")
    kind = _PYDANTIC.get(word, "assistant" if is_response else "system")
    content = get(part, "content")
    if kind == "call":
        call_id, name = _identifier(get(part, "tool_call_id")), _identifier(get(part, "tool_name"))
        builder.call(ToolRequest.of_model(call_id or "", name or "", get(part, "args")))
    elif kind == "tool":
        failed = word.startswith("retry") or get(part, "outcome") not in (None, "success")
        builder.result(get(part, "tool_call_id"), content, name=get(part, "tool_name"), failed=failed)
    elif kind == "thinking":
        builder.part("assistant", ContentPart(type="thinking", text=text_of(content)))
    else:
        for item in content if isinstance(content, list | tuple) else [content]:
            if get(item, "kind") != "cache-point":
                builder.part(ROLES[kind], _part(item))


def _part(value: Json) -> ContentPart:
    """Read one part of a content; a value that no provider sends becomes text."""
    if isinstance(value, ContentPart):
        return value
    if value is None or isinstance(value, str):
        return ContentPart.of_text(value or "")
    media = _media(value)
    if media is not None:
        return media
    kind = get(value, "type") or get(value, "kind")
    if not isinstance(value, Mapping) or not isinstance(kind, str):
        text = get(value, "text")
        if not isinstance(text, str):
            return ContentPart.of_text(text_of([value]) if kind else text_of(value))
        return ContentPart(type="thinking" if get(value, "thought") is True else "text", text=text)
    text = value.get("text")
    extra = _rest(value, {"type", "text", "image_url", "media_type", "data"})
    if kind in ("input_text", "output_text"):
        kind = "text"
    if text is not None and not isinstance(text, str):
        text = json_text(text)
    elif isinstance(value.get("data"), str) and "media_type" not in value:
        extra["data"] = value["data"]
    return ContentPart(type=kind, text=text, extra=extra)


def _media(value: Json) -> ContentPart | None:
    """Read a picture or another file in any provider's format; None for anything else."""
    kind = get(value, "type") or get(value, "kind")
    word = kind if isinstance(kind, str) and kind else "image"
    for key in (*INLINE, "source"):
        inner = get(value, key)
        if isinstance(inner, Mapping) and (key != "source" or word in ("image", "document")):
            if inner.get("type") == "text" and isinstance(inner.get("data"), str):
                return ContentPart.of_text(inner["data"])
            return _file(word, inner) or ContentPart(type=word, extra={key: json_value(inner)})
    url = get(value, "image_url")
    if isinstance(url, Mapping) and isinstance(url.get("url"), str):
        return ContentPart(type=word, image_url=url["url"], extra=_rest(url, {"url"}))
    if isinstance(url, str):
        return ContentPart(type=word, image_url=url, extra=_rest(value, {"type", "image_url"}))
    if word.endswith("-url") and isinstance(get(value, "url"), str):
        return ContentPart(type=word, image_url=get(value, "url"))
    return _file(word, value)


def _file(kind: str, value: Json) -> ContentPart | None:
    """Read a file from bytes and their media type, or from an address."""
    media_type = next((found for key in MIME if (found := get(value, key))), None)
    data = get(value, "data")
    if isinstance(data, str) and isinstance(media_type, str):
        try:
            data = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return ContentPart(type=kind, extra={"source": {"media_type": media_type, "data": data}})
    if isinstance(data, bytes | bytearray) and isinstance(media_type, str):
        extra = _rest(value, {"type", "kind", "data", *MIME})
        return ContentPart(type=kind, data=bytes(data), media_type=media_type, extra=extra)
    url = get(value, "url") or get(value, "fileUri")
    return ContentPart(type=kind, image_url=url) if isinstance(url, str) and kind in ("image", "document") else None


def _result_content(content: Json) -> Content:
    if content is None or isinstance(content, str):
        return content or ""
    if is_content(content):
        return _content([_part(item) for item in content])
    return _content(_json_parts(content))


def _json_parts(content: Json) -> list[ContentPart]:
    """Return a JSON value as text with media by name, then a part without text for each of the media."""
    media = _media(content)
    if media is not None:
        return [media]
    bare, found = split_media(content)
    named = [ContentPart(type=word, text="", extra={"url": "in the text"}) for word in found]
    return [ContentPart.of_text(text_of(bare)), *named]


def _content(parts: list[ContentPart]) -> Content:
    return content_of(parts) if len(parts) <= 1 else tuple(parts)


def _call(item: Mapping[str, Json]) -> ToolRequest:
    function = item.get("function")
    inner = function if isinstance(function, Mapping) else item
    given = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    call_id = item.get("call_id") or item.get("id") or item.get("tool_call_id")
    name = inner.get("name") or item.get("tool_name")
    return ToolRequest.of_model(_identifier(call_id) or "", _identifier(name) or "", given)


def _extra(value: Mapping[str, Json]) -> dict[str, Json]:
    return _rest(value, FIELDS if "content" in value else {*FIELDS, "parts", "output"})


def _rest(value: Json, known: Container[str]) -> dict[str, Json]:
    return {str(k): v for k, v in value.items() if k not in known} if isinstance(value, Mapping) else {}


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _identifier(value: Json) -> str | None:
    return value if isinstance(value, str) and value else str(value) if isinstance(value, int) else None
