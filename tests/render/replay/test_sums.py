"""Sums of a replay add like numbers, and keep what is known apart from what is not."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.money import Money
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Cost
from sessionlog.render.replay.totals import Sums
from tests.profiles import examples

NUMBERS = st.integers(0, 10**12)
USAGES = st.builds(TokenUsage, input=NUMBERS, output=NUMBERS)
MONEY = st.builds(Money, known_nano=st.none() | NUMBERS, unknown=st.integers(0, 9))
SUMS = st.builds(Sums, usage=USAGES, logged=USAGES, recorded=MONEY, estimated=MONEY)


@examples(50)
@given(SUMS, SUMS, SUMS)
def test_sums_add_in_any_order(one, two, three):
    """Associative, commutative, with an empty element."""
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Sums() == one


@examples(50)
@given(SUMS, SUMS, NUMBERS)
def test_an_end_never_takes_money_away(responses, rest, nano):
    """Whatever it reports, what the responses recorded stays."""
    cost = responses.closed(rest, nano).cost
    assert cost is not None
    assert not cost.partial
    assert cost.nano >= max(nano, responses.recorded.known_nano or 0)


def test_an_estimated_part_marks_the_sum():
    """A recorded sum is exact until something estimated is in it."""
    two, three = Money(known_nano=2), Money(known_nano=3, unknown=1)
    assert Sums(recorded=two, estimated=Money(known_nano=0)).cost == Cost(nano=2)
    assert Sums(recorded=two, estimated=three).cost == Cost(nano=5, estimated=True, partial=True)
    assert Sums(estimated=Money(unknown=1)).cost is None
