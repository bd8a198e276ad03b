"""The search behind the first look: long words, then what is known by the text around it."""

from __future__ import annotations

import re

from sessionlog.events.secrets.long_words import CLASSES, HARMLESS, LEAST_WORD, LONG, Span

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from sessionlog.events.secrets.rules import Rule

_BREAK = re.compile(rb"\\{0,16}(?:\\r)?\\{1,16}n[ \t]{0,8}|\r?\n[ \t]{0,8}")
_MORE = re.compile(
    rb"(?:\\{0,16}(?:\\r)?\\{1,16}n|\r?\n)[ \t]{0,8}"
    rb"(?=[A-Za-z+/_=-]{0,40}[0-9])(?=[0-9+/_=-]{0,40}[A-Za-z])[A-Za-z0-9+/_=-]{8,}"
)
_DIGIT = re.compile(rb"[0-9]")
_KEY_BODY = re.compile(rb"[a-z0-9+/=\s:,.()_%\\-]*")
_KEY_END = re.compile(rb"-{4,5} ?end(?: |%20|\+)[a-z0-9 %+]{0,40}key(?:(?: |%20|\+)block)? ?-{4,5}")
_SHORTEST_KEY = 16
_COLOUR = re.compile(rb"[0-9]{0,3}[mK]")
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_LENGTH, _SHORTEST_ODD, _BROKEN_FROM = 36, 23, 40
_MOST_JOINS = 300
"""Broken words that are put together in one line: each costs microseconds, however many a hostile line holds."""

_ESCAPE, _UNICODE, _NEWLINE = b"\\un"
_QUOTING = b" \t\"'`\\"
_BASE64 = bytes(byte for byte in range(128) if chr(byte).isalnum() or byte in b"+/_-")
_SPECIAL = frozenset(b"\\%[;.~:/+\n")
_BEFORE_VALUE = frozenset(b" \t=:>\"'`/+%\\")
_ALONE = re.compile(
    rb"(?:(?!(?i:key|ken|ret|ord|swd|pwd|ase|uth|sig)).{3}\":\"|.{4}[{,]\")[A-Za-z0-9_-]{15,64}\"", re.DOTALL
)
"""A word that makes up a string of JSON, with six bytes in front that are no secret's name: nothing else counts."""
_MOST_HARMLESS = 1000
_LONGEST_HEAD = 64
_SLASH, _DOT, _PERCENT, _LINE_END, _BLANK, _QUOTE = b'/.%\n "'
_NAME_ENDS = frozenset((b"key", b"ken", b"ret", b"ord", b"swd", b"pwd", b"ase", b"uth", b"sig"))


def search(
    line: bytes, low: bytes, classes: bytes, start: int, begin: int, *, is_named: bool, has_login: bool
) -> list[Span]:
    """Return the spans of a line: from `begin` on those of words, from `start` on those of names and URLs."""
    spans: list[Span] = []
    blocks: list[Span] = []
    if has_login:
        spans += _search("url-password", low, start)
    if is_named:
        blocks = _key_blocks(low, start)
        for rule in _rules().named:
            if rule != "url-password":
                spans += _search(rule, low, start)
    if begin >= 0:
        spans += _Words(line, classes).tokens(begin, blocks)
    spans += blocks
    if len(spans) > 1:
        spans.sort()
        spans = _joined(spans)
    return spans


def begin_of_token(text: bytes) -> int:
    """Where the last word begins, if it may become a token when the text goes on; -1 if not."""
    begin = text[-_LONGEST_HEAD:].translate(CLASSES).rfind(b" ") + 1 + max(0, len(text) - _LONGEST_HEAD)
    if begin == len(text) - _LONGEST_HEAD:
        return -1  # too long to be the beginning of a word
    for head, _ in _rules().heads.get(text[begin : begin + 3], ()):
        rest = text[begin + len(head) :]
        is_long = len(rest) > len(b"learn") or _DIGIT.search(rest) is not None  # `sk-learn` is a program
        if is_long and head not in _rules().plain and text.startswith(head, begin):
            return begin
    return -1


def _joined(spans: list[Span]) -> list[Span]:
    """Join spans that overlap; the rule to name is not the one that only knows a name in front of the secret."""
    joined = [spans[0]]
    for begin, end, rule in spans[1:]:
        last_begin, last_end, last_rule = joined[-1]
        if begin < last_end:
            by_name = last_rule in _rules().named or last_rule.endswith("-by-name")
            joined[-1] = (last_begin, max(end, last_end), rule if by_name else last_rule)
        else:
            joined.append((begin, end, rule))
    return joined


