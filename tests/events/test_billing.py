"""What is billed beside token counts, under the names of several providers."""

from types import SimpleNamespace

import pytest

from sessionlog.events.billing import read_inner, read_region, read_searches, read_speed, read_tier
from sessionlog.events.tokens import TokenUsage


def iteration(kind, given, output, **more):
    """One entry of `iterations`."""
    return {"type": kind, "input_tokens": given, "output_tokens": output, **more}


MESSAGE, COMPACTION = iteration("message", 23, 10), iteration("compaction", 180, 35)
ADVISOR = iteration("advisor_message", 500, 80, model="Wise", cache_creation={"ephemeral_5m_input_tokens": 7})


def inner(*iterations, total=(23, 10)):
    """What a usage object with these iterations has inside."""
    found, issues = read_inner({"iterations": [*iterations]}, TokenUsage(*total))
    assert not issues
    return [(one.name, one.model, one.usage.total) for one in found]


def test_a_compaction_and_an_advisor_are_responses_of_their_own():
    """Each is named by what it was for; a cache write may have its parts alone."""
    assert inner(COMPACTION, MESSAGE) == [("compaction-1", "", 215)]
    assert inner(MESSAGE, ADVISOR, ADVISOR) == [("advisor-1", "Wise", 587), ("advisor-2", "Wise", 587)]


def test_what_the_counts_hold_already_adds_nothing():
    """Messages are their parts; and some gateways add up the others themselves."""
    assert inner(MESSAGE, iteration("fallback_message", 1, 1)) == []
    assert inner(COMPACTION, MESSAGE, total=(203, 45)) == []
    assert inner(iteration("advisor_message", 0, 0), MESSAGE) == []


@pytest.mark.parametrize(
    "usage", [None, 1, {}, {"iterations": None}, {"iterations": "x"}, {"iterations": [None, 1, {}]}]
)
def test_whatever_else_is_given_has_none(usage):
    """Also what is no list, or a list of anything."""
    assert read_inner(usage, TokenUsage()) == ([], ())


def test_a_count_that_is_none_is_named():
    """The other counts of the iteration stay."""
    found, issues = read_inner({"iterations": [iteration("compaction", "many", 5)]}, TokenUsage())
    assert [one.usage for one in found] == [TokenUsage(output=5)]
    assert issues == ("compaction: input_tokens: 'many' is not a count",)


@pytest.mark.parametrize(
    "data",
    [
        {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 9}},
        {"server_tool_use": SimpleNamespace(web_search_requests=3)},
        {"tool_usage": {"web_search": {"num_requests": 3}}},
        {"prompt_tokens_details": {"web_search_requests": 3}},
    ],
)
def test_searches_of_a_providers_own_tool(data):
    """Fetches cost nothing."""
    assert read_searches(data) == (3, None)


def test_an_invalid_number_of_searches_is_named():
    """It is none."""
    assert read_searches({"server_tool_use": {"web_search_requests": -1}}) == (
        0,
        "web_search_requests: a negative count",
    )
    assert read_searches({"server_tool_use": "x"}) == (0, None)


def test_the_standard_tier_speed_and_place_have_no_name():
    """What is asked for by default has no price of its own."""
    assert [read_tier(word) for word in (None, "auto", "default", "Standard", "fast", "flex")] == [
        "",
        "",
        "",
        "",
        "priority",
        "flex",
    ]
    assert [read_speed(word) for word in (None, "standard", "fast")] == ["", "", "fast"]
    assert [read_region(word) for word in (None, "global", "not_available", 1, "US")] == ["", "", "", "", "us"]
