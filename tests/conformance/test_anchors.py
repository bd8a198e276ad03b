"""The anchors: figures of the original that were agreed as landmarks, and what became of each."""

from datetime import UTC, datetime

import pytest

from sessionlog.analytics.routing import scan_routing_quality
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.events.envelope import Event
from sessionlog.reader.stream import read_events
from tests.conformance.data import folder, needs_data

pytestmark = needs_data("1 of 9 anchors not compared")
MAY = datetime(2026, 5, 10, 12, tzinfo=UTC)
APRIL = datetime(2026, 4, 9, 12, tzinfo=UTC)


def usage(name, window=None, now=APRIL):
    """A report, and its rows by model."""
    report = aggregate_usage(folder() / name, window=window, now=now)
    return report.totals, {row.model: row for row in report.rows}


def test_repo_sessions():
    """Seven sessions that ended, and the one that did not."""
    totals, rows = usage("logs/repo-sessions", "30d", MAY)
    assert (totals.sessions - totals.unfinished_sessions, totals.unfinished_sessions) == (7, 1)
    sonnet = rows["anthropic/claude-sonnet-4.6"]
    assert (sonnet.sessions, sonnet.input_tokens, sonnet.output_tokens) == (2, 73_048, 2_501)
    assert sonnet.known_cost_usd == pytest.approx(0.2567, abs=5e-5)
    assert (rows["openai/gpt-5.3-mini"].sessions, rows["openai/gpt-5.3-mini"].unknown_cost_sessions) == (3, 3)
    report = aggregate_usage(
        folder() / "logs/repo-sessions", window="30d", now=MAY, filters={"provider": ["openrouter"]}
    )
    (qwen,) = [row for row in report.rows if row.model == "qwen/qwen3.6-27b"]
    assert (qwen.sessions, qwen.known_cost_usd) == (1, pytest.approx(0.0019, abs=5e-5))
    vllm = rows["qwen3.6-27b-autoround"]
    assert (vllm.provider, vllm.sessions, vllm.unknown_cost_sessions) == ("vllm", 1, 1)


def test_demos():
    """Four sessions, a cent, a duration from the times, and overrides in three of the four."""
    totals, rows = usage("logs/demos")
    assert (totals.sessions, totals.known_cost_usd) == (4, pytest.approx(0.0096, abs=5e-5))
    assert rows["qwen2.5-coder-0.5b-instruct"].duration_ms == 64_100
    scan = scan_routing_quality(str(folder() / "logs/demos"))
    assert (scan.auto_acceptance_rate, scan.total_overrides, scan.total_requests) == (0.25, 3, 4)
    assert scan.override_disagreement_rate == 1.0


def test_legacy():
    """The oldest log: known to be free, and on the day its `timestamp` says."""
    totals, _ = usage("logs/legacy")
    assert (totals.sessions, totals.input_tokens, totals.output_tokens, totals.total_tokens) == (1, 10, 4, 14)
    assert (totals.known_cost_usd, totals.unknown_cost_sessions) == (0.0, 0)
    assert usage("logs/legacy", "..2026-05-10", MAY)[0].sessions == 1
    assert usage("logs/legacy", "2026-05-01", MAY)[0].sessions == 1
    assert usage("logs/legacy", "2026-05-02..", MAY)[0].sessions == 0


def test_archive():
    """Nobody knows who served these, nor what they cost."""
    totals, rows = usage("logs/archive")
    assert (totals.sessions, totals.input_tokens, totals.output_tokens) == (3, 12_331, 494)
    assert [(row.provider, row.model) for row in rows.values()] == [("unknown", "unknown")]
    assert (totals.cost_usd, totals.unknown_cost_sessions) == (None, 3)


def test_bench():
    """Files of a benchmark have no usage, but they are read."""
    totals, rows = usage("logs/bench")
    assert (totals.sessions, rows) == (0, {})
    for path in sorted((folder() / "logs/bench").iterdir()):
        assert [item.type for item in read_events(str(path)) if isinstance(item, Event)] == [
            "session.start",
            "session.end",
        ]


def test_mixed():
    """Known money is shown beside unknown."""
    totals, rows = usage("edge/origin_mixed", "7d")
    local, served = rows["qwen3.5-7b"], rows["claude-sonnet-4-20250514"]
    assert (local.provider, local.sessions, local.input_tokens, local.output_tokens) == ("lmstudio", 2, 30, 15)
    assert (local.total_tokens, local.unknown_cost_sessions, local.duration_ms) == (45, 1, 3000)
    assert (served.provider, served.sessions, served.known_cost_usd) == ("anthropic", 1, 0.5)
    assert (totals.sessions, totals.input_tokens, totals.output_tokens) == (3, 130, 65)
    assert (totals.total_tokens, totals.duration_ms, totals.known_cost_usd) == (195, 6000, 0.75)


def test_success():
    """Two of three succeeded, for 70 cents."""
    totals, _ = usage("edge/origin_success")
    assert totals.success_rate == pytest.approx(2 / 3, rel=1e-9)
    assert (totals.known_cost_usd, totals.cost_per_success) == (pytest.approx(0.70), pytest.approx(0.35))


def test_routing_basic():
    """Three of five sessions were overridden, two of them against the router's choice."""
    window = "2026-04-09T10:00:00Z..2026-04-09T12:01:00Z"
    scan = scan_routing_quality(str(folder() / "edge/routing_basic"), window=window, now=APRIL)
    assert (scan.total_requests, scan.total_overrides, scan.auto_acceptance_rate) == (5, 3, 0.4)
    assert scan.override_disagreement_rate == pytest.approx(0.6667, abs=5e-5)


def test_routing_buckets():
    """One session of nineteen was accepted; of the original's 18 overrides and cells one was a rejected pin."""
    scan = scan_routing_quality(str(folder() / "edge/routing_buckets"))
    assert scan.total_requests == 19
    assert scan.auto_acceptance_rate == pytest.approx(0.0526, abs=5e-5)
    assert (scan.total_overrides + scan.rejected_overrides, scan.rejected_overrides) == (18, 1)
    assert (scan.disagreeing_overrides + scan.rejected_overrides) / 18 == pytest.approx(0.8889, abs=5e-5)
    assert len(scan.override_class_breakdown) + scan.rejected_overrides == 18
