"""A bar is as long as its rate, and never lies at its ends."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.render.bar import BAR_CELLS, bar
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
