"""The tree of forks: every session once, below its parent where that is in the list, and no circle is endless."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.session_tree import GENERATIONS, grow_tree
from tests.profiles import examples
from tests.render.test_sessions import summary

NAMES = st.sampled_from("abcdefg")


def names(*pairs, source="native"):
    """The tree of sessions given as (id, parent): each as its id and its generation, `?` before one not listed."""
    tree = grow_tree([summary(name, parent=parent, source=source) for name, parent in pairs])
    return [(branch.key[1] if branch.session else f"?{branch.key[1]}", len(branch.lasts)) for branch in tree]


def test_forks_follow_their_parent():
    """Those of one parent in the order of the list, each with its own forks at once."""
    assert names(("d", "b"), ("c", "a"), ("b", "a"), ("a", ""), ("z", "")) == [
        ("a", 0), ("c", 1), ("b", 1), ("d", 2), ("z", 0),
    ]  # fmt: skip


def test_a_branch_knows_whether_a_sibling_follows():
    """For each generation above it, too."""
    tree = grow_tree([summary("a"), summary("b", parent="a"), summary("c", parent="b"), summary("d", parent="a")])
    assert [branch.lasts for branch in tree] == [(), (False,), (False, True), (True,)]


def test_a_parent_that_is_not_in_the_list_stands_there_by_its_name():
    """Where its newest fork would stand, with all its forks."""
    assert names(("x", ""), ("b", "p"), ("y", ""), ("c", "p")) == [
        ("x", 0), ("?p", 0), ("b", 1), ("c", 1), ("y", 0),
    ]  # fmt: skip


def test_a_parent_is_of_the_same_agent():
    """Ids of two agents may be the same."""
    tree = grow_tree([summary("b", parent="a", source="codex"), summary("a", source="pi")])
    assert [(branch.key, branch.session is None) for branch in tree] == [
        (("codex", "a"), True), (("codex", "b"), False), (("pi", "a"), False),
    ]  # fmt: skip


def test_our_own_fork_stands_below_another_agents_session():
    """It names the session that it goes on from, whoever wrote that."""
    tree = grow_tree([summary("b", parent="a"), summary("a", source="pi"), summary("c", parent="b")])
    assert [(branch.key, len(branch.lasts)) for branch in tree] == [
        (("pi", "a"), 0), (("native", "b"), 1), (("native", "c"), 2),
    ]  # fmt: skip


def test_a_circle_has_an_end():
    """Sessions that name each other, or themselves, are none's forks; others are theirs all the same."""
    assert names(("a", "a")) == [("a", 0)]
    assert names(("a", "b"), ("b", "a"), ("c", "b")) == [("a", 0), ("b", 0), ("c", 1)]
    assert names(("d", "c"), ("c", "b"), ("b", "a"), ("a", "b")) == [("b", 0), ("c", 1), ("d", 2), ("a", 0)]


def test_of_two_logs_with_one_id_the_first_has_the_forks():
    """A copy is a session of its own."""
    assert names(("a", ""), ("a", ""), ("b", "a")) == [("a", 0), ("b", 1), ("a", 0)]


@examples(200)
@given(st.lists(st.tuples(NAMES, NAMES | st.just("")), max_size=9))
def test_every_session_is_there_once(pairs):
    """Whatever their parents are called."""
    sessions = [summary(name, parent=parent, path=str(n)) for n, (name, parent) in enumerate(pairs)]
    shown = [branch.session.path for branch in grow_tree(sessions) if branch.session is not None]
    assert sorted(shown) == sorted(one.path for one in sessions)


def test_a_long_chain_is_no_recursion():
    """Five thousand generations, of which the nearest are told apart."""
    chain = [summary(f"s{n}", parent=f"s{n - 1}" if n else "") for n in range(5_000)]
    for sessions in (chain, chain[::-1]):
        tree = grow_tree(sessions)
        assert [branch.session for branch in tree] == chain
        assert tree[-1].lasts == (True,) * GENERATIONS
        assert [branch.depth for branch in tree] == list(range(5_000))
