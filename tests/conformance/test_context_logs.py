"""The X-ray of real logs: parts sum to the total, and the estimate is near what providers counted.

`benchmarks.bench_context` prints the errors.
"""

import pytest

from benchmarks.bench_context import misses, reports
from tests.conformance.data import folder, needs_data

REAL = "17 requests with whole prompts, and 14 without, not looked at"
MOST = 0.15


@needs_data(REAL)
def test_parts_sum_to_the_total():
    """At every request of every log: the count where there is one, else the estimate; items, too."""
    seen = 0
    for report in reports([str(folder() / "logs")]):
        assert sum(part.tokens for part in report.parts) == report.total_tokens
        assert sum(item.tokens for item in report.items) == report.total_tokens
        assert report.total_tokens == (report.reported_tokens or report.estimated_tokens)
        seen += 1
    assert seen == 35


@needs_data(REAL)
def test_the_estimate_of_a_whole_prompt_is_near():
    """Within 15 % for each request, and 5 % in the mean."""
    errors = {(miss.log, miss.request): miss.error for miss in misses([str(folder() / "logs")]) if miss.is_whole}
    assert len(errors) == 17
    assert {where: error for where, error in errors.items() if abs(error) > MOST} == {}
    assert sum(map(abs, errors.values())) / len(errors) == pytest.approx(0, abs=0.05)


@needs_data(REAL)
def test_what_a_log_does_not_hold_is_missing_and_never_too_much():
    """The oldest logs count messages: tools and most of the prompt are not in them. 10 tokens are less than framing."""
    partial = [miss for miss in misses([str(folder() / "logs")]) if not miss.is_whole]
    assert len(partial) == 14
    assert all(miss.estimated < miss.reported for miss in partial if miss.log != "pre_v011_session.jsonl")
