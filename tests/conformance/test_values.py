"""Windows, costs, and what is read of a file: the values are the original's."""

import math
from collections import Counter
from datetime import datetime

import pytest

from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.errors import InvalidWindow, Problem
from sessionlog.pricing import DEFAULT_PRICING
from sessionlog.reader.stream import read_events
from tests.conformance.data import cases, document, folder, needs_data
from tests.conformance.facts import differing, expected_facts


@pytest.mark.parametrize(("name", "case"), cases("window"))
def test_windows(name, case):
    """A window's text means the same interval, or is refused in both."""
    opened = {end: None if text.startswith("0001") else text for end, text in case.get("window", {}).items()}
    expected = expected_facts(f"window {name}", {"window": opened} if opened else {})
    now = datetime.fromisoformat(case["now"])
    if not expected:
        with pytest.raises(InvalidWindow):
            parse_usage_window(case["spec"], now=now)
        return
    window = parse_usage_window(case["spec"], now=now)
    assert window is not None
    assert window.to_dict() == expected["window"]


@pytest.mark.parametrize(("name", "case"), cases("cost"))
def test_costs(name, case):
    """The family's default table prices a model as the original does; -1 is unknown, 0 is free."""
    cost = DEFAULT_PRICING.estimate_cost(case["model"], case["input"], case["output"])
    assert math.isclose(cost, case["cost_usd"], rel_tol=1e-9)


@needs_data("the 9 rows of the default prices")
def test_default_prices():
    """The default table has the original's rows, and no other."""
    theirs = document("cases.json")["default_pricing"]
    ours = {model: (price.input_per_mtok, price.output_per_mtok) for model, price in DEFAULT_PRICING.items()}
    assert ours == {model: (price["input_per_mtok"], price["output_per_mtok"]) for model, price in theirs.items()}


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_reading(name, case):
    """A file gives the same events; where the original gives up, ours names the damage and reads on."""
    items = list(read_events(str(folder() / case["file"])))
    events = Counter(item.type for item in items if not isinstance(item, Problem))
    damage = [item for item in items if isinstance(item, Problem) and item.severity == "damage"]
    expected = expected_facts(f"read {name}", {"events": case["types"], "read": {"to_the_end": case["ok"]}})
    assert differing(expected, {"events": dict(events), "read": {"to_the_end": True}}) == {}
    if case["ok"]:
        assert case["count"] == events.total()
        assert damage == []
