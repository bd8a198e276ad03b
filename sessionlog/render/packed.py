"""Packed: a long text that is complete before its first piece is written, kept in a tenth of its size."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator


class Packed:
    """Collects texts and yields them again; characters that UTF-8 lacks become escapes."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(1)
        self._pieces: list[bytes] = []

    def add(self, text: str) -> None:
        """Add a text at the end."""
        piece = self._packer.compress(text.encode("utf-8", "backslashreplace"))
        if piece:
            self._pieces.append(piece)

    def texts(self) -> Iterator[str]:
        """Yield the whole in pieces of some size; once."""
        unpacker, decoder = zlib.decompressobj(), codecs.getincrementaldecoder("utf-8")()
        self._pieces.append(self._packer.flush())
        for piece in self._pieces:
            yield decoder.decode(unpacker.decompress(piece))
