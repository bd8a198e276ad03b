"""Which listed prices hold when, and for what kind of request."""

from datetime import date

import pytest

from sessionlog.pricing.schedule import active_variants, day_text, kind_name, priced_words, spans_of_day

JUNE_9 = (date(2025, 6, 9) - date(1970, 1, 1)).days

HISTORY = {
    "id": "m",
    "periods": [{"prices": {"input": "10"}}, {"from": "2025-06-10", "prices": {"input": "2"}}],
    "variants": [
        {"when": {"processing": "batch"}, "prices": {"input": "1"}},
        {"when": {"processing": "batch", "speed": "fast"}, "prices": {"input": "9", "output": "9"}},
        {"when": {"service_tier": "flex"}, "from": "2025-06-10", "prices": {"output": "4"}},
    ],
}
NIGHTS = {
    "id": "n",
    "periods": [{"prices": {"input": "2"}}, {"hours": ["16:30:00", "00:30:00"], "prices": {"input": "1"}}],
}
DAYS = {
    "id": "d",
    "periods": [{"hours": ["01:00:00", "04:00:00"], "prices": None}, {"hours": ["06:00:00", "10:00:00"], "prices": {}}],
}


def prices(model, day, **context):
    [span] = spans_of_day(model, day, context)
    return span.prices


def test_a_price_begins_on_its_date():
    """The day before still has the old price, which no date names; the new one says since when it holds."""
    [before], [after] = (spans_of_day(HISTORY, day, {}) for day in (JUNE_9, JUNE_9 + 1))
    assert (before.prices, before.valid_from) == ({"input": "10"}, None)
    assert (after.prices, after.valid_from) == ({"input": "2"}, "2025-06-10")


def test_hours_may_pass_midnight():
    """A span from 16:30 to 00:30 gives three spans of the day."""
    spans = spans_of_day(NIGHTS, JUNE_9, {})
    assert [(span.second, span.prices["input"]) for span in spans] == [(0, "1"), (1800, "2"), (59_400, "1")]


def test_the_first_period_holds_when_none_is_active():
    """Between the named hours the first period is the price."""
    spans = spans_of_day(DAYS, JUNE_9, {})
    assert [span.prices for span in spans] == [None, None, None, {}, None]


def test_variants_replace_single_prices_and_the_first_wins():
    """A batch request takes the batch price, keeps what it does not name, and a later variant only adds."""
    assert prices(HISTORY, JUNE_9, processing="batch") == {"input": "1"}
    assert prices(HISTORY, JUNE_9, processing="batch", speed="fast") == {"input": "1", "output": "9"}
    assert prices(HISTORY, JUNE_9, speed="fast") == {"input": "10"}


def test_a_variant_begins_on_its_date():
    """A service tier has no price of its own before its date."""
    assert prices(HISTORY, JUNE_9, service_tier="flex") == {"input": "10"}
    assert prices(HISTORY, JUNE_9 + 1, service_tier="flex") == {"input": "2", "output": "4"}
    names = [[kind_name(when) for when in active_variants(HISTORY, day)] for day in (JUNE_9, JUNE_9 + 1)]
    assert names == [["batch", "batch speed=fast"], ["batch", "batch speed=fast", "service_tier=flex"]]
    assert priced_words(HISTORY, JUNE_9 + 1, {"service_tier": "flex", "region": "us"}) == {"service_tier"}
    assert priced_words(HISTORY, JUNE_9, {"service_tier": "flex"}) == set()


@pytest.mark.parametrize(("day", "text"), [(0, "1970-01-01"), (-(10**9), "0001-01-01"), (10**9, "9999-12-31")])
def test_days_outside_the_calendar_are_its_ends(day, text):
    """A damaged time stamp gives the first or the last day, never an error."""
    assert day_text(day) == text
