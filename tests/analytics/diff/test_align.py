"""Which messages are the same, and which stand in the place of another; fast whatever is compared."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.diff.align import align
from sessionlog.analytics.diff.message_list import MessageList
from tests.analytics.diff.talks import make_said
from tests.profiles import examples

ROLES = {"u": "user", "a": "assistant", "t": "tool"}
WORD = st.builds(str.__add__, st.sampled_from("uat"), st.sampled_from("xyz"))


def talk(words):
    """Messages of two-letter words: who speaks, and what."""
    return MessageList(make_said(ROLES[word[0]], word[1:]) for word in words).finish()


def pairs(left, right):
    return [
        (pair.kind, pair.left and pair.left.text, pair.right and pair.right.text)
        for pair in align(talk(left.split()), talk(right.split()))
    ]


def test_what_is_the_same_stands_beside_each_other():
    """Also behind something that only one side has."""
    assert pairs("u1 a1 u2 a2", "u1 a1 u2 a2") == [("same", str(n), str(n)) for n in (1, 1, 2, 2)]
    assert pairs("u1 a1 u2 a2", "u1 a1 u3 a3 u2 a2") == [
        ("same", "1", "1"), ("same", "1", "1"), ("right", None, "3"), ("right", None, "3"), ("same", "2", "2"),
        ("same", "2", "2"),
    ]  # fmt: skip


def test_what_differs_stands_beside_its_like():
    """An answer beside an answer, a tool's result beside one; the others alone."""
    assert pairs("u1 a1 t1 a2", "u1 a3 a4") == [
        ("same", "1", "1"), ("changed", "1", "3"), ("left", "1", None), ("changed", "2", "4"),
    ]  # fmt: skip
    assert pairs("", "u1") == [("right", None, "1")]
    assert pairs("", "") == []


def test_an_answer_of_another_turn_is_another_answer():
    """Though nothing stands beside it."""
    assert pairs("u1 a1 u2 a2", "u1 a3 a4") == [
        ("same", "1", "1"), ("changed", "1", "3"), ("left", "2", None), ("left", "2", None), ("right", None, "4"),
    ]  # fmt: skip


@examples(300)
@given(st.lists(WORD, max_size=12), st.lists(WORD, max_size=12))
def test_nothing_is_lost_and_order_stays(left, right):
    """Each message once, on its side, in its order; a common beginning or end is the same."""
    one, other = talk(left), talk(right)
    found = align(one, other)
    assert [pair.left for pair in found if pair.left] == list(one)
    assert [pair.right for pair in found if pair.right] == list(other)
    assert all(pair.left or pair.right for pair in found)
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    assert all(pair.kind == "same" for pair in found[:same])
    if same < min(len(left), len(right)) and left[-1] == right[-1]:
        assert found[-1].kind == "same"


@examples(50)
@given(st.lists(WORD, max_size=12))
def test_a_talk_is_the_same_as_itself(words):
    """Whatever repeats in it."""
    assert all(pair.kind == "same" for pair in align(talk(words), talk(words)))


def test_long_talks_take_a_moment():
    """Ten thousand messages that are all alike, or none: what is done is bounded, so this test ends."""
    once = talk([f"u{n}" for n in range(10_000)])
    often = talk(["uok"] * 10_000)
    few = talk([f"a{'xyz'[n * n % 3]}" for n in range(10_000)])
    parts = MessageList(once[::-1]).finish(), MessageList(often[:5_000]).finish(), MessageList(few[1:]).finish()
    for left, right in zip((once, often, few, once), (*parts, often), strict=True):
        found = align(left, right)
        assert [pair.left for pair in found if pair.left] == list(left)
        assert [pair.right for pair in found if pair.right] == list(right)
