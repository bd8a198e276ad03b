"""What contents say as text, in whatever shape: strings, parts of any provider, JSON. Nothing here raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Json = Any
_TEXTS = ("text", "content", "thinking", "reasoning", "input_text", "output_text", "summary")


def spell(value: Json) -> str:
    """Return a value as JSON text; what JSON does not know is spelled as Python does."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def text_of(content: Json) -> str:
    """Return what a content says: a text, or parts of which the texts are joined and the rest is named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple) and content and all(map(_speaks, content)):
        return "\n".join(text for item in content if (text := item_text(item)))
    try:
        return json.dumps(content, ensure_ascii=False, default=str, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return str(content)


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


def decoded(arguments: Json) -> Json:
    """Return arguments as value: OpenAI's shape, and pydantic-ai at times, hold them as a text of JSON."""
    if not isinstance(arguments, str) or not arguments.lstrip().startswith(("{", "[")):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def get(value: object, name: str) -> Any:
    """Return what a mapping or an object holds under a name; None where it holds nothing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _speaks(item: Json) -> bool:
    """Whether an element of a content is a text or a part with a type, in anybody's spelling."""
    return isinstance(item, str) or isinstance(get(item, "type") or get(item, "kind") or get(item, "text"), str)
