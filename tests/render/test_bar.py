"""A bar is as long as its rate, and exact at both ends; a spark keeps the peaks of a series."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.bar import BAR_CELLS, bar, spark
from tests.profiles import examples

LAW = examples(100)


def test_a_bar_is_empty_or_full_only_when_it_is_so():
    """99.9 % is not all and 0.1 % is not nothing; without a rate there is no bar."""
    assert (bar(0.0), bar(1.0), bar(None)) == ("░" * 20, "█" * 20, " " * 20)
    assert (bar(0.001), bar(0.999), bar(0.5)) == ("▏" + "░" * 19, "█" * 19 + "▉", "█" * 10 + "░" * 10)


@LAW
@given(st.floats(0, 1), st.floats(0, 1))
def test_bars_grow_with_the_rate(one, two):
    """A larger rate never has a shorter bar, and every bar has the same width."""
    order = "░▏▎▍▌▋▊▉█"
    lengths = [sum(order.index(cell) for cell in bar(rate)) for rate in sorted((one, two))]
    assert lengths == sorted(lengths)
    assert len(bar(one)) == BAR_CELLS


def test_the_highest_is_full_and_nothing_is_lowest():
    """The others stand between."""
    assert spark([0, 1, 50, 100], 10) == "▁▁▄█"
    assert spark([0, 0], 10) == "▁▁"
    assert spark([5], 10) == "█"


def test_a_long_row_keeps_its_peaks():
    """Each cell is the highest of its share."""
    assert spark([1, 1, 100, 1, 1, 1, 1, 100], 4) == "▁█▁█"


def test_nothing_to_draw_is_empty():
    """No values, or no room."""
    assert spark([], 10) == spark([1], 0) == ""


@LAW
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.integers(1, 60))
def test_a_spark_fits(values, cells):
    """One cell a value, or as many as there are."""
    assert len(spark(values, cells)) == min(len(values), cells)
