"""Query: what people type, as terms, and which of them an item's text has.

Words all have to be in one item; `"several words"` is a phrase, `-word` must not be there, `wor*` is the beginning of a
word. A word with other characters in it, such as `retry_budget`, is a phrase of its parts. The same tokenizer makes the
words of queries, of the index, and of the texts that are checked.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from msgspec import Struct

from sessionlog.errors import InvalidQuery
from sessionlog.search.store import TOKENIZER

MOST_MARKS = 10_000
"""Places that are marked in one text."""

_PIECE = 8 << 10  # characters; SQLite copies all of a marked text for each mark
_GAP = 2 << 10  # characters between the words of a phrase, where a text is cut
_AT_ONCE = 256
_SEPARATOR = re.compile(r"[\0-/:-@\[-`{-\x7f\u2000-\u206f\u3000-\u3002\uff01-\uff0f]")
_HIGHLIGHT = "SELECT rowid, highlight(texts, 0, '\1', '\2') FROM texts WHERE texts MATCH ?"
_BLANKS = {0: " ", 1: " ", 2: " "}  # `highlight` ends a text at a NUL

_TERM = re.compile(r'(-?)"([^"]*)"?(\*?)|(\S+)')


class Term(Struct, frozen=True):
    """A word or a phrase.

    Attributes:
        words: The words, one after the other.
        is_prefix: The last one is only the beginning of a word.
        is_excluded: It must not be there.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    is_excluded: bool = False

    @property
    def is_phrase(self) -> bool:
        """Whether positions matter, which an index does not have."""
        return len(self.words) > 1

    @property
    def text_match(self) -> str:
        """The query for the texts that have it."""
        return _quoted(self.words, is_prefix=self.is_prefix)


