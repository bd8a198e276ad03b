"""P24: an unknown price is unknown and never 0, tables are numbers ≥ 0, and a report says how old its list is."""

import math
from dataclasses import astuple

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli import main
from sessionlog.errors import InvalidPrices
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import PRICE_KEYS, parse_own_prices

NO_PRICES = (math.nan, math.inf, -math.inf, -0.01, -(10**400), 10**400, True, None, "3", [1], {}, 1j)
COSTS = ("known_cost_usd", "estimated_cost_usd", "cost_usd", "cost_per_success")
UNKNOWN = ("no-such-model-9", "", "\x00", "../../gpt-5", "GPT 5 ULTRA MAX")


@pytest.mark.parametrize("name", sorted(PRICE_KEYS))
@pytest.mark.parametrize("wrong", NO_PRICES, ids=repr)
def test_p24_no_table_holds_what_is_no_price(name, wrong):
    """Not finite, negative, no number, or left out where it is needed: the table is refused by the key's name."""
    table = {"acme/*": {"input": 1, "output": 2, name: wrong}}
    with pytest.raises(InvalidPrices, match="acme"):
        parse_own_prices(table)


@pytest.mark.parametrize("model", UNKNOWN)
@pytest.mark.parametrize("provider", ["anthropic", "nobody"])
def test_p24_an_unknown_model_costs_an_unknown_amount(tmp_path, provider, model):
    """In the report as in its totals: never 0, and what is known beside it stays known."""
    with SessionLogger(tmp_path, "s", work_dir="/w") as log:
        for name in (model, "claude-opus-4-5"):
            who = "anthropic" if name != model else provider
            log.llm_request([], provider=who, model=name)
            log.llm_response("x", provider=who, model=name, usage={"input": 1000, "output": 1000})
    report = aggregate_usage(tmp_path, by=("model",), jobs=1).to_dict()
    by_model = {row.pop("model"): row for row in report["rows"]}
    assert by_model["claude-opus-4-5"]["cost_usd"] == pytest.approx(0.03)
    del by_model["claude-opus-4-5"]
    [unknown] = by_model.values()
    assert {name: unknown[name] for name in COSTS} == dict.fromkeys(COSTS)
    assert unknown["unpriced_requests"] == unknown["requests"] == 1
    assert (report["totals"]["cost_usd"], report["totals"]["unpriced_requests"]) == (pytest.approx(0.03), 1)


def test_p24_every_listed_price_is_one():
    """Finite and not negative, at every height of a tier, for each model of the list, at several times."""
    book = PriceBook.load()
    count = 0
    for at_ns in (0, 1_700_000_000 * 10**9, 1_795_000_000 * 10**9, 4_000_000_000 * 10**9):
        for info in book.models(at_ns):
            for prices in (info.pricing, *(tier.pricing for tier in info.tiers)):
                for price in filter(None, astuple(prices)):
                    assert math.isfinite(price), info
                    assert price >= 0, info
                    count += 1
    assert count > 5_000


def test_p24_a_report_names_its_list_and_the_date_of_it(tmp_path, capsys):
    """So that an old list is seen to be old."""
    with SessionLogger(tmp_path, "s", work_dir="/w") as log:
        log.llm_response("x", provider="anthropic", model="claude-opus-4-5", usage={"input": 1000, "output": 1000})
    assert main(["usage", str(tmp_path)]) == 0
    book = PriceBook.load()
    assert book.version.endswith(book.date)
    assert f"~ estimated from {book.version}" in " ".join(capsys.readouterr().out.split())
