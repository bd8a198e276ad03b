"""The table of differences: its rules are the closed list, its cases exist, and no case of the data is left out."""

from tests.conformance.data import COUNTS, VARIABLE, cases, document, name_of, needs_data
from tests.conformance.differences import RULES

AGREED = (
    "damaged files (edge/fail_*, origin exit 1) and silent loss; legacy `timestamp`; sessions without end, start-only "
    "and bench files; negative durations; known or estimated cost beside unknown; relative windows and words the "
    "origin refuses; windows that cut a session in two; cache-inclusive input; the reported total; success rate "
    "without unfinished sessions, null instead of 0; subfolders and .gz/.zst read; harness as provider; missing "
    "folder; acceptance by session and joined outcomes; UTF-8 cut in the middle"
)
"""The rules in the words in which they were agreed. Nothing else differs."""


def test_the_rules_are_the_closed_list():
    """A difference needs a rule, and there are no rules but these."""
    assert [rule.name for rule in RULES] == AGREED.replace(" and silent loss", "; silent loss").split("; ")
    assert all(rule.reason for rule in RULES)


def test_a_difference_is_named_once():
    """No case has two values for the same fact."""
    seen = set()
    for rule in RULES:
        for names, changes in rule.cases:
            facts = {(name, place, field) for name in names for place in changes for field in changes[place] or (None,)}
            assert seen.isdisjoint(facts), rule.name
            seen |= facts


@needs_data("the names of the cases that differ")
def test_every_named_case_exists():
    """A difference of a case that is gone is no difference."""
    known = {f"{kind} {name_of(kind, case)}" for kind in COUNTS for case in document("cases.json")[kind]}
    known |= {f"command {name_of('usage', case)}" for case in document("cases.json")["usage"]}
    assert {name for rule in RULES for names, _ in rule.cases for name in names} <= known


@needs_data("the numbers of the cases")
def test_every_case_is_compared():
    """Each kind of case has tests, as many as there are cases, under names of their own."""
    everything = document("cases.json")
    kinds = {kind: len(listed) for kind, listed in everything.items() if isinstance(listed, list)}
    assert kinds == COUNTS
    assert everything.keys() - kinds.keys() == {"meta", "default_pricing"}
    for kind, count in kinds.items():
        assert len({name_of(kind, case) for case in everything[kind]}) == count


def test_without_the_data_every_kind_is_skipped_with_a_count(monkeypatch):
    """One skipped test stands for each kind, and says for how many cases."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for kind, count in COUNTS.items():
        (only,) = cases(kind)
        (mark,) = only.marks
        assert mark.kwargs["reason"] == f"{VARIABLE} is not set: {count} {kind} cases not compared"