class Query(Struct, frozen=True):
    """What to search for; at least one term is not excluded.

    Attributes:
        terms: The terms.
        regex: A pattern that the text has to match, too; None for any.
        is_unclosed: A quote was opened and not closed: what follows it is one phrase.
    """

    terms: tuple[Term, ...]
    regex: re.Pattern[str] | None = None
    is_unclosed: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether the index alone decides which items match."""
        return self.regex is None and not any(term.is_phrase for term in self.terms)

    @property
    def index_match(self) -> str:
        """The query for the index: every item that matches is found by it, and maybe others."""
        wanted = [_quoted([word], is_prefix=term.is_prefix and word is term.words[-1])
                  for term in self.terms if not term.is_excluded for word in term.words]  # fmt: skip
        excluded = [term.text_match for term in self.terms if term.is_excluded and not term.is_phrase]
        return f"({' AND '.join(wanted)})" + "".join(f" NOT {one}" for one in excluded)


def parse_query(words: Sequence[str], *, regex: str | None = None) -> Query:
    """Return the query that the arguments of a command line mean.

    An argument with blanks is one phrase, as a shell's quotes suggest, unless it has quotes or `-words` of its own.

    Raises:
        InvalidQuery: There is nothing to search for, or the pattern is no regular expression.
    """
    texts = Texts()
    terms = [term for argument in words for term in _terms(argument, texts)]
    if not any(not term.is_excluded for term in terms):
        given = " ".join(words)
        hint = (
            f"{given!r} has no word to search for: a word has letters or digits" if given else "nothing to search for"
        )
        raise InvalidQuery(f"{hint}; for example: sessionlog find retry budget")
    try:
        pattern = None if regex is None else re.compile(regex, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidQuery(f"--regex {regex!r} is no regular expression: {error}") from error
    return Query(tuple(terms), pattern, any(argument.count('"') % 2 for argument in words))


def _terms(argument: str, texts: Texts) -> Iterable[Term]:
    pieces = argument.split()
    is_phrase = len(pieces) > 1 and '"' not in argument and not any(one.startswith("-") for one in pieces)
    found = [("", argument.rstrip("*"), "*" if argument.endswith("*") else "")] if is_phrase else [
        _piece(match) for match in _TERM.finditer(argument)
    ]  # fmt: skip
    for minus, text, star in found:
        if words := texts.words_of(text):
            yield Term(tuple(words), bool(star), bool(minus))


def _piece(match: re.Match[str]) -> tuple[str, str, str]:
    minus, phrase, star, word = match.groups()
    if word is None:
        return minus, phrase, star
    return "-" if word.startswith("-") else "", word.lstrip("-").rstrip("*"), "*" if word.endswith("*") else ""


def _quoted(words: Iterable[str], *, is_prefix: bool) -> str:
    return f'"{" ".join(words)}"{" *" if is_prefix else ""}'  # words have letters and digits only


class Texts:
    """A small full-text index in memory, with positions: it finds words in texts, and marks them."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance)")

    def __del__(self) -> None:
        """Close the connection: Python 3.13 and later warn of one that is only dropped."""
        self._connection.close()

    def words_of(self, text: str) -> list[str]:
        """Return the words of a text in their order, as the index has them."""
        with self._filled([text]) as execute:
            return [word for (word,) in execute("SELECT term FROM words ORDER BY offset")]

    def matching(self, query: Query, texts: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
        """Return the texts that match, by their index, each with the [start, end) of what was found.

        Of a long text these are the first `MOST_MARKS`. It is searched in pieces, which keeps memory and time small.
        """
        matched, marks = self._search(query, texts)
        pattern = query.regex
        if pattern is None:
            return {number: marks[number] for number in sorted(matched)}
        return {
            number: list(islice((one.span() for one in pattern.finditer(texts[number]) if one[0]), MOST_MARKS))
            for number in sorted(matched)
            if pattern.search(texts[number])
        }

    def _search(self, query: Query, texts: Sequence[str]) -> tuple[set[int], list[list[tuple[int, int]]]]:
        """Return the indexes of the texts that match, and what is found in each text: [start, end)s in their order."""
        having: dict[Term, set[int]] = {term: set() for term in query.terms}
        marks: list[list[tuple[int, int]]] = [[] for _ in texts]
        overlap = _GAP + max(len(term.text_match) for term in query.terms)
        wanted = " OR ".join(term.text_match for term in query.terms if not term.is_excluded)
        pieces = ((number, *span) for number, text in enumerate(texts) for span in _spans(text, overlap))
        while chunk := list(islice(pieces, _AT_ONCE)):
            with self._filled(texts[number][start:end] for number, start, end in chunk) as execute:
                for term, found in having.items():
                    rows = execute("SELECT rowid FROM texts WHERE texts MATCH ?", (term.text_match,))
                    found.update(chunk[row - 1][0] for (row,) in rows)
                if any(len(marks[number]) < MOST_MARKS for number, _, _ in chunk):
                    for row, marked in execute(_HIGHLIGHT, (wanted,)):
                        number, start, _ = chunk[row - 1]
                        _add_marks(marks[number], _marks_of(marked, start))
        matched = set(range(len(texts)))
        for term, found in having.items():
            matched = matched - found if term.is_excluded else matched & found
        return matched, marks

    @contextmanager
    def _filled(self, texts: Iterable[str]) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Yield the function that queries these texts; they are rolled back, which is faster than deleting them."""
        self._connection.execute("BEGIN")
        try:
            rows = ((number, storable(text).translate(_BLANKS)) for number, text in enumerate(texts, 1))
            self._connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
            yield self._connection.execute
        finally:
            self._connection.execute("ROLLBACK")


def storable(text: str) -> str:
    """Return a text as valid UTF-8, which SQLite needs, with a `?` for each lone surrogate."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _spans(text: str, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of pieces of a text, which cut no word; a phrase not longer than `overlap` is in one."""
    start = 0
    while (cut := _SEPARATOR.search(text, start + _PIECE + overlap)) is not None:
        yield start, cut.start()
        start = next(_SEPARATOR.finditer(text, cut.start() - overlap)).start()
    yield start, len(text)


def _marks_of(marked: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of what SQLite has marked in a piece that begins at `start`."""
    before, *rest = marked.split("\1")
    start += len(before)
    for one in rest:
        found, _, after = one.partition("\2")
        yield start, start + len(found)
        start += len(found) + len(after)


def _add_marks(marks: list[tuple[int, int]], more: Iterable[tuple[int, int]]) -> None:
    """Add marks of the next piece, which may begin in the one before."""
    for start, end in more:
        if marks and start < marks[-1][1]:
            marks[-1] = marks[-1][0], max(end, marks[-1][1])
        elif len(marks) < MOST_MARKS:
            marks.append((start, end))
