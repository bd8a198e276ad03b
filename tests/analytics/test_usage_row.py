"""A row's rates and its JSON: exact names in an exact order, None where there is no denominator."""

import json

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.usage_row import COLUMNS, UsageReport, UsageRow
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.errors import Problem

NAMES = names_of(COLUMNS)

ROW_KEYS = [
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "requests", "failed_requests",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens",
    "duration_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms",
    "known_cost_usd", "estimated_cost_usd", "cost_usd", "unknown_cost_sessions", "unpriced_requests",
    "cache_hit_rate", "success_rate", "cost_per_success",
    "input_tokens_per_second", "output_tokens_per_second", "generation_tokens_per_second",
    "cost_per_request", "cache_savings_usd", "searches", "extra_cost_usd",
]  # fmt: skip
REPORT_KEYS = [
    "schema", "window", "group_by", "rows", "totals", "provenance", "hidden_rows", "archived_sessions", "problems",
]  # fmt: skip


def row(**fields):
    return UsageRow(keys=fields.pop("keys", {}), **fields)


def test_a_row_has_the_promised_keys_in_order():
    """Group keys first, in the order asked for, then the columns."""
    keys = {"model": "m", "provider": "p"}
    assert list(row(keys=keys).to_dict()) == ["model", "provider", *ROW_KEYS]
    assert list(NAMES) == ROW_KEYS


def test_a_report_has_the_promised_keys_in_order():
    """`sessionlog.usage/1` as other programs rely on it."""
    report = UsageReport(
        window=parse_usage_window("2026-11-20"), group_by=("provider",), rows=(row(keys={"provider": "p"}),)
    ).to_dict()
    assert list(report) == REPORT_KEYS
    assert report["schema"] == "sessionlog.usage/1"
    assert report["window"] == {"start": "2026-11-20T00:00:00Z", "end": "2026-11-21T00:00:00Z"}
    assert report["group_by"] == ["provider"]
    assert list(report["rows"][0]) == ["provider", *ROW_KEYS]
    assert list(report["totals"]) == ROW_KEYS
    assert list(report["provenance"]) == ["exact", "partial", "estimated", "session"]
    assert report["problems"] == {"count": 0, "first": []}
    assert report["archived_sessions"] == 0
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_all_time_is_a_null_window():
    """Nothing was asked for."""
    assert UsageReport(window=None, group_by=()).to_dict()["window"] is None


def test_an_open_end_of_a_window_is_null():
    """The other end stays."""
    report = UsageReport(window=parse_usage_window("2026-11-20.."), group_by=())
    assert report.to_dict()["window"] == {"start": "2026-11-20T00:00:00Z", "end": None}


def test_ten_problems_are_named_and_all_counted():
    """`file:line kind detail`, as many as a person reads."""
    problems = tuple(Problem(path="s.jsonl", line=n, offset=0, kind="not_json", detail="?") for n in range(1, 13))
    document = UsageReport(window=None, group_by=(), problem_count=40, problems=problems).to_dict()["problems"]
    assert document["count"] == 40
    assert document["first"] == [f"s.jsonl:{n} not_json ?" for n in range(1, 11)]


def test_an_empty_row_has_no_rates_and_no_money():
    """Empty denominators give None and unknown money is never 0."""
    values = row().to_dict()
    assert [name for name, value in values.items() if value is None] == [
        "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "known_cost_usd", "estimated_cost_usd", "cost_usd",
        "cache_hit_rate", "success_rate", "cost_per_success", "input_tokens_per_second", "output_tokens_per_second",
        "generation_tokens_per_second", "cost_per_request", "cache_savings_usd",
        "extra_cost_usd",
    ]  # fmt: skip
    assert {value for value in values.values() if value is not None} == {0}


def test_classes_add_up():
    """The total is every class once; reasoning is inside output."""
    one = row(input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000, reasoning_tokens=7)
    assert one.total_tokens == 4321


def test_the_hit_rate_is_over_all_prompt_tokens():
    """Weakness 6: a denominator with every class cannot exceed 1, nor halve the rate."""
    assert row(input_tokens=10, cache_read_tokens=500, cache_write_tokens=20).cache_hit_rate == 500 / 530
    assert row(input_tokens=100, cache_read_tokens=500).cache_hit_rate == 500 / 600
    assert row(cache_read_tokens=5).cache_hit_rate == 1


@pytest.mark.parametrize(
    ("success", "failed", "unfinished", "rate"), [(2, 1, 5, 2 / 3), (0, 3, 0, 0.0), (0, 0, 4, None)]
)
def test_sessions_without_an_end_are_neither_won_nor_lost(success, failed, unfinished, rate):
    """The success rate is over sessions that ended."""
    one = row(success_sessions=success, failed_sessions=failed, unfinished_sessions=unfinished)
    assert one.success_rate == rate


@pytest.mark.parametrize(
    ("known", "estimated", "cost"),
    [(None, None, None), (0, None, 0.0), (None, 250_000_000, 0.25), (500_000_000, 250_000_000, 0.75)],
)
def test_cost_is_what_is_known_and_what_is_estimated(known, estimated, cost):
    """None only when there is neither."""
    one = row(known_nano=known, estimated_nano=estimated, unknown_cost_sessions=3)
    assert one.cost_usd == cost
    assert one.known_cost_usd == (None if known is None else known / 10**9)
    assert one.estimated_cost_usd == (None if estimated is None else estimated / 10**9)


def test_cost_per_success_spreads_the_cost_of_what_ended_over_the_successes():
    """The origin's anchor: $0.70 for two successes are $0.35 each; without a success there is none."""
    assert row(ended_nano=700_000_000, priced_successes=2).cost_per_success == 0.35
    assert row(ended_nano=700_000_000).cost_per_success is None
    assert row(priced_successes=2).cost_per_success is None


def test_cost_per_request_is_of_those_that_have_a_cost():
    """A request without a price is in neither of the two that are divided."""
    assert row(known_nano=600_000_000, requests=4, unpriced_requests=1).cost_per_request == pytest.approx(0.2)
    assert row(known_nano=600_000_000, requests=1, unpriced_requests=1).cost_per_request is None
    assert row(requests=4).cost_per_request is None


def test_speeds_divide_by_their_own_time():
    """Weakness 11: wall time for the origin's two, LLM latency alone for the third."""
    one = row(input_tokens=100, output_tokens=60, duration_ms=2000, generation_tokens=50, generation_ms=500.0)
    assert (one.input_tokens_per_second, one.output_tokens_per_second) == (50.0, 30.0)
    assert one.generation_tokens_per_second == 100.0


@pytest.mark.parametrize("latency", [5e-324, 1e-320, 1e-9])
def test_no_time_is_no_speed(latency):
    """A latency nobody can have measured gives neither an infinite speed nor a crash."""
    speed = row(generation_tokens=2**62, generation_ms=latency).generation_tokens_per_second
    assert json.dumps(speed, allow_nan=False) == "null"


def test_the_usual_keys_are_properties():
    """`row.provider` and `row.model` where the report is grouped by them."""
    one = row(keys={"provider": "p"})
    assert (one.provider, one.model) == ("p", "")
