"""The arithmetic: equal to genai-prices on every listed model, exact, and lawful."""

import importlib.metadata
import random
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.price_list import load_price_list, price_at, thresholds
from sessionlog.pricing.rates import build_rates
from sessionlog.pricing.schedule import spans_of_day
from tests.profiles import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONTEXTS = (
    {},
    {"processing": "batch"},
    {"service_tier": "flex"},
    {"service_tier": "priority"},
    {"service_tier": "fast"},
    {"service_tier": "default"},
    {"speed": "fast"},
    {"processing": "batch", "service_tier": "priority"},
)
counts = st.integers(min_value=0, max_value=2**40)


@st.composite
def usages(draw):
    write, output = draw(counts), draw(counts)
    return TokenUsage(
        input=draw(counts),
        output=output,
        cache_read=draw(counts),
        cache_write=write,
        cache_write_1h=draw(st.integers(0, write)),
        reasoning=draw(st.integers(0, output)),
    )


def random_usage(rng):
    sizes = (0, 0, 1, 7, 999, 50_000, 127_999, 128_001, 200_000, 200_001, 300_000, 1_200_003)
    write, output = rng.choice(sizes), rng.choice(sizes)
    return TokenUsage(
        input=rng.choice(sizes),
        output=output,
        cache_read=rng.choice(sizes),
        cache_write=write,
        cache_write_1h=rng.randint(0, write),
        reasoning=rng.randint(0, output),
    )


def inclusive(genai_prices, usage):
    """A TokenUsage in the words of genai-prices, whose input includes what a cache served or stored."""
    return genai_prices.Usage(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_reasoning_tokens=usage.reasoning,
    )


def prices_at(model, moment, context):
    since = moment - EPOCH
    spans = spans_of_day(model, since.days, context)
    return [span.prices for span in spans if span.second <= since.seconds][-1]


def cost_of(prices, **counts_of):
    return build_rates(prices).cost(TokenUsage(**counts_of))


def all_models():
    for provider, entry in load_price_list().providers.items():
        for index, model in enumerate(entry["models"]):
            yield provider, index, model


def test_every_model_costs_what_genai_prices_says():
    """On every listed model, random usages, dates and kinds of request cost the same to the nano-dollar."""
    genai_prices = pytest.importorskip("genai_prices")
    if load_price_list().source != f"genai-prices {importlib.metadata.version('genai-prices')}":
        pytest.skip("another version of genai-prices than the shipped list's is installed")
    from genai_prices.data import providers

    theirs = {provider.id: provider for provider in providers}
    rng = random.Random(20261110)
    compared = 0
    for provider_id, index, model in all_models():
        provider = theirs[provider_id]
        listed = provider.models[index]
        assert listed.id == model["id"]
        for attempt in range(4):
            usage = random_usage(rng)
            moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(4 * 365 * 86_400))
            context = CONTEXTS[0] if attempt % 2 or not listed.price_variants else rng.choice(CONTEXTS)
            expected = listed.calc_price(
                inclusive(genai_prices, usage), provider, genai_request_timestamp=moment, price_context=context
            ).total_price
            prices = prices_at(model, moment, context)
            if prices is None:
                # No token price listed: genai-prices says 0, we say unknown.
                assert expected == 0, listed.id
                continue
            nano = int((expected * 10**9).to_integral_value(ROUND_HALF_EVEN))
            assert build_rates(prices).cost(usage) == nano, (provider_id, listed.id, usage, moment, context)
            compared += 1
    assert compared > 8000


def test_p24_a_price_of_zero_is_never_invented():
    """A model whose list names no token price is unknown, unless the list says that it is free."""
    unpriced = {
        f"{provider}/{model['id']}" for provider, _, model in all_models() if model["periods"][0]["prices"] is None
    }
    free = {f"{provider}/{model['id']}" for provider, _, model in all_models() if model["periods"][0]["prices"] == {}}
    assert "openai/whisper-1" in unpriced
    assert "groq/whisper-large-v3" in unpriced
    assert "openrouter/qwen/qwen3-coder:free" in free
    assert "github-copilot/gpt-4o" in free


@pytest.mark.parametrize(
    ("tokens", "nano"),
    [(1, 0), (2, 1), (3, 2), (5, 2), (6, 3), (7, 4)],
    ids=["half to even 0", "whole", "half to even 2", "half to even 2 again", "three", "half to even 4"],
)
def test_the_one_rounding_is_half_even(tokens, nano):
    """Half a nano-dollar goes to the even neighbour: 0.5 to 0, 1.5 to 2, 2.5 to 2, 3.5 to 4."""
    assert cost_of({"input": "0.0005"}, input=tokens) == nano


def test_eighteen_decimals_are_kept():
    """A price with eighteen decimals loses nothing, so a billion tokens of it are right to the nano-dollar."""
    assert cost_of({"input": "0.041666666666666664"}, input=10**9) == 41_666_666_667
    assert cost_of({"input": "0.000000000000000001"}, input=10**15) == 1


def test_the_threads_decimal_context_is_not_used():
    """An application that computes with three digits still gets exact prices."""
    with localcontext(prec=3):
        assert cost_of({"input": "1.23456789"}, input=10**6) == 1_234_567_890


def test_a_tier_changes_the_price_of_the_whole_request():
    """At the threshold the base price holds; one prompt token more, cached or not, pays the tier's for everything."""
    prices = {
        "input": {"base": "1.25", "above": [[200_000, "2.5"]]},
        "output": {"base": "10", "above": [[200_000, "15"]]},
        "cache_read": "0.1",
    }
    assert cost_of(prices, input=200_000, output=1000) == 260_000_000
    assert cost_of(prices, input=200_001, output=1000) == 515_002_500
    assert cost_of(prices, input=200_000, cache_read=1, output=1000) == 515_000_100
    assert list(thresholds(prices)) == [200_000]
    assert price_at(prices, "input", -1) == "1.25"
    assert price_at(prices, "input", 200_000) == "2.5"
    assert price_at(prices, "cache_write", 200_000) is None


