"""How much memory a line of JSON takes once it is decoded, estimated without decoding it.

A list takes 64 bytes, however short it is in the text: `[[],[],…]` takes 30 times its size. Lines of more than a
megabyte are checked before they are decoded. Most are large because of long strings, which a count of brackets and
commas shows; only if there are very many of these is each checked for being inside a string.
"""

from __future__ import annotations

import re

LARGE = 1 << 20
"""Bytes of JSON that are decoded without a check."""

MOST = 130 << 20
"""Bytes that a line and its decoded value may take together, so that the process stays within 200 MB."""

_COSTS = {b"[": 64, b"{": 240, b",": 48, b":": 110}
# All alternatives begin with a literal, and each set of bytes has its own expression: that is searched at 1 ns a byte.
# With a set among the alternatives it would be 15 ns.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\[|\{|,|:', re.DOTALL)
_FOUR_BYTES, _FOUR_BYTES_ESCAPED = re.compile(rb"[\xf0-\xf4]"), re.compile(rb"\\u[dD][89abAB]")
_TWO_BYTES, _TWO_BYTES_ESCAPED = re.compile(rb"[\xc4-\xef]"), re.compile(rb"\\u(?!00)")


def too_large(data: bytes, *, copies: int = 1) -> str:
    """Return why some JSON cannot be decoded within the bound; "" if it can.

    `copies` is how many copies of the text the decoder makes: 3 if also its error holds one, as with orjson and json.
    """
    size = len(data)
    if size <= LARGE:
        return ""
    structure = sum(cost * data.count(sign) for sign, cost in _COSTS.items())
    if structure + size * (1 + 4 * copies) <= MOST:
        return ""
    width = _width(data, 0, size)
    overhead = size * (1 + (copies - 1) * width)
    if structure + overhead + size * width <= MOST or _bytes_needed(data, overhead) <= MOST:
        return ""
    return f"a line of {size} bytes would take more than {MOST >> 20} MiB of memory"


def _bytes_needed(data: bytes, overhead: int) -> int:
    """Return the bytes that the decoded value takes, plus `overhead`; the count stops just above the bound."""
    needed = overhead
    for token in _TOKEN.finditer(data):
        start, end = token.span()
        if end - start > 1:
            needed += 50 + (end - start) * (_width(data, start, end) if end - start > LARGE else 1)
        else:
            needed += _COSTS[data[start:end]]
        if needed > MOST:
            break
    return needed


def _width(data: bytes, start: int, end: int) -> int:
    """Return the bytes that each character of a decoded text takes: the width of its widest character."""
    escaped = data.find(b"\\u", start, end) >= 0
    literal = not data.isascii()
    if (escaped and _FOUR_BYTES_ESCAPED.search(data, start, end)) or (literal and _FOUR_BYTES.search(data, start, end)):
        return 4
    if (escaped and _TWO_BYTES_ESCAPED.search(data, start, end)) or (literal and _TWO_BYTES.search(data, start, end)):
        return 2
    return 1
