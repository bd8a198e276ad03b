"""Money: integer nano-dollars, known and unknown kept apart."""

import decimal
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.money import NANO, Money, read_usd, usd
from tests.profiles import examples

HUGE = pytest.param(10**5000, id="huge")  # too long for Python to spell in decimal
FAST = examples(100)
AMOUNTS = st.none() | st.integers(0, 10**18)
SUMS = st.builds(Money, known_nano=AMOUNTS, unknown=st.integers(0, 1000))


@FAST
@given(a=SUMS, b=SUMS, c=SUMS)
def test_money_adds_as_a_monoid(a, b, c):
    """Sums do not depend on grouping or order, and the empty sum adds nothing."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Money() == a == Money() + a


@FAST
@given(parts=st.lists(AMOUNTS, max_size=20))
def test_the_unknown_never_hides_the_known(parts):
    """However many parts are unknown, the known ones are summed; nothing known is None, not zero."""
    total = sum((Money.of(part) for part in parts), Money())
    known = [part for part in parts if part is not None]
    assert total.known_nano == (sum(known) if known else None)
    assert total.unknown == len(parts) - len(known)


def test_nothing_known_is_not_free():
    """A sum of unknown parts has no dollars; a sum with a free part has zero dollars."""
    assert Money.of(None).known_nano is None
    assert Money.of(0).known_nano == 0


def test_ten_dimes_make_a_dollar():
    """Sums of decimal amounts do not drift as floats do."""
    nano, issue = read_usd(0.1)
    total = sum((Money.of(nano) for _ in range(10)), Money())
    assert issue is None
    assert total.known_nano == 10**9


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        (0, 0),
        (-0.0, 0),
        (0.1, 100_000_000),
        (1e-9, 1),
        (1.5e-9, 2),
        (2.5e-9, 2),
        (4e-10, 0),
        (7, 7 * NANO),
        ("0.25", NANO // 4),
        (" 0.25 ", NANO // 4),
        ("1e-3", 1_000_000),
        (Decimal("0.01"), 10_000_000),
        (1e9, 10**18),
        ("0.123456789123456789", 123_456_789),
    ],
)
def test_amounts(value, nano):
    """A recorded cost becomes the nearest nano-dollar of its shortest decimal text, halves to even."""
    assert read_usd(value) == (nano, None)


@pytest.mark.parametrize("value", [None, -1, -0.5, "-3", Decimal(-1), pytest.param(-(10**5000), id="minus-huge")])
def test_absent_and_negative_costs_are_unknown(value):
    """Absence and a negative number mean unknown in logs of this family, and are no problem."""
    assert read_usd(value) == (None, None)


@pytest.mark.parametrize(
    "value",
    [True, "free", "", math.nan, math.inf, "NaN", "sNaN", "1e999999999", 1e300, 1.1e9, HUGE, "9" * 5000, [], {}],
)
def test_what_is_no_amount(value):
    """Anything else is unknown and says why, shortly."""
    nano, issue = read_usd(value)
    assert nano is None
    assert issue
    assert len(issue) < 100


def test_the_agents_own_decimal_context_changes_nothing():
    """An agent that computes with three digits, or traps inexact results, gets the same amounts."""
    with decimal.localcontext() as context:
        context.prec = 3
        context.Emax = 3
        context.traps[decimal.Inexact] = True
        context.traps[decimal.FloatOperation] = True
        assert read_usd(0.123456789) == (123_456_789, None)
        assert read_usd("12345678.5") == (12_345_678_500_000_000, None)


@FAST
@given(amount=st.decimals(0, 10**9, places=9, allow_nan=False))
def test_nano_dollars_survive_as_text(amount):
    """Nine decimal places are exact."""
    assert read_usd(str(amount)) == (int(amount * NANO), None)


@FAST
@given(nano=st.integers(0, 10**15))
def test_dollars_in_output_read_back_as_the_same_amount(nano):
    """Up to a million dollars the float of an amount is precise enough to give the amount again."""
    assert read_usd(usd(nano)) == (nano, None)


@FAST
@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2))
def test_reading_a_cost_never_raises(value):
    """Any JSON scalar gives an amount or a reason."""
    nano, issue = read_usd(value)
    assert nano is None or nano >= 0
    assert nano is None or issue is None
