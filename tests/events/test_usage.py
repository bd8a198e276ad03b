"""One function reads the usage objects of every SDK, and names what it cannot read."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from sessionlog.events.tokens import MAX_COUNT, TokenUsage
from sessionlog.events.usage import loggable_usage, read_usage


class Model:
    """A pydantic model, as far as it matters."""

    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self):
        return self.fields


@dataclass(slots=True)
class Request:
    """As pydantic-ai's RequestUsage."""

    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    output_reasoning_tokens: int = 0
    requests: int = 0


class Hostile(Mapping):
    """A mapping that answers nothing."""

    def __getitem__(self, key):
        raise OSError("closed")

    def __len__(self):
        raise OSError("closed")

    def __iter__(self):
        raise OSError("closed")


CHAT = {
    "prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130,
    "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 7},
}  # fmt: skip
RESPONSES = {
    "input_tokens": 100, "output_tokens": 30, "total_tokens": 130, "input_tokens_details": {"cached_tokens": 60},
    "output_tokens_details": {"reasoning_tokens": 7},
}  # fmt: skip
ANTHROPIC = {
    "input_tokens": 40, "output_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10,
    "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 6}, "service_tier": "standard",
}  # fmt: skip
GOOGLE = {
    "prompt_token_count": 100, "candidates_token_count": 23, "thoughts_token_count": 7,
    "cached_content_token_count": 60, "total_token_count": 130,
}  # fmt: skip
INSIDE = TokenUsage(input=40, output=30, cache_read=60, reasoning=7)
BESIDE = TokenUsage(input=40, output=30, cache_read=60, cache_write=10, cache_write_1h=4)

KNOWN = [
    (CHAT, INSIDE),
    (RESPONSES, INSIDE),
    (GOOGLE, INSIDE),
    ({"promptTokenCount": 100, "candidatesTokenCount": 23, "thoughtsTokenCount": 7, "cachedContentTokenCount": 60}, INSIDE),
    (ANTHROPIC, BESIDE),
    ({"inputTokens": 40, "outputTokens": 30, "cacheReadInputTokens": 60}, TokenUsage(input=40, output=30, cache_read=60)),
    (
        Request(110, 10, 4, 60, 30, 7, 1),
        TokenUsage(input=40, output=30, cache_read=60, cache_write=10, reasoning=7, cache_write_1h=4),
    ),
    ({"request_tokens": 9, "response_tokens": 2, "requests": 3}, TokenUsage(input=9, output=2)),
    ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4}, TokenUsage(input=4, cache_read=5)),
    ({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}, TokenUsage(input=5, output=2, cache_read=4)),
    ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, TokenUsage(cache_read=9)),
    ({"input_tokens": 7, "cache_read_tokens": 90}, TokenUsage(input=7, cache_read=90)),
    ({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 0, "prompt_tokens_details": {"cached_tokens": 4}},
     TokenUsage(input=5, output=2, cache_read=4)),
    (TokenUsage(input=3, reasoning=1, output=2), TokenUsage(input=3, reasoning=1, output=2)),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "classes"), KNOWN)
def test_known_shapes(usage, classes):
    """Cached tokens that stand inside the input are taken out of it; nothing is called unknown."""
    assert read_usage(usage) == (classes, ())


@pytest.mark.parametrize(
    "usage", [CHAT, RESPONSES, ANTHROPIC, GOOGLE], ids=["chat", "responses", "anthropic", "google"]
)
def test_objects_are_read_like_their_dictionaries(usage):
    """Models, plain attributes, and the whole answer that has a usage object."""
    expected = read_usage(usage)
    attributes = {k: SimpleNamespace(**v) if isinstance(v, dict) else v for k, v in usage.items()}
    assert read_usage(Model(**usage)) == expected
    assert read_usage(SimpleNamespace(**attributes)) == expected
    assert read_usage({"id": "r", "usage": usage}) == expected
    assert read_usage(SimpleNamespace(text="x", usage_metadata=SimpleNamespace(**attributes))) == expected


