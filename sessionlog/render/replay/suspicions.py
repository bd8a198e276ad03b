"""Find what may still be a secret in the blocks of a scrubbed session: in the texts as they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sessionlog.render.replay.blocks import Block, Call, Picture
from sessionlog.render.replay.exact import compact_json
from sessionlog.transcript.scrub import suspicions


def suspicions_in(block: Block) -> Iterator[str]:
    """Yield why texts of a block may hold a secret; never the secret."""
    for text in _texts(block):
        yield from suspicions(text)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a block, arguments as JSON too: a name and its value belong together."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield compact_json(value)
        yield from _each(value.values())
    elif isinstance(value, list | tuple):
        yield from _each(value)
    elif isinstance(value, Call):
        yield from (value.name, compact_json(value.arguments))
        yield from _texts(value.arguments)
    elif isinstance(value, Struct) and not isinstance(value, Picture):
        yield from _each(getattr(value, name) for name in value.__struct_fields__)
    elif hasattr(type(value), "__dataclass_fields__"):
        yield from _each(getattr(value, name) for name in type(value).__dataclass_fields__)


def _each(values: Any) -> Iterator[str]:
    for value in values:
        yield from _texts(value)
