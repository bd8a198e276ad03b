"""The tokens among a line's long words.

Each long word is looked at once. What is tried there is a fixed number of steps, and each is bounded or consumes what
it reads: a pattern that can fail reads at most some hundred bytes beyond the word, and one that matches makes the
words within its match be skipped. So the whole is linear in the line's length.

A megabyte may hold 60,000 such words, and a promise says 50 ms: so the loop asks first what is cheapest (the bytes in
front of the word, its first three), and what most words lack (a beginning behind a dash, a run of twenty letters and
digits) is searched for from one occurrence to the next instead of in each word.
"""

from __future__ import annotations

import re

from sessionlog.events.secrets.long_words import HARMLESS, LEAST_WORD, LONG, Span
from sessionlog.events.secrets.named_values import named_value
from sessionlog.events.secrets.table import match_rule, rules_table

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from sessionlog.events.secrets.rules import Rule

_WORD = re.compile(LONG + b"a*+")
_BREAK = re.compile(rb"(?:\\{1,16}+(?:r\\{1,16}+)?n|\r?\n)[ \t]{0,8}")
_MORE = re.compile(
    rb"(?:\\{1,16}+(?:r\\{1,16}+)?n|\r?\n)[ \t]{0,8}"
    rb"(?=[A-Za-z+/_=-]{0,40}[0-9])(?=[0-9+/_=-]{0,40}[A-Za-z])[A-Za-z0-9+/_=-]{8,}+"
)
_COLOUR = re.compile(rb"[0-9]{0,3}[mK]")
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_LENGTH, _BROKEN_FROM, _FAR_FROM, _FAR = 36, 40, 20, 80
_MOST_JOINS = 300
"""Broken words that are put together in one line: each costs microseconds, however many a hostile line holds."""

