"""The price of some tokens in one call."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

import sessionlog.pricing
from sessionlog.pricing import PriceBook, estimate_cost


def test_a_model_alone_is_enough_where_its_name_says_who_made_it():
    """US dollars for tokens in disjoint classes."""
    assert estimate_cost("claude-haiku-4-5", 10**6, 10**5) == pytest.approx(1.5)
    cached = estimate_cost("claude-haiku-4-5", cache_read_tokens=10**6, cache_write_tokens=10**6, provider="anthropic")
    assert cached == pytest.approx(0.1 + 1.25)


def test_unknown_is_none_and_free_is_zero():
    """None is no price; 0.0 is a price."""
    assert estimate_cost("nobody/knows-me", 1, 1) is None
    assert estimate_cost("gpt-4o", 1, 1, provider="ollama") is None
    assert estimate_cost("qwen/qwen3-coder:free", 1, 1) == 0.0
    assert estimate_cost("claude-haiku-4-5") == 0.0


def test_the_date_decides():
    """A naive time is UTC, and an offset is respected."""
    assert estimate_cost("o3", 10**6, at=datetime(2025, 6, 9)) == 10
    assert estimate_cost("o3", 10**6, at=datetime(2025, 6, 10)) == 2
    assert estimate_cost("o3", 10**6, at=datetime(2025, 6, 10, 1, tzinfo=timezone(timedelta(hours=2)))) == 10
    assert estimate_cost("o3", 10**6, at=datetime(2025, 6, 10, 0, 0, 0, 1, tzinfo=UTC)) == 2


def test_a_book_of_ones_own_is_used():
    """`prices` replaces the shipped book."""
    book = PriceBook.load({"vllm/*": {"input": 1, "output": 2}})
    assert estimate_cost("anything", 10**6, 10**6, provider="vllm", prices=book) == 3


def test_the_room_shows_its_names_lazily():
    """Every public name is there, and no other."""
    for name in sessionlog.pricing.__all__:
        assert getattr(sessionlog.pricing, name) is not None
    assert set(sessionlog.pricing.__all__) <= set(dir(sessionlog.pricing))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sessionlog.pricing.nothing  # noqa: B018 - the access is what is tested
