"""Finds the tokens among a line's long words.

Each long word is checked once, in a fixed number of steps, and each step is bounded or consumes what it reads: a
pattern that can fail reads at most some hundred bytes beyond the word, and the words within a match are skipped. So the
search is linear in the line's length.

A megabyte may hold 60,000 such words, and the promised limit is 50 ms: so the loop checks first what is cheapest (the
bytes before the word, its first three), and what most words lack (a prefix after a dash, a run of twenty letters and
digits) is searched for from one occurrence to the next instead of in each word.
"""

from __future__ import annotations

import re

from sessionlog.events.secrets.long_words import HARMLESS, LEAST_WORD, LONG, Span
from sessionlog.events.secrets.named_values import NAME_ENDS, named_value
from sessionlog.events.secrets.table import LEAST_PREFIXED, match_rule, rules_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.events.secrets.rule import Rule

_WORD = re.compile(LONG + b"a*+")
_HEX = re.compile(rb"[0-9A-Fa-f]{2}")
_DASHES = re.compile(rb"-++")
_BREAK = re.compile(rb"(?:\\{1,16}+(?:r\\{1,16}+)?n|\r?\n)[ \t]{0,8}")
_MORE = re.compile(
    rb"(?:\\{1,16}+(?:r\\{1,16}+)?n|\r?\n)[ \t]{0,8}"
    rb"(?=[A-Za-z+/_=-]{0,40}[0-9])(?=[0-9+/_=-]{0,40}[A-Za-z])[A-Za-z0-9+/_=-]{8,}+"
)
CODE_END = re.compile(rb"[0-9]{0,4}[mKH]|[0-9]{1,4}[A-Zfhlr]|(?<=\[)[A-Zsu]")
"""The rest of a terminal's code (`ESC [ 31 m`) after a byte of `CODE_BYTES`: it is part of the word that follows."""
CODE_BYTES = frozenset(b"[;:?")
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MAIL_KEYS = (36, 37, 50)
"""The lengths of the only such tokens that begin with a run of their own: Mailchimp's and Mailgun's."""

_UUID_LENGTH, _BROKEN_FROM, _FAR_FROM, _FAR = 36, 40, 20, 80
_JOINS, _BYTES_OF_A_JOIN, _WINDOW, _LINES = 64, 4096, 400, 8
"""Words broken by a line's end that are joined in one line: 64, and one more for each 4 KiB. Each takes some ten
microseconds, and a hostile line may hold any number."""

