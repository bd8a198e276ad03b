"""The price book: own prices first, then the list; unknown is None."""

import re
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import InvalidPrices
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing import ModelPricing, PriceBook
from sessionlog.pricing import book as book_module
from tests.profiles import examples

MILLION = TokenUsage(input=10**6, output=10**6)
OWN = {"input": 0.1, "output": 0.4, "cache_read": 0.01}
BOOK = PriceBook.load()


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


NOW = at("2026-11-15T12:00")


def dollars(provider, model, usage=MILLION, when=NOW, book=BOOK, **kind):
    nano = book.price(provider, model, usage, when, **kind)
    return None if nano is None else nano / 10**9


def test_prices_have_a_history():
    """o3 cost 10/40 until 2025-06-09 and 2/8 from the next day on."""
    assert dollars("openai", "o3", when=at("2025-06-09T23:59:59")) == 50
    assert dollars("openai", "o3", when=at("2025-06-10T00:00:00")) == 10
    assert BOOK.explain("openai", "o3", at("2025-05-01")).valid_from is None
    assert BOOK.explain("openai", "o3", at("2025-07-01")).valid_from == "2025-06-10"


def test_prices_have_hours():
    """DeepSeek's price depends on the hour, in the same day and in one book."""
    costs = {dollars("deepseek", "deepseek-v4-pro", when=at(f"2026-11-15T{hour:02}:30")) for hour in range(24)}
    assert len(costs) == 2
    two, five = (BOOK.explain("deepseek", "deepseek-v4-pro", at(f"2026-11-15T0{hour}:00")) for hour in (2, 5))
    assert two.pricing != five.pricing


def test_tiers_depend_on_the_single_request():
    """gemini-2.5-pro costs almost double from 200,001 prompt tokens on."""
    at_threshold, beyond = TokenUsage(input=200_000, output=1000), TokenUsage(input=200_001, output=1000)
    assert dollars("google", "gemini-2.5-pro", at_threshold) == 0.26
    assert dollars("google", "gemini-2.5-pro", beyond) == pytest.approx(0.515, rel=1e-4)
    [tier] = BOOK.explain("google", "gemini-2.5-pro", NOW).tiers
    assert tier.above_prompt_tokens == 200_000
    assert tier.pricing.input_per_mtok == 2.5


def test_batch_and_service_tiers_have_their_prices():
    """Batch halves, flex halves, priority costs more, and an unknown tier is standard."""
    assert dollars("anthropic", "claude-haiku-4-5") == 6
    assert dollars("anthropic", "claude-haiku-4-5", batch=True) == 3
    assert dollars("anthropic", "claude-haiku-4-5", service_tier="batch") == 3
    standard = dollars("openai", "gpt-5")
    assert dollars("openai", "gpt-5", service_tier="flex") == standard / 2
    assert dollars("openai", "gpt-5", service_tier="priority") > standard
    assert dollars("openai", "gpt-5", service_tier="standard") == standard
    assert dollars("anthropic", "claude-opus-5", speed="fast") == 2 * dollars("anthropic", "claude-opus-5")
    assert "service_tier=flex" in BOOK.explain("openai", "gpt-5", NOW).variants


def test_resold_models_keep_the_standard_price():
    """What a vendor grants for batches is not known of those who resell it."""
    assert dollars("azure", "claude-haiku-4-5", batch=True) == dollars("azure", "claude-haiku-4-5") == 6
    assert BOOK.explain("azure", "claude-haiku-4-5", NOW).variants == ()


def test_cache_classes_have_their_prices():
    """Reads, writes for five minutes and writes for an hour are charged apart, input not twice."""
    usage = TokenUsage(input=10**6, cache_read=10**6, cache_write=3 * 10**6, cache_write_1h=10**6)
    assert dollars("anthropic", "claude-haiku-4-5", usage) == pytest.approx(1 + 0.1 + 2 * 1.25 + 2)


@pytest.mark.parametrize("provider", ["vllm", "lmstudio", "ollama", "llama.cpp", "local", "my_vllm"])
def test_local_servers_cost_what_their_owner_says(provider):
    """Nobody's list applies; the user's price does, and a user may say that it is free."""
    assert dollars(provider, "gpt-4o") is None
    assert BOOK.explain(provider, "gpt-4o", NOW) is None
    assert dollars(provider, "gpt-4o", book=PriceBook.load({f"{provider}/*": {"input": 0, "output": 0}})) == 0
    assert dollars(provider, "gpt-4o", book=PriceBook.load({f"{provider}/gpt-4o": OWN})) == 0.5