class _Words:
    """The long words of a line, and the tokens among them."""

    __slots__ = ("_classes", "_done", "_heads", "_joins", "_line", "_rules")

    def __init__(self, line: bytes, classes: bytes) -> None:
        self._line = line
        self._classes = classes
        self._rules = _rules()
        self._heads = self._rules.heads
        self._joins = _MOST_JOINS
        self._done = 0  # the end of the last token

    def tokens(self, begin: int, skips: list[Span]) -> list[Span]:
        """Return the tokens from the word that begins at `begin`, outside of key blocks."""
        line, find, size = self._line, self._classes.find, len(self._line)
        heads, digit = self._heads, _DIGIT.search
        spans: list[Span] = []
        skipped = 0
        while begin >= 0:
            while skipped < len(skips) and skips[skipped][1] <= begin:
                skipped += 1
            if skipped < len(skips) and skips[skipped][0] <= begin:
                begin = find(LONG, skips[skipped][1])
                continue
            end = find(b" ", begin + LEAST_WORD)
            if end < 0:
                end = size
            before = line[begin - 1] if begin else _BLANK
            found = None
            if before in _SPECIAL:
                found = self._after_special(begin, end, before)
                if before == _ESCAPE:
                    begin += 5 if line[begin] == _UNICODE else 1
                elif before == _PERCENT:
                    begin += 2
            elif before == _BLANK and line[begin - 2 : begin - 1] == b" ":  # an indented line, perhaps
                found = self._broken(begin)
            if found is None and line[begin : begin + 3] in heads:
                found = self._headed(begin, end)
            if found is None and (digit(line, begin, end) is not None or before in b"/+"):
                found = self._without_head(begin, end, before)
            if found is not None:
                if found[1] - found[0] >= _BROKEN_FROM:
                    found = _lengthened(line, found)
                spans.append(found)
                self._done = found[1]
                end = max(end, found[1])
            elif before == _QUOTE:
                word = line[begin - 6 : end + 1]
                if word not in HARMLESS and _ALONE.match(word) is not None:
                    if len(HARMLESS) >= _MOST_HARMLESS:
                        HARMLESS.clear()
                    HARMLESS.add(word)
            begin = find(LONG, end)
        return spans

    def _without_head(self, begin: int, end: int, before: int) -> Span | None:
        """A token that begins behind a dash, whose shape is odd, or that a name stands in front of."""
        line = self._line
        length = end - begin
        if not (length == _UUID_LENGTH and _UUID.match(line, begin)):
            match = self._rules.inner.search(line, begin, end)
            if match is not None:
                found = self._headed(match.start() + 1, end)
                if found is not None:
                    return found
            match = self._rules.odd.match(line, begin) if length >= _SHORTEST_ODD else None
            if match is not None:
                return begin, match.end(), str(match.lastgroup).replace("_", "-")
        return _named_value(line, begin) if before in _BEFORE_VALUE else None

    def _after_special(self, begin: int, end: int, before: int) -> Span | None:
        """A token where the word's first letters are not its own, or where its own stand before the word."""
        line = self._line
        if before == _LINE_END or (before == _ESCAPE and line[begin] == _NEWLINE):
            return self._broken(begin)
        if before in b"[;":
            colour = _COLOUR.match(line, begin)
            return self._headed(colour.end(), end) if colour is not None else None
        if before == _DOT:  # what stands before it is a part of the word
            found = self._behind_dots(begin)
            if found is not None:
                return found
        if before in b"/+":  # base64, and the token may begin before the word
            first = self._classes.rfind(b" ", max(self._done, begin - LEAST_WORD - 1), begin - 1) + 1
            found = self._headed(first, begin) if first > 0 else None
            if found is not None:
                return found
        for rule in self._rules.behind.get(line[begin - 2 : begin], ()):
            if line.endswith(rule.behind, 0, begin):
                found = _match(rule, line, begin - rule.back)
                if found is not None:
                    return found
        if before == _SLASH and (slack := line.find(b"hooks.slack.com/", max(0, begin - 80), begin)) >= 0:
            return _match(self._rules.slack, line, slack)
        return None

    def _behind_dots(self, begin: int) -> Span | None:
        """The token that begins up to three dots before the word; a long word there was looked up already."""
        line = self._line
        for _ in range(3):
            last = begin - 1
            floor = max(self._done, last - LEAST_WORD)
            begin = self._classes.rfind(b" ", floor, last) + 1
            if begin == 0 and floor > self._done:
                return None
            begin = max(begin, self._done)
            begin += line[begin - 1 : begin] == b"\\"
            found = self._headed(begin, last)
            if found is not None:
                return found
            if line[begin - 1 : begin] != b".":
                return None
        return None

    def _headed(self, at: int, end: int, *, broken: bool = False) -> Span | None:
        """The token whose prefix stands at `at`; a broken one goes on in the next lines."""
        line = self._line
        entries = self._heads.get(line[at : at + 3])
        if entries is None:
            return None
        for head, rule in entries:
            if line.startswith(head, at):
                found = None if broken else _match(rule, line, at)
                if found is None and self._joins and (broken or _BREAK.match(line, end)):
                    self._joins -= 1
                    found = _match_joined(rule, line, at)
                if found is not None:
                    return found
        return None

    def _broken(self, begin: int) -> Span | None:
        """The token that began as a short word at the end of the line before this word's."""
        line = self._line
        cut = begin - 1
        if line[cut] == _BLANK:
            cut = max(line.rfind(b"\\n", begin - 10, begin), line.rfind(b"\n", begin - 10, begin))
        while cut > 0 and line[cut - 1] in b"\\\r":
            cut -= 1
        if line[cut - 2 : cut] == b"\\r":
            cut -= 2
        floor = max(self._done, cut - LEAST_WORD - 1)
        at = self._classes.rfind(b" ", floor, cut) + 1
        if at == 0 and floor > self._done:
            return None  # a long word, which was looked up already
        at = max(at, self._done)
        at += line[at - 1 : at] == b"\\"
        return self._headed(at, at, broken=True) if at < cut and self._joins else None


