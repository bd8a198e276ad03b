"""Long words: what every line is searched for first. Nearly all tokens have one, and few lines do.

A module of its own, because the search takes milliseconds to import.
"""

from __future__ import annotations

Span = tuple[int, int, str]
"""A secret's begin, its end, and its rule's id."""

LEAST_WORD = 15
"""Bytes of the shortest word that is looked up: a token's longest stretch of letters, digits, `_` and `-`."""

LONG = b"a" * LEAST_WORD
CLASSES = bytes(97 if (chr(byte).isalnum() and byte < 128) or byte in b"_-" else 32 for byte in range(256))
"""Translates every byte of a word to `a`, every other to a blank: a long word is then a substring, found in 0.1 µs."""

HARMLESS: set[bytes] = set()
"""Recurring words that are no secrets in any line, each with the six bytes before it and the quote after it."""
