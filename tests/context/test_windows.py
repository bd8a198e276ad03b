"""A model's context window is found by any spelling of its name, and never by a part of another's."""

import subprocess
import sys
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context import windows
from sessionlog.context.windows import (
    DEFAULT_CONTEXT_WINDOW,
    find_context_window,
    get_model_context_window,
    window_for,
)
from tests.profiles import examples

NAMES = [
    row.split("\t")[0]
    for row in files("sessionlog").joinpath("data/context_windows.tsv").read_text("ascii").splitlines()
    if not row.startswith("#")
]


@pytest.mark.parametrize(
    ("spelling", "model"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-3.5-turbo-0125", "gpt-3.5-turbo"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-2.5-flash-lite-preview-09-2025", "gemini-2.5-flash-lite"),
        ("gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("mistral-large-2411", "mistral-large"),
        ("openai:gpt-4o", "gpt-4o"),
        ("openrouter:openai/gpt-4o", "gpt-4o"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("google-gla:gemini-2.5-flash", "gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("x:gpt-4o:free", "gpt-4o"),
        ("qwen/qwen3.6-27b:free", "qwen3.6-27b"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("eu.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3.5-sonnet"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic.claude-v2:1", "claude-2.1"),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us.deepseek.r1-v1:0", "deepseek-r1"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
        ),
        ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-3-7-sonnet-latest", "claude-3.7-sonnet"),
        ("gemini-3-pro", "gemini-3-pro-preview"),
        ("ft:gpt-4o-2024-08-06:acme:name:o1", "gpt-4o"),
        ("Claude Sonnet 4.5", "claude-sonnet-4-5"),
        (" GPT-4O ", "gpt-4o"),
        ("claude_sonnet_4_5", "claude-sonnet-4-5"),
    ],
)
def test_decoration_is_taken_off(spelling, model):
    """A date, a provider, a cloud, a stage, another case or other dots: it is the same model."""
    window = find_context_window(model)
    assert window is not None
    assert find_context_window(spelling) == window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4", 8_192),
        ("gpt-4-32k", 32_768),
        ("gpt-4-turbo", 128_000),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4o-realtime-preview-2024-12-17", 32_000),
        ("gpt-5-chat-latest", 128_000),
        ("gpt-5", 400_000),
        ("claude-sonnet-4-5", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-2.0", 100_000),
        ("gemini-pro", 32_768),
        ("gemini-pro-latest", 1_048_576),
        ("mistral-small-2506", 128_000),
        ("codestral-2405", 32_000),
        ("codestral-2501", 256_000),
    ],
)
def test_exact_beats_stripped(model, window):
    """A name that stands in the table itself is not taken for a decorated other one."""
    assert find_context_window(model) == window


@pytest.mark.parametrize(
    "model", ["gpt-4-ultra", "my-gpt-4o", "gpt-4omni", "claude", "gpt", "4o", "v1", "x:y", "llama3:70b-q4"]
)
def test_a_part_of_a_name_is_not_the_model(model):
    """Nothing is found by what it contains or begins with."""
    assert find_context_window(model) is None


@pytest.mark.parametrize("model", ["claude-sonnet-4-5[1m]", "anthropic/claude-opus-4-6[1M]", "sonnet[1m]"])
def test_a_million_in_brackets_is_a_million(model):
    """Claude Code says so itself when a session has the long window."""
    assert find_context_window(model) == 1_000_000


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("anthropic.claude-v2:1:18k", 18_000),
        ("anthropic.claude-v2:1:200k", 200_000),
        ("us.amazon.nova-pro-v1:0:24k", 24_000),
        ("bedrock:amazon.nova-pro-v1:0:300K", 300_000),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-sonnet-20240229-v1:0:28k", 28_000),
        ("anthropic.claude-3-sonnet-20240229-v1:0", 200_000),
    ],
)
def test_a_window_behind_bedrocks_version_is_the_window(model, window):
    """Its models are sold with several windows, and the name says which."""
    assert find_context_window(model) == window


@pytest.mark.parametrize(
    "model", ["yarn:8k", "yarn:1:0k", "yarn:1:k", "yarn:1:-8k", "yarn:1:١k", "yarn:1:99999k", "24k"]
)
def test_what_only_looks_like_a_window_is_none(model):
    """A tag of some size, nothing, or more than there is."""
    assert find_context_window(model) is None


def test_other_brackets_are_decoration():
    """They do not hide the model."""
    assert find_context_window("claude-sonnet-4-5[200k]") == 200_000


