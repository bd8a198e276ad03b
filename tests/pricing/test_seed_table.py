"""The plain table: exact ids, -1 for unknown, 0 for free."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from sessionlog.pricing import DEFAULT_PRICING, ModelPricing, PricingTable

TABLE = PricingTable(
    {
        "m": ModelPricing(3, 15, cache_read_per_mtok=0.3, cache_write_per_mtok=3.75),
        "plain": ModelPricing(2, 8),
        "free": ModelPricing(0, 0),
    }
)


def cases():
    folder = os.environ.get("SESSIONLOG_CONFORMANCE")
    if not folder:
        pytest.skip("SESSIONLOG_CONFORMANCE is not set: 10 costs and 9 rows not compared")
    return json.loads(Path(folder, "cases.json").read_bytes())


def test_costs_equal_the_originals():
    """Every cost that the original computed comes out alike."""
    compared = 0
    for case in cases()["cost"]:
        ours = DEFAULT_PRICING.estimate_cost(case["model"], case["input"], case["output"])
        assert ours == pytest.approx(case["cost_usd"], rel=1e-9, abs=0)
        compared += 1
    assert compared >= 10


def test_rows_equal_the_originals():
    """The table has the original's rows, no more and no less."""
    rows = {model: {k: v for k, v in asdict(p).items() if v is not None} for model, p in DEFAULT_PRICING.items()}
    assert rows == cases()["default_pricing"]


def test_the_table_says_where_it_is_from():
    """Nine rows, with a source and a date."""
    assert len(DEFAULT_PRICING) == 9
    assert "fizeau" in DEFAULT_PRICING.source
    assert DEFAULT_PRICING.date.startswith("2025")
    assert "9 models" in repr(DEFAULT_PRICING)


def test_input_and_output_are_priced_per_million():
    """1,000 in and 500 out of Sonnet 4 cost a little over a cent."""
    assert DEFAULT_PRICING.estimate_cost("claude-sonnet-4-20250514", 1000, 500) == pytest.approx(0.0105, rel=1e-9)


def test_unknown_is_minus_one_and_free_is_zero():
    """Ids match exactly, capitals included."""
    assert TABLE.estimate_cost("nobody", 1, 1) == -1.0
    assert TABLE.estimate_cost("M", 1, 1) == -1.0
    assert TABLE.estimate_cost("free", 10**6, 10**6) == 0.0


def test_cache_tokens_have_their_price_or_that_of_input():
    """Reads and writes use the cache prices; where there are none they cost what input costs."""
    assert TABLE.estimate_cost("m", 0, 0, 10**6, 0) == pytest.approx(0.3)
    assert TABLE.estimate_cost("m", 0, 0, 0, 10**6) == pytest.approx(3.75)
    assert TABLE.estimate_cost("plain", 0, 0, cache_read_tokens=10**6, cache_write_tokens=10**6) == pytest.approx(4)


def test_it_is_a_mapping_that_keeps_its_own_copy():
    """Changing the dict it was made from changes nothing."""
    rows = {"a": ModelPricing(1, 2)}
    table = PricingTable(rows, source="s", date="2026-01-31")
    rows["b"] = ModelPricing(3, 4)
    assert isinstance(table, Mapping)
    assert dict(table) == {"a": ModelPricing(1, 2)}
    assert table["a"].output_per_mtok == 2
    assert (table.source, table.date) == ("s", "2026-01-31")
