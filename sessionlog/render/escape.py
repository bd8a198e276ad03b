r"""Escape content of a log for a named sink: terminal, HTML, CSV, Markdown. It is the last step before output.

The invariant: content stays readable and has no effect. It cannot control a terminal, become a formula in a
spreadsheet, run in a browser, or link in a Markdown viewer. Characters that act or hide become a visible escape such as
`\x1b` or `\u202e`; they are never dropped, because a reader must see that something was there.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

# What acts on a terminal, reorders or hides text, besides C0 (see `_forbidden`).
# U+FE00-FE0F stay: they only choose between two glyphs.
_FORBIDDEN = (
    (0x7F, 0x9F),  # DEL and C1
    (0xAD, 0xAD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers: letters that show nothing
    (0x17B4, 0x17B5),  # Khmer inherent vowels, invisible
    (0x180B, 0x180F),  # Mongolian variation selectors and vowel separator
    (0x200B, 0x200F),  # zero-width characters, direction marks
    (0x2028, 0x202E),  # line and paragraph separators, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xDFFF),  # unpaired surrogates, which no encoder takes
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # half-width Hangul filler
    (0xFFF0, 0xFFFB),  # unassigned, and interlinear annotation
    (0x13430, 0x1345F),  # Egyptian hieroglyph format controls
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags and variation selectors that can carry a hidden text
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(17)),  # noncharacters
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Not str.split and \s: for them some controls are blanks too, and would vanish unseen.
_BLANK = " \t\r\n"
_BLANKS = r"[ \t\r\n]+"
_LINE_ENDS = r"[ \t]*[\r\n][ \t\r\n]*"
_CUT_ESCAPE = r"\\(?:x[0-9a-f]?|u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?$"
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
_MARKDOWN = r"[\\`*_~\[\]|$#!@<>&]|(?<=:)/(?=/)|(?<=[wW]{3})\."
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def terminal(text: str, *, newline: bool = False, tab: bool = False) -> str:
    """Make control, invisible and direction-changing characters visible; `newline` and `tab` let those two through.

    Clean text is returned unchanged, and so is escaped text. Escapes cannot be parsed back, since a log may hold a
    literal backslash.
    """
    # Most texts are clean ASCII, and for them a few C loops are ten times as fast as the regex (3 against 30 ms a MB).
    if text.isascii():
        rest = text.replace("\n", "") if newline else text
        if (rest.replace("\t", "") if tab else rest).isprintable():
            return text
    return _forbidden(newline, tab).sub(_visible, text)


def one_line(text: str, limit: int) -> str:
    """Return a text on one line of at most `limit` characters: line ends as `⏎`, controls escaped, `…` where cut."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text.strip(" ")
    # A margin, so that a text of megabytes is not escaped for a line of eighty.
    whole = text.strip(_BLANK)
    head = whole[: 4 * limit + 64]
    is_whole = len(head) == len(whole)
    if "\n" in head or "\r" in head:
        head = _compiled(_LINE_ENDS).sub("⏎", head)
    line = terminal(head.replace("\t", " "))
    return line if len(line) <= limit and is_whole else _ellipsis(line, limit)


def cut(text: str, limit: int) -> tuple[str, int]:
    """Return at most the first `limit` characters, and how many were cut. Accents stay with their letter."""
    if len(text) <= limit:
        return text, 0
    end = max(0, limit)
    while end > 0 and _joins(text[end]):
        end -= 1
    return text[:end], len(text) - end


def strip_line_ends(text: str) -> str:
    """Turn CRLF into LF and drop the line ends at the end; a lone CR stays, and is escaped later."""
    return text.replace("\r\n", "\n").rstrip("\r\n")


def html(text: str) -> str:
    """Escape for an HTML text or a quoted attribute; controls are made visible, lines and tabs stay."""
    from html import escape

    return escape(terminal(text, newline=True, tab=True), quote=True)


def html_text(text: str) -> str:
    """Escape for an HTML text alone: quotation marks, which end only attributes, stay as they are."""
    from html import escape

    return escape(terminal(text, newline=True, tab=True), quote=False)


def csv_cell(value: str) -> str:
    """Make a text harmless in a spreadsheet: what could begin a formula gets a leading `'`, controls are escaped.

    The csv writer does the quoting. Numbers of reports are not passed to this function, so that `-1.5` stays a number.
    """
    safe = terminal(value, newline=True, tab=True)
    return f"'{safe}" if value.lstrip().startswith(_FORMULA) or value.startswith(_FORMULA) else safe


def markdown_cell(text: str) -> str:
    """Make a text one plain cell of a Markdown table: no cell ends, code, emphasis, HTML, links or mentions."""
    line = terminal(_compiled(_BLANKS).sub(" ", text.strip(_BLANK)))
    return _compiled(_MARKDOWN).sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), line)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern, compiled on first use: most texts need none, and importing `re` takes 6 ms."""
    import re

    return re.compile(pattern)


@cache
def _forbidden(newline: bool, tab: bool) -> re.Pattern[str]:
    allowed = ("\n" if newline else "") + ("\t" if tab else "")
    c0 = "".join(f"\\x{code:02x}" for code in range(0x20) if chr(code) not in allowed)
    rest = "".join(f"{chr(first)}-{chr(last)}" for first, last in _FORBIDDEN)
    return _compiled(f"[{c0}{rest}]")


def _visible(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _joins(char: str) -> bool:
    """Whether a character belongs to the one before it."""
    if char.isascii():
        return False
    from unicodedata import combining

    return combining(char) > 0 or "\ufe00" <= char <= "\ufe0f" or char == "\u200d"


def _ellipsis(line: str, limit: int) -> str:
    if limit < 1:
        return ""
    head, _ = cut(line, limit - 1)
    if "\\" in head[-9:]:
        head = _compiled(_CUT_ESCAPE).sub("", head)
    return f"{head.rstrip()}…"
