"""What the price list does not have: factors of regions and tiers, prices of searches, names that models have elsewhere."""

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import InvalidPrices
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.billing import load_billing, parse_billing
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.lookup import Listing, find_provider, matches
from sessionlog.pricing.price_list import load_price_list
from sessionlog.pricing.schedule import priced_words
from tests.profiles import examples

BOOK = PriceBook.load()
MILLION = TokenUsage(input=10**6, output=10**6)
CLASSES = TokenUsage(input=1000, output=500, cache_read=70_000, cache_write=9000, reasoning=100, cache_write_1h=4000)


def at(day):
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 10**9


DAY = at("2026-11-20") // (86_400 * 10**9)


def nano(provider, model, day="2026-11-20", usage=CLASSES, book=BOOK, **kind):
    return book.price(provider, model, usage, at(day), **kind)


@pytest.mark.parametrize(
    ("model", "kind", "times"),
    [
        ("claude-opus-4-6", {}, 1.1),
        ("claude-sonnet-4-6-20260205", {}, 1.1),
        ("claude-opus-5-5", {}, 1.1),
        ("claude-haiku-5-5", {}, 1.1),
        ("claude-opus-4-8", {"speed": "fast"}, 2.2),
        ("claude-opus-4-8", {"service_tier": "batch"}, 0.55),
        ("claude-sonnet-4-6", {"speed": "fast"}, 1.1),  # it has no fast mode
        ("claude-opus-4-5", {}, 1),
        ("claude-sonnet-4-5-20250929", {}, 1),
        ("claude-haiku-4-5", {}, 1),
        ("claude-3-7-sonnet-latest", {}, 1),
        ("claude-opus-4-1", {}, 1),
    ],
)
def test_a_region_multiplies_every_class_of_newer_models(model, kind, times):
    """By 1.1, also what fast mode and batches cost; a region of no price, and another provider's, change nothing."""
    assert nano("anthropic", model, region="us", **kind) == pytest.approx(times * nano("anthropic", model))
    assert nano("anthropic", model, region="eu", **kind) == nano("anthropic", model, **kind)
    for provider in ("google", "azure", "github-copilot"):
        assert nano(provider, model, region="us") == nano(provider, model)


@pytest.mark.parametrize(
    ("model", "tier", "day", "times"),
    [
        ("gpt-5.6-terra", "priority", "2026-09-10", 2),
        ("gpt-5.6-terra", "fast", "2026-09-10", 2),
        ("gpt-5.6-terra", "priority", "2026-07-15", 2),  # before its price was lowered
        ("gpt-5.6-terra", "priority", "2026-11-10", 2),
        ("gpt-5.5", "priority", "2026-06-01", 2.5),
        ("gpt-5.5", "fast", "2026-11-01", 2.5),
        ("gpt-6-astra", "priority", "2026-09-12", 2),
        ("gpt-5.5", "flex", "2026-06-01", 0.5),
        ("gpt-5.4-nano", "flex", "2026-06-01", 0.5),
        ("gpt-5.4-nano", "priority", "2026-06-01", 1),  # it has no such tier
        ("gpt-5.5-pro", "priority", "2026-11-01", 1),
        ("gpt-5.6-cyber", "priority", "2026-09-10", 1),
        ("gpt-6-rosalind", "flex", "2026-11-01", 1),
        ("gpt-5-mini", "priority", "2026-06-01", 1.8),
        ("o3", "priority", "2026-06-01", 1.75),
        ("gpt-5.3-codex", "batch", "2026-11-01", 1),
        ("gpt-5.5", "batch", "2026-06-01", 0.5),
        ("gpt-5.5", "default", "2026-06-01", 1),
        ("gpt-5.5", "nobody-knows", "2026-06-01", 1),
    ],
)
def test_a_tier_costs_its_list_price_also_before_the_list_has_it(model, tier, day, times):
    """The list dates the prices of tiers from the day on which it learned of them."""
    assert nano("openai", model, day, service_tier=tier) == pytest.approx(times * nano("openai", model, day), rel=1e-6)
    assert nano("azure", model, day, service_tier=tier) == nano("azure", model, day)


