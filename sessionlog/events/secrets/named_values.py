"""Finds a long word that is the value of a name that ends in key, token, secret or password.

The text before the word is read backwards, by one expression over the reversed bytes: from the value through quotes and
`=` to the end of the name, at most a hundred bytes.
"""

from __future__ import annotations

import re

from sessionlog.events.secrets import rules as table
from sessionlog.events.secrets.long_words import Span

_FRONT = re.compile(
    rb"([ \t\"'`\\]*+(?:[27]2%)?+)(?:[>=:][=:> ]*+|[da]3%|[de]300u\\*+)([ \t\"'`\\\]]*+(?:[27]2%)?+)("
    + b"|".join(re.escape(name[::-1]) for name in table.NAMES)
    + rb")",
    re.IGNORECASE,
)
_LONGEST_FRONT, _LONGEST_KIND, _LONGEST_PIECE = 100, 48, 64
_QUOTES = frozenset(b" \t\"'`\\")
_BEFORE_QUOTES = frozenset(b" \t\"'`\\=:>")
_BASE64 = bytes(byte for byte in range(128) if chr(byte).isalnum() or byte in b"+/_-")
_SLASH = ord("/")
NAME_ENDS = frozenset(name[-3:] for name in table.NAMES)
"""The last three bytes of each name."""
_REST = re.compile(rb"[A-Za-z0-9_+/.~%-]*+={0,2}")
_REST_FROM = 100

_values: dict[bytes, re.Pattern[bytes]] = {}


def _compiled(value: bytes) -> re.Pattern[bytes]:
    """Compile the expression for a value: 3 ms, at the first name of a secret."""
    return _values.setdefault(value, re.compile(value))


def named_value(line: bytes, begin: int, last: int) -> Span | None:
    """Return the word at `begin` as a secret if it is the value of such a name; `last` ends the word before."""
    before = line[begin - 1]
    if before in _QUOTES:
        if line[begin - 2] not in _BEFORE_QUOTES:
            return None
        if line[begin - 3 : begin] == b'":"' and line[begin - 6 : begin - 3].lower() not in NAME_ENDS:
            return None  # nearly every value
    elif before in b"/+":  # base64: the value may begin before the word
        if last == begin - 1 or line[begin - 2] == _SLASH:
            return None  # it was checked there, or is a URL
        text = line[max(0, begin - _LONGEST_PIECE) : begin]
        begin -= len(text) - len(text.rstrip(_BASE64))
        if line[begin] == _SLASH:  # a path
            return None
    front = _FRONT.match(line[max(0, begin - _LONGEST_FRONT) : begin][::-1])
    if front is None:
        return None
    value_quote, name_quote, name = front.groups()
    if name_quote and not value_quote.strip(b" \t\\"):
        return None  # a bare number of JSON, which must stay valid
    name = name[::-1].lower()
    end = begin - front.end()
    kind = line[max(0, end - _LONGEST_KIND) : end].lower().rstrip(b"_-. ")
    if kind.endswith(table.HARMLESS):
        return None
    value = table.VERY_RANDOM if name == b"key" and not kind.endswith(table.SECRETIVE) else table.RANDOM
    match = (_values.get(value) or _compiled(value)).match(line, begin)
    if match is None:
        return None
    end = match.end()
    if end - begin >= _REST_FROM:  # the expression's length is bounded, because it may fail
        end = _REST.match(line, end).end()  # type: ignore[union-attr] # may be empty
    return begin, end, f"{table.NAMES[name]}-by-name"
