"""Products by turns: the quick tier tries a part of each, the slow tier the rest."""

from collections import defaultdict

import pytest

from tests.sources.homes import all_cases


def every(values, of, *, turn=0, group=lambda value: None):
    """Every `of`-th value of each group, at least one, beginning with number `turn`; two tests take different turns."""
    groups = defaultdict(list)
    for value in values:
        groups[group(value)].append(value)
    return [value for some in groups.values() for value in some[turn % min(of, len(some)) :: of]]


def by_turns(values, of, **options):
    """A parameter of each value, of a tuple as many: those that `every` chooses are quick, the others are slow."""
    values = list(values)
    quick = every(values, of, **options)
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=() if value in quick else pytest.mark.slow
        )
        for value in values
    ]


def agent_of(case):
    """The agent of `agent/case`."""
    return case.split("/")[0]


def cases_by_turns(of, *, turn=0):
    """`agent/case` of every case of testdata/sources; every `of`-th one of each agent is quick."""
    return by_turns(all_cases(), of, turn=turn, group=agent_of)
