"""The weaknesses 1 to 4 of seed 000, one test each: windows that were looked up wrong, counts that were raised."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import sessionlog
from sessionlog.context import tokenizers, tokens
from sessionlog.context.tokens import count_tokens
from sessionlog.context.windows import get_model_context_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-2024-08-06", 128_000),
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4.1-2025-04-14", 1_000_000),
        ("GPT-4O", 128_000),
        ("openrouter:openai/gpt-4o", 128_000),
        ("o1-mini-2024-09-12", 128_000),
        ("gpt-4", 8_192),
        ("o1", 200_000),
    ],
)
def test_weakness_01_a_longer_name_is_not_the_family_it_contains(model, window):
    """No model gets the window of `gpt-4` or `o1` because its name contains theirs."""
    assert get_model_context_window(model) == window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("claude-3-5-sonnet", 200_000),
        ("claude-3-7-sonnet", 200_000),
        ("claude-haiku-4-5", 200_000),
        ("gpt-5", 400_000),
        ("gemini-3-pro", 1_048_576),
    ],
)
def test_weakness_02_bedrock_ids_and_newer_models_are_known(model, window):
    """They had the default."""
    assert get_model_context_window(model) == window


def test_weakness_03_there_is_one_table_and_one_rule():
    """Any spelling of a model has the same window, and nothing but one module reads the one table."""
    spellings = ("claude-3.5-sonnet", "claude-3-5-sonnet", "anthropic:claude-3.5-sonnet", "bedrock:a:claude-3-5-sonnet")
    assert {get_model_context_window(spelling) for spelling in spellings} == {200_000}
    house = Path(sessionlog.__file__).parent
    users = [
        path.stem
        for path in sorted(house.rglob("*.py"))
        if "context_windows.tsv" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value == "context_windows.tsv"
    ]
    assert users == ["windows"]


def test_weakness_04_no_count_is_raised_offline(monkeypatch):
    """With tiktoken installed and no network the first count is what all later ones are."""
    asked = []

    def get_encoding(name):
        asked.append(name)
        raise ConnectionError("offline")

    monkeypatch.setattr(tokens, "_counted", {})
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=get_encoding))
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    tokenizers._load.cache_clear()
    try:
        counts = [count_tokens("hello world", model) for model in ("gpt-4o", "gpt-4o", None)]
    finally:
        tokenizers._load.cache_clear()
    assert counts == [2, 2, 2]
    assert not any(count.exact for count in counts)
    assert asked == []
