"""What contents say as text, in whatever shape: strings, parts of any provider, JSON. Nothing here raises.

A picture, a page or a recording has no words: it is named, and counted as one. Neither its base64 nor its bytes are
ever text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.messages.json_value import json_text

Json = Any
_MEDIA = frozenset({
    "audio", "audio-url", "binary", "document", "document-url", "file", "image", "image-url", "image_url",
    "input_audio", "input_file", "input_image", "media", "uploaded-file", "video", "video-url",
})  # fmt: skip
_HELD = (  # a part that is sent has one of these; what a tool lists as a file or an image has none
    "data", "file", "file_data", "file_id", "file_url", "image_url", "input_audio", "source", "url",
)  # fmt: skip
_INLINE = ("inlineData", "inline_data", "fileData")
_GOOGLE = (*_INLINE, "functionCall", "functionResponse")
_MIME = ("media_type", "mimeType", "mime_type")
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


def words_of(content: Json) -> tuple[str, int]:
    """Return what a content or a part of one says, and how many pictures it holds."""
    if content is None or isinstance(content, str):
        return content or "", 0
    try:
        bare, pictures = _without_pictures(content)
    except RecursionError:
        bare, pictures = content, 0
    return text_of(bare), pictures


def text_of(content: Json) -> str:
    """Return what a content says: a text, or parts of which the texts are joined and the rest is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if is_content(content):
        return "\n".join(text for item in content if (text := item_text(item)))
    return json_text(content, compact=True)


def part_words(item: Json) -> tuple[str, int]:
    """Return what one part of a content says, and how many pictures it holds; one without words is named."""
    try:
        bare, pictures = _without_pictures(item)
    except RecursionError:
        bare, pictures = item, 0
    return item_text(bare), pictures


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


def _without_pictures(value: Json) -> tuple[Json, int]:
    """The same with a name in the place of each picture; and how many there are."""
    if value is None or isinstance(value, str | int | float | bytes):
        return value, 0
    if isinstance(value, list | tuple):
        items = [_without_pictures(item) for item in value]
        pictures = sum(count for _, count in items)
        return [item for item, _ in items], pictures
    source = get(value, "source")
    if get(value, "type") == "document" and get(source, "type") == "text" and isinstance(get(source, "data"), str):
        return get(source, "data"), 0
    name = _picture(value)
    if name:
        return f"[{name}]", 1
    if not isinstance(value, Mapping):
        return value, 0
    fields = {key: _without_pictures(item) for key, item in value.items()}
    return {key: item for key, (item, _) in fields.items()}, sum(count for _, count in fields.values())


def _picture(value: object) -> str:
    """What a part without words is called; empty for all else."""
    word = get(value, "type") or get(value, "kind")
    if isinstance(word, str) and word in _MEDIA and any(get(value, key) is not None for key in _HELD):
        return word
    if any(isinstance(get(value, key), Mapping) for key in _INLINE):
        return "image"
    has_type = any(isinstance(get(value, key), str) for key in _MIME)
    return "image" if has_type and isinstance(get(value, "data"), str | bytes) else ""


def _speaks(item: Json) -> bool:
    """Whether an element of a content is a text or a part with a type, in anybody's spelling."""
    if isinstance(item, str) or isinstance(get(item, "type") or get(item, "kind") or get(item, "text"), str):
        return True
    return isinstance(item, Mapping) and any(isinstance(item.get(key), Mapping) for key in _GOOGLE)
