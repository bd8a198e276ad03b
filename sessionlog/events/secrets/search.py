"""The full search of a line that may hold secrets: long words, then what is found by the text around it.

Linear in the line's length, for any line: each long word is checked once (see `words.py`), and the expressions for
names, headers, key blocks and URLs either consume what they read or read at most some hundred bytes. So none of them
has an unbounded repeat that backtracks: such repeats are possessive (`*+`), or end at a byte that they cannot match,
with nothing after them that could fail.
"""

from __future__ import annotations

import re

from sessionlog.events.secrets.long_words import CLASSES, Span
from sessionlog.events.secrets.table import pattern_of, rules_table
from sessionlog.events.secrets.words import CODE_BYTES, CODE_END, Words

_SHORTEST_KEY = 16
_ESCAPE = ord("\\")
_LONGEST_HEAD, _LONGEST_PLAIN = 64, len("learn")
_DIGIT = re.compile(rb"[0-9]")


def search(
    line: bytes, low: bytes, classes: bytes, start: int, begin: int, *, is_named: bool, has_login: bool
) -> list[Span]:
    """Return the spans of a line: from `begin` on those of words, from `start` on those of names and URLs."""
    spans: list[Span] = []
    if has_login:
        spans += _named("url-password", low, start)
    if is_named:
        blocks = _key_blocks(low, start)
        classes = _without(classes, blocks)
        spans += blocks
        for rule, shape in rules_table().named.items():
            if shape.pattern and rule not in ("url-password", "private-key"):
                spans += _named(rule, low, start)
    if begin >= 0:
        spans += Words(line, classes).tokens(begin)
    if len(spans) > 1:
        spans.sort()
        spans = _joined(spans)
    return spans


def begin_of_token(text: bytes) -> int:
    """Return where the last word begins if it may become a token when the text continues; else -1."""
    begin = text[-_LONGEST_HEAD:].translate(CLASSES).rfind(b" ") + 1 + max(0, len(text) - _LONGEST_HEAD)
    if begin == len(text) - _LONGEST_HEAD:
        return -1  # too long to be the beginning of a word
    code = CODE_END.match(text, begin) if begin and text[begin - 1] in CODE_BYTES else None
    found = _begin_of_prefixed(text, begin)
    return _begin_of_prefixed(text, code.end()) if found < 0 and code is not None else found


def _begin_of_prefixed(text: bytes, begin: int) -> int:
    """Return `begin` if a token's prefix is there; else -1."""
    table = rules_table()
    for head, _ in table.prefixes.get(text[begin : begin + 3], ()):
        rest = text[begin + len(head) :]
        is_long = len(rest) > _LONGEST_PLAIN or _DIGIT.search(rest) is not None  # `sk-learn` is a program
        if is_long and head not in table.plain and text.startswith(head, begin):
            return begin
    return -1


def _joined(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the rule is the more specific one, not one that only knows a name before the secret."""
    named = rules_table().named
    joined = [spans[0]]
    for begin, end, rule in spans[1:]:
        last_begin, last_end, last_rule = joined[-1]
        if begin < last_end:
            joined[-1] = (last_begin, max(end, last_end), rule if last_rule in named else last_rule)
        else:
            joined.append((begin, end, rule))
    return joined


def _without(classes: bytes, blocks: list[Span]) -> bytes:
    """Return the classes without the words in key blocks, which are redacted as a whole."""
    if not blocks:
        return classes
    pieces: list[bytes] = []
    done = 0
    for begin, end, _ in blocks:
        pieces += (classes[done:begin], b" " * (end - begin))
        done = end
    return b"".join((*pieces, classes[done:]))


def _key_blocks(low: bytes, start: int) -> list[Span]:
    """Return private keys from their first line to their last, or to where no key can continue."""
    found: list[Span] = []
    for match in pattern_of(rules_table().named["private-key"]).finditer(low, start):
        begin, end = match.span()
        head = match.start("v")
        if match.start("e") < 0 and low[end - 1] == _ESCAPE:  # it belongs to the next quote
            end = _before_escapes(low, head, end)
        if end - head >= _SHORTEST_KEY or end == len(low):  # else a text about keys
            begin -= 5 if low[begin - 5 : begin] in (b"-----", b"---- ") else 0
            found.append((begin, end, "private-key"))
    return found


def _named(rule: str, low: bytes, start: int) -> list[Span]:
    """Return what a rule finds by the text around it: a match's group `v`, or `w`."""
    found = []
    for match in pattern_of(rules_table().named[rule]).finditer(low, start):
        begin, end = match.span(match.lastgroup or 0)
        if low[end - 1] == _ESCAPE:  # it belongs to the next quote
            end = _before_escapes(low, begin, end)
        if end > begin:
            found.append((begin, end, rule))
    return found


def _before_escapes(low: bytes, begin: int, end: int) -> int:
    """Return where the backslashes before `end` begin."""
    return begin + len(low[begin:end].rstrip(b"\\"))
