"""Totals of what one logger recorded."""

from decimal import Decimal

import pytest

from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.totals import Totals

USED = {"input": 10, "output": 5, "cache_read": 100}


def totals(*payloads):
    sums = Totals()
    for data in payloads:
        sums.add(data)
    return sums


def test_classes_add():
    """Each class is summed by itself; a reported total is not used."""
    sums = totals({"usage": USED | {"total": 9}}, {"usage": USED | {"cache_write": 7}})
    assert sums.usage == TokenUsage(input=20, output=10, cache_read=200, cache_write=7)
    assert sums.responses == 2


def test_known_costs_add_exactly():
    """Ten dimes make a dollar."""
    assert totals(*({"usage": USED, "cost_usd": 0.1} for _ in range(10))).cost_usd == 1.0


@pytest.mark.parametrize("cost", [{}, {"cost_usd": None}, {"cost_usd": -1}, {"cost_usd": "free"}, {"cost_usd": True}])
def test_one_unknown_cost_makes_the_sum_unknown(cost):
    """A session's cost is never smaller than what it cost."""
    assert totals({"usage": USED, "cost_usd": 0.5}, {"usage": USED} | cost).cost_usd is None


def test_a_failed_call_without_usage_costs_nothing():
    """Only a response that used tokens needs a cost."""
    assert totals({"usage": USED, "cost_usd": 0.5}, {"error": "overloaded"}).cost_usd == 0.5


@pytest.mark.parametrize(
    "data", [{"content": "half an", "partial": "failed"}, {"partial": "cancelled"}, {"partial": "interrupted"}]
)
def test_an_answer_that_was_broken_off_is_not_free(data):
    """A model was at work, and nobody has told what for."""
    assert totals({"usage": USED, "cost_usd": 0.5}, {"error": "KeyboardInterrupt", **data}).cost_usd is None
    assert totals({"error": "refused", "partial": "failed"}).cost_usd == 0.0


def test_free_is_known():
    """0 is an amount."""
    assert totals({"usage": USED, "cost_usd": 0}).cost_usd == 0.0


def test_without_a_response_nothing_is_known():
    """An empty session has no cost, not a cost of zero."""
    assert totals().cost_usd is None


@pytest.mark.parametrize(
    "data",
    [None, 5, "text", [], {"usage": 5}, {"usage": {"input": "many", "output": -1}}, {"usage": {"input": 10**5000}}],
    ids=lambda value: type(value).__name__,
)
def test_odd_payloads_never_raise(data):
    """What cannot be read counts nothing."""
    assert not totals(data).usage


def test_costs_of_other_makes():
    """Decimals and numeric text are amounts."""
    assert totals({"usage": USED, "cost_usd": Decimal("0.25")}, {"usage": USED, "cost_usd": "0.25"}).cost_usd == 0.5


def test_a_usage_value_counts():
    """A `TokenUsage` inside a payload counts like the mapping it is written as."""
    totals = Totals()
    totals.add({"usage": TokenUsage(input=3, output=4), "cost_usd": 0.5})
    assert (totals.usage.total, totals.cost_usd) == (7, 0.5)


def test_an_answer_that_told_nothing():
    """It is no free one: what it cost is unknown, and it is not among those that told."""
    sums = totals({"content": "hello"}, {"usage": USED, "cost_usd": 0.5})
    assert (sums.responses, sums.counted, sums.cost_usd) == (2, 1, None)
