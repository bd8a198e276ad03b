"""A user's own prices: what wins, and what is refused."""

import math

import pytest

from sessionlog.errors import InvalidPrices
from sessionlog.pricing.own_prices import OwnPrices, parse_own_prices

ONE = {"input": 1, "output": 2}


def key_for(table, provider, model):
    hit = parse_own_prices(dict.fromkeys(table, ONE)).find(provider, model)
    return None if hit is None else hit.key


@pytest.mark.parametrize(
    ("table", "winner"),
    [
        (["vllm/qwen", "qwen", "vllm/*", "*"], "vllm/qwen"),
        (["qwen", "vllm/*", "*"], "qwen"),
        (["*", "vllm/*", "vllm/q*"], "vllm/q*"),
        (["*", "q?en"], "q?en"),
        (["VLLM/Qwen"], "VLLM/Qwen"),
        (["lmstudio/qwen", "qwen-2", "q"], None),
    ],
)
def test_the_most_specific_key_wins(table, winner):
    """provider/model before model before wildcards, and the longest wildcard first."""
    assert key_for(table, "vllm", "qwen") == winner
    assert key_for(reversed(table), " VLLM ", "QWEN ") == winner


def test_names_with_slashes_and_brackets_are_names():
    """A model's own slash is no provider, and brackets are no wildcards."""
    assert key_for(["qwen/qwen3"], "vllm", "qwen/qwen3") == "qwen/qwen3"
    assert key_for(["vllm/qwen/qwen3"], "vllm", "qwen/qwen3") == "vllm/qwen/qwen3"
    assert key_for(["claude-*[1m]"], "x", "claude-opus[1m]") == "claude-*[1m]"
    assert key_for(["claude-*[1m]"], "x", "claude-opus1") is None


def test_no_table_is_no_prices():
    """None and an empty table hold nothing and find nothing."""
    assert parse_own_prices(None).find("a", "b") is None
    assert parse_own_prices({}).entries == ()
    assert OwnPrices().find("a", "b") is None


def test_prices_become_a_value():
    """Every allowed key reaches its price."""
    table = {"m": {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.25, "cache_write_1h": 2}}
    pricing = parse_own_prices(table).entries[0].pricing
    assert (pricing.cache_read_per_mtok, pricing.cache_write_per_mtok, pricing.cache_write_1h_per_mtok) == (
        0.1,
        1.25,
        2,
    )


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write", "cache_write_1h"])
@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, -math.inf, True, "3", None, [1], 10**400])
def test_p24_what_is_no_price_is_refused_by_name(name, wrong):
    """The message names the entry and the key, and says what a price is."""
    with pytest.raises(InvalidPrices, match=rf'^prices\."vllm/q"\.{name} is .*, but a price is'):
        parse_own_prices({"vllm/q": {**ONE, name: wrong}})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"m": {"input": 1}}, 'prices."m" has no output; it needs input, output'),
        ({"m": {"output": 1}}, 'prices."m" has no input; it needs input, output'),
        ({"m": {}}, 'prices."m" has no input'),
        ({"m": {**ONE, "cached": 1}}, "prices.\"m\" has the unknown key 'cached'; allowed are input, output"),
        ({"gpt-5": {"2": {**ONE}}}, 'quote a name with a dot: [prices."gpt-5.2"]'),
        ({"m": 3}, 'prices."m" is 3, but it is a table'),
        ({"": ONE}, 'prices."": the key names a model'),
        ({5: ONE}, 'prices."5": the key names a model'),
        ({"m": ONE, " M": ONE}, 'prices." M" and prices."m" name the same model'),
        ([ONE], "prices is a list, but it is a table of entries"),
    ],
)
def test_wrong_entries_say_what_is_allowed(table, message):
    """A message names the entry and the way out."""
    with pytest.raises(InvalidPrices) as caught:
        parse_own_prices(table)
    assert message in str(caught.value)


def test_the_canonical_form_ignores_order_and_spelling_of_numbers():
    """The same prices give the same bytes; another price gives others."""
    one = parse_own_prices({"a": {"input": 1, "output": 2.0}, "B": ONE}).canonical()
    assert one == parse_own_prices({"b": ONE, "A": {"output": 2, "input": 1.0}}).canonical()
    assert one != parse_own_prices({"b": ONE, "a": {"output": 2, "input": 1.5}}).canonical()
    assert parse_own_prices({"\ud800": ONE}).canonical()
