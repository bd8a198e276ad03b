"""Gates: what the second session may use more than the first, in all the ways to write a limit."""

import pytest

from sessionlog.analytics.diff.gates import check_limits, check_same_tools, parse_limit
from sessionlog.errors import InvalidQuery

FIGURES = {"cost_usd": 0.5, "cost_is_partial": False, "requests": 10, "total_tokens": 40_000, "duration_ms": 60_000}


def check(gate, limit, **right):
    """The result of one limit, for a session that differs from `FIGURES` in some."""
    [found] = check_limits({gate: parse_limit(gate, limit)}, FIGURES, FIGURES | right)
    return found


@pytest.mark.parametrize(
    ("gate", "limit", "allowed"),
    [
        ("max-cost", "0.55", {"cost_usd": 0.55}),
        ("max-cost", "+10%", {"cost_usd": 0.55}),
        ("max-cost", "+0.05", {"cost_usd": 0.55}),
        ("max-cost", "-10%", {"cost_usd": 0.45}),
        ("max-requests", "12", {"requests": 12}),
        ("max-requests", "+2", {"requests": 12}),
        ("max-requests", "+0%", {"requests": 10}),
        ("max-tokens", "+2000", {"total_tokens": 42_000}),
        ("max-tokens", " +12.5% ", {"total_tokens": 45_000}),
        ("max-duration", "90", {"duration_ms": 90_000}),
        ("max-duration", "2m", {"duration_ms": 120_000}),
        ("max-duration", "1h", {"duration_ms": 3_600_000}),
        ("max-duration", "+30s", {"duration_ms": 90_000}),
        ("max-duration", "+50%", {"duration_ms": 90_000}),
    ],
)
def test_a_limit_is_the_most_that_passes(gate, limit, allowed):
    """Exactly so much passes, without errors of binary fractions, and any more does not."""
    [(name, value)] = allowed.items()
    assert check(gate, limit, **allowed).has_passed
    failed = check(gate, limit, **{name: value + (0.000001 if name == "cost_usd" else 1)})
    assert (failed.has_passed, failed.allowed, failed.left) == (False, value, FIGURES[name])


@pytest.mark.parametrize(
    ("gate", "limit"),
    [
        ("max-cost", ""),
        ("max-cost", "10%"),
        ("max-cost", "cheap"),
        ("max-cost", "1e3"),
        ("max-cost", "+-1"),
        ("max-cost", "nan"),
        ("max-requests", "5m"),
        ("max-duration", "5d"),
    ],
)
def test_what_is_no_limit_is_refused(gate, limit):
    """The error names the option."""
    with pytest.raises(InvalidQuery, match=f"--{gate}"):
        parse_limit(gate, limit)


@pytest.mark.parametrize(
    ("gate", "limit", "right", "reason"),
    [
        ("max-cost", "+10%", {"cost_usd": 0.62}, "cost of B: $0.62, allowed $0.55 (A: $0.50)"),
        ("max-cost", "0.0001", {"cost_usd": 0.00019}, "cost of B: $0.00019, allowed $0.0001"),
        ("max-requests", "+2", {"requests": 1200}, "requests of B: 1,200, allowed 12 (A: 10)"),
        ("max-tokens", "40000", {"total_tokens": 40_001}, "tokens of B: 40,001, allowed 40,000"),
        ("max-duration", "+5s", {"duration_ms": 71_260}, "duration of B: 71.3 s, allowed 65.0 s (A: 60.0 s)"),
        ("max-cost", "9", {"cost_usd": None}, "cost of B: not known"),
        ("max-cost", "9", {"cost_is_partial": True}, "cost of B: a part of it has no price"),
        ("max-duration", "9h", {"duration_ms": None}, "duration of B: not known"),
    ],
)
def test_a_gate_that_fails_gives_its_reason(gate, limit, right, reason):
    """With both figures, and that of the first session where the limit is relative."""
    assert check(gate, limit, **right).reason == reason


def test_a_cost_of_the_first_session_is_needed_for_relative_limits_alone():
    """An absolute limit does not ask what the first one costs."""
    unknown = FIGURES | {"cost_usd": None}
    relative, absolute = parse_limit("max-cost", "+10%"), parse_limit("max-cost", "0.50")
    [found] = check_limits({"max-cost": relative}, unknown, FIGURES)
    assert (found.has_passed, found.reason) == (False, "cost of A: not known")
    [found] = check_limits({"max-cost": absolute}, unknown, FIGURES)
    assert found.has_passed


def test_the_same_tools_are_called_however_often():
    """The reason names the tools that only one side calls."""
    assert check_same_tools(["read", "bash"], ["bash", "read"]).has_passed
    found = check_same_tools(["read", "edit"], ["read", "web", "bash"])
    assert (found.has_passed, found.reason) == (False, "B calls bash, web; B does not call edit")
