"""The context API gives what the original gave: equal, or a difference that is named with its reason."""

import math

import pytest

from tests.conformance.context_api import COUNTS, FILE, comparisons
from tests.conformance.context_api_differences import ADDED, ELSEWHERE, GONE, RULES, SUPERSEDED
from tests.conformance.data import VARIABLE, document, is_here, needs_data


def _cases():
    if not is_here():
        total = sum(COUNTS.values())
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {total} context cases not compared")
        return [pytest.param("", {}, dict, marks=mark, id=f"{total}-context-cases")]
    return [pytest.param(*case, id=case[0].replace(" ", "-")) for case in comparisons()]


def _changes(name):
    """What the rules say of a case, each fact named by one rule only."""
    changes = {}
    for _, cases in RULES.values():
        said = cases.get(name, {})
        assert changes.keys().isdisjoint(said) or name == "full_snapshot"
        changes |= said
    return changes


def _is_added(fact):
    return any(pattern.search(fact) for _, pattern in ADDED.values())


def _is_same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-9)
    return ours == theirs and (ours is None) == (theirs is None)


@pytest.mark.parametrize(("name", "theirs", "ours"), _cases())
def test_a_case(name, theirs, ours):
    """Every fact is the original's, or what the table says in its place."""
    expected = {fact: said for fact, said in (theirs | _changes(name)).items() if said is not GONE}
    said = ours()
    assert {fact for fact in said.keys() - expected.keys() if not _is_added(fact)} == set()
    assert {
        fact: (said.get(fact), value) for fact, value in expected.items() if not _is_same(said.get(fact), value)
    } == {}


@pytest.mark.parametrize(("name", "theirs", "ours"), _cases())
def test_a_named_difference_differs(name, theirs, ours):
    """A rule that says of a case what the original says as well is no difference."""
    for rule, (_, cases) in RULES.items():
        said = cases.get(name)
        if said is not None:
            assert any(theirs.get(fact, GONE) != value for fact, value in said.items()), rule
            if name != "full_snapshot":  # its messages are given whole, also where one has not changed
                same = {fact for fact, value in said.items() if theirs.get(fact, GONE) == value}
                assert same == set(), rule


@needs_data("the facts that only ours has")
def test_what_is_added_is_there():
    """Each rule of what only ours has holds somewhere, and names nothing that the original has."""
    for name, (_, pattern) in ADDED.items():
        assert any(pattern.search(fact) for _, _, ours in comparisons() for fact in ours()), name
        assert not any(pattern.search(fact) for _, theirs, _ in comparisons() for fact in theirs), name


@needs_data("the names of the cases that differ")
def test_every_named_case_exists_and_every_case_is_compared():
    """No part of the data is left out silently."""
    names = [name for name, _, _ in comparisons()]
    assert {case for _, cases in RULES.values() for case in cases} <= set(names)
    assert len(names) == sum(COUNTS.values())
    told = {name.split()[0] for name in names} | SUPERSEDED.keys() | ELSEWHERE | {"meta", "extract_note"}
    assert document(FILE).keys() == told


def test_every_rule_has_a_reason():
    """A difference without one is a mistake."""
    assert all(reason for reason, _ in [*RULES.values(), *ADDED.values()])
    assert all(SUPERSEDED.values())
