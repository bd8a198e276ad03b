"""Long words: what every line is searched for first. Nearly all tokens have one, and few lines do.

Apart from the search itself, because it costs a start-up nothing.
"""

from __future__ import annotations

Span = tuple[int, int, str]
"""A secret's begin, its end, and its rule's id."""

LEAST_WORD = 15
"""Bytes of the shortest word that is looked up: a token's longest stretch of letters, digits, `_` and `-`."""

LONG = b"a" * LEAST_WORD
CLASSES = bytes(97 if (chr(byte).isalnum() and byte < 128) or byte in b"_-" else 32 for byte in range(256))
"""Makes every byte of a word an `a`, every other a blank: a long word is then found like a long needle, in 0.1 µs."""

HARMLESS: set[bytes] = set()
"""Words that recur, with six bytes in front and the quote behind them, and are no secrets whatever the line holds."""
