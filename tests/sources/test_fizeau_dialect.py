"""The Go dialect: which input includes cached tokens, and when a cost of 0 is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.fizeau_dialect import cost_is_recorded, normalise_usage
from tests.profiles import examples
from tests.sources.logs import answered, ended, go_start, one_record, scanned

LAW = examples(200)
COUNTS = st.integers(0, 1000)
USAGES = st.builds(TokenUsage, input=COUNTS, output=COUNTS, cache_read=COUNTS, cache_write=COUNTS)


@pytest.mark.parametrize(
    ("harness", "provider", "usage", "left"),
    [
        ("claude", "unknown", (600, 500), 600),
        ("", "anthropic", (600, 500), 600),
        ("", "openrouter", (10, 500), 10),
        ("codex", "unknown", (600, 500), 100),
        ("", "vllm", (500, 500), 0),
        ("", "", (7, 0), 7),
    ],
)
def test_input_is_made_exclusive(harness, provider, usage, left):
    """Claude, Anthropic and whoever reads more than it sent excludes cached tokens; all others include them."""
    logged = TokenUsage(input=usage[0], cache_read=usage[1])
    assert normalise_usage(logged, harness=harness, provider=provider).input == left


def test_cache_writes_are_never_taken_out():
    """Only what was read from the cache is inside an inclusive input."""
    logged = TokenUsage(input=600, cache_read=500, cache_write=50, output=7, reasoning=3)
    assert normalise_usage(logged, harness="codex", provider="openai") == TokenUsage(
        input=100, cache_read=500, cache_write=50, output=7, reasoning=3
    )


@LAW
@given(USAGES, st.sampled_from(["", "claude", "codex"]), st.sampled_from(["anthropic", "openai", "unknown"]))
def test_normalising_only_lowers_the_input(usage, harness, provider):
    """Nothing becomes negative, no other class moves, and exclusive logs stay as they are."""
    out = normalise_usage(usage, harness=harness, provider=provider)
    assert 0 <= out.input <= usage.input
    assert (out.output, out.cache_read, out.cache_write) == (usage.output, usage.cache_read, usage.cache_write)
    if harness == "claude" or provider == "anthropic":
        assert out == usage


@pytest.mark.parametrize(
    ("nano", "attempt", "recorded"),
    [
        (5, {"cost": {"source": "unknown"}}, True),
        (0, {"cost": {"source": "unknown"}}, False),
        (0, {"cost": {"source": "configured"}}, True),
        (0, {"cost": "unknown"}, True),
        (0, {}, True),
        (None, {}, False),
    ],
)
def test_a_cost_of_zero_counts_unless_its_source_is_unknown(nano, attempt, recorded):
    """The writer wrote 0 also where it did not know; an amount is an amount whatever the source says."""
    assert cost_is_recorded(nano, attempt) is recorded


@pytest.mark.parametrize(
    ("harness", "tokens", "usage"),
    [
        ("claude", {"input": 10, "cache_read": 500, "cache_write": 20, "output": 7}, (10, 500, 20, 7)),
        ("codex", {"input": 600, "cache_read": 500, "output": 7}, (100, 500, 0, 7)),
    ],
)
def test_harness_sessions_have_a_provider_and_true_classes(tmp_path, harness, tokens, usage):
    """A harness run has totals only and an empty provider: the harness is its provider."""
    record = one_record(tmp_path, go_start(provider="", resolved_harness=harness), ended(tokens=tokens))
    assert record.provider == harness
    got = record.usage
    assert (got.input, got.cache_read, got.cache_write, got.output) == usage


def test_each_response_is_judged_by_its_own_provider(tmp_path):
    """After a failover the provider that served the call decides, not the session's."""
    tokens = {"input": 600, "cache_read": 500}
    session = scanned(
        tmp_path,
        go_start(provider="openai"),
        answered(usage=tokens),
        answered(usage=tokens, attempt={"provider_system": "anthropic"}),
    )
    assert [r.usage.input for r in session.records] == [100, 600]


def test_an_end_that_repeats_its_responses_adds_nothing(tmp_path):
    """One response that excludes its cached tokens speaks for all of its provider; nothing is left over."""
    session = scanned(
        tmp_path,
        go_start(provider="openrouter"),
        answered(usage={"input": 600, "cache_read": 500}),
        answered(usage={"input": 10, "cache_read": 500}),
        ended(tokens={"input": 610, "cache_read": 1000}),
    )
    assert [r.usage.input for r in session.records] == [600, 10]


def test_what_the_end_has_beyond_is_normalised_as_its_totals_are(tmp_path):
    """An inclusive total gives an inclusive rest: 400 more of which 300 were cached are 100."""
    session = scanned(
        tmp_path,
        go_start(provider="openai"),
        answered(usage={"input": 600, "cache_read": 500, "output": 1}),
        ended(tokens={"input": 1000, "cache_read": 800, "output": 5}),
    )
    assert session.records[-1].usage == TokenUsage(input=100, cache_read=300, output=4)


def test_an_exclusive_total_gives_an_exclusive_rest(tmp_path):
    """Whether the input includes the cache is read off the whole total, not off the rest of it."""
    session = scanned(
        tmp_path,
        go_start(provider="openrouter"),
        answered(usage={"input": 10, "cache_read": 500}),
        ended(tokens={"input": 310, "cache_read": 700}),
    )
    assert session.records[-1].usage == TokenUsage(input=300, cache_read=200)


def test_the_dialect_is_known_by_its_start(tmp_path):
    """A start with an integer `v` is ours; any other is the Go original's, whatever else is in the file."""
    sources = [scanned(tmp_path, go_start(v=v), answered(usage={})).source for v in (1, 2, 0, "1", True, None)]
    assert sources == ["native", "native", "fizeau", "fizeau", "fizeau", "fizeau"]


def test_a_native_input_is_taken_as_it_is(tmp_path):
    """Files with `v` hold disjoint classes already."""
    tokens = {"input": 600, "cache_read": 500}
    session = scanned(tmp_path, go_start(v=1, provider="openai"), answered(usage=tokens))
    assert session.records[0].usage.input == 600


def test_zero_costs_of_unknown_source_count_only_in_the_go_dialect(tmp_path):
    """A native response's 0 is a recorded 0."""
    line = answered(usage={"input": 1}, cost_usd=0, attempt={"cost": {"source": "unknown"}})
    costs = [scanned(tmp_path, go_start(**data), line).records[0].cost_nano for data in ({}, {"v": 1})]
    assert costs == [None, 0]


def test_the_oldest_logs_are_read(tmp_path):
    """`timestamp` instead of `ts` and an integer `tool_calls` change nothing."""
    old = answered("10:00:02", usage={"input": 10, "output": 4, "total": 14}, tool_calls=3)
    old["timestamp"] = old.pop("ts")
    [record] = scanned(tmp_path, old).records
    assert record.usage.total == 14
    assert record.time_ns is not None
