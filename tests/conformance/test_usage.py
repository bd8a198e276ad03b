"""Usage reports and routing quality say what the original says, value by value."""

from dataclasses import asdict
from datetime import datetime

import pytest

from sessionlog.analytics.routing import scan_routing_quality
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.errors import InvalidWindow
from tests.conformance.data import cases, folder
from tests.conformance.facts import differing, expected_facts, original_facts, routing_facts, usage_facts


def ours(case):
    """Our usage report and routing quality for one case, as JSON."""
    path, now = folder() / case["dir"], datetime.fromisoformat(case["now"])
    report = aggregate_usage(path, window=case["since"], now=now)
    scan = scan_routing_quality(str(path), window=case["since"], now=now)
    cells = [asdict(cell) | {"success_rate": cell.success_rate} for cell in scan.override_class_breakdown]
    return report.to_dict(), scan.to_dict() | {"override_class_breakdown": cells}


@pytest.mark.parametrize(("name", "case"), cases("usage"))
def test_reports_say_what_the_original_says(name, case):
    """Rows, totals, window and routing quality are equal, or differ as the table of differences says."""
    expected = expected_facts(f"usage {name}", original_facts(case))
    if not expected:  # refused there and here
        with pytest.raises(InvalidWindow):
            parse_usage_window(case["since"])
        return
    report, routing = ours(case)
    assert differing(expected, usage_facts(report) | routing_facts(routing)) == {}


@pytest.mark.parametrize(("name", "case"), cases("usage", having="report"))
def test_rows_come_in_the_same_order(name, case):
    """Sorted by provider and model, bytewise, rows come as theirs do; unasked the costliest comes first."""
    report, _ = ours(case)
    listed = sorted((row["provider"], row["model"]) for row in report["rows"])
    costs = [-(row["cost_usd"] or 0) for row in report["rows"]]
    assert costs == sorted(costs)
    theirs = [(row["provider"], row["model"]) for row in case["report"]["rows"]]
    assert [key for key in listed if key in theirs] == [key for key in theirs if key in listed]