def test_factors_are_those_of_the_lists_own_tiers():
    """Where both are known: at the end of the list's time, with and without its prices of tiers."""
    for word, tier in (("service_tier", "priority"), ("service_tier", "flex"), ("processing", "batch")):
        for model in load_price_list().providers["openai"]["models"]:
            listing = Listing(provider="openai", model=model)
            has_price = priced_words(model, DAY, {word: tier})
            [*factors] = [one for one in load_billing().factors(listing, DAY) if one["when"] == {word: tier}]
            assert not factors or has_price, "the list has this model, and no such tier"
            if factors:
                plain, special = (nano("openai", model["id"], service_tier=one) for one in (None, tier))
                assert special == pytest.approx(float(factors[0]["times"]) * plain, rel=0.02)  # the list rounds


def test_batches_of_anthropic_cost_half_at_any_time():
    """Before the list has their prices, too."""
    for day in ("2026-05-01", "2026-11-01"):
        whole = nano("anthropic", "claude-sonnet-4-6", day)
        assert nano("anthropic", "claude-sonnet-4-6", day, service_tier="batch") == whole / 2


@pytest.mark.parametrize(
    ("provider", "model", "day", "each"),
    [
        ("anthropic", "claude-haiku-4-5", "2026-11-20", 10_000_000),
        ("anthropic", "claude-opus-4-5", "2025-05-06", 0),
        ("openai", "gpt-5.5", "2026-11-20", 10_000_000),
        ("google", "gemini-3-flash", "2026-11-20", 14_000_000),
        ("google", "gemini-2.5-pro", "2026-11-20", 35_000_000),
        ("google", "claude-opus-4-6", "2026-11-20", 0),
        ("azure", "claude-haiku-4-5", "2026-11-20", 0),
        ("openrouter", "anthropic/claude-haiku-4.5", "2026-11-20", 0),
    ],
)
def test_searches_cost_what_the_provider_takes_for_its_own(provider, model, day, each):
    """Beside the tokens, without any factor; where no price is known they add nothing."""
    kinds = ({}, {"region": "us"}, {"service_tier": "batch"}, {"speed": "fast"})
    for kind in kinds:
        plain = nano(provider, model, day, **kind)
        assert nano(provider, model, day, searches=3, **kind) == plain + 3 * each


def test_own_prices_are_of_tokens():
    """They hold for every kind of request; searches cost what the list's provider takes."""
    book = PriceBook.load({"anthropic/claude-opus-4-6": {"input": 1, "output": 2}, "vllm/*": {"input": 1, "output": 1}})
    own = nano("anthropic", "claude-opus-4-6", book=book)
    assert nano("anthropic", "claude-opus-4-6", book=book, region="us", speed="fast") == own
    assert nano("anthropic", "claude-opus-4-6", book=book, searches=2) == own + 20_000_000
    assert nano("vllm", "gpt-5", book=book, searches=2) == nano("vllm", "gpt-5", book=book)


NAMES = [
    ("openai", "codex-auto-review", "openai", "gpt-5.5"),
    ("", "openai/codex-auto-review", "openai", "gpt-5.5"),
    ("openai", "gpt-5.6-sol-fast", "openai", "gpt-5.6-sol"),
    ("opencode", "gpt-5.6-sol-fast", "openai", "gpt-5.6-sol"),
    ("anthropic", "claude-opus-4-8-fast", "anthropic", "claude-opus-4-8"),
    ("x-ai", "grok-4.5-build", "x-ai", "grok-4.5"),
    ("grok", "grok-4.5-build", "x-ai", "grok-4.5"),
    ("google", "gemini-3-flash-a", "google", "gemini-3-flash-preview"),
    ("kimi", "k2d6-agent", "moonshotai", "kimi-k2.6"),
    ("kimi", "daimon-kimi-code", "moonshotai", "kimi-k3"),
    ("qwen", "qwen3-coder-plus", "openrouter", "qwen/qwen3-coder-plus"),
    ("", "omniroute:claude-sonnet-4-6", "anthropic", "claude-sonnet-4-6"),
    ("omniroute", "omniroute:openai/gpt-5.5", "openai", "gpt-5.5"),
    ("cline", "cline-pass/kimi-k2.6", "moonshotai", "kimi-k2.6"),
    ("anthropic", "omniroute:openai/gpt-5.5", "openai", "gpt-5.5"),
    ("openai", "omniroute:cc/claude-opus-4-8", "anthropic", "claude-opus-4-8"),
    ("", "moonshotai/kimi-k2.6@2026-04-20", "moonshotai", "kimi-k2.6"),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.6:thinking", "openrouter", "anthropic/claude-sonnet-4.6"),
    ("", "openrouter/anthropic/claude-sonnet-4:thinking", "anthropic", "claude-sonnet-4-0"),
    ("", "anthropic/claude-sonnet-4-5@20250929", "anthropic", "claude-sonnet-4-5"),
    ("", "openai/gpt-5@2025-08-07", "openai", "gpt-5"),
]