def _named_value(line: bytes, begin: int) -> Span | None:
    """The word as the value of a name that ends in key, token, secret or password."""
    if line[begin - 3 : begin] == b'":"' and line[begin - 6 : begin - 3].lower() not in _NAME_ENDS:
        return None  # nearly every value
    if begin and line[begin - 1] in b"/+":  # base64: the value may begin before the word
        text = line[max(0, begin - 64) : begin]
        begin -= len(text) - len(text.rstrip(_BASE64))
        if line[begin] == _SLASH:  # a path
            return None
    front = line[max(0, begin - 100) : begin].rstrip(_QUOTING)
    if front.endswith((b"=", b":", b">")):
        front = front.rstrip(b"=:> ")
    elif front.endswith((b"%3D", b"%3d", b"%3A", b"%3a")):
        front = front[:-3]
    elif front.endswith((b"u003d", b"u003e")):
        front = front[:-5].rstrip(b"\\")
    else:
        return None
    bare = front.rstrip(_QUOTING + b"]").removesuffix(b"%22").removesuffix(b"%27")
    if bare[-3:].lower() not in _NAME_ENDS or (front != bare and line[begin - 1] not in b"\"'`27"):
        return None  # the name is in quotes and the value is not: a bare number of JSON, which must stay valid
    low = bare[-48:].lower()
    rules = _rules()
    word = next((word for word in rules.names if low.endswith(word)), None)
    if word is None:
        return None
    kind = low[: -len(word)].rstrip(b"_-. ")
    if kind.endswith(rules.harmless):
        return None
    value = rules.very_random if word == b"key" and not kind.endswith(rules.secretive) else rules.random
    match = value.match(line, begin)
    return None if match is None else (begin, match.end(), f"{rules.names[word]}-by-name")


def _key_blocks(low: bytes, start: int) -> list[Span]:
    """Private keys from their first line to their last, or to where no key can go on."""
    found: list[Span] = []
    done = start
    for match in _compiled(_rules().block).finditer(low, start):
        begin, head = match.span()
        if begin < done:
            continue
        stop = low.find(b"----", head)
        done = _KEY_BODY.match(low, head, stop if stop >= 0 else len(low)).end()  # type: ignore[union-attr] # may be empty
        last = _KEY_END.match(low, done) if done == stop else None
        if last is not None:
            done = last.end()
        elif low[done - 1] == _ESCAPE:  # it belongs to the quote behind
            done = head + len(low[head:done].rstrip(b"\\"))
        if done - head >= _SHORTEST_KEY or done == len(low):  # else somebody only writes about keys
            begin -= 5 if low[begin - 5 : begin] in (b"-----", b"---- ") else 0
            found.append((begin, done, "private-key"))
    return found


