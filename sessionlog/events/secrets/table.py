"""The table of `rules.py`, sorted by how its rules are found; patterns are compiled when a line first needs them."""

from __future__ import annotations

import re

from sessionlog.events.secrets import rules as table
from sessionlog.events.secrets.long_words import Span

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionlog.events.secrets.rule import Rule

LEAST_HEADED = 20
"""Bytes of a word that is known by its beginning, but for a few rules."""

_patterns: dict[str, re.Pattern[bytes]] = {}


def pattern_of(rule: Rule) -> re.Pattern[bytes]:
    """The rule's expression, compiled when it is first needed."""
    pattern = _patterns.get(rule.id)
    if pattern is None:
        pattern = _patterns[rule.id] = re.compile(rule.pattern)
    return pattern


def match_rule(rule: Rule, line: bytes, at: int) -> Span | None:
    """Return the secret of a rule that begins at `at`."""
    match = (_patterns.get(rule.id) or pattern_of(rule)).match(line, at)
    return None if match is None else (at, match.end(), rule.id)


class Matcher:
    """A rule that compiles its expression when it is first tried.

    Attributes:
        rule: The row of the table.
        match: Matches the whole secret at a place.
    """

    __slots__ = ("match", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.match: Callable[[bytes, int], re.Match[bytes] | None] = self._first_match

    def _first_match(self, line: bytes, at: int) -> re.Match[bytes] | None:
        self.match = pattern_of(self.rule).match
        return self.match(line, at)


class Table:
    """The rules by what is seen first of them; a millisecond that the first long word pays.

    Attributes:
        heads: The first three bytes of a word, with the rules of words that begin so.
        short: The same for the few whose word may have less than `LEAST_HEADED` bytes.
        beginnings: The same with the whole beginnings.
        behind: The two bytes before a word; with them its least length, what stands there, how far before the word the
            secret begins, and the rule.
        far: The byte before a word, with the rules whose beginning stands further in front.
        odd: The rules that are known by neither, as one expression with a group for each.
        plain: Beginnings that ordinary words have, too.
        inner: A dash before a beginning that means a secret wherever it stands.
        named: Rule by id, for what is searched for by the text around it.
    """

    __slots__ = (
        "beginnings",
        "behind",
        "far",
        "heads",
        "inner",
        "named",
        "odd",
        "plain",
        "short",
    )

    def __init__(self) -> None:
        self.heads: dict[bytes, list[Matcher]] = {}
        self.short: dict[bytes, list[Matcher]] = {}
        self.beginnings: dict[bytes, list[tuple[bytes, Rule]]] = {}
        self.behind: dict[bytes, list[tuple[int, bytes, int, Matcher]]] = {}
        self.far: dict[int, list[Rule]] = {}
        odd = []
        for rule in table.RULES:
            matcher = Matcher(rule)
            for behind in rule.behind:
                back = len(behind) if rule.back is None else rule.back
                entry = rule.least, behind.encode(), back, matcher
                self.behind.setdefault(behind[-2:].encode(), []).append(entry)
            for head in rule.heads:
                self.beginnings.setdefault(head[:3].encode(), []).append((head.encode(), rule))
                matchers = self.heads.setdefault(head[:3].encode(), [])
                if matcher not in matchers:
                    matchers.append(matcher)
                    if rule.least < LEAST_HEADED:
                        self.short.setdefault(head[:3].encode(), []).append(matcher)
            if rule.far:
                self.far.setdefault(rule.far[-1], []).append(rule)
            if not rule.heads and not rule.behind and not rule.far:
                odd.append(b"(?P<%b>%b)" % (rule.id.replace("-", "_").encode(), rule.pattern))
        self.odd = re.compile(b"|".join(odd))
        self.plain = frozenset(head.encode() for head in table.PLAIN_HEADS)
        self.inner = re.compile(table.INNER)
        self.named = {rule.id: rule for rule in table.NAMED}


_table: Table | None = None


def rules_table() -> Table:
    """The one table of this process."""
    global _table  # noqa: PLW0603 - made once, by the first line that needs it
    if _table is None:
        _table = Table()
    return _table
