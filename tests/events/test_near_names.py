"""Fields that were probably meant to be others."""

import pytest

from sessionlog.events.near_names import misspelt


@pytest.mark.parametrize(
    ("type_", "name", "meant"),
    [
        ("llm.response", "useage", "usage"),
        ("llm.response", "usgae", "usage"),
        ("llm.response", "usag", "usage"),
        ("llm.response", "usafe", "usage"),
        ("llm.response", "tokens", "usage"),
        ("llm.response", "cost", "cost_usd"),
        ("llm.response", "latency", "latency_ms"),
        ("llm.response", "modle", "model"),
        ("tool.call", "duration", "duration_ms"),
        ("tool.call", "ouput", "output"),
        ("tool.call", "result", "output"),
        ("session.end", "cost", "cost_usd"),
    ],
)
def test_a_misspelt_field(type_, name, meant):
    """One letter, two letters that changed places, a unit that is missing, a common other word."""
    assert misspelt(type_, ["model", name]) == (f"{name}: unknown; is {meant} meant?",)


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        ("llm.response", ["tag", "attempt_id", "user", "request_id", "agent", "x" * 500, 5, "", "temperature"]),
        ("llm.response", ["usage", "model", "finish_reason", "provider", "attempt"]),
        ("tool.call", ["server", "tool", "name", "id", "ids", "kind"]),
        ("llm.request", ["top_a", "modle"]),
        ("own.type", ["useage"]),
    ],
)
def test_fields_of_ones_own(type_, names):
    """What resembles no known field is the caller's own, and so is everything in a type of their own."""
    assert misspelt(type_, names) == ()