_SOLID = bytes(97 if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_SOLID_RUN = b"a" * 20
"""The shortest run of letters and digits in a token without a known prefix."""

_ESCAPE, _UNICODE, _NEWLINE, _DASH = b"\\un-"
_ESCAPED = frozenset(b"bfnrtu")
_CODED = {ord("x"): 3, ord("U"): 9}
"""The lengths of escapes of programs that have a character's number: a quote is `x22` in the programs of pages."""

_PERCENT, _LINE_END, _BLANK, _QUOTE = b'%\n "'
_BEHIND = frozenset(b".~:/+$")
_ENCODED = frozenset((b"3D", b"3d", b"3A", b"3a", b"22", b"27"))
"""`=`, `:` and quotes in a URL."""
_INDENT, _BEFORE_INDENT = 32, frozenset((b"=", b":", b">", b'"', b"'", b"`", b"\\"))
"""Most blanks between a name's `=` and its value."""
_NEAR = 4
"""Between two words with at most so many bytes in between, no token can begin."""
_LINE_ENDS = frozenset(b"\\\r\n")
_QUOTING = frozenset(b" \t\"'`")
_BEFORE_QUOTING = frozenset(b" \t\"'`\\=:>27")
_BEFORE_VALUE = frozenset(b" \t=:>\"'`/+%\\")
_OPERATORS = frozenset(b"=:>")
_QUOTED = frozenset(b" \t\"'`\\]=:>27")
_NOTEWORTHY = frozenset(b"\\%\n") | CODE_BYTES | _BEHIND | _BEFORE_VALUE
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
        self._joins = _JOINS + len(line) // _BYTES_OF_A_JOIN
        self._done = 0  # the end of the last token

    def tokens(self, start: int) -> list[Span]:  # noqa: PLR0915 - one loop: a call costs as much as three of its steps
        """Return the tokens of the words that begin at `start` or later."""
        line, size = self._line, len(self._line)
        table = self._table
        rules_at, inner_search = table.by_prefix, table.inner.search
        rules_of, short_rules_of = rules_at.get, table.short.get
        preceding_of, far = table.by_preceding.get, table.far
        spans: list[Span] = []
        done = last = inner = solid = -1  # ends of the last token and word; the next inner beginning; the next long run
        solids = b""
        new_words = _HARMLESS_OF_A_LINE
        for word in _WORD.finditer(self._classes, start):
            head, end = word.span()
            if head < done:
                continue
            begin, other = head, -1  # where a token begins, or else may begin
            before = line[begin - 1] if begin else _BLANK
            if before in _QUOTING and line[begin - 2] not in _BEFORE_QUOTING:
                is_plain = True  # no name in front of it, no line's end, and no escape
            else:
                is_plain = before not in _NOTEWORTHY
            found = None
            if not is_plain:
                if before in CODE_BYTES:
                    rest = CODE_END.match(line, begin)
                    if rest is not None:
                        other = rest.end()
                if before in _BEHIND:
                    for least, text, back, rule in preceding_of(line[begin - 2 : begin], ()):
                        if end - begin >= least and line.endswith(text, 0, begin) and begin - back >= max(done, 0):
                            match = rule.match(line, begin - back)
                            if match is not None:
                                found = begin - back, match.end(), rule.rule.id
                                break
                    is_far = end - begin >= _FAR_FROM and before in far
                    if found is None and (is_far or (before in b"/+" and last < begin - 1)):
                        found = self._begun_before(begin, end, before, last)
                elif before == _ESCAPE:
                    first = line[begin]
                    if first == _NEWLINE and last < begin - _NEAR:
                        found = self._broken(begin)
                    is_plain = first != _UNICODE
                    if first in _ESCAPED:
                        begin += 1 if is_plain else 5
                        other = head  # it may be no escape: `C:\\temp\\npm_…`
                    else:
                        other = head + _CODED.get(first, 1)  # an escape of a shell or a program
                elif before == _PERCENT:
                    code = line[begin : begin + 2]
                    is_plain = code not in _ENCODED
                    if _HEX.match(code) is not None:
                        begin += 2
                        other = head if code != b"25" else head + 4  # a URL's per cent in a URL
                elif before == _LINE_END:
                    if last < begin - _NEAR:
                        found = self._broken(begin)
                elif before == _BLANK and line[begin - 2] == _BLANK:  # an indented line, perhaps
                    if last < begin - _NEAR:
                        found = self._broken(begin)
                    is_plain = begin > _INDENT and line[begin - _INDENT : begin].rstrip()[-1:] not in _BEFORE_INDENT
            if found is None:
                rules = (rules_of if end - begin >= LEAST_PREFIXED else short_rules_of)(line[begin : begin + 3])
                if rules is not None:
                    for rule in rules:
                        match = rule.match(line, begin)
                        if match is not None:
                            found = begin, match.end(), rule.rule.id
                            break
                if found is None:
                    if line[begin] == _DASH and before != _PERCENT:  # a line that a diff removes
                        other = _DASHES.match(line, begin).end()  # type: ignore[union-attr] # there is one
                    if other >= 0 and line[other : other + 3] in rules_at:
                        found = self._starting_at(other, end)
                    if end < size and line[end] in _LINE_ENDS and found is None:
                        found = self._joined_at(begin, end) if self._joins else None
                    if inner < begin:
                        match = inner_search(line, begin)
                        inner = size if match is None else match.start() + 1
                    if inner < end and found is None and not _is_uuid(line, begin, end):
                        found = self._prefixed(inner)
                    if solid < begin:
                        solids = solids or line.translate(_SOLID)
                        solid = solids.find(_SOLID_RUN, begin)
                        if solid < 0:
                            solid = size
                    if (
                        begin < solid < end or end - begin in _MAIL_KEYS or end - other in _MAIL_KEYS
                    ) and found is None:
                        found = (self._odd(other) if other >= 0 else None) or self._odd(begin)
                    if not is_plain and found is None and before in _BEFORE_VALUE:
                        at = begin - 1 if before in _OPERATORS else begin - 2
                        may_be_named = line[at] not in _OPERATORS or line[at - 1] in _QUOTED
                        if may_be_named or line[at - 3 : at].lower() in NAME_ENDS:
                            found = named_value(line, begin, last)
                    if found is not None and head <= found[0] < begin:
                        found = begin, *found[1:]  # the escape stays whole
            last = end
            if found is not None:
                if found[1] < size and line[found[1]] in _LINE_ENDS and found[1] - found[0] >= _BROKEN_FROM:
                    found = _lengthened(line, found)
                spans.append(found)
                self._done = done = max(end, found[1])
            elif before == _QUOTE and new_words:
                text = line[begin - 6 : end + 1]
                new_words -= 1
                if text not in HARMLESS and _ALONE.match(text) is not None:
                    if len(HARMLESS) >= _MOST_HARMLESS:
                        HARMLESS.clear()
                    HARMLESS.add(text)
        return spans

    def _begun_before(self, begin: int, end: int, before: int, last: int) -> Span | None:
        """Return a token that begins further before the word, or whose prefix is separated by a byte of base64."""
        line = self._line
        if before in b"/+" and last < begin - 1:  # base64, and the token may begin before the word
            first = self._classes.rfind(b" ", max(self._done, begin - LEAST_WORD - 1), begin - 1) + 1
            found = self._prefixed(first) if first > 0 else None
            if found is not None:
                return found
        if end - begin >= _FAR_FROM:
            for rule in self._table.far.get(before, ()):
                at = line.find(rule.far, max(self._done, begin - _FAR), begin)
                found = match_rule(rule, line, at) if at >= 0 else None
                if found is not None:
                    return found
        return None

    def _starting_at(self, at: int, end: int) -> Span | None:
        """Return the token whose prefix is at `at`; where its word ends, at `end`, the next line may continue it."""
        line = self._line
        found = self._prefixed(at)
        if found is None and self._joins and end < len(line) and line[end] in _LINE_ENDS:
            found = self._joined_at(at, end)
        return found

    def _odd(self, at: int) -> Span | None:
        """Return the token without a known prefix that begins at `at`."""
        match = self._table.odd.match(self._line, at)
        return None if match is None else (at, match.end(), str(match.lastgroup).replace("_", "-"))

    def _prefixed(self, at: int) -> Span | None:
        """Return the token whose prefix is at `at`."""
        line = self._line
        for rule in self._table.by_prefix.get(line[at : at + 3], ()):
            match = rule.match(line, at)
            if match is not None:
                return at, match.end(), rule.rule.id
        return None

    def _joined_at(self, at: int, end: int) -> Span | None:
        """Return the token whose prefix is at `at` and whose line ends at `end`: it may continue in the next line."""
        line = self._line
        if not self._joins or not _BREAK.match(line, end):
            return None
        for head, rule in self._table.prefixes.get(line[at : at + 3], ()):
            if line.startswith(head, at):
                self._joins -= 1
                found = _match_joined(rule, line, at)
                if found is not None:
                    return found
        return None

    def _broken(self, begin: int) -> Span | None:
        """Return the token that began as a short word at the end of the line before this word's line."""
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
        at = self._classes.rfind(b" ", max(0, cut - LEAST_WORD), cut) + 1
        if at == 0 and cut >= LEAST_WORD:
            return None  # a long word, which was looked up already
        at = max(at, self._done)
        at += line[at - 1 : at] == b"\\"
        return self._joined_at(at, cut) if at < cut else None


def _is_uuid(line: bytes, begin: int, end: int) -> bool:
    return end - begin == _UUID_LENGTH and _UUID.match(line, begin) is not None


def _match_joined(rule: Rule, line: bytes, at: int) -> Span | None:
    """Match a token that continues in the next lines."""
    window = line[at : at + _WINDOW]
    found = match_rule(rule, _BREAK.sub(b"", window, _LINES), 0)
    if found is None:
        return None
    end = found[1]
    for piece in _BREAK.finditer(window):
        if piece.start() >= end:
            break
        end += piece.end() - piece.start()
    return at, at + end, rule.id


def _lengthened(line: bytes, found: Span) -> Span:
    """Extend a long token that ends where its line ends by the next line, if that looks like more of it."""
    begin, end, rule = found
    while (more := _MORE.match(line, end)) is not None:
        end = more.end()
    return begin, end, rule
