"""The text of message contents in any format: strings, parts of any provider, JSON. Nothing here raises.

Pictures, documents and recordings become their name in brackets (`[image]`); their bytes or base64 are never text.
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
    """Whether a value is a list of texts and parts, in any provider's format, and no other JSON."""
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_part, value))


def split_media(value: Json) -> tuple[Json, list[str]]:
    """Replace each picture or other file in a JSON value by its name; return the value and the types of the files."""
    found: list[str] = []
    try:
        return _replace_media(value, found), found
    except RecursionError:
        return value, []


def text_of(content: Json) -> str:
    """Return the text of a content: its texts joined by line ends, with other parts as their name in brackets."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if is_content(content):
        return "\n".join(text for item in content if (text := item_text(item)))
    return json_text(content, compact=True)


def item_text(item: Json) -> str:
    """Return the text of one part of a content; without a text, its name in brackets."""
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
    """Return an item of a mapping or an attribute of an object; None where there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _replace_media(value: Json, found: list[str]) -> Json:
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    if isinstance(value, list | tuple):
        return [_replace_media(item, found) for item in value]
    name = _media_name(value)
    if name:
        found.append(name)
        return f"[{name}]"
    return {key: _replace_media(item, found) for key, item in value.items()} if isinstance(value, Mapping) else value


def _media_name(value: object) -> str:
    """Return the name of a picture or another file; "" for anything else."""
    word = get(value, "type") or get(value, "kind")
    if isinstance(word, str) and word in MEDIA and any(get(value, key) is not None for key in FILE_FIELDS):
        return word
    if any(isinstance(get(value, key), Mapping) for key in INLINE):
        return "image"
    has_type = any(isinstance(get(value, key), str) for key in MIME)
    return "image" if has_type and isinstance(get(value, "data"), str | bytes) else ""


def _is_part(item: Json) -> bool:
    """Whether an element of a content is a text or a typed part, in any provider's format."""
    if isinstance(item, str) or isinstance(get(item, "type") or get(item, "kind") or get(item, "text"), str):
        return True
    return isinstance(item, Mapping) and any(isinstance(item.get(key), Mapping) for key in _GOOGLE)