def test_tiers_of_several_heights_meet():
    """Each price follows its own thresholds."""
    prices = {
        "input": {"base": "1", "above": [[10, "2"], [30, "3"]]},
        "output": {"base": "10", "above": [[20, "20"]]},
    }
    costs = [cost_of(prices, input=size, output=1000) - size * expected for size, expected in [(10, 1000), (11, 2000)]]
    assert costs == [10_000_000, 10_000_000]
    assert cost_of(prices, input=21, output=1000) == 42_000 + 20_000_000
    assert cost_of(prices, input=31, output=1000) == 93_000 + 20_000_000


def test_a_class_without_a_price_pays_the_price_of_the_class_that_bills_it():
    """Cache tokens without a price of their own are input; an hour's write is a write; reasoning is output."""
    assert cost_of({"input": "3", "output": "15"}, cache_read=1000, cache_write=1000) == 6_000_000
    assert cost_of({"input": "3", "cache_write": "4"}, cache_write=1000, cache_write_1h=400) == 4_000_000
    assert (
        cost_of({"input": "3", "cache_write": "4", "cache_write_1h": "6"}, cache_write=1000, cache_write_1h=400)
        == 4_800_000
    )
    assert cost_of({"output": "8", "reasoning": "3"}, output=1000, reasoning=400) == 6_000_000
    assert cost_of({"input": "3"}, output=1000) == 0


def test_a_request_may_have_a_price_of_its_own():
    """A price per thousand requests is paid once, whatever the tokens."""
    assert cost_of({"request": "12"}) == 12_000_000


def test_a_part_larger_than_its_whole_does_not_go_negative():
    """Damaged counts (an hour's writes above all writes) cost what the whole costs."""
    assert cost_of({"input": "1", "cache_write_1h": "2"}, cache_write=10, cache_write_1h=99) == 20_000


def test_a_cost_beyond_all_reason_is_unknown():
    """More than a billion dollars for one request is damage: unknown, and it would not fit the ledger."""
    assert cost_of({"output": "600"}, output=2**53) is None


@examples(60)
@given(usages(), usages(), st.sampled_from(["0", "0.1", "3.75", "0.041666666666666664"]))
def test_untiered_prices_add(one, other, price):
    """Without tiers the cost of a sum is the sum of the costs, up to the roundings to nano-dollars."""
    rates = build_rates({"input": price, "output": "15", "cache_read": "0.3", "cache_write": "3.75"})
    assert abs(rates.cost(one + other) - rates.cost(one) - rates.cost(other)) <= 1


@examples(60)
@given(usages(), st.sampled_from(["input", "output", "cache_read", "cache_write"]), st.integers(0, 10**9))
def test_more_tokens_never_cost_less(usage, name, more):
    """Cost is monotone in every class of tokens, across a tier too."""
    rates = build_rates(
        {
            "input": {"base": "1", "above": [[2**30, "2"]]},
            "output": {"base": "5", "above": [[2**30, "7.5"]]},
            "cache_read": "0.1",
        }
    )
    grown = usage + TokenUsage(**{name: more})
    assert rates.cost(grown) >= rates.cost(usage)


@examples(60)
@given(usages())
def test_savings_are_what_the_same_tokens_cost_uncached_less_what_they_cost(usage):
    """In the tier of the request's own size, within the roundings of the three numbers."""
    rates = build_rates(
        {
            "input": {"base": "1", "above": [[2**30, "2"]]}, "output": "5", "cache_read": "0.1", "cache_write": "1.25",
            "cache_write_1h": "2",
        }
    )  # fmt: skip
    prompt = usage.input + usage.cache_read + usage.cache_write
    plain = TokenUsage(input=prompt, output=usage.output, reasoning=usage.reasoning)
    assert abs(rates.cost(plain) - rates.cost(usage) - rates.cost_and_savings(usage)[1]) <= 1


def test_nothing_costs_nothing():
    """Zero usage costs 0 at every listed price that has no price per request."""
    checked = 0
    for _, _, model in all_models():
        for period in model["periods"]:
            prices = period["prices"]
            if prices is not None and "request" not in prices:
                assert build_rates(prices).cost(TokenUsage()) == 0
                checked += 1
    assert checked > 2000


def test_listed_tiers_never_make_more_tokens_cheaper():
    """In the shipped list one prompt token past a threshold never lowers the price of a request."""
    checked = 0
    for _, _, model in all_models():
        for prices in (period["prices"] or {} for period in model["periods"]):
            rates = build_rates(prices)
            for above in thresholds(prices):
                assert rates.cost(TokenUsage(input=above + 1)) >= rates.cost(TokenUsage(input=above)), model["id"]
                checked += 1
    assert checked > 100


def test_p24_listed_prices_are_decimals_that_are_not_negative():
    """Every price in the shipped list is a finite decimal number that is not negative."""
    checked = 0
    for _, _, model in all_models():
        for holder in (*model["periods"], *model.get("variants", ())):
            for price in (holder["prices"] or {}).values():
                texts = [price] if isinstance(price, str) else [price["base"], *(text for _, text in price["above"])]
                assert all(Decimal(text).is_finite() and Decimal(text) >= 0 for text in texts)
                checked += len(texts)
    assert checked > 5000
