"""The target numbers where we improve on the original, for every folder of real logs that has them."""

from collections import Counter

import pytest

from sessionlog.analytics.routing import scan_routing_quality
from sessionlog.analytics.routing_buckets import outcome_class
from sessionlog.analytics.usage import aggregate_usage
from tests.conformance.data import document, folder, is_here, needs_data
from tests.conformance.facts import same

pytestmark = needs_data("the better numbers of 2 folders")
FOLDERS = list(document("better_reference.json")) if is_here() else ["logs"]


@pytest.mark.parametrize("name", FOLDERS)
def test_rows(name):
    """Sessions, tokens, hit rates and partly known costs are the target's."""
    target = document("better_reference.json")[name]
    report = aggregate_usage(folder() / name)
    rows = {f"{row.provider}|{row.model}": row for row in report.rows if row.sessions != row.unfinished_sessions}
    assert rows.keys() == target["rows"].keys()
    for key, numbers in target["rows"].items():
        assert same(_numbers(rows[key]), {field: numbers[field] for field in _numbers(rows[key])}), key
    assert report.totals.unfinished_sessions == target["incomplete"]


def _numbers(row):
    """What the reference says of a row; money of which nothing is known is 0 there."""
    return {
        "sessions": row.sessions,
        "success": row.success_sessions,
        "input": row.input_tokens,
        "output": row.output_tokens,
        "cache_read": row.cache_read_tokens,
        "cache_write": row.cache_write_tokens,
        "known_cost_usd": row.known_cost_usd or 0.0,
        "known_cost_sessions": row.sessions - row.unknown_cost_sessions,
        "unknown_cost_sessions": row.unknown_cost_sessions,
        "prompt_tokens": row.input_tokens + row.cache_read_tokens + row.cache_write_tokens,
        "cache_hit_rate": row.cache_hit_rate,
        "cache_hit_rate_origin": row.cache_hit_rate or 0,  # without cached tokens both formulas agree
        "all_tokens": row.total_tokens,
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_how_sessions_ended(name):
    """The statuses of each row are the target's."""
    report = aggregate_usage(folder() / name, by=("provider", "model", "status"))
    found: dict[str, dict[str, int]] = {}
    for row in report.rows:
        if row.keys["status"] != "unfinished":
            found.setdefault(f"{row.provider}|{row.model}", {})[row.keys["status"]] = row.sessions
    assert found == {key: numbers["status"] for key, numbers in document("better_reference.json")[name]["rows"].items()}


@pytest.mark.parametrize("name", FOLDERS)
def test_outcomes_of_overrides(name):
    """Each override has the outcome of its session's end; rejected pins are counted apart."""
    target = document("better_reference.json")[name]
    for path, logged, joined in target["override_outcomes"]:
        assert logged is None
        scan = scan_routing_quality(str(folder() / name / path))
        found = Counter({word: cell.count for cell in scan.override_class_breakdown for word in _outcomes(cell)})
        assert set(found) == {outcome_class(joined)}, path
    scan = scan_routing_quality(str(folder() / name))
    assert scan.total_overrides == len(target["override_outcomes"])
    assert scan.rejected_overrides == target["rejected"]


def _outcomes(cell):
    return [
        word for word in ("success", "stalled", "failed", "cancelled", "unknown") if getattr(cell, f"{word}_outcomes")
    ]
