r"""Finds the secrets in a line: spans, each with the rule that matched. Linear in the line's length.

There are three stages, from cheap to expensive. The first takes a microsecond and is enough for most lines: no long
word, no name of a password before `=` or `:`, no password in a URL. Then each long word is looked up by its first three
bytes, so that the number of rules costs nothing, and by the name before it (`api_key=`); a rule's pattern is compiled
when its prefix first occurs. Last, passwords, headers, key blocks and URLs are searched for by one expression each, and
only if the first stage has found their names.

The lines are encoded JSON, and other agents' files: a word may begin after an escape (`\n`, `\u001b[31m`, `%3D`),
quotes may be escaped several times (JSON in JSON), and a token may be broken by a line's end. A span never begins or
ends inside an escape, and never contains a quote, so that a line stays valid JSON when the span is replaced.
"""

from __future__ import annotations

import re

from sessionlog.events.secrets.long_words import CLASSES, HARMLESS, LEAST_WORD, LONG, Span

_AFTER_NAME = rb"(?:[\"'`\\\]]|%2[27]|%5d){0,20}[ \t]?(?:[:=>]|%3[ad]|\\{1,16}u003[de])"
_PASSWORD = re.compile(rb"w(?:or)?d(?:(?<=password)|(?<=passwd)|(?<=pwd))" + _AFTER_NAME).search
_SECRET = re.compile(rb"cret(?<=secret)" + _AFTER_NAME).search
_AUTHORIZATION = re.compile(rb"zation(?<=authorization)" + _AFTER_NAME).search
_BEARER = re.compile(rb"bearer(?: |%20|\+)").search
_PRIVATE = re.compile(rb"vate(?: |%20|\+|-)(?:key|lines)").search
"""A short secret's name before `=` or `:`, or a key block, in lower case. Each begins with letters that are rare, and
is searched for alone: so the search jumps from one such letter to the next, while an expression with alternatives
checks each byte and takes three times as long."""
_Z, _AT, _PERCENT = b"z@%"


_NOTHING: list[Span] = []


def may_hold_secret(line: bytes) -> bool:
    """Whether a line needs the full search; False for most lines, True also for many without a secret."""
    low = line.lower()
    return (
        line.translate(CLASSES).find(LONG) >= 0
        or _PASSWORD(low) is not None
        or _SECRET(low) is not None
        or _BEARER(low) is not None
        or _PRIVATE(low) is not None
        or (_Z in low and _AUTHORIZATION(low) is not None)
        or (_AT in line and b"://" in line)
        or (_PERCENT in line and b"%40" in line)
    )


def find_spans(line: bytes, start: int = 0) -> list[Span]:
    """Return the secrets from `start` on, in order and without overlaps."""
    classes = line.translate(CLASSES)
    begin = classes.find(LONG, start)
    while begin >= 0:
        end = classes.find(b" ", begin + LEAST_WORD)
        if line[begin - 6 : end + 1] not in HARMLESS:
            break
        begin = classes.find(LONG, end)
    low = line.lower()
    is_named = (
        _PASSWORD(low, start) is not None
        or _SECRET(low, start) is not None
        or _BEARER(low, start) is not None
        or _PRIVATE(low, start) is not None
        or (_Z in low and _AUTHORIZATION(low, start) is not None)
    )
    has_login = (_AT in line and b"://" in line) or (_PERCENT in line and b"%40" in line)
    if begin < 0 and not is_named and not has_login:
        return _NOTHING
    from sessionlog.events.secrets.search import search

    return search(line, low, classes, start, begin, is_named=is_named, has_login=has_login)
