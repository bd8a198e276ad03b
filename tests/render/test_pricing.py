"""The face of prices: what a model costs, who says so, and how to say it oneself."""

import json
import re
import tomllib

import pytest

from sessionlog.analytics.price_report import PriceReport
from sessionlog.pricing.model_pricing import ModelPricing
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.pricing.price_info import Extra, PriceInfo, PriceKind, PriceTier
from sessionlog.render.pricing import render_no_price, render_price
from tests.render.shown import show

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def info(**fields):
    pricing = ModelPricing(input_per_mtok=1.25, output_per_mtok=10.0, cache_read_per_mtok=0.125)
    known = {"provider": "acme", "model": "large", "pricing": pricing, "source": "list price, a list of 2026-11-01"}
    return PriceInfo(**(known | fields))


def test_a_price_says_what_where_from_and_since_when():
    """Only the classes that have a price of their own are listed."""
    assert render_price(info(valid_from="2026-05-01")).splitlines() == [
        "acme/large",
        "  list price, a list of 2026-11-01",
        "  since 2026-05-01",
        "",
        "  USD per million tokens",
        "    input                  $1.25",
        "    output                $10.00",
        "    cache read            $0.125",
    ]


def test_tiers_kinds_and_extras_have_their_own_blocks():
    """Prices of other kinds of requests, and of what is beside tokens, are there with their source if it is another."""
    tier = PriceTier(above_prompt_tokens=200_000, pricing=ModelPricing(input_per_mtok=2.5, output_per_mtok=15.0))
    half = ModelPricing(input_per_mtok=0.625, output_per_mtok=5.0)
    kinds = (
        PriceKind(name="batch", pricing=half, source="list price, a list of 2026-11-01"),
        PriceKind(name="region=us", pricing=half, source="times 0.5, a page, as of 2026-11-02"),
    )
    search = Extra(name="search", usd_per_thousand=10.0, source="a page, as of 2026-11-02")
    text = render_price(info(tiers=(tier,), kinds=kinds, extras=(search,)))
    assert "  above 200,000 prompt tokens\n    input                  $2.50\n    output                $15.00\n" in text
    assert "\n  batch\n    input                 $0.625\n" in text
    assert "\n  region=us\n    times 0.5, a page, as of 2026-11-02\n    input                 $0.625\n" in text
    ends = "    a page, as of 2026-11-02\n    search                $10.00  a thousand\n"
    assert text.endswith(f"\n  beside tokens\n{ends}")


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "$0.00"), (3, "$3.00"), (0.1, "$0.10"), (0.075, "$0.075"), (0.000125, "$0.000125")]
)
def test_amounts_have_at_least_cents(amount, text):
    """And as many digits as they need; free is said, not left out."""
    pricing = ModelPricing(input_per_mtok=amount, output_per_mtok=0)
    assert f"{text}\n" in render_price(info(pricing=pricing))


@pytest.mark.parametrize(
    ("provider", "model"),
    [("acme", "large"), ("", "large"), ("acme", "vendor/large-1.5"), ("acme", 'quo"te\\n'), ("ü", "\u202e\x1b[2J")],
)
def test_a_missing_price_comes_with_the_lines_to_write(provider, model):
    """Pasted into the config file they are a price of exactly that model; nothing of a name acts on the terminal."""
    text = render_no_price(provider, model, "/home/ada/config.toml")
    assert "has no price" in text
    assert "/home/ada/config.toml" in text
    assert not CONTROLS.search(text)
    prices = tomllib.loads(text[text.index("[prices.") :])["prices"]
    name = f"{provider}/{model}".strip("/")
    assert prices == {name: {"input": 0, "output": 0}}
    assert parse_own_prices(prices).find(provider, model) is not None


def test_the_list_is_one_aligned_line_a_model():
    """A price that is not listed is a dash."""
    bare = info(model="small", pricing=ModelPricing(input_per_mtok=0.5, output_per_mtok=2))
    lines = [line.plain for line in show(PriceReport(rows=(info(), bare)))]
    heading, first, second = lines[2:5]
    assert heading.split() == ["PROVIDER", "MODEL", "INPUT", "OUTPUT", "CACHED", "WRITTEN"]
    assert first.split() == ["acme", "large", "$1.25", "$10.00", "$0.125", "–"]
    assert second.split() == ["acme", "small", "$0.50", "$2.00", "–", "–"]
    assert len({len(line) for line in (heading, first, second)}) == 1


def test_names_of_a_list_cannot_act():
    """A user's own key is shown, not obeyed."""
    evil = info(
        model="\x1b[2J\r\n",
        provider="\u202e",
        source="\x07",
        kinds=(PriceKind(name="\x9b", pricing=ModelPricing(1, 2), source="\x07"),),
    )
    assert not CONTROLS.search(render_price(evil) + "".join(line.plain for line in show(PriceReport(rows=(evil,)))))


def test_the_document_has_every_price():
    """`sessionlog.pricing/2`: null where the list knows none."""
    tier = PriceTier(above_prompt_tokens=200_000, pricing=ModelPricing(input_per_mtok=2.5, output_per_mtok=15.0))
    kind = PriceKind(name="batch", pricing=ModelPricing(input_per_mtok=1.0, output_per_mtok=2.0), source="a page")
    search = Extra(name="search", usd_per_thousand=10.0, source="a page")
    one = info(tiers=(tier,), kinds=(kind,), extras=(search,), valid_from="2026-05-01")
    document = PriceReport(rows=(one,), priced_from="a list").to_dict()
    rates = {"cache_write_per_mtok": None, "cache_write_1h_per_mtok": None}
    assert (document["schema"], document["priced_from"]) == ("sessionlog.pricing/2", "a list")
    assert document["rows"] == [
        {
            "provider": "acme",
            "model": "large",
            "source": "list price, a list of 2026-11-01",
            "valid_from": "2026-05-01",
            "input_per_mtok": 1.25,
            "output_per_mtok": 10.0,
            "cache_read_per_mtok": 0.125,
            **rates,
            "tiers": [
                {
                    "above_prompt_tokens": 200_000,
                    "input_per_mtok": 2.5,
                    "output_per_mtok": 15.0,
                    "cache_read_per_mtok": None,
                    **rates,
                }
            ],
            "variants": ["batch"],
            "kinds": [
                {
                    "name": "batch",
                    "source": "a page",
                    "input_per_mtok": 1.0,
                    "output_per_mtok": 2.0,
                    "cache_read_per_mtok": None,
                    **rates,
                }
            ],
            "extras": [{"name": "search", "usd_per_thousand": 10.0, "source": "a page"}],
        }
    ]
    assert json.loads(json.dumps(document)) == document
    assert PriceReport().to_dict()["rows"] == []


@pytest.mark.parametrize(
    ("provider", "key", "title"),
    [("p", "p/*", "p/*"), ("P", "p/m", "p/m"), ("p", "*", "p/*"), ("", "p/*", "p/*"), ("p", "vendor/m", "p/vendor/m")],
)
def test_an_own_price_is_titled_once(provider, key, title):
    """A key that names the provider is not named after it again."""
    assert render_price(info(provider=provider, model=key, source=f"your price {key!r}")).startswith(f"{title}\n")


def test_a_listed_model_keeps_its_whole_name():
    """Some providers sell models whose names begin with their own."""
    assert render_price(info(provider="acme", model="acme/large")).startswith("acme/acme/large\n")
