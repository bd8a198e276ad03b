"""Numbers for people: short, and honest at their edges."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.numbers import UNKNOWN, cost_text, duration, human_count, percent, rate, size
from tests.profiles import examples

LAW = examples(200)

counts = st.one_of(
    st.integers(-(10**20), 10**20),
    st.integers(-2000, 2000),
    st.builds(lambda p, d: 10**p + d, st.integers(0, 20), st.integers(-60, 60)),
)
numbers = st.floats(allow_nan=True, allow_infinity=True)


def meaning(text):
    """The number that a short count says."""
    digits, unit = re.fullmatch(r"(-?[0-9.]+)([kMGTPE]?)", text).groups()
    return Decimal(digits) * 1000 ** " kMGTPE".index(unit or " ")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (812, "812"),
        (999, "999"),
        (1000, "1.0k"),
        (4136, "4.1k"),
        (14_149, "14.1k"),
        (14_150, "14.2k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (181_134_721, "181.1M"),
        (402_100_000, "402.1M"),
        (10**9, "1.0G"),
        (2**53, "9.0P"),
        (-4136, "-4.1k"),
        (-999_950_000, "-1.0G"),
        (10**21, "1e+21"),
        (10**400, "1e+400"),
        (-(10**4299), "-1e+4299"),
    ],
)
def test_human_count(count, text):
    """A count is exact below a thousand, then has one decimal, and never four digits before its unit."""
    assert human_count(count) == text


@LAW
@given(counts, counts)
def test_human_count_is_short_monotone_and_near(one, two):
    """A greater count never reads as a smaller one; seven characters do, and the error is half a tenth of the unit."""
    low, high = sorted((one, two))
    assert meaning(human_count(low)) <= meaning(human_count(high))
    for count in (low, high):
        text = human_count(count)
        assert len(text) <= 7
        assert abs(meaning(text) - count) <= Decimal(abs(count)) / 20
        assert human_count(-count) == (text[1:] if count < 0 else f"-{text}" if count else text)


def test_size():
    """Bytes are counted in steps of 1000, with their unit."""
    assert [size(count) for count in (0, 812, 14_149, 999_950, 1_200_000)] == [
        "0 B",
        "812 B",
        "14.1 kB",
        "1.0 MB",
        "1.2 MB",
    ]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, UNKNOWN),
        (float("nan"), UNKNOWN),
        (float("inf"), UNKNOWN),
        (0, "$0"),
        (-0.0, "$0"),
        (412.07, "$412.07"),
        (1234.5, "$1,234.50"),
        (1_000_000.005, "$1,000,000.01"),
        (5, "$5.00"),
        (0.61, "$0.61"),
        (0.1, "$0.10"),
        (0.05, "$0.05"),
        (0.031, "$0.031"),
        (0.0996, "$0.10"),
        (0.0019, "$0.0019"),
        (0.00012345, "$0.00012"),
        (0.0000012, "$0.000001"),
        (0.0000005, "$0.000001"),
        (0.0000004, "<$0.000001"),
        (-0.5, "-$0.50"),
        (1e300, "$1" + ",000" * 100 + ".00"),
    ],
)
def test_a_cost(amount, text):
    """Money has cents; small amounts keep two significant digits; what is unknown is a dash and never zero."""
    assert cost_text(amount) == text


def test_a_cost_estimated():
    """An estimate is marked, also when it is free or tiny; an unknown amount is no estimate."""
    assert [cost_text(amount, estimated=True) for amount in (0.61, 0, -2, 1e-9, None)] == [
        "~$0.61",
        "~$0",
        "~-$2.00",
        "~<$0.000001",
        UNKNOWN,
    ]


@LAW
@given(st.floats(1e-6, 1e9))
def test_a_cost_keeps_two_digits(amount):
    """The amount that is read differs from the true one by at most 5 %, or half of the last digit shown."""
    shown = Decimal(cost_text(amount).lstrip("$").replace(",", ""))
    assert abs(shown - Decimal(amount)) <= max(Decimal(amount) / 19, Decimal("0.00000051"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, UNKNOWN),
        (float("nan"), UNKNOWN),
        (0, "0 %"),
        (1e-9, "<1 %"),
        (0.0049, "<1 %"),
        (0.006, "1 %"),
        (0.97, "97 %"),
        (0.994, "99 %"),
        (0.995, ">99 %"),
        (0.999999999, ">99 %"),
        (1, "100 %"),
        (1.001, ">100 %"),
        (1.3, "130 %"),
        (-0.2, "-20 %"),
    ],
)
def test_percent(value, text):
    """A rate is whole percent, and 0 % and 100 % are said only where they are true."""
    assert percent(value) == text


@LAW
@given(st.floats(0, 1))
def test_percent_is_honest(value):
    """Nothing but none reads 0 %, nothing but all reads 100 %."""
    assert (percent(value) == "0 %") == (value == 0)
    assert (percent(value) == "100 %") == (value == 1)


def test_rate():
    """A speed has one decimal, and thousands are set apart."""
    assert [rate(value) for value in (58.1, 1.46, 0, 12345.67, None, float("inf"))] == [
        "58.1",
        "1.5",
        "0.0",
        "12,345.7",
        UNKNOWN,
        UNKNOWN,
    ]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, UNKNOWN),
        (float("nan"), UNKNOWN),
        (0, "0 ms"),
        (0.4, "<1 ms"),
        (12, "12 ms"),
        (12.4, "12 ms"),
        (999, "999 ms"),
        (999.6, "1.0 s"),
        (4200, "4.2 s"),
        (59_949, "59.9 s"),
        (59_950, "1m 00s"),
        (724_000, "12m 04s"),
        (3_599_499, "59m 59s"),
        (3_599_500, "1h 00m"),
        (3_720_000, "1h 02m"),
        (86_369_999, "23h 59m"),
        (86_370_000, "1d 0h"),
        (276_000_000, "3d 5h"),
        (273_600_000, "3d 4h"),
        (-4200, "-4.2 s"),
    ],
)
def test_duration(milliseconds, text):
    """A time span shows its two largest units, and a rounded unit never overflows."""
    assert duration(milliseconds) == text


@LAW
@given(st.one_of(st.none(), numbers), st.booleans())
def test_no_number_fails(value, estimated):
    """Whatever a log led to, the cell has a text."""
    assert cost_text(value, estimated=estimated)
    assert percent(value)
    assert rate(value)
    assert duration(value)
