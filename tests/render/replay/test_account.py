"""Tokens and money of a replay: disjoint classes, and unknown is never 0."""

import pytest

from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay import fold_replay
from sessionlog.render.replay.blocks import Answered, Cost, Ended

USAGE = {"input": 600, "output": 7, "cache_read": 500}


def event(kind, data, ts="2026-11-21T10:00:00Z"):
    """An event of one session."""
    return Event(session_id="s", seq=0, type=kind, ts=ts, data=data)


def served(response, price=None, **start):
    """Who served the one response of a session, and what it took."""
    events = [event("session.start", start), event("llm.response", response)]
    return next(b for b in fold_replay(events, price=price) if isinstance(b, Answered)).served


def ended(*responses, price=None, **end):
    """The end of a session of some responses."""
    events = [event("session.start", {"v": 1}), *(event("llm.response", r) for r in responses)]
    return list(fold_replay([*events, event("session.end", end)], price=price))[-1]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"v": 1, "provider": "openai"}, 600),
        ({"provider": "openai"}, 100),
        ({"provider": "anthropic"}, 600),
        ({"provider": "", "resolved_harness": "claude"}, 600),
        ({}, 100),
    ],
)
def test_cached_input_is_taken_out_where_the_dialect_includes_it(start, expected):
    """Logs without `v` depend on who served them; our own never do."""
    assert served({"usage": USAGE}, **start).usage.input == expected


def test_input_is_as_logged_where_nothing_is_cached():
    """The usual case needs no rule."""
    assert served({"usage": {"input": 600, "output": 7}}, provider="openai").usage.input == 600


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"cost_usd": 0.0310275}, Cost(nano=31_027_500)),
        ({"cost_usd": 0}, Cost(nano=0)),
        ({"cost_usd": 0, "attempt": {"cost": {"source": "unknown"}}}, None),
        ({"cost_usd": 0, "attempt": {"cost": {"source": "provider_reported"}}}, Cost(nano=0)),
        ({"cost_usd": -1}, None),
        ({"cost_usd": "much"}, None),
        ({"cost_usd": None}, None),
        ({}, None),
    ],
)
def test_a_response_costs_what_the_log_says(response, expected):
    """A recorded cost is exact; 0 is free only where the writer knew it; anything else is unknown."""
    assert served(response).cost == expected


def test_a_price_estimates_what_the_log_does_not_say():
    """The estimate is made with the asked model, and is marked; a recorded cost is left alone."""
    asked = []

    def price(provider, model, usage, time_ns):
        asked.append((provider, model, usage.output, time_ns))
        return 2_000_000

    response = {"usage": {"input": 1, "output": 2}, "model": "served"}
    assert served(response, price, v=1, provider="p", model="configured").cost == Cost(nano=2_000_000, estimated=True)
    assert asked == [("p", "served", 2, 1795255200000000000)]
    assert served({**response, "cost_usd": 1}, price).cost == Cost(nano=1_000_000_000)
    assert served({**response, "cost_usd": 0}, price).cost == Cost(nano=2_000_000, estimated=True)


def test_the_model_asked_for_is_priced_before_the_one_that_served():
    """attempt.requested_model, then the request's, then the session's."""
    asked = []
    price = lambda _provider, model, _usage, _time: asked.append(model)  # noqa: E731 - returns None: no price
    usage = {"usage": {"input": 1, "output": 1}, "model": "served"}
    served({**usage, "attempt": {"requested_model": "wanted"}}, price, model="configured")
    served(usage, price, model="configured")
    served(usage, price)
    assert asked == ["wanted", "configured", "served"]


@pytest.mark.parametrize(
    ("responses", "end", "expected"),
    [
        ([], {"cost_usd": 1.5}, Cost(nano=1_500_000_000)),
        ([], {"cost_usd": 0}, Cost(nano=0)),
        ([], {"cost_usd": -1}, None),
        ([], {}, None),
        ([{"cost_usd": 0.25}, {"cost_usd": 0.5}], {}, Cost(nano=750_000_000)),
        ([{"cost_usd": 0.25}, {}], {}, Cost(nano=250_000_000, partial=True)),
        ([{"cost_usd": 0.25}, {"error": "429"}], {}, Cost(nano=250_000_000)),
        ([{}], {}, None),
    ],
)
def test_a_session_costs_what_its_end_or_its_responses_say(responses, end, expected):
    """Known money is shown even where another part is unknown; failures that used nothing are not unknown."""
    assert ended(*responses, **end).cost == expected


def test_an_end_without_tokens_has_those_of_its_responses():
    """Logs of killed agents still add up."""
    assert ended({"usage": {"input": 1, "output": 2}}, {"usage": {"input": 3, "output": 4}}).usage == TokenUsage(
        input=4, output=6
    )


def test_totals_count_requests_tools_and_failures():
    """What the end line says."""
    events = [
        event("llm.response", {"error": "429"}),
        event("llm.response", {"content": "x"}),
        event("tool.call", {"tool": "a"}),
        event("tool.call", {"tool": "b", "error": "exit 1"}),
    ]
    totals = list(fold_replay(events))[-1].totals
    assert (totals.requests, totals.failed_requests, totals.tools, totals.failed_tools) == (2, 1, 2, 1)


@pytest.mark.parametrize(("logged", "expected"), [(1500, 1500), (0, 61_000), (-5, 61_000), (None, 61_000)])
def test_a_duration_that_the_end_does_not_know_is_the_time_worked(logged, expected):
    """Gaps of at most five minutes count; a night between two events, and a clock set back, do not."""
    times = ["10:00:00", "10:01:00", "23:00:00", "09:00:00", "09:00:01"]
    events = [event("progress", {}, f"2026-11-21T{time}Z") for time in times]
    [end] = [
        b
        for b in fold_replay([*events, event("session.end", {"duration_ms": logged}, "2026-11-21T09:00:01Z")])
        if isinstance(b, Ended)
    ]
    assert end.duration_ms == expected
