"""Figures for pipes: exact as far as it helps."""

import pytest

from sessionlog.render.replay.figures import span_of_time
from sessionlog.render.replay.lines import View


@pytest.mark.parametrize(
    ("milliseconds", "says"),
    [
        (3899.238, "3899 ms"),
        (61.25, "61.2 ms"),
        (1.2345, "1.23 ms"),
        (0.0754, "0.075 ms"),
        (0, "0 ms"),
        (1200.0, "1200 ms"),
    ],
)
def test_a_time_has_three_digits_or_all_before_the_point(milliseconds, says):
    """More of them are noise of the clock."""
    assert span_of_time(View(exact=True), milliseconds).text == says
