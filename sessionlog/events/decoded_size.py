"""How much memory a line of JSON takes once it is decoded, found without decoding it.

A list takes 64 bytes, however short it is in the text: `[[],[],…]` takes 30 times its size. Lines of more than a
megabyte are looked at before they are decoded. Most are large for their texts, which a count of brackets and commas
shows; only where these are very many is it looked which of them stand in texts.
"""

from __future__ import annotations

import re

LARGE = 1 << 20
"""Bytes of JSON that are decoded without a look."""

MOST = 130 << 20
"""Bytes that a line and what it is decoded into may take together: beside the program, within 200 MB."""

_COSTS = {b"[": 64, b"{": 240, b",": 48, b":": 110}
# Alternatives that all begin with a literal, and one expression for each set of bytes: so they are searched for at
# 1 ns a byte, and at 15 where a set is one of the alternatives.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\[|\{|,|:', re.DOTALL)
_FOUR_BYTES, _FOUR_BYTES_ESCAPED = re.compile(rb"[\xf0-\xf4]"), re.compile(rb"\\u[dD][89abAB]")
_TWO_BYTES, _TWO_BYTES_ESCAPED = re.compile(rb"[\xc4-\xef]"), re.compile(rb"\\u(?!00)")


def too_large(data: bytes, *, copies: int = 1) -> str:
    """Return why some JSON cannot be decoded within the bound; "" if it can.

    With `copies=3` a decoder is meant that copies all of it, and once more into its error, as orjson and json do.
    """
    size = len(data)
    if size <= LARGE:
        return ""
    structure = sum(cost * data.count(sign) for sign, cost in _COSTS.items())
    if structure + size * (1 + 4 * copies) <= MOST:
        return ""
    width = _width(data, 0, size)
    beside = size * (1 + (copies - 1) * width)
    if structure + beside + size * width <= MOST or _needs(data, beside) <= MOST:
        return ""
    return f"a line of {size} bytes would take more than {MOST >> 20} MiB of memory"


def _needs(data: bytes, beside: int) -> int:
    """Count the bytes that a value takes, and what is held beside it, up to a bit more than the bound."""
    needs = beside
    for token in _TOKEN.finditer(data):
        start, end = token.span()
        if end - start > 1:
            needs += 50 + (end - start) * (_width(data, start, end) if end - start > LARGE else 1)
        else:
            needs += _COSTS[data[start:end]]
        if needs > MOST:
            break
    return needs


def _width(data: bytes, start: int, end: int) -> int:
    """Bytes that each character of a text takes: as many as the widest of them needs."""
    escaped = data.find(b"\\u", start, end) >= 0
    literal = not data.isascii()
    if (escaped and _FOUR_BYTES_ESCAPED.search(data, start, end)) or (literal and _FOUR_BYTES.search(data, start, end)):
        return 4
    if (escaped and _TWO_BYTES_ESCAPED.search(data, start, end)) or (literal and _TWO_BYTES.search(data, start, end)):
        return 2
    return 1
