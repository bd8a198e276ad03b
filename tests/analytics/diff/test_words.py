"""Which words differ."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.diff.align import compare_words
from tests.profiles import examples


def marked(left, right):
    """Both texts, with what differs in brackets."""
    found = compare_words(left, right)
    return found and tuple("".join(f"[{text}]" if differs else text for text, differs in side) for side in found)


def test_words_that_differ_are_marked():
    """Whole words, and what was put in."""
    assert marked("the offset is written before it", "the offset is read before it") == (
        "the offset is [written] before it",
        "the offset is [read] before it",
    )
    assert marked("run the tests", "run all the tests") == ("run the tests", "run [all ]the tests")


def test_blanks_between_differences_are_no_island():
    """Words that differ side by side are one difference."""
    assert marked("a long sentence with one two three at its end", "a long sentence with four five six at its end") == (
        "a long sentence with [one two three] at its end",
        "a long sentence with [four five six] at its end",
    )


def test_texts_that_have_little_in_common_are_not_compared():
    """Marks everywhere help nobody."""
    assert compare_words("It has an entry.", "I have no access.") is None


def test_long_texts_are_compared_at_their_ends():
    """What lies between is one difference, so that the work is bounded."""
    left, right = (" ".join(f"{letter}{n}" for n in range(1_000)) for letter in "xy")
    found = compare_words(f"{'same ' * 2_000}{left} end", f"{'same ' * 2_000}{right} end")
    assert [differs for _, differs in found[0]] == [False, True, False]


@examples(200)
@given(st.text("ab ,\n", max_size=40), st.text("ab ,\n", max_size=40))
def test_no_word_is_lost(left, right):
    """The pieces are the texts; without the marked ones they say the same."""
    found = compare_words(left, right)
    if found is not None:
        assert tuple("".join(text for text, _ in side) for side in found) == (left, right)
        kept = ["".join(text for text, differs in side if not differs) for side in found]
        assert kept[0] == kept[1]


def test_words_that_repeat_without_end_are_not_compared_closely():
    """All between the common ends is one difference: to look for the best match would take minutes."""
    found = compare_words(f"{'begin ' * 900}{'x y ' * 150}", f"{'begin ' * 900}{'y x ' * 150}")
    assert [differs for _, differs in found[0]] == [False, True, False]
