"""A row of numbers as a row of bars."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.spark import spark
from tests.profiles import examples


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


@examples(100)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.integers(1, 60))
def test_it_fits(values, cells):
    """One cell a value, or as many as there are."""
    assert len(spark(values, cells)) == min(len(values), cells)
