"""Spellings take decoration off names, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.pricing.spellings import has_tag, is_bedrock_name, spellings
from tests.profiles import examples


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("gpt-5.2-2025-12-11", "gpt-5.2"),
        ("gpt-5.2-20251211", "gpt-5.2-2025-12-11"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514"),
        ("eu.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("apac.amazon.nova-pro-v1:0", "nova-pro"),
        ("anthropic.claude-3-haiku-20240307-v1:0:200k", "claude-3-haiku-20240307"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4-20250514"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-sonnet-4@default", "claude-sonnet-4"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("kimi-latest", "kimi"),
        ("gemini-3-pro-preview", "gemini-3-pro"),
        ("gemini-3-pro", "gemini-3-pro-preview"),
        ("codestral", "codestral-latest"),
    ],
)
def test_decorations_come_off(name, plain):
    """The name itself is tried first; the plain name is among the others."""
    forms = spellings(name)
    assert forms[0] == name
    assert plain in forms


@pytest.mark.parametrize(
    "name", ["qwen3-coder:free", "llama3.1:8b", "kimi-k2-0905", "gpt-4-0613", "mistral-large-2512"]
)
def test_what_names_other_goods_stays(name):
    """Tariffs, sizes and short dates are parts of a model's name."""
    assert all(form.startswith(name) for form in spellings(name))


def test_the_vendor_in_front_comes_off_at_that_vendor_only():
    """`openai/gpt-5` is gpt-5 at openai, and nothing else elsewhere."""
    assert "gpt-5" in spellings("openai/gpt-5", vendor="openai")
    assert "gpt-5" not in spellings("openai/gpt-5")
    assert "" not in spellings("openai/", vendor="openai")


@pytest.mark.parametrize(
    ("name", "bedrock", "tag"),
    [
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", True, False),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/x", True, False),
        ("deepseek-r1:8b", False, True),
        ("qwen/qwen3-coder:free", False, True),
        ("gpt-4.1", False, False),
    ],
)
def test_tags_and_bedrock_names_are_told_apart(name, bedrock, tag):
    """A colon in a Bedrock name is its version; elsewhere it is a tag."""
    assert is_bedrock_name(name) is bedrock
    assert has_tag(name) is tag


@examples(150)
@given(
    st.lists(
        st.sampled_from(["us.", "anthropic.", "models/", "a", "-20250929", "@1", "[1m]", "-latest", ":0"]), max_size=40
    )
)
def test_spellings_are_few_and_distinct(parts):
    """A hostile name gets at most 48 spellings, each once, itself first."""
    name = "".join(parts)
    forms = spellings(name)
    assert forms[0] == name
    assert len(forms) <= 48
