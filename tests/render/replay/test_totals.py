"""Tokens and money of a replay: disjoint classes, and unknown is never 0."""

import pytest

from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay import fold_replay
from sessionlog.render.replay.blocks import Cost, NoteBlock, ResponseBlock, SessionEndBlock, SessionStartBlock

USAGE = {"input": 600, "output": 7, "cache_read": 500}


def event(kind, data, ts="2026-11-21T10:00:00Z"):
    """An event of one session."""
    return Event(session_id="s", seq=0, type=kind, ts=ts, data=data)


def served(response, price=None, **start):
    """Who served the one response of a session, and what it took."""
    events = [event("session.start", start), event("llm.response", response)]
    return next(b for b in fold_replay(events, price=price) if isinstance(b, ResponseBlock)).served


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

    def price(provider, model, usage, time_ns, **_):
        asked.append((provider, model, usage.output, time_ns))
        return 2_000_000

    response = {"usage": {"input": 1, "output": 2}, "model": "served"}
    assert served(response, price, v=1, provider="p", model="configured").cost == Cost(nano=2_000_000, estimated=True)
    assert asked == [("p", "served", 2, 1795255200000000000)]
    assert served({**response, "cost_usd": 1}, price).cost == Cost(nano=1_000_000_000)
    assert served({**response, "cost_usd": 0}, price).cost == Cost(nano=2_000_000, estimated=True)


def test_the_model_that_served_is_priced_before_the_one_asked_for():
    """What answered is what is billed; then attempt.requested_model, then the request's, then the session's."""
    asked = []
    price = lambda _provider, model, _usage, _time, **_: asked.append(model)  # noqa: E731 - returns None: no price
    usage = {"usage": {"input": 1, "output": 1}, "model": "served"}
    served({**usage, "attempt": {"requested_model": "wanted"}}, price, model="configured")
    served(usage, price, model="configured")
    served(usage, price)
    served({**usage, "attempt": {"response_model": "billed"}}, price)
    assert asked == ["served", "wanted", "served", "configured", "served", "billed", "served"]


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
        ([{"cost_usd": 1.5}, {"cost_usd": 0.5}], {"cost_usd": 0.5}, Cost(nano=2_000_000_000)),
        ([{"cost_usd": 1.5}, {}], {"cost_usd": 2}, Cost(nano=2_000_000_000)),
        ([{"cost_usd": 1.5}, {}], {"cost_usd": 0}, Cost(nano=1_500_000_000)),
        ([{"cost_usd": 1.5}], {"tokens": {"input": 1}}, Cost(nano=1_500_000_000, partial=True)),
        ([], {"tokens": {"input": 1}}, None),
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


def test_what_an_end_leaves_out_is_not_lost():
    """An end that says less than its responses is told beside them, in money; its tokens are theirs at least."""
    response = {"usage": {"input": 10, "output": 2}, "cost_usd": 2}
    end = ended(response, tokens={"input": 1, "output": 3}, cost_usd=0.5)
    assert (end.cost, end.end_cost) == (Cost(nano=2_000_000_000), Cost(nano=500_000_000))
    assert end.usage == TokenUsage(input=10, output=3)
    assert ended(response, cost_usd=2).end_cost is None


@pytest.mark.parametrize(
    ("logged", "price", "expected"),
    [
        ({"cost_usd": 0}, 3, Cost(nano=3, estimated=True)),
        ({}, 3, Cost(nano=3, estimated=True)),
        ({"cost_usd": 0}, None, Cost(nano=0)),
        ({}, None, None),
        ({"cost_usd": 5e-9}, 3, Cost(nano=5)),
    ],
)
def test_totals_without_responses_are_priced(logged, price, expected):
    """As one request at the session's start; a recorded 0 is free only where there is no list price."""
    asked = []

    def prices(*question, single):
        asked.append((*question, single))
        return price

    start = event("session.start", {"v": 1, "provider": "p", "model": "m"}, "2026-11-21T09:00:00Z")
    end = event("session.end", {"tokens": {"input": 10}, **logged})
    assert list(fold_replay([start, end], price=prices))[-1].cost == expected
    at = 1795255200000000000 - 3600 * 10**9
    assert set(asked) <= {("p", "m", TokenUsage(input=10), at, False)}


def test_what_the_end_reports_beyond_its_responses_is_estimated():
    """Only the rest is priced once more."""
    response = {"usage": {"input": 4}, "model": "m"}
    end = ended(response, price=lambda *question, **_: question[2].input, model="m", tokens={"input": 10})
    assert end.cost == Cost(nano=10, estimated=True)