@pytest.mark.parametrize(("provider", "model", "vendor", "listed"), NAMES)
def test_names_that_models_have_elsewhere_have_their_price(provider, model, vendor, listed):
    """The explanation names the listed model, and the cost is its cost."""
    info = BOOK.explain(provider, model, at("2026-11-20"))
    assert (info.provider, info.model) == (vendor, listed)
    fast = {"service_tier": "priority", "speed": "fast"} if model.endswith("-fast") else {}
    assert nano(provider, model) == nano(vendor, listed, **fast)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "codex-auto-reviewer"),
        ("anthropic", "codex-auto-review"),
        ("ollama", "codex-auto-review"),
        ("openai", "gpt-5.4-nano-fast"),
        ("openai", "gpt-5.6-nobody-fast"),
        ("x-ai", "grok-4.5-builder"),
        ("kimi", "k2d7-agent"),
        ("openai", "daimon-kimi-code"),
        ("kimi", "daimonic"),
        ("kimi", "daimon-"),
        ("ollama", "qwen3-coder-plus"),
        ("qwen", "qwen3-coder-plus-mine"),
        ("", "omniroute:my-own-model"),
        ("cline", "cline-pass/kimi-k9"),
        ("", "mycline-pass/kimi-k2.6"),
        ("ollama", "kimi-k2.6:thinking"),
        ("", "openrouter/nobody/knows:thinking"),
        ("lmstudio", "openrouter/anthropic/claude-sonnet-4"),
        ("groq", "kimi-k2.6:thinking"),
        ("openai", "openai/gpt-5.5@nonsense"),
        ("azure", "gpt-5.6-sol-fast"),
    ],
)
def test_names_that_only_look_alike_have_no_price(provider, model):
    """A wrong price is worse than none."""
    assert BOOK.explain(provider, model, at("2026-11-20")) is None
    assert nano(provider, model, searches=1) is None


def test_a_name_may_be_another_model_from_a_day_on():
    """And none before it existed."""
    assert BOOK.explain("kimi", "daimon-kimi-code", at("2026-07-19T23:59:59")).model == "kimi-k2.6"
    assert BOOK.explain("kimi", "daimon-kimi-code", at("2026-07-20")).model == "kimi-k3"
    assert nano("openai", "codex-auto-review", "2026-04-22") is None


