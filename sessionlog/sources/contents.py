"""Contents: the text and size of a logged content, which is a text, content parts, or JSON of either.

A part is a text, or an object with `text`, `thinking`, or another `type`. Nothing here raises for any JSON; a hostile
log may nest its parts deeper than Python's stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from msgspec import Raw

from sessionlog.events.damaged import without_surrogates
from sessionlog.events.decoded_size import LARGE, too_large
from sessionlog.events.names import UNKNOWN
from sessionlog.sources.steps import Content, ToolCall
from sessionlog.sources.values import Json, name, objects, text

_ENCODED = (Raw, bytes, str)  # a union would be made anew for each value
_PROMPT_LENGTH = 200
_QUOTE = ord('"')
_MEDIA_TYPES = ("media_type", "mimeType", "mime_type")
_THOUGHTS = ("reasoning", "summary_text", "reasoning_text")


def read_json(value: Any) -> Any:
    """Decode a `Raw`, bytes or a text; return None if it is not JSON, and any other value unchanged."""
    if not isinstance(value, _ENCODED):
        return value
    try:
        data = value if isinstance(value, str) else bytes(value)
        if len(data) > LARGE and too_large(data if isinstance(data, bytes) else data.encode("utf-8", "replace")):
            return None
        return orjson.loads(data)
    except ValueError:
        given = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
        try:
            return without_surrogates(json.loads(given, strict=False))
        except (ValueError, RecursionError):
            return None


def _decoded(content: Content) -> Any:
    return read_json(content) if isinstance(content, Raw) else content


def parts_of(content: Content, *types: str) -> Iterator[Json]:
    """Yield the parts of a content, or those of these types; a text is one part."""
    content = _decoded(content)
    for item in content if isinstance(content, list) else [content]:
        part = {"type": "text", "text": item} if isinstance(item, str) else item
        if isinstance(part, Mapping) and (not types or part.get("type") in types):
            yield part


def text_of(content: Content) -> str:
    """Return the text of a content without its reasoning; a picture or document becomes a mark such as `[image]`."""
    content = _decoded(content)
    if isinstance(content, str):
        return content
    texts = []
    for part in parts_of(content):
        words, kind = part.get("text"), part.get("type")
        if isinstance(words, str):
            if kind not in _THOUGHTS and part.get("thought") is not True:
                texts.append(words)
        elif isinstance(kind, str) and kind.removesuffix("_url") in {"image", "document", "audio", "video", "file"}:
            texts.append(f"[{kind.removesuffix('_url')}]")
    return "\n".join(texts)


def pictures_in(content: Content) -> list[Json]:
    """Return the pictures in a content whose bytes the log holds, as our messages have them: base64 and its type."""
    return [found for part in parts_of(content) if (found := _picture(part)) is not None]


def with_pictures(words: str, content: Content) -> Content:
    """Return a text, followed by the pictures in the content that it was taken from."""
    found = pictures_in(content)
    return [{"type": "text", "text": words}, *found] if found else words


def content_of(content: Content) -> str | list[Json]:
    """Return the text of a content; where it holds pictures, its texts and these as parts in their order."""
    content = _decoded(content)
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not pictures_in(content):
        return text_of(content)
    parts: list[Json] = []
    for part in parts_of(content):
        found = _picture(part)
        words = "" if found else text_of([part])
        parts += [found] if found else [{"type": "text", "text": words}] if words else []
    return parts


def _picture(part: Json) -> Json | None:
    """Return a picture as our messages have it; None for a part of another kind, or one that names only an address."""
    inner = next((found for key in ("source", "inlineData", "inline_data") if (found := _object(part, key))), part)
    data, media_type = inner.get("data"), next((inner[key] for key in _MEDIA_TYPES if key in inner), None)
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(url, str) and url.startswith("data:image/"):
        head, _, data = url.partition(";base64,")
        media_type = head.removeprefix("data:")
    if not (isinstance(data, str) and data and isinstance(media_type, str) and media_type.startswith("image/")):
        return None
    return {"type": "image", "media_type": media_type, "data": data}


def _object(part: Json, key: str) -> Json:
    found = read_json(part.get(key))
    return found if isinstance(found, Mapping) else {}


def reasoning_of(content: Content) -> str:
    """Return the reasoning in a content; a text is all reasoning."""
    content = _decoded(content)
    if isinstance(content, str):
        return content
    texts = []
    for part in parts_of(content):
        is_thought = part.get("type") in _THOUGHTS or part.get("thought") is True
        words = part.get("thinking", part.get("text") if is_thought else None)
        if isinstance(words, str):
            texts.append(words)
    return "\n".join(texts)


def tool_uses(time: int | None, content: Content) -> Iterator[ToolCall]:
    """Yield the tool calls in a content of Anthropic's API, as made at this time."""
    for part in parts_of(content, "tool_use"):
        yield ToolCall(time, name(part, "id"), name(part, "name") or UNKNOWN, part.get("input"))


def first_words(content: Content) -> str:
    """Return the beginning of a text on one line, at most 200 characters; of parts, the beginning of their texts."""
    return " ".join(_beginning(content).split())[:_PROMPT_LENGTH].rstrip()


def has_words(content: Content) -> bool:
    """Whether a content has `first_words`."""
    return bool(_beginning(content).strip())


def _beginning(content: Content) -> str:
    content = _decoded(content)
    if isinstance(content, list):
        content = " ".join(text(part, "text") for part in objects(content))
    return content[: 4 * _PROMPT_LENGTH] if isinstance(content, str) else ""


def measure(content: Content) -> int:
    """Return the bytes of the text that a content holds, as UTF-8; of JSON that is not decoded, with its escapes."""
    is_raw = isinstance(content, Raw)
    if is_raw:
        data = memoryview(content)  # type: ignore[arg-type] # a Raw is a buffer
        if data.nbytes and data[0] == _QUOTE:
            return data.nbytes - 2
        content = read_json(content)
    size, parts = 0, [content]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            is_plain = part.isascii() and not is_raw
            size += (
                len(part)
                if is_plain
                else len(orjson.dumps(part)) - 2
                if is_raw
                else len(part.encode("utf-8", "replace"))
            )
        elif isinstance(part, list):
            parts += [one.get("text", one.get("content")) for one in part if isinstance(one, Mapping)]
    return size
