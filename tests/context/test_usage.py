"""Usage objects of every make give one set of numbers."""

from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.usage import SessionUsage, TurnUsage, read_counts, sum_turns, usage_to_dict
from sessionlog.events.tokens import TokenUsage
from tests.profiles import examples


class _Model:
    """A pydantic model, as far as it matters."""

    def model_dump(self):
        return {"input_tokens": 3}


class _Old:
    def dict(self):
        return {"input_tokens": 4}


class _Broken:
    def __init__(self):
        self.input_tokens = 5

    def model_dump(self):
        raise RuntimeError


@dataclass(slots=True)
class _Slotted:
    input_tokens: int = 6


@dataclass(init=False)
class _Open:
    """As pydantic-ai's: defaults on the class, and what else a provider reports."""

    input_tokens: int = 6
    output_tokens: int = 0


class _Slots:
    __slots__ = ("input_tokens", "output_tokens")

    def __init__(self):
        self.input_tokens = 8


class _Reads:
    """As messages of a protocol are: names that are read, and state of its own beside them."""

    def __init__(self):
        self._state = 9

    @property
    def prompt_token_count(self):
        return self._state

    @property
    def candidates_token_count(self):
        raise ValueError

    def input_tokens(self):
        return 3


class _Tuple(NamedTuple):
    input_tokens: int = 3
    output_tokens: int = 4


class _Details:
    """OpenAI's, where the details are no dictionary either."""

    prompt_tokens = 9
    prompt_tokens_details = SimpleNamespace(cached_tokens=4)


def _open():
    usage = _Open()
    usage.output_tokens, usage.web_searches = 2, 1
    return usage


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        (_Model(), {"input_tokens": 3}),
        (_Old(), {"input_tokens": 4}),
        (_Broken(), {"input_tokens": 5}),
        (_Slotted(), {"input_tokens": 6}),
        (_open(), {"input_tokens": 6, "output_tokens": 2, "web_searches": 1}),
        (SimpleNamespace(x=1), {"x": 1}),
        (_Slots(), {"input_tokens": 8}),
        (_Reads(), {"_state": 9, "prompt_token_count": 9}),
        (_Tuple(), {"input_tokens": 3, "output_tokens": 4}),
        (["input_tokens"], {}),
        (7, {}),
        ("text", {}),
    ],
)
def test_a_usage_as_a_dictionary(usage, expected):
    """Mappings, models, dataclasses and objects; nothing for what is none."""
    assert usage_to_dict(usage) == expected


def test_a_dictionary_is_a_copy():
    """Changing what comes out changes nothing that went in."""
    given_usage = {"input_tokens": 1}
    usage_to_dict(given_usage)["input_tokens"] = 2
    assert given_usage == {"input_tokens": 1}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # pydantic-ai: inclusive
        (
            {"input_tokens": 100, "cache_read_tokens": 60, "cache_write_tokens": 10, "output_tokens": 5},
            (100, 5, 60, 10),
        ),
        ({"request_tokens": 8, "response_tokens": 2}, (8, 2, 0, 0)),
        # ours: disjoint
        ({"input": 30, "cache_read": 60, "cache_write": 10, "output": 5}, (100, 5, 60, 10)),
        (TokenUsage(input=30, cache_read=60, cache_write=10, output=5), (100, 5, 60, 10)),
        # Anthropic: beside
        (
            {"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 5},
            (100, 5, 60, 10),
        ),
        # OpenAI: inside, in two spellings
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, (9, 2, 4, 0)),
        ({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}, (9, 2, 4, 0)),
        # more is cached than the prompt is long: it stands beside it
        ({"input_tokens": 7, "cache_read_tokens": 90}, (97, 0, 90, 0)),
        # LiteLLM: Anthropic's names beside an inclusive prompt
        (
            {
                "prompt_tokens": 1000,
                "completion_tokens": 5,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 900},
            },
            (1000, 5, 900, 50),
        ),
        # Gemini: inclusive; thoughts and the prompts of its own tools stand beside
        (
            {
                "promptTokenCount": 100,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 20,
                "cachedContentTokenCount": 60,
                "toolUsePromptTokenCount": 7,
            },
            (107, 25, 60, 0),
        ),
        (
            {
                "prompt_token_count": 100,
                "candidates_token_count": 5,
                "thoughts_token_count": None,
                "cached_content_token_count": 60,
            },
            (100, 5, 60, 0),
        ),
        # Bedrock, and Claude Code's sums by model: beside
        (
            {"inputTokens": 30, "outputTokens": 5, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 10},
            (100, 5, 60, 10),
        ),
        ({"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3}, (6, 0, 2, 3)),
        # what this room writes
        (TurnUsage(input_tokens=9, output_tokens=1, cache_read_tokens=4, cache_write_tokens=2).to_dict(), (9, 1, 4, 2)),
        # objects that no dictionary can be made of
        (_Slots(), (8, 0, 0, 0)),
        (_Reads(), (9, 0, 0, 0)),
        (_Tuple(), (3, 4, 0, 0)),
        (_Details(), (9, 0, 4, 0)),
        ({"input_tokens": "12", "output_tokens": 3.0}, (12, 3, 0, 0)),
        ({"input_tokens": None, "output_tokens": -1}, (0, 0, 0, 0)),
        ({}, (0, 0, 0, 0)),
    ],
)
def test_counts_of_every_spelling(usage, expected):
    """The input is the whole prompt; what was read from and written to a cache are parts of it."""
    counts = read_counts(usage)
    read = (counts.input_tokens, counts.output_tokens, counts.cache_read_tokens, counts.cache_write_tokens)
    assert read == expected
    assert read_counts(counts) is counts


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "input", "output", "cache_read",
     "requests", "tool_calls", "cached_tokens", "input_tokens_details", "cache_read_input_tokens", "x",
     "prompt_tokens", "promptTokenCount", "cachedContentTokenCount", "inputTokens", "cacheWriteInputTokens"]
)  # fmt: skip


@examples(200)
@given(st.dictionaries(_NAMES, _JSON))
def test_whatever_is_given_the_cache_is_a_part_of_the_prompt(usage):
    """No usage raises, no number is negative, and no more is cached than there is."""
    counts = read_counts(usage)
    assert min(asdict(counts).values()) >= 0
    assert counts.cache_read_tokens + counts.cache_write_tokens <= counts.input_tokens


def test_turns_add_up():
    """A session is the sum of its turns, and none is a session of nothing."""
    turn = TurnUsage(
        input_tokens=5, output_tokens=1, requests=2, tool_calls=3, duration_seconds=0.5, cache_read_tokens=4
    )
    assert sum_turns([]) == SessionUsage()
    assert sum_turns([turn, turn]) == SessionUsage(
        input_tokens=10, output_tokens=2, requests=4, tool_calls=6, turns=2, duration_seconds=1.0, cache_read_tokens=8
    )


def test_usage_as_json():
    """CamelCase, cached tokens and durations among it."""
    assert TurnUsage(tool_names=("a",), duration_seconds=2).to_dict() == {
        "inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0, "requests": 0,
        "toolCalls": 0, "toolNames": ["a"], "durationSeconds": 2,
    }  # fmt: skip
    assert SessionUsage(turns=3).to_dict()["turns"] == 3
