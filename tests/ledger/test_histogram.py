"""Latencies as buckets: they add up like counts, and a percentile is never off by more than 2 %."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.ledger.histogram import percentile
from sessionlog.ledger.rows import bucket_of
from tests.profiles import examples

LAW = examples(200)
LATENCIES = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=60)
SHARES = st.floats(0, 1)


def counted(latencies):
    return Counter(map(bucket_of, latencies))


@LAW
@given(LATENCIES, SHARES)
def test_percentiles_are_within_two_percent(latencies, share):
    """The nearest rank of the exact latencies, within the width of a bucket."""
    exact = sorted(latencies)[max(1, math.ceil(share * len(latencies))) - 1]
    assert percentile(counted(latencies), share) == pytest.approx(exact, rel=0.02)


@LAW
@given(LATENCIES, LATENCIES, LATENCIES, SHARES)
def test_histograms_add(one, two, three, share):
    """Associative, commutative, with nothing as the empty element: any split of the records gives one answer."""
    a, b, c = counted(one), counted(two), counted(three)
    assert (a + b) + c == a + (b + c) == c + b + a == counted(one + two + three)
    assert a + Counter() == a
    assert percentile(a + b + c, share) == percentile(counted(three + one + two), share)


@LAW
@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_longer_latencies_have_no_smaller_bucket(one, two):
    """Buckets keep the order of the latencies."""
    short, long = sorted((one, two))
    assert bucket_of(short) <= bucket_of(long)


@LAW
@given(LATENCIES, SHARES, SHARES)
def test_percentiles_grow_with_their_share(latencies, one, two):
    """The 95th percentile is never below the median."""
    low, high = sorted((one, two))
    assert percentile(counted(latencies), low) <= percentile(counted(latencies), high)


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf")])
def test_what_is_no_latency_has_no_bucket(latency):
    """It counts nowhere, and does not end the report."""
    assert bucket_of(latency) is None


@pytest.mark.parametrize("latency", [0, 0.0, 1e-12, 5e-324])
def test_an_immeasurably_short_latency_is_zero(latency):
    """It counts as an answer that took no time."""
    assert percentile({bucket_of(latency): 1}, 0.5) == 0.0


def test_no_latencies_have_no_percentile():
    """None, not 0."""
    assert percentile({}, 0.5) is None


def test_a_percentile_takes_the_nearest_rank():
    """Of four latencies the median is the second, the 95th percentile the last."""
    counts = counted([10, 20, 30, 1000])
    found = [percentile(counts, share) for share in (0.25, 0.5, 0.51, 0.95, 1.0)]
    assert found == pytest.approx([10, 20, 30, 1000, 1000], rel=0.02)