def test_own_prices_go_before_the_list():
    """A user's price for a listed model wins, for all dates and tariffs, and says so."""
    book = PriceBook.load({"openai/gpt-5": OWN})
    assert dollars("openai", "gpt-5", book=book, service_tier="flex") == 0.5
    assert dollars("openai", "gpt-5-mini", book=book) == dollars("openai", "gpt-5-mini")
    assert dollars("azure", "gpt-5", book=book) == dollars("azure", "gpt-5")
    info = book.explain("openai", "gpt-5", NOW)
    assert info.source == "your price 'openai/gpt-5'"
    assert info.pricing == ModelPricing(0.1, 0.4, 0.01)
    assert (info.tiers, info.valid_from, info.variants) == ((), None, ())


def test_wrong_own_prices_are_refused_when_the_book_is_opened():
    """A wrong entry is an error at once, named."""
    with pytest.raises(InvalidPrices, match="openai/gpt-5"):
        PriceBook.load({"openai/gpt-5": {"input": -1, "output": 1}})


def test_p24_unknown_is_none_and_free_is_zero():
    """Who is not in the list has no price; a free model costs 0; what is priced by the hour of audio is unknown."""
    assert dollars("openai", "gpt-nobody") is None
    assert BOOK.explain(None, "nobody/knows-me") is None
    assert dollars("openrouter", "qwen/qwen3-coder:free") == 0
    assert dollars("openai", "whisper-1") is None
    assert BOOK.explain("openai", "whisper-1") is None


def test_p24_an_explanation_names_the_list_and_its_date():
    """The source sentence, the version and the date agree."""
    info = BOOK.explain("claude-code", "claude-haiku-4-5-20251001")
    assert (info.provider, info.model) == ("anthropic", "claude-haiku-4-5")
    assert info.source == f"list price, {BOOK.version}"
    assert re.fullmatch(r"genai-prices \d+\.\d+\.\d+ of \d{4}-\d{2}-\d{2}", BOOK.version)
    assert BOOK.version.endswith(BOOK.date)
    assert date.fromisoformat(BOOK.date) >= date(2026, 11, 10)
    assert info.pricing == ModelPricing(1.0, 5.0, 0.1, 1.25, 2.0)


def test_every_price_can_be_listed():
    """Own prices come first, then every model of the list with a token price."""
    infos = list(PriceBook.load({"vllm/*": OWN}).models(NOW))
    assert infos[0].model == "vllm/*"
    assert len(infos) > 2200
    assert ("anthropic", "claude-haiku-4-5") in {(info.provider, info.model) for info in infos}
    assert "whisper-1" not in {info.model for info in infos if info.provider == "openai"}


def test_the_clock_is_asked_when_no_time_is_given():
    """Without a time the prices of now apply, and now is a parameter."""
    then = PriceBook(BOOK._list, BOOK._own, clock=lambda: at("2025-06-01"))
    assert dollars("openai", "o3", when=None, book=then) == 50
    assert then.explain("openai", "o3").valid_from is None
    assert next(info for info in then.models() if info.model == "o3").pricing.input_per_mtok == 10


def test_the_fingerprint_changes_with_the_prices():
    """The same prices give the same fingerprint; own prices change it, their order does not."""
    assert PriceBook.load().fingerprint == PriceBook.load({}).fingerprint == BOOK.fingerprint
    one = PriceBook.load({"a": OWN, "b": OWN}).fingerprint
    assert one == PriceBook.load({"b": OWN, "a": OWN}).fingerprint
    assert one != BOOK.fingerprint
    assert one != PriceBook.load({"a": OWN, "b": {**OWN, "input": 1}}).fingerprint


def test_the_memory_is_bounded(monkeypatch):
    """Names come from logs: many different ones do not fill the memory, and answers stay right."""
    monkeypatch.setattr(book_module, "_MAX_CACHED", 10)
    book = PriceBook.load()
    for number in range(50):
        assert dollars(f"gateway-{number}", "gpt-5", book=book) == dollars("openai", "gpt-5")
    assert len(book._days) <= 10
    assert len(book._listings) <= 10


@examples(100)
@given(
    st.sampled_from(["", "openai", "openrouter", "aws", "unknown"]) | st.text(max_size=40),
    st.sampled_from(["gpt-5", "o3", "", "us.anthropic."]) | st.text(max_size=60),
    st.integers(-(2**70), 2**70),
    st.none() | st.text(max_size=10),
)
def test_p24_odd_calls_never_raise(provider, model, at_ns, tier):
    """Any names, any time and any tier give a price or None."""
    price = BOOK.price(provider, model, TokenUsage(input=3, output=1), at_ns, service_tier=tier, speed=tier)
    assert price is None or price >= 0
    info = BOOK.explain(provider, model, at_ns)
    assert info is None or info.pricing.input_per_mtok >= 0