@pytest.mark.parametrize(
    "usage", [CHAT, RESPONSES, ANTHROPIC, GOOGLE], ids=["chat", "responses", "anthropic", "google"]
)
def test_what_is_logged_of_a_known_shape(usage):
    """Native names, beside them what else was reported; reading the log gives the same counts, without a complaint."""
    logged = loggable_usage(Model(**usage))
    assert logged["input"] == 40
    assert logged.get("service_tier") == usage.get("service_tier")
    assert not {"prompt_tokens", "total_tokens", "prompt_tokens_details"} & logged.keys()
    assert read_usage(logged) == read_usage(usage)


@pytest.mark.parametrize(
    ("usage", "counted", "named"),
    [
        ({"inptu": 12}, TokenUsage(), ["no token class in inptu; their names are input, output, cache_read"]),
        ({"input": 5, "cache_raed": 12}, TokenUsage(input=5), ["cache_raed: a number under an unknown name"]),
        ({"total": 5, "inptu": 5}, TokenUsage(), ["inptu: a number under an unknown name"]),
        (CHAT | {"dreamt_tokens": "3"}, INSIDE, ["dreamt_tokens: a number under an unknown name"]),
        ({"prompt_tokens": -1, "completion_tokens": 2}, TokenUsage(output=2), ["prompt_tokens: a negative count"]),
        ({"usage": {"inptu": 3}}, TokenUsage(), ["no token class in usage"]),
        (Model(inptu=3), TokenUsage(), ["usage is a Model"]),
        (Hostile(), TokenUsage(), ["usage is a Hostile that cannot be read: OSError"]),
        (5, TokenUsage(), ["usage is a int"]),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named_and_logged_as_it_is(usage, counted, named):
    """The rest counts; a log of it is read in the same way."""
    read, issues = read_usage(usage)
    assert read == counted
    assert [issue.startswith(start) for issue, start in zip(issues, named, strict=True)] == [True]
    logged = loggable_usage(usage)
    if isinstance(usage, dict):
        assert logged == usage
    elif isinstance(usage, Model):
        assert logged == usage.fields
    else:
        assert logged is usage


@pytest.mark.parametrize("extra", ["toolUsePromptTokenCount", "thoughtsTokenCount"])
def test_counts_that_are_too_large_together(extra):
    """The largest count is the largest sum, too: what is logged can be read again."""
    given = {"promptTokenCount": 9, "candidatesTokenCount": 4, extra: MAX_COUNT}
    usage, issues = read_usage(given)
    assert (max(usage.input, usage.output), issues) == (MAX_COUNT, ())
    assert read_usage(loggable_usage(given)) == (usage, ())


def test_native_names_stay_as_they_are_given():
    """They are logged as before, and a value as its dictionary."""
    given = {"input": 812, "output": 96, "cache_read": 14_100}
    assert loggable_usage(given) is given
    assert loggable_usage(None) is None
    assert loggable_usage(TokenUsage(input=1)) == {"input": 1, "output": 0, "total": 1}


def test_real_sdk_objects():
    """The classes that the packages of this day have."""
    openai = pytest.importorskip("openai")
    anthropic = pytest.importorskip("anthropic")
    usage = pytest.importorskip("pydantic_ai.usage")
    assert read_usage(openai.types.CompletionUsage.model_validate(CHAT)) == (INSIDE, ())
    assert read_usage(openai.types.responses.ResponseUsage.model_validate(
        RESPONSES | {"input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0}})) == (INSIDE, ())  # fmt: skip
    assert read_usage(anthropic.types.Usage.model_validate(ANTHROPIC)) == (BESIDE, ())
    for kind in (usage.RequestUsage, usage.RunUsage):
        made = kind(input_tokens=100, cache_read_tokens=60, output_tokens=30, details={"reasoning_tokens": 7})
        assert read_usage(made) == (INSIDE, ())