def test_a_user_gives_a_name_another_price():
    """Of a listed model with all its kinds, or of their own; their own price of the name itself goes before."""
    table = {"My-Name": "anthropic/claude-opus-4-8", "house": "vllm/big", "vllm/big": {"input": 1, "output": 2}}
    book = PriceBook.load(table)
    for kind in ({}, {"region": "us", "speed": "fast"}, {"searches": 2}):
        assert nano("gateway", "my-name", book=book, **kind) == nano("anthropic", "claude-opus-4-8", **kind)
    assert nano("ollama", "my-name", book=book) == nano("anthropic", "claude-opus-4-8")
    assert nano("x", "house", usage=MILLION, book=book) == 3 * 10**9
    fast = PriceBook.load({"quick": "openai/gpt-5.6-sol-fast"})
    assert nano("x", "quick", book=fast) == nano("openai", "gpt-5.6-sol", service_tier="priority")
    assert "your alias 'My-Name' of anthropic/claude-opus-4-8" in book.explain("", "my-name").source
    assert PriceBook.load({"a": "nobody/knows"}).explain("", "a") is None
    for target in ("openai/gpt-5.6-sol-fast", "openai/codex-auto-review", "openrouter/openai/gpt-5.5:thinking"):
        assert nano("", "a", book=PriceBook.load({"a": target})) == nano("", target)
    assert PriceBook.load({"a": "x/b", "b": "x/a"}).explain("", "a") is None  # an alias of an alias
    assert pickle.loads(pickle.dumps(book)).fingerprint == book.fingerprint  # a worker's
    assert len({PriceBook.load(one).fingerprint for one in (None, table, {"a": "b/c"}, {"a": "b/d"})}) == 4


@pytest.mark.parametrize("target", ["", "gpt-5.5", "/gpt-5.5", "openai/", "OpenAI/MINE"])
def test_a_wrong_alias_is_refused_by_name(target):
    """With what it has to be."""
    with pytest.raises(InvalidPrices, match=r'aliases\."openai/mine" is '):
        PriceBook.load({"openai/mine": target})
    with pytest.raises(InvalidPrices, match=r'aliases\."my-\*": the key is one name'):
        PriceBook.load({"my-*": "openai/gpt-5.5"})


WORDS = {"region": ["us"], "service_tier": ["priority", "flex", "batch"], "speed": ["fast"]}
KINDS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in WORDS.items()})
MODELS = st.sampled_from(
    [("anthropic", "claude-opus-4-8"), ("anthropic", "claude-sonnet-4-6"), ("openai", "gpt-5.5"), ("google", "gemini-2.5-pro")]
)  # fmt: skip
COUNTS = st.integers(0, 300_000)
USAGES = st.builds(TokenUsage, input=COUNTS, output=COUNTS, cache_read=COUNTS, cache_write=COUNTS)


@examples(100)
@given(model=MODELS, kind=KINDS, usage=USAGES, more=USAGES, searches=st.integers(0, 50))
def test_a_cost_is_never_lower_with_more(model, kind, usage, more, searches):
    """Of tokens or of searches, whatever kind of request it is."""
    costs = [nano(*model, usage=one, searches=n, **kind) for one, n in ((usage, 0), (usage, searches))]
    assert costs[0] <= costs[1] <= nano(*model, usage=usage + more, searches=searches + 1, **kind)


@examples(100)
@given(usage=USAGES, kind=KINDS)
def test_the_region_is_a_factor_of_whatever_the_others_make(usage, kind):
    """So the order in which they are applied does not matter."""
    others = {name: value for name, value in kind.items() if name != "region"}
    plain = nano("anthropic", "claude-opus-4-8", usage=usage, **others)
    assert nano("anthropic", "claude-opus-4-8", usage=usage, region="us", **others) == pytest.approx(1.1 * plain, abs=1)


def test_every_entry_names_what_the_list_has():
    """A provider and a model of the list, a source, and a date that can be read."""
    billing, listed = load_billing(), load_price_list()
    for section in ("factors", "searches"):
        for one in billing.entries[section]:
            ids = [model["id"].lower() for model in listed.providers[one["provider"]]["models"]]
            assert any(matches(one.get("models", {"starts_with": ""}), name) for name in ids)
            assert one["source"]
            assert at(one.get("from", "2026-01-01"))
    for one in billing.entries["names"]:
        vendor, _, model = one["model"].partition("/")
        assert find_provider(listed, vendor) is not None
        assert BOOK.explain(vendor, model) is not None
    assert at(billing.date)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"date": "2026-01-01", "factors": []}', b"\xff"])
def test_a_damaged_file_is_refused(content):
    """By name."""
    with pytest.raises(InvalidPrices, match=r"billing\.json cannot be read"):
        parse_billing(content)