def _search(rule: str, low: bytes, start: int) -> list[Span]:
    """What is known by the text around it: a match's group `v`, or `w`."""
    found = []
    for match in _compiled(_rules().named[rule]).finditer(low, start):
        begin, end = match.span("v")
        if begin < 0:
            begin, end = match.span("w")
        if low[end - 1] == _ESCAPE:  # it belongs to the quote behind
            end = begin + len(low[begin:end].rstrip(b"\\"))
        if end > begin:
            found.append((begin, end, rule))
    return found


_patterns: dict[str, re.Pattern[bytes]] = {}


def _compiled(rule: Rule) -> re.Pattern[bytes]:
    pattern = _patterns.get(rule.id)
    if pattern is None:
        pattern = _patterns[rule.id] = re.compile(rule.pattern)
    return pattern


def _match(rule: Rule, line: bytes, at: int) -> Span | None:
    match = (_patterns.get(rule.id) or _compiled(rule)).match(line, at)
    return None if match is None else (at, match.end(), rule.id)


def _match_joined(rule: Rule, line: bytes, at: int) -> Span | None:
    """The same for a token that goes on in the next lines."""
    window = line[at : at + 600]
    found = _match(rule, _BREAK.sub(b"", window), 0)
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


class _Rules:
    """The table, sorted by how its rules are found; a millisecond that the first long word pays.

    Attributes:
        heads: The first three bytes of a word, with the whole beginnings and their rules.
        behind: The two bytes before a word, with the rules that look at them.
        block: The first line of a private key.
        odd: The rules that are known by neither, as one expression with a group for each.
        plain: Beginnings that ordinary words have, too.
        inner: A dash before a beginning that means a secret wherever it stands.
        named: Rule by id, for what is searched for by the text around it.
        names: What a secret's name ends in.
        harmless: What stands before that in names of other things: a public key, a token of a page.
        secretive: What makes a key a secret one.
        slack: A rule whose beginning stands two names before the word.
        random: What a secret's value looks like.
        very_random: The same where the name says little.
    """

    __slots__ = (
        "behind",
        "block",
        "harmless",
        "heads",
        "inner",
        "named",
        "names",
        "odd",
        "plain",
        "random",
        "secretive",
        "slack",
        "very_random",
    )

    def __init__(self) -> None:
        from sessionlog.events.secrets import rules as table  # noqa: PLC0415 - see above

        self.heads: dict[bytes, list[tuple[bytes, Rule]]] = {}
        self.behind: dict[bytes, list[Rule]] = {}
        odd = []
        for rule in table.RULES:
            if rule.behind == b":":
                for digit in b"0123456789":
                    self.behind[bytes((digit, 58))] = [rule]
            elif rule.behind:
                self.behind.setdefault(rule.behind[-2:], []).append(rule)
            if rule.id == "slack-webhook":
                self.slack = rule
            for head in rule.heads:
                self.heads.setdefault(head[:3].encode(), []).append((head.encode(), rule))
            if not rule.heads and not rule.behind:
                odd.append(b"(?P<%b>%b)" % (rule.id.replace("-", "_").encode(), rule.pattern))
        self.odd = re.compile(b"|".join(odd))
        self.plain = frozenset(head.encode() for head in table.PLAIN_HEADS)
        self.inner = re.compile(table.INNER)
        self.block = next(rule for rule in table.NAMED if rule.id == "private-key")
        self.named = {rule.id: rule for rule in table.NAMED if rule.pattern and rule is not self.block}
        self.names = table.NAMES
        self.harmless = table.HARMLESS
        self.secretive = table.SECRETIVE
        self.random = re.compile(table.NO_VALUE + table.RANDOM)
        self.very_random = re.compile(table.NO_VALUE + table.VERY_RANDOM)


_table: _Rules | None = None


def _rules() -> _Rules:
    global _table  # noqa: PLW0603 - made once, by the first line that needs it
    if _table is None:
        _table = _Rules()
    return _table
