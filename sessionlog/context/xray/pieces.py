"""Pieces: what a prompt is made of, as sizes, short names and digests. Texts are not kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of what is sent.

    Attributes:
        role: Who says it: system, user, assistant, tool, or whatever was logged.
        kind: text, reasoning, image, call, result, or tool for a definition.
        tokens: Its size with its framing, estimated.
        name: The tool that it calls, answers for or defines.
        target: What a call, or the one that a result answers, is about, shortened: a path, a command.
        is_read: Whether that call reads a file.
        call_id: What binds a result to its call.
        mark: A digest of what it says; of a call, of the whole `target`.
        count: How many pieces it stands for.
        asked: Of a result, the `mark` of its call.
    """

    role: str
    kind: str
    tokens: int
    name: str = ""
    target: str = ""
    is_read: bool = False
    call_id: str = ""
    mark: bytes = b""
    count: int = 1
    asked: bytes = b""


def total(pieces: Iterable[Piece]) -> int:
    """The tokens of all pieces."""
    return sum(piece.tokens for piece in pieces)


def sum_up(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return one piece for all that are of one role, kind and name, without what tells them apart."""
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for piece in pieces:
        tokens, count = sums.get((piece.role, piece.kind, piece.name), (0, 0))
        sums[piece.role, piece.kind, piece.name] = tokens + piece.tokens, count + piece.count
    return tuple(
        Piece(role=role, kind=kind, name=name, tokens=tokens, count=count)
        for (role, kind, name), (tokens, count) in sums.items()
    )


def size_of(value: Json) -> int:
    """Return the length of a value in bytes, as JSON."""
    return len(bytes_of(value))


def digest_of(value: Json) -> bytes:
    """Return 16 bytes that stand for a value; equal values that are spelled alike have the same."""
    return blake2b(bytes_of(value), digest_size=16).digest()


def bytes_of(value: Json) -> bytes:
    """Return a value as JSON, and a text as it is.

    What cannot be JSON is spelled as Python does, and too deep a nest by its outside.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        try:
            return repr(value).encode("utf-8", "surrogatepass")
        except RecursionError:
            return object.__repr__(value).encode()