@pytest.mark.parametrize(
    ("names", "window"),
    [
        (("llama3.1:8b", "llama3.1-8b", "llama-3.1-8b", "meta-llama/llama-3.1-8b-instruct"), 131_072),
        (("deepseek-chat", "deepseek-reasoner", "deepseek/deepseek-chat", "deepseek-v3.2"), 128_000),
    ],
)
def test_one_model_has_one_window(names, window):
    """By whichever of its names it is asked for."""
    assert {name: find_context_window(name) for name in names} == dict.fromkeys(names, window)


def test_google_counts_in_ki():
    """All windows of its models, in whatever unit somebody has them."""
    sizes = {name: find_context_window(name) for name in NAMES if name.startswith("gemini-")}
    assert {name: size for name, size in sizes.items() if size % 1024} == {}
    assert (sizes["gemini-2-0-flash"], sizes["gemini-1-5-pro"]) == (1 << 20, 1 << 21)


def test_a_seller_may_set_limits_of_its_own():
    """GitHub Copilot lets less in than the model takes; other providers change nothing."""
    assert find_context_window("gpt-4.1-2025-04-14", "github-copilot") == 128_000
    assert find_context_window("github-copilot/gpt-4.1") == 128_000
    assert find_context_window("gpt-4.1", "openai") == find_context_window("gpt-4.1") == 1_000_000
    assert find_context_window("gpt-4o", "github-copilot") == find_context_window("gpt-4o")


@pytest.mark.parametrize("model", [None, "", ":", "/", "unknown", "\ud800", "gpt-4\t8192", "# source", "x" * 100_000])
def test_what_is_unknown_has_the_default(model):
    """Odd names are unknown, and nothing is raised for them."""
    assert get_model_context_window(model) == DEFAULT_CONTEXT_WINDOW == 128_000


@pytest.mark.parametrize("seller", ["", "openai:", "a/b/", "vertex_ai/publishers/x/models/"])
def test_every_name_of_the_table_is_found(seller):
    """Each row answers for its own name, and behind any provider."""
    assert all(find_context_window(seller + name) for name in NAMES)


@given(st.text(), st.text(max_size=20))
@examples(200)
def test_any_text_has_an_answer(model, provider):
    """A window is a positive number, or None."""
    window = find_context_window(model, provider)
    assert window is None or window > 0


@pytest.mark.parametrize(
    ("used", "sizes", "models", "window"),
    [
        (100, (50_000,), ("gpt-4o",), 50_000),
        (100, (None, 0), ("nobody-s", "gpt-4o"), 128_000),
        (412_000, (200_000,), ("claude-fable-5",), 1_000_000),
        (412_000, (200_000, 500_000), ("claude-fable-5",), 500_000),
        (412_000, (200_000,), ("claude-sonnet-4-5", None), None),
        (412_000, (), ("claude-sonnet-4-5", "claude-sonnet-4-5[1m]"), 1_000_000),
        (200_000, (200_000,), (), 200_000),
    ],
)
def test_a_window_holds_what_was_sent(used, sizes, models, window):
    """Of the sizes that are named and of the model's, the first that does; one that is smaller is wrong."""
    assert window_for(used, *sizes, models=models) == window


def test_answers_are_kept_but_not_for_ever(monkeypatch):
    """A name that was looked up is not looked up again; a stream of new names does not fill the memory."""
    monkeypatch.setattr(windows, "_found", {})
    monkeypatch.setattr(windows, "_MAX_FOUND", 2)
    assert find_context_window("gpt-4o") == 128_000
    monkeypatch.setattr(windows, "_table", b"\ngpt-4o\t1\n")
    assert find_context_window("gpt-4o") == 128_000
    assert find_context_window("a") is None
    assert find_context_window("b") is None
    assert find_context_window("gpt-4o") == 1


def test_a_look_up_imports_nothing():
    """A status line asks in a process of its own: no json, re, typing or importlib.resources for it."""
    code = (
        "import sys; before = set(sys.modules);"
        "from sessionlog.context.windows import get_model_context_window as ask;"
        "assert ask('us.anthropic.claude-sonnet-4-5-20250929-v1:0') == 200_000;"
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                         env={"PYTHONPATH": str(files("sessionlog").joinpath(".."))})  # fmt: skip
    loaded = run.stdout.split()
    assert {"json", "re", "typing", "importlib.resources", "pkgutil", "dataclasses"}.isdisjoint(loaded)
    assert "sessionlog.context.windows" in loaded
