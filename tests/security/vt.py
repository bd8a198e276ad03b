"""A small terminal parser that reads what a command printed and names whatever a terminal would obey or hide.

It knows nothing of the product's own escaping: what is dangerous is decided by Unicode's categories and by the grammar
of ECMA-48. Newline is allowed; `sgr` allows the few colour sequences that our theme can emit, `tab` a tab.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

OURS = frozenset({"0", "1", "2", "31", "32", "33", "34", "35", "36", "94", "95"})
"""Reset, bold, dim, red, green, yellow, cyan: all that the theme needs."""

_STRINGS = {"]": "OSC", "P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
_NOT_PLAIN = re.compile(r"[^\n -~]")
_CSI = re.compile(r"([0-?]*)([ -/]*)([@-~]?)")
_STRING_END = re.compile("\x07|\x1b\\\\|\x9c")
_HIDING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_FILLERS = frozenset(map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x3164, 0xFFA0)))
"""Letters and marks that show nothing."""
_VISIBLE = frozenset(map(chr, (*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD)))
"""Format characters that are drawn: number signs that enclose the digits after them."""


class Finding(NamedTuple):
    """Something that must not reach a terminal: where (in characters), and what it is."""

    offset: int
    what: str


def findings(output: bytes, *, sgr: bool = False, tab: bool = False) -> list[Finding]:
    """Read output to its end and return all that is not plain text."""
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError as error:
        return [Finding(error.start, f"invalid UTF-8: {output[error.start : error.end + 8]!r}")]
    found: list[Finding] = []
    position = 0
    while special := _NOT_PLAIN.search(text, position):
        start, char = special.start(), special[0]
        if char == "\x1b":
            position, what = _sequence(text, start, sgr=sgr)
        else:
            position, what = start + 1, "" if tab and char == "\t" else _character(char)
        if what:
            found.append(Finding(start, what))
    return found


def _sequence(text: str, start: int, *, sgr: bool) -> tuple[int, str]:
    kind = text[start + 1 : start + 2]
    if kind == "[":
        match = _CSI.match(text, start + 2)
        assert match is not None
        parameters, intermediates, final = match.groups()
        allowed = sgr and final == "m" and not intermediates and OURS.issuperset(parameters.split(";"))
        return match.end(), "" if allowed else f"CSI {parameters}{intermediates}{final or '(cut)'}"
    if kind in _STRINGS:
        end = _STRING_END.search(text, start + 2)
        body = text[start + 2 : end.start() if end else len(text)]
        return end.end() if end else len(text), f"{_STRINGS[kind]} {body[:20]!r}{'' if end else ' without an end'}"
    return start + 2, f"ESC {kind!r}"


@cache
def _character(char: str) -> str:
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"C0 {code:#04x}"
    if code < 0xA0:
        return f"C1 {code:#04x}"
    if char in _FILLERS or (unicodedata.category(char) in _HIDING and char not in _VISIBLE):
        return f"hidden U+{code:04X}"
    if 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE or 0xE0000 <= code <= 0xE0FFF:
        return f"no character U+{code:04X}"
    return ""