def test_each_run_of_a_continued_session_adds():
    """In a log of ours an end speaks of its run; the last end of the Go original speaks of the whole log."""
    run = [
        event("llm.response", {"usage": {"input": 4}}),
        event("session.end", {"tokens": {"input": 5}, "cost_usd": 1}),
    ]
    end = list(fold_replay([event("session.start", {"v": 1}), *run, *run]))[-1]
    assert (end.usage.input, end.cost) == (10, Cost(nano=2_000_000_000))
    end = list(fold_replay([event("session.start", {}), *run, *run]))[-1]
    assert (end.usage.input, end.cost) == (5, Cost(nano=1_000_000_000))


@pytest.mark.parametrize(
    ("start", "unchecked"),
    [
        ({"provider": "openai", "model": "gpt-5"}, True),
        ({"model": "gpt-5"}, True),
        ({"provider": "lmstudio", "model": "qwen"}, False),
        ({"provider": "openai"}, False),
    ],
)
def test_a_recorded_zero_is_free_where_nobody_could_have_a_price(start, unchecked):
    """Without prices a 0 of somebody's model is only what the log says; with them it has been looked up."""
    events = [event("session.start", start), event("session.end", {"cost_usd": 0})]
    assert list(fold_replay(events))[-1].cost == Cost(nano=0, unchecked=unchecked)
    assert list(fold_replay(events, price=lambda *_, **__: None))[-1].cost == Cost(nano=0)
    assert served({"cost_usd": 0}, **start).cost == Cost(nano=0, unchecked=unchecked)


def test_a_second_start_resets_nothing():
    """The first start of a file counts; a later one is a line."""
    start, response = event("session.start", {"v": 1, "provider": "p"}), event("llm.response", {"cost_usd": 1})
    again = event("session.start", {"v": 1, "provider": "q", "prompt": "hello"})
    *blocks, end = fold_replay([start, response, again, response, event("session.end", {})])
    assert (end.totals["request"], end.cost, end.start.provider) == (2, Cost(nano=2_000_000_000), "p")
    assert [type(block) for block in blocks] == [SessionStartBlock, ResponseBlock, NoteBlock, ResponseBlock]


def test_a_start_that_comes_late_is_the_start():
    """What was counted before it stays."""
    *_, end = fold_replay([event("llm.response", {"cost_usd": 1}), event("session.start", {"provider": "p"})])
    assert (end.totals["request"], end.start.provider) == (1, "p")


@pytest.mark.parametrize("data", [None, "lost", ["lost"]])
def test_a_response_without_a_payload_is_a_request(data):
    """It was made, whatever is left of it; what it cost is not known."""
    end = ended({"cost_usd": 1}, data)
    assert (end.totals["request"], end.cost) == (2, Cost(nano=1_000_000_000, partial=True))


def test_totals_count_requests_tools_and_failures():
    """What the end line says."""
    events = [
        event("llm.response", {"error": "429"}),
        event("llm.response", {"content": "x"}),
        event("tool.call", {"tool": "a"}),
        event("tool.call", {"tool": "b", "error": "exit 1"}),
    ]
    totals = list(fold_replay(events))[-1].totals
    assert totals == {"request": 2, "failed request": 1, "tool": 2, "failed tool": 1}


@pytest.mark.parametrize(
    ("logged", "expected"), [(1500, 1500), (0, 61_000), (-5, 61_000), (None, 61_000), ("60000", 61_000), (True, 61_000)]
)
def test_a_duration_that_the_end_does_not_know_is_the_time_worked(logged, expected):
    """Gaps of at most five minutes count; a night between two events, and a clock set back, do not."""
    times = ["10:00:00", "10:01:00", "23:00:00", "09:00:00", "09:00:01"]
    events = [event("progress", {}, f"2026-11-21T{time}Z") for time in times]
    [end] = [
        b
        for b in fold_replay([*events, event("session.end", {"duration_ms": logged}, "2026-11-21T09:00:01Z")])
        if isinstance(b, SessionEndBlock)
    ]
    assert end.duration_ms == expected


def test_the_time_of_a_session_is_that_of_all_its_runs():
    """As its requests are; each end tells only its own run."""
    run = [event("llm.response", {"content": "x"}), event("session.end", {"duration_ms": 1500})]
    ends = [
        block for block in fold_replay([event("session.start", {"v": 1}), *run, *run]) if block.type == "session.end"
    ]
    assert [(end.duration_ms, end.totals["request"]) for end in ends] == [(1500, 1), (3000, 2)]
