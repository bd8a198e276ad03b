"""Pieces: the parts of a prompt as sizes, short names and digests, without their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import orjson

from sessionlog.hashes import blake2b

Json = Any


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a prompt; made for every message of a session, which a frozen dataclass would slow down.

    Attributes:
        role: system, user, assistant, tool, or another role that was logged.
        kind: text, reasoning, image, call, result, tool (a definition), or instructions (for calling tools).
        tokens: Its size with its framing, estimated.
        name: The tool of a call, a result or a definition.
        target: The path, command or other main argument of a call, shortened; a result has that of its call.
        is_read: Whether that call reads a file.
        call_id: The id that joins a call and its result.
        digest: Of its content; of a call, of the unshortened `target`.
        count: How many pieces it is the sum of.
        call_digest: Of a result, the `digest` of its call.
    """

    role: str
    kind: str
    tokens: int
    name: str = ""
    target: str = ""
    is_read: bool = False
    call_id: str = ""
    digest: bytes = b""
    count: int = 1
    call_digest: bytes = b""


def total(pieces: Iterable[Piece]) -> int:
    """Return the tokens of all pieces."""
    return sum(piece.tokens for piece in pieces)


def sum_up(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return one piece for each role, kind and name: the sum of the pieces that share them."""
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
    """Return a 16-byte digest of a value's JSON, in which the order of keys counts."""
    return blake2b(bytes_of(value), digest_size=16).digest()


def bytes_of(value: Json) -> bytes:
    """Return a text as UTF-8, any other value as JSON; else its `repr`, of too deep a value that of its type."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        try:
            return repr(value).encode("utf-8", "surrogatepass")
        except RecursionError:
            return object.__repr__(value).encode()
