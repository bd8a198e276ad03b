"""Models: the sums of usage beside prices, and shares that add up to all of the cost."""

from pathlib import Path

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.models import COLUMNS, list_models
from sessionlog.errors import InvalidQuery
from tests.analytics.week import DATA, NOW, week_report
from tests.ledger.entries import PRICES


def models(**options):
    """Models of the week's logs."""
    return list_models(DATA / "week", **({"prices": PRICES, "now": NOW} | options))


def test_the_sums_are_those_of_usage():
    """Whatever both reports have is equal, in rows and in totals."""
    found, usage = models(), week_report()
    shared = {"sessions", "requests", "input_tokens", "output_tokens", "total_tokens", "cost_usd", "cache_hit_rate"}
    assert shared <= set(names_of(COLUMNS))
    rows = {(row.provider, row.model): row for row in usage.rows}
    assert len(found.rows) == len(rows)
    for row in (*found.rows, found.totals):
        of_usage = rows[row.provider, row.model] if row.keys else usage.totals
        assert [getattr(row, name) for name in shared] == [getattr(of_usage, name) for name in shared]
    assert (found.provenance, found.priced_from) == (usage.provenance, usage.priced_from)


def test_the_costliest_model_comes_first():
    """Models without a known cost come last; shares are of all known cost."""
    costs = [row.cost_usd for row in models().rows]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known, reverse=True)
    assert costs[len(known) :] == [None] * (len(costs) - len(known))
    assert sum(row.cost_share or 0 for row in models().rows) == pytest.approx(1)
    assert models().totals.cost_share == 1
    assert [row.cost_share for row in models().rows if row.cost_usd is None] == [None]


def test_prices_are_those_of_the_price_list():
    """Per million tokens, with their source; a model without a price has none."""
    for row in models().rows:
        info = PRICES.explain(row.provider, row.model)
        prices = (None, None, "") if info is None else (info.pricing.input_per_mtok, info.pricing.output_per_mtok,
                                                        info.source)  # fmt: skip
        assert (row.input_usd_per_mtok, row.output_usd_per_mtok, row.price_source) == prices
    assert {row.price_source for row in models().rows} > {""}
    assert models().totals.price_source == ""


def test_it_is_sorted_and_limited():
    """By any column, or a group key; totals stay those of all."""
    assert [row.model for row in models(sort="model").rows] == sorted(row.model for row in models().rows)
    one = models(limit=1)
    assert (len(one.rows), one.hidden_rows, one.totals) == (1, len(models().rows) - 1, models().totals)
    with pytest.raises(InvalidQuery, match="cannot sort by 'colour'"):
        models(sort="colour")


def test_nothing_is_an_empty_report(tmp_path: Path):
    """No rows, and a document all the same."""
    document = list_models(tmp_path / "none").to_dict()
    assert (document["schema"], document["rows"], document["totals"]["cost_share"]) == ("sessionlog.models/1", [], None)
