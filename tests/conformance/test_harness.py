"""Harness runs: who ran is the provider, and each harness has its own idea of what `input` includes."""

from pathlib import Path

import pytest

from sessionlog.analytics.usage import aggregate_usage

LOGS = Path(__file__).parents[2] / "testdata" / "harness"


@pytest.mark.parametrize(
    ("harness", "input_tokens", "cache_write_tokens", "hit_rate"),
    [("claude", 10, 20, 500 / 530), ("codex", 100, 0, 500 / 600)],
)
def test_harness_sessions(harness, input_tokens, cache_write_tokens, hit_rate):
    """Cached tokens are taken out of an inclusive input only, and the provider is the harness."""
    report = aggregate_usage(LOGS / f"{harness}.jsonl")
    (row,) = report.rows
    assert row.provider == harness
    assert (row.input_tokens, row.cache_read_tokens, row.cache_write_tokens) == (input_tokens, 500, cache_write_tokens)
    assert row.output_tokens == 7
    assert row.total_tokens == input_tokens + 500 + cache_write_tokens + 7
    assert row.cache_hit_rate == hit_rate
    assert report.totals.cache_hit_rate == hit_rate


def test_harness_is_a_group_of_its_own():
    """Sessions can be grouped by the harness as well."""
    report = aggregate_usage(LOGS, by=("harness",))
    assert sorted(row.keys["harness"] for row in report.rows) == ["claude", "codex"]
