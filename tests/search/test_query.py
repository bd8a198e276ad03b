"""What people type becomes terms; the index and the texts have the same words."""

import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessionlog.errors import InvalidQuery
from sessionlog.search import query as query_module
from sessionlog.search.query import MOST_MARKS, Texts, parse_query
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
    """Each occurrence, by its place."""
    assert Texts().matching(parse_query(["retry budget"]), ["é\ud800\x01a retry_budget x retry \x02 Budget"]) == {
        0: [(5, 17), (20, 34)]
    }


def test_a_nul_ends_no_text():
    """What is found after it has its place."""
    assert Texts().matching(parse_query(["budget"]), ["x\x00y budget"]) == {0: [(4, 10)]}


@pytest.mark.timeout(20)
def test_a_long_text_with_many_hits():
    """Its first hits are marked, in a time that grows with its length alone."""
    long = "ab cd " * 400_000
    [marks] = Texts().matching(parse_query(["ab", "-ef"]), [long]).values()
    assert marks == [(at, at + 2) for at in range(0, 6 * MOST_MARKS, 6)]
    assert Texts().matching(parse_query(["ab -cd"]), [long]) == {}


_WORDS = st.sampled_from(["a", "b", "ab", "aa", "Écrit", "e\u0301crit", "語"])
_BETWEEN = st.sampled_from([" ", "\n", "-", "_", "\0", "、", "\x01", "\u2026", " \u0301"])


@examples(100)
@given(
    st.lists(st.tuples(_WORDS, _BETWEEN).map("".join), min_size=30, max_size=80).map("".join),
    st.sampled_from(["a", "a b", "a* b*", '"a b" -ab', '"a ab*"', "ecrit", "語", "b -語", '"a b a"']),
)
@example("a b " * 30, '"a b a"')
def test_a_text_in_pieces_is_what_it_is_as_a_whole(text, words):
    """Words and phrases are found and marked across all cuts."""
    query = parse_query([words])
    whole = Texts().matching(query, [text, "a"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_module, "_PIECE", 3)
        patch.setattr(query_module, "_GAP", 3)
        assert Texts().matching(query, [text, "a"]) == whole


def test_a_pattern_narrows_and_marks():
    """The pattern has to match, too; what it matches is marked."""
    query = parse_query(["budget"], regex=r"retry.budget")
    assert Texts().matching(query, TEXTS) == {0: [(2, 14)]}


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
