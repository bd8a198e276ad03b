"""What people type becomes terms; the index and the texts have the same words."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import InvalidQuery
from sessionlog.search.query import CLOSE, OPEN, Texts, parse_query
from sessionlog.search.store import WORDS
from tests.profiles import examples

TEXTS = ["a retry_budget", "the budget and a retry", "RETRY\nbudget", "Écrit à la main", "rebudgeted", "x\x00y budget"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["retry", "budget"], [0, 1, 2]),
        (["retry budget"], [0, 2]),
        (["retry_budget"], [0, 2]),
        (['"retry budget" -a'], [2]),
        (["budget -retry"], [5]),
        (['budget -"a retry"'], [2, 5]),
        (["bud*", "main"], []),
        (["bud*"], [0, 1, 2, 5]),
        (["retry bud*"], [0, 2]),
        (["ecrit", "A"], [3]),
    ],
)
def test_words_phrases_and_exclusions(words, found):
    """All words in any order, phrases in their order, without regard to case and accents."""
    assert sorted(Texts().matching(parse_query(words), TEXTS)) == found


@pytest.mark.parametrize(
    ("words", "found"), [(['"retry budget'], [0, 2]), (['budget "a retry'], [0, 1]), (['retry"'], [0, 1, 2])]
)
def test_a_quote_that_is_not_closed(words, found):
    """It ends with its argument, and the query knows it."""
    query = parse_query(words)
    assert sorted(Texts().matching(query, TEXTS)) == found
    assert query.is_unclosed
    assert not parse_query(['"retry budget"', "x"]).is_unclosed


def test_what_was_found_is_marked():
    """Around each occurrence; marks in a text are no marks."""
    [text] = Texts().matching(parse_query(["retry budget"]), [f"{OPEN}a {CLOSE} retry_budget"]).values()
    assert text == f"\ufffda \ufffd {OPEN}retry_budget{CLOSE}"


def test_a_pattern_narrows_and_marks():
    """The pattern has to match, too; what it matches is marked."""
    query = parse_query(["budget"], regex=r"retry.budget")
    assert Texts().matching(query, TEXTS) == {0: f"a {OPEN}retry_budget{CLOSE}"}


@pytest.mark.parametrize("words", [[], ["++"], ["-x"], ['""'], ["*"]])
def test_nothing_to_search_for(words):
    """The message has an example."""
    with pytest.raises(InvalidQuery, match="for example"):
        parse_query(words)


def test_an_invalid_pattern():
    """Is named."""
    with pytest.raises(InvalidQuery, match=r"--regex '\(' is no regular expression"):
        parse_query(["x"], regex="(")


@examples(40)
@given(st.lists(st.text(max_size=20), max_size=3), st.text(max_size=60))
def test_any_text_is_a_query_or_an_error(words, text):
    """Neither SQLite nor the parser fails; whatever a text has, the index finds."""
    try:
        query = parse_query(words)
    except InvalidQuery:
        return
    index = sqlite3.connect(":memory:")
    index.execute(WORDS)
    stored = text.encode("utf-8", "replace").decode()
    index.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (stored,))
    matched = Texts().matching(query, [text])
    found = index.execute("SELECT rowid FROM words WHERE words MATCH ?", (query.index_match,)).fetchall()
    assert not matched or found == [(1,)]
    assert bool(matched) == bool(found) or not query.is_exact
    index.close()
