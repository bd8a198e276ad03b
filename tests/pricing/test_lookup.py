"""Models are found and clauses match as in genai-prices, and never a wrong one."""

import importlib.metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.pricing.lookup import find_listing, find_provider, matches, names_exactly
from sessionlog.pricing.price_list import load_price_list
from sessionlog.pricing.provider_names import GATEWAY, PROVIDER_ALIASES, is_local, normal_name
from sessionlog.pricing.spellings import has_tag, is_bedrock_name
from tests.profiles import examples

LIKE_O3 = {"or": [{"equals": "o3"}, {"and": [{"starts_with": "o3-"}, {"ends_with": "-pro"}]}]}
LOCAL = [
    "vllm",
    "lmstudio",
    "LM-Studio",
    "lm_studio",
    "ollama",
    "llama.cpp",
    "llama-server",
    "local",
    "mlx",
    "sglang",
    "tgi",
    "exo",
    "lemonade",
    "ds4",
    "omlx",
    "rapid-mlx",
    "my-vllm-2",
    "ollama-cloud",
    "http://localhost:1234/v1",
    "http://127.0.0.1:8000",
]


def found(provider, model):
    listing = find_listing(load_price_list(), provider, model)
    return None if listing is None else (listing.provider, listing.model["id"])


@pytest.fixture(scope="module")
def snapshot():
    """The data of genai-prices, of the same version as the shipped list."""
    pytest.importorskip("genai_prices")
    if load_price_list().source != f"genai-prices {importlib.metadata.version('genai-prices')}":
        pytest.skip("another version of genai-prices than the shipped list's is installed")
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()


def theirs(snapshot, provider, model):
    try:
        place, entry = snapshot.find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return place.id, entry.id


def test_every_model_is_found_where_genai_prices_finds_it(snapshot):
    """With its provider, every listed id, plain or in capitals, leads to the same entry."""
    compared = 0
    for provider in snapshot.providers:
        for model in provider.models:
            expected = theirs(snapshot, provider.id, model.id)
            if expected is not None and not (model.id.endswith(":free") and expected[1] != model.id):
                assert found(provider.id, model.id) == expected
                assert found(provider.id.upper(), f" {model.id.upper()} ") == expected
                compared += 1
    assert compared > 2200


def test_without_a_provider_bare_names_are_found_as_genai_prices_does(snapshot):
    """A bare name without a tag leads to the vendor that claims it."""
    compared = 0
    for provider in snapshot.providers:
        for name in {model.id.lower() for model in provider.models}:
            if "/" in name or has_tag(name) or is_bedrock_name(name):
                continue
            expected = theirs(snapshot, None, name)
            if expected is not None:
                assert found("", name) == found("unknown", name) == expected
                compared += 1
    assert compared > 300


@pytest.mark.parametrize("provider", LOCAL)
@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-r1:8b", "anthropic/claude-sonnet-4.5", "qwen/qwen3-coder:free"])
def test_a_server_of_ones_own_is_never_priced_from_a_list(provider, model):
    """Whatever a local server calls its models, no vendor's list applies, free ones included."""
    assert found(provider, model) is None


@pytest.mark.parametrize("model", ["ollama/deepseek-r1", "lmstudio/gpt-4o", "vllm/openai/gpt-4o"])
def test_a_local_vendor_in_the_name_is_local(model):
    """Also a model's name can say that it ran at home."""
    assert found("", model) is None
    assert found("some-gateway", model) is None


@pytest.mark.parametrize(
    ("provider", "local"),
    [("vllm", True), ("my-vllm-2", True), ("vllmvllm", False), ("vllmvllm/vllm", True), ("jantar", False), ("", False)],
)
def test_a_local_server_is_named_by_whole_words(provider, local):
    """A part of a longer word is none."""
    assert is_local(provider) is local


def test_no_listed_provider_is_local():
    """The names of local servers hit none of the list's providers."""
    assert [key for key in load_price_list().providers if is_local(normal_name(key))] == []


