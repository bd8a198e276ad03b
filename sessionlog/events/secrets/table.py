"""Indexes of the rules in `rules.py` by what identifies them; patterns are compiled when a line first needs them."""

from __future__ import annotations

import re

from sessionlog.events.secrets import rules as table
from sessionlog.events.secrets.long_words import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionlog.events.secrets.rule import Rule

LEAST_PREFIXED = 20
"""Least length of a word with a known prefix; a few rules allow shorter ones."""

_patterns: dict[str, re.Pattern[bytes]] = {}


def pattern_of(rule: Rule) -> re.Pattern[bytes]:
    """Return the rule's expression, compiled when it is first needed."""
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
        match: Matches the whole secret at an offset.
    """

    __slots__ = ("match", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.match: Callable[[bytes, int], re.Match[bytes] | None] = self._first_match

    def _first_match(self, line: bytes, at: int) -> re.Match[bytes] | None:
        self.match = pattern_of(self.rule).match
        return self.match(line, at)


class Table:
    """Indexes of the rules; the first long word takes a millisecond to make them.

    Attributes:
        by_prefix: The first three bytes of a word → the rules with such a prefix.
        short: The same for the few rules whose word may be shorter than `LEAST_PREFIXED` bytes.
        prefixes: The first three bytes of a word → (whole prefix, rule).
        by_preceding: The two bytes before a word → (the word's least length, the whole text before it, how many bytes
            before the word the secret begins, rule).
        far: The byte before a word → the rules with a `far` text.
        odd: The rules with none of these, as one expression with a group for each.
        plain: Prefixes that ordinary words have, too.
        inner: A dash before a prefix that marks a secret at any position.
        named: Id → rule, for secrets that are found by the text around them.
    """

    __slots__ = ("by_preceding", "by_prefix", "far", "inner", "named", "odd", "plain", "prefixes", "short")

    def __init__(self) -> None:
        self.by_prefix: dict[bytes, list[Matcher]] = {}
        self.short: dict[bytes, list[Matcher]] = {}
        self.prefixes: dict[bytes, list[tuple[bytes, Rule]]] = {}
        self.by_preceding: dict[bytes, list[tuple[int, bytes, int, Matcher]]] = {}
        self.far: dict[int, list[Rule]] = {}
        odd = []
        for rule in table.RULES:
            matcher = Matcher(rule)
            for text in rule.preceded_by:
                back = len(text) if rule.back is None else rule.back
                entry = rule.least, text.encode(), back, matcher
                self.by_preceding.setdefault(text[-2:].encode(), []).append(entry)
            for prefix in rule.prefixes:
                self.prefixes.setdefault(prefix[:3].encode(), []).append((prefix.encode(), rule))
                matchers = self.by_prefix.setdefault(prefix[:3].encode(), [])
                if matcher not in matchers:
                    matchers.append(matcher)
                    if rule.least < LEAST_PREFIXED:
                        self.short.setdefault(prefix[:3].encode(), []).append(matcher)
            if rule.far:
                self.far.setdefault(rule.far[-1], []).append(rule)
            if not rule.prefixes and not rule.preceded_by and not rule.far:
                odd.append(b"(?P<%b>%b)" % (rule.id.replace("-", "_").encode(), rule.pattern))
        self.odd = re.compile(b"|".join(odd))
        self.plain = frozenset(prefix.encode() for prefix in table.PLAIN_PREFIXES)
        self.inner = re.compile(table.INNER)
        self.named = {rule.id: rule for rule in table.NAMED}


_table: Table | None = None


def rules_table() -> Table:
    """Return the table, made at the first call."""
    global _table  # noqa: PLW0603 - made once, by the first line that needs it
    if _table is None:
        _table = Table()
    return _table
