"""Token counts: disjoint classes that add up, read from numbers that are not trusted."""

import enum
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.tokens import MAX_COUNT, TokenUsage, read_count
from sessionlog.events.usage import read_usage
from tests.profiles import examples

HUGE = pytest.param(10**5000, id="huge")  # too long for Python to spell in decimal
FAST = examples(100)
COUNTS = st.integers(0, MAX_COUNT)
CLASSES = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")
USAGES = st.builds(TokenUsage, **dict.fromkeys(CLASSES, COUNTS))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(CLASSES) | st.text(), inner, max_size=6)
    ),
    max_leaves=10,
)


@FAST
@given(a=USAGES, b=USAGES, c=USAGES)
def test_usage_adds_as_a_monoid(a, b, c):
    """Sums do not depend on grouping or order, and the empty usage adds nothing."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + TokenUsage() == a == TokenUsage() + a


@FAST
@given(a=USAGES, b=USAGES)
def test_totals_of_a_sum_are_sums_of_totals(a, b):
    """The derived numbers add like the classes do."""
    assert (a + b).total == a.total + b.total
    assert (a + b).prompt == a.prompt + b.prompt


def test_classes_do_not_overlap():
    """Reasoning is inside output and cache_write_1h inside cache_write: neither counts twice."""
    usage = TokenUsage(input=1, output=10, cache_read=100, cache_write=1000, reasoning=7, cache_write_1h=900)
    assert (usage.prompt, usage.total) == (1101, 1111)


@FAST
@given(sum_of_parts=USAGES, end=USAGES)
def test_beyond_is_what_is_left_class_by_class(sum_of_parts, end):
    """What the end reports beyond the parts is never negative, and with the parts it is the larger of both."""
    rest = end.beyond(sum_of_parts)
    for name in CLASSES:
        assert getattr(rest, name) == max(getattr(end, name), getattr(sum_of_parts, name)) - getattr(sum_of_parts, name)


def test_inclusive_input_is_made_exclusive():
    """A provider that counts cached tokens into input is normalised; nothing else moves."""
    usage = TokenUsage(input=1000, output=5, cache_read=900, cache_write=50).without_cached_input()
    assert usage == TokenUsage(input=100, output=5, cache_read=900, cache_write=50)


def test_input_smaller_than_the_cache_becomes_zero():
    """A count never turns negative."""
    assert TokenUsage(input=10, cache_read=900).without_cached_input().input == 0


@pytest.mark.parametrize(("usage", "truth"), [(TokenUsage(), False), (TokenUsage(output=1), True)])
def test_an_empty_usage_is_false(usage, truth):
    """Truth is whether any token was used."""
    assert bool(usage) is truth


def test_zero_classes_are_left_out_of_the_json():
    """input, output and total are always written, the rest when there is something to say."""
    assert TokenUsage(input=3, cache_read=4).to_dict() == {"input": 3, "output": 0, "cache_read": 4, "total": 7}


@FAST
@given(usage=USAGES)
def test_usage_survives_json(usage):
    """What is written is read back, every class of it."""
    assert read_usage(json.loads(json.dumps(usage.to_dict()))) == (usage, ())


class Answer(enum.IntEnum):
    """An integer of another make."""

    EVERYTHING = 42


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (None, 0),
        (0, 0),
        (812, 812),
        (812.0, 812),
        (-0.0, 0),
        ("812", 812),
        (" 812 ", 812),
        ("0812", 812),
        (MAX_COUNT, MAX_COUNT),
        (MAX_COUNT - 1, MAX_COUNT - 1),
        (float(MAX_COUNT), MAX_COUNT),
        (str(MAX_COUNT), MAX_COUNT),
        (Answer.EVERYTHING, 42),
    ],
)
def test_values_that_count(value, count):
    """Integers, integral floats and numeric strings up to 2^53 count."""
    assert read_count(value) == (count, None)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1.0,
        "-1",
        0.5,
        "0.5",
        math.nan,
        math.inf,
        -math.inf,
        True,
        False,
        "",
        "many",
        "٣",
        "1e3",
        MAX_COUNT + 1,
        float(MAX_COUNT) * 2,
        str(MAX_COUNT + 1),
        "9" * 17,
        HUGE,
        pytest.param(-(10**5000), id="minus-huge"),
        1e300,
        [1],
        {"count": 1},
        1 + 0j,
    ],
)
def test_values_that_do_not_count(value):
    """Negatives, booleans, fractions, NaN and what is over 2^53 count nothing and say why."""
    count, issue = read_count(value)
    assert count == 0
    assert issue
    assert len(issue) < 100


def test_a_wrong_class_leaves_the_others():
    """One bad number costs that number, and is named."""
    usage, issues = read_usage({"input": "12", "output": -3, "cache_read": True, "cache_write": 7})
    assert usage == TokenUsage(input=12, cache_write=7)
    assert [issue.split(":")[0] for issue in issues] == ["output", "cache_read"]


@pytest.mark.parametrize("data", [[], "12", 12, True])
def test_usage_that_is_no_object(data):
    """Anything but an object is no usage, and named."""
    usage, issues = read_usage(data)
    assert usage == TokenUsage()
    assert len(issues) == 1


def test_absent_usage_is_no_issue():
    """A response without usage is ordinary."""
    assert read_usage(None) == (TokenUsage(), ())


def test_a_reported_total_is_not_used():
    """Totals mean different things to different writers."""
    assert read_usage({"input": 1, "output": 2, "total": 900})[0].total == 3


@FAST
@given(data=JSON)
def test_reading_usage_never_raises(data):
    """Any JSON value gives counts from 0 to 2^53 and a word for each value that was not one."""
    usage, issues = read_usage(data)
    assert all(0 <= getattr(usage, name) <= MAX_COUNT for name in CLASSES)
    assert all(isinstance(issue, str) for issue in issues)


@pytest.mark.parametrize("logged", [{"prompt_tokns": 9, "completion_tokns": 3}, {"tokens_in": 9}, {"inputt": 1}])
def test_a_usage_of_other_names_is_named(logged):
    """Counts under names that nobody knows are not taken for 0 in silence."""
    usage, issues = read_usage(logged)
    assert usage == TokenUsage()
    assert len(issues) == 1
    assert min(logged) in issues[0]
    assert "cache_read" in issues[0]


def test_an_empty_usage_is_no_damage():
    """Nothing said is nothing wrong; a total alone is a known name."""
    assert read_usage({}) == (TokenUsage(), ())
    assert read_usage({"total": 5}) == (TokenUsage(), ())