def test_aliases_lead_to_listed_providers():
    """Every alias names a provider of the list, and is written as names are compared."""
    providers = load_price_list().providers
    for alias, target in PROVIDER_ALIASES.items():
        assert target == GATEWAY or target in providers
        assert normal_name(alias) == alias


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anthropic", "anthropic"),
        ("Claude Code", "anthropic"),
        ("claude_code", "anthropic"),
        ("openai-codex", "openai"),
        ("codex", "openai"),
        ("gemini", "google"),
        ("google-vertex", "google"),
        ("bedrock", "aws"),
        ("amazon-bedrock", "aws"),
        ("azure", "azure"),
        ("azure_openai", "azure"),
        ("github_copilot", "github-copilot"),
        ("xai", "x-ai"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://example.org/v1", None),
        ("openai-compatible", None),
        ("my-gateway", None),
        ("unknown", None),
        ("", None),
    ],
)
def test_providers_have_many_names(name, expected):
    """Ids, aliases, parts of names and URLs lead to the provider; a protocol is not a vendor."""
    assert find_provider(load_price_list(), name) == expected


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        # A known provider: its own list and the vendors it resells, decorations aside.
        ("openai", "openai/gpt-5", ("openai", "gpt-5")),
        ("azure", "gpt-4.1-mini-2025-04-14", ("azure", "gpt-4.1-mini")),
        ("google", "claude-sonnet-4@20250514", ("google", "claude-4-sonnet")),
        ("google", "gemini-3-pro", ("google", "gemini-3-pro-preview")),
        ("anthropic", "claude-sonnet-4-5-20250929[1m]", ("anthropic", "claude-sonnet-4-5")),
        ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", ("anthropic", "claude-sonnet-4-5")),
        (
            "aws",
            "eu.anthropic.claude-sonnet-4-20250514-v1:0",
            ("aws", "regional.anthropic.claude-sonnet-4-20250514-v1:0"),
        ),
        ("anthropic", "glm-4.6", None),
        ("openai", "claude-sonnet-4-5", None),
        ("google", "gemini-2.5-pro:free", None),
        # No provider: vendor/model, then openrouter, then whoever claims the name.
        ("unknown", "anthropic/claude-sonnet-4.6", ("anthropic", "claude-sonnet-4-6")),
        ("", "qwen/qwen3.6-27b", ("openrouter", "qwen/qwen3.6-27b")),
        ("", "qwen/qwen3-coder:free", ("openrouter", "qwen/qwen3-coder:free")),
        ("", "deepseek/deepseek-r1:free", ("openrouter", "deepseek/deepseek-r1:free")),
        ("", "openrouter/anthropic/claude-sonnet-4.6", ("openrouter", "anthropic/claude-sonnet-4.6")),
        ("", "claude-haiku-4-5-20251001", ("anthropic", "claude-haiku-4-5")),
        (
            "",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            ("aws", "regional.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ),
        ("", "deepseek-r1:8b", None),
        ("", "nobody/knows-me", None),
        ("", "unknown", None),
        # A gateway of the user's: vendor/model, or a name that a vendor lists literally.
        ("my-gateway", "anthropic/claude-sonnet-4-20250514", ("anthropic", "claude-sonnet-4-0")),
        ("my-gateway", "gpt-5", ("openai", "gpt-5")),
        ("my-gateway", "claude-sonnet-4-5-20250929", ("anthropic", "claude-sonnet-4-5")),
        ("my-gateway", "claude-sonnet-4-5-of-mine", None),
        ("openai-compatible", "qwen3-32b", None),
    ],
)
def test_stories(provider, model, expected):
    """Names as logs write them lead to one entry or to none."""
    assert found(provider, model) == expected


def test_a_resold_model_is_marked():
    """Another vendor's entry found through a reseller says so, because its batch prices are then not known."""
    assert find_listing(load_price_list(), "azure", "claude-sonnet-4-5").resold
    assert not find_listing(load_price_list(), "anthropic", "claude-sonnet-4-5").resold


@examples(150)
@given(st.text(max_size=300), st.text(max_size=300))
def test_odd_names_never_raise(provider, model):
    """Any text is a name, if an unknown one."""
    assert found(provider, model) is None or isinstance(found(provider, model), tuple)


@pytest.mark.parametrize(
    "odd", ["a" * 10_000, "/" * 300, "us." * 100, "\ud800", "\x00", "[1m]" * 80, "claude" + "-latest" * 30]
)
def test_hostile_names_are_unknown(odd):
    """Long, empty or broken names find nothing and cost little."""
    assert found("openrouter", odd) is None
    assert found(odd, odd) is None


@pytest.mark.parametrize(
    ("clause", "name", "expected"),
    [
        ({"equals": "o3"}, "o3", True),
        ({"equals": "o3"}, "o3-mini", False),
        ({"starts_with": "o3"}, "o3-mini", True),
        ({"starts_with": "o3"}, "pro-o3", False),
        ({"ends_with": "-pro"}, "o3-pro", True),
        ({"ends_with": "-pro"}, "-pro-x", False),
        ({"contains": "claude"}, "us.claude-2", True),
        ({"contains": "claude"}, "gpt", False),
        ({"regex": "^o[134]"}, "o4-mini", True),
        ({"regex": "^o[134]"}, "gpt-o4", False),
        (LIKE_O3, "o3", True),
        (LIKE_O3, "o3-pro", True),
        (LIKE_O3, "o3-mini", False),
    ],
)
def test_each_kind_of_clause(clause, name, expected):
    """Every kind of clause accepts what it describes and nothing else."""
    assert matches(clause, name) is expected


def test_an_unknown_clause_is_named():
    """A list from a later version is refused by name instead of matching nothing."""
    with pytest.raises(ValueError, match="'glob' is newer"):
        matches({"glob": "x"}, "x")


def test_only_equality_names_exactly():
    """A name is literal where an `equals` names it, alone or as one choice of several."""
    assert names_exactly(LIKE_O3, "o3")
    assert not names_exactly(LIKE_O3, "o3-pro")
    assert not names_exactly({"starts_with": "o3"}, "o3")
    assert not names_exactly({"and": [{"equals": "o3"}]}, "o3")