_SOLID = bytes(97 if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_SOLID_RUN = b"a" * 20
"""What a token without a known beginning has at least: letters and digits in a row."""

_ESCAPE, _UNICODE, _NEWLINE = b"\\un"
_PERCENT, _LINE_END, _BLANK, _QUOTE = b'%\n "'
_SPECIAL = frozenset(b"\\%[;.~:/+\n")
_LINE_ENDS = frozenset((b"\\", b"\r", b"\n"))
_BEFORE_VALUE = frozenset(b" \t=:>\"'`/+%\\")
_ALONE = re.compile(
    rb"(?:(?!(?i:key|ken|ret|ord|swd|pwd|ase|uth|sig)).{3}\":\"|.{4}[{,]\")[A-Za-z0-9_-]{15,64}\"", re.DOTALL
)
"""A word that makes up a string of JSON, with six bytes in front that are no secret's name: nothing else counts."""
_MOST_HARMLESS, _HARMLESS_OF_A_LINE = 1000, 50


class Words:
    """The long words of a line, and the tokens among them."""

    __slots__ = ("_classes", "_done", "_joins", "_line", "_table")

    def __init__(self, line: bytes, classes: bytes) -> None:
        self._line = line
        self._classes = classes
        self._table = rules_table()
        self._joins = _MOST_JOINS
        self._done = 0  # the end of the last token

    def tokens(self, start: int) -> list[Span]:
        """Return the tokens of the words that begin at `start` or later."""
        line, size = self._line, len(self._line)
        table = self._table
        heads, inner_search = table.heads, table.inner.search
        spans: list[Span] = []
        last = inner = solid = -1  # the end of the word before; the next beginning behind a dash; the next long run
        solids = b""
        new_words = _HARMLESS_OF_A_LINE
        for word in _WORD.finditer(self._classes, start):
            begin, end = word.span()
            if begin < self._done:
                continue
            before = line[begin - 1] if begin else _BLANK
            found = None
            if before in _SPECIAL:
                found = self._after_special(begin, end, before, last)
                if before == _ESCAPE:
                    begin += 5 if line[begin] == _UNICODE else 1
                elif before == _PERCENT:
                    begin += 2
            elif before == _BLANK and line[begin - 2 : begin - 1] == b" ":  # an indented line, perhaps
                found = self._broken(begin, last)
            if found is None:
                if line[begin : begin + 3] in heads:
                    found = self._headed(begin, end)
                if inner < begin:
                    match = inner_search(line, begin)
                    inner = size if match is None else match.start() + 1
                if found is None and inner < end and not (end - begin == _UUID_LENGTH and _UUID.match(line, begin)):
                    found = self._headed(inner, end)
                if solid < begin:
                    solids = solids or line.translate(_SOLID)
                    solid = solids.find(_SOLID_RUN, begin)
                    if solid < 0:
                        solid = size
                if found is None and solid < end:
                    match = table.odd.match(line, begin)
                    if match is not None:
                        found = begin, match.end(), str(match.lastgroup).replace("_", "-")
                if found is None and before in _BEFORE_VALUE:
                    found = named_value(line, begin, last)
            last = end
            if found is not None:
                if found[1] - found[0] >= _BROKEN_FROM:
                    found = _lengthened(line, found)
                spans.append(found)
                self._done = max(end, found[1])
            elif before == _QUOTE and new_words:
                text = line[begin - 6 : end + 1]
                if text not in HARMLESS and _ALONE.match(text) is not None:
                    new_words -= 1
                    if len(HARMLESS) >= _MOST_HARMLESS:
                        HARMLESS.clear()
                    HARMLESS.add(text)
        return spans

    def _after_special(self, begin: int, end: int, before: int, last: int) -> Span | None:
        """A token where the word's first letters are not its own, or where its own stand before the word."""
        line = self._line
        if before == _LINE_END or (before == _ESCAPE and line[begin] == _NEWLINE):
            return self._broken(begin, last)
        if before in b"[;":
            colour = _COLOUR.match(line, begin)
            return self._headed(colour.end(), end) if colour is not None else None
        for behind, rule in self._table.behind.get(line[begin - 2 : begin], ()):
            at = begin - (len(behind) if rule.back is None else rule.back)
            if at >= self._done and line.endswith(behind, 0, begin):
                found = match_rule(rule, line, at)
                if found is not None:
                    return found
        if before in b"/+" and last < begin - 1:  # base64, and the token may begin before the word
            first = self._classes.rfind(b" ", max(self._done, begin - LEAST_WORD - 1), begin - 1) + 1
            found = self._headed(first, begin) if first > 0 else None
            if found is not None:
                return found
        if end - begin >= _FAR_FROM:
            for rule in self._table.far.get(before, ()):
                at = line.find(rule.far, max(self._done, begin - _FAR), begin)
                found = match_rule(rule, line, at) if at >= 0 else None
                if found is not None:
                    return found
        return None

    def _headed(self, at: int, end: int) -> Span | None:
        """The token whose prefix stands at `at`; if its line ends with it, it may go on in the next."""
        line = self._line
        for head, rule in self._table.heads.get(line[at : at + 3], ()):
            if line.startswith(head, at):
                found = match_rule(rule, line, at)
                if found is None and self._joins and line[end : end + 1] in _LINE_ENDS and _BREAK.match(line, end):
                    self._joins -= 1
                    found = _match_joined(rule, line, at)
                if found is not None:
                    return found
        return None

    def _broken(self, begin: int, last: int) -> Span | None:
        """The token that began as a short word at the end of the line before this word's."""
        if not self._joins:
            return None
        line = self._line
        cut = begin - 1
        if line[cut] == _BLANK:
            cut = max(line.rfind(b"\\n", begin - 10, begin), line.rfind(b"\n", begin - 10, begin))
            if cut < 0:
                return None
        floor = cut - 34
        while cut > floor and line[cut - 1] in b"\\\r":
            cut -= 1
        if line[cut - 2 : cut] == b"\\r":
            cut -= 2
            while cut > floor and line[cut - 1] == _ESCAPE:
                cut -= 1
        if last >= cut:
            return None  # a long word, which was looked up already
        at = max(self._classes.rfind(b" ", max(0, cut - LEAST_WORD), cut) + 1, self._done)
        at += line[at - 1 : at] == b"\\"
        for head, rule in self._table.heads.get(line[at : at + 3], ()):
            if line.startswith(head, at) and at < cut:
                self._joins -= 1
                found = _match_joined(rule, line, at)
                if found is not None:
                    return found
        return None


def _match_joined(rule: Rule, line: bytes, at: int) -> Span | None:
    """A token that goes on in the next lines."""
    window = line[at : at + 600]
    found = match_rule(rule, _BREAK.sub(b"", window), 0)
    if found is None:
        return None
    end = found[1]
    for piece in _BREAK.finditer(window):
        if piece.start() >= end:
            break
        end += piece.end() - piece.start()
    return at, at + end, rule.id


def _lengthened(line: bytes, found: Span) -> Span:
    """A long token that ends where its line ends goes on in the next, if that looks like it."""
    begin, end, rule = found
    while (more := _MORE.match(line, end)) is not None:
        end = more.end()
    return begin, end, rule
