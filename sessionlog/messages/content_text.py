"""What contents say as text, in whatever shape: strings, parts of any provider, JSON. Nothing here raises.

A picture, a page or a recording has no words: it is named. Neither its base64 nor its bytes are ever text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import FILE_FIELDS, INLINE, MEDIA

Json = Any
_GOOGLE = (*INLINE, "functionCall", "functionResponse")
MIME = ("media_type", "mimeType", "mime_type")
_TEXTS = ("text", "content", "thinking", "reasoning", "input_text", "output_text", "summary")


def is_content(value: Json) -> bool:
    """Whether a value is a list of texts and parts, in any provider's shape, and no other JSON."""
    return isinstance(value, list | tuple) and bool(value) and all(map(_speaks, value))


def split_media(value: Json) -> tuple[Json, list[str]]:
    """Return a JSON value with each picture or other file in it replaced by its name, and the types of these."""
    found: list[str] = []
    try:
        return _named(value, found), found
    except RecursionError:
        return value, []


def text_of(content: Json) -> str:
    """Return what a content says: a text, or parts of which the texts are joined and the rest is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if is_content(content):
        return "\n".join(text for item in content if (text := item_text(item)))
    return json_text(content, compact=True)


def item_text(item: Json) -> str:
    """Return what one part of a content says; a part without words is named."""
    if isinstance(item, str):
        return item
    for key in _TEXTS:
        value = get(item, key)
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple) and value:
            return text_of(value)
    word = get(item, "type") or get(item, "kind")
    return "" if word == "cache-point" else f"[{word or 'part'}]"


def get(value: object, name: str) -> Any:
    """Return what a mapping or an object holds under a name; None where it holds nothing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _named(value: Json, found: list[str]) -> Json:
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    if isinstance(value, list | tuple):
        return [_named(item, found) for item in value]
    name = _picture(value)
    if name:
        found.append(name)
        return f"[{name}]"
    return {key: _named(item, found) for key, item in value.items()} if isinstance(value, Mapping) else value


def _picture(value: object) -> str:
    """What a part without words is called; empty for all else."""
    word = get(value, "type") or get(value, "kind")
    if isinstance(word, str) and word in MEDIA and any(get(value, key) is not None for key in FILE_FIELDS):
        return word
    if any(isinstance(get(value, key), Mapping) for key in INLINE):
        return "image"
    has_type = any(isinstance(get(value, key), str) for key in MIME)
    return "image" if has_type and isinstance(get(value, "data"), str | bytes) else ""


def _speaks(item: Json) -> bool:
    """Whether an element of a content is a text or a part with a type, in anybody's spelling."""
    if isinstance(item, str) or isinstance(get(item, "type") or get(item, "kind") or get(item, "text"), str):
        return True
    return isinstance(item, Mapping) and any(isinstance(item.get(key), Mapping) for key in _GOOGLE)
