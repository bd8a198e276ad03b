"""Charts: heights add up to the highest bar, every mark has its value, and texts are escaped."""

from datetime import date

import pytest

from sessionlog.render.html.charts import calendar, share_bar, stacked_bars
from tests.render.html.test_page import EVIL, Elements


def rectangles(svg):
    """The attributes of each rectangle."""
    return [attributes for name, attributes in Elements(svg).elements if name == "rect"]


def test_bars_are_stacked_to_scale():
    """The highest takes the whole height, parts stand on each other, and nothing is drawn of nothing."""
    svg = stacked_bars(["a", "b"], [[30, 10], [20, 0]], [["x", "y"], ["z", ""]], title="t", scale="40")
    first, second, third = rectangles(svg)
    height = float(first["height"]) + float(second["height"])
    assert float(first["y"]) == pytest.approx(float(second["y"]) + float(second["height"]), abs=0.2)
    assert float(third["height"]) == pytest.approx(height / 2, abs=0.2)
    assert [one["class"] for one in (first, second, third)] == ["fill1", "fill2", "fill1"]


def test_no_bars_are_an_empty_chart():
    """Neither no labels nor only zeros divide by zero."""
    assert rectangles(stacked_bars([], [], [], title="t", scale="0")) == []
    assert rectangles(stacked_bars(["a"], [[0.0]], [[""]], title="t", scale="0")) == []


def test_texts_are_escaped():
    """In labels, tooltips and titles."""
    svg = stacked_bars([EVIL], [[1]], [[EVIL]], title=EVIL, scale=EVIL)
    svg += calendar({}, {date(2026, 11, 1): EVIL}, date(2026, 11, 1), date(2026, 11, 1), title=EVIL)
    assert {name for name, _ in Elements(svg).elements} == {"svg", "rect", "title", "line", "text"}


def test_a_calendar_has_each_day_once():
    """With its level; leap days too."""
    first, last = date(2023, 12, 30), date(2024, 3, 1)
    days = rectangles(calendar({date(2024, 2, 29): 4}, {}, first, last, title="t"))
    assert len(days) == (last - first).days + 1
    assert [one["class"] for one in days].count("heat4") == 1
    assert len({(one["x"], one["y"]) for one in days}) == len(days)


@pytest.mark.parametrize(("share", "width"), [(0.5, "50"), (2.0, "100"), (-1.0, "0")])
def test_a_share_stays_in_its_bar(share, width):
    """Whatever a log claims."""
    assert rectangles(share_bar(share))[0]["width"] == width
