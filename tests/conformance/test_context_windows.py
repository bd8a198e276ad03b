"""Seed 000's look-ups of context windows and its counts of tokens: equal, or a named difference."""

import pytest

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.context.windows import get_model_context_window
from tests.conformance.context_differences import RULES, difference_of
from tests.conformance.data import VARIABLE, document, is_here, needs_data

COUNTS = {
    "context_window": 39,
    "context_window_table": 46,
    "usage_tracker_window_table": 12,
    "usage_tracker_window": 8,
    "count_tokens": 9,
    "count_tokens_json": 8,
}
"""How many cases there are of each kind."""


def listed():
    """(name, ours, original) of every case."""
    data = document("context_cases.json")
    for kind in ("context_window", "usage_tracker_window"):
        for case in data[kind]:
            yield f"{kind} {case['model']}", get_model_context_window(case["model"]), case["window"]
    for kind in ("context_window_table", "usage_tracker_window_table"):
        for model, window in data[kind].items():
            yield f"{kind} {model}", get_model_context_window(model), window
    for case in data["count_tokens"]:
        text = case["text"]
        label = repr(text) if len(text) < 100 else f"{text[0]!r} * {len(text)}"
        yield f"count_tokens {label}", int(count_tokens(text)), case["tokens"]
    for case in data["count_tokens_json"]:
        yield f"count_tokens_json {case['obj']!r}", int(count_tokens_json(case["obj"])), case["tokens"]


def cases():
    """Parameters of the test, or one skipped test for all cases."""
    if not is_here():
        count = sum(COUNTS.values())
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {count} windows and token counts not compared")
        return [pytest.param("", 0, 0, marks=mark, id=f"{count}-cases")]
    return [pytest.param(*case, id=case[0].encode("ascii", "replace").decode()) for case in listed()]


@pytest.mark.parametrize(("name", "ours", "original"), cases())
def test_a_case_is_equal_or_a_named_difference(name, ours, original):
    """What the table of differences names differs as it says; everything else is the original's."""
    named = difference_of(name)
    if named is None:
        assert ours == original
    else:
        assert ours == named
        assert named != original, f"{name} is equal; take it out of the table of differences"


@needs_data("the names and numbers of the cases of windows and tokens")
def test_every_case_is_compared():
    """Each kind has as many tests as cases, under names of their own, and no rule names a case that is not there."""
    data = document("context_cases.json")
    assert {kind: len(data[kind]) for kind in COUNTS} == COUNTS
    names = [name for name, _, _ in listed()]
    assert len(names) == len(set(names)) == sum(COUNTS.values())
    assert {case for rule in RULES.values() for case in rule.cases} <= set(names)


def test_a_case_has_one_rule_and_a_rule_has_cases():
    """A difference is named once, with its reason."""
    named = [case for rule in RULES.values() for case in rule.cases]
    assert len(named) == len(set(named))
    assert all(rule.reason and rule.cases for rule in RULES.values())
