"""Tokens and money of a replay: of responses as logged or estimated, of the session as reports have them."""

from itertools import chain

import pytest

from sessionlog.analytics.sessions import SessionSummary
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing.book import PriceBook
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


def summary(**numbers):
    """What reports have of a session."""
    facts = dict.fromkeys(("session", "path", "status", "project", "harness", "route", "prompt", "error"), "")
    known = {**facts, "source": "native", "start_ns": None, "last_ns": None, "models": (), "duration_ms": 0}
    return SessionSummary(**{**known, "counted": True, **numbers})


def ends(*rows, totals=None, **start):
    """The ends of a session of (type, data) rows."""
    events = [event("session.start", {"v": 1, **start}), *(event(*row) for row in rows)]
    return [block for block in fold_replay(events, totals=totals) if isinstance(block, SessionEndBlock)]


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


@pytest.mark.parametrize(
    "logged",
    [
        {"service_tier": "batch", "region": "us", "searches": 2},
        {"usage": USAGE | {"service_tier": "batch", "inference_geo": "us",
                           "server_tool_use": {"web_search_requests": 2}}},
    ],
)  # fmt: skip
def test_the_estimate_of_a_response_is_that_of_its_kind(logged):
    """Its tier, region and searches, as its event has them or as the provider's usage object does."""
    response = {"usage": USAGE, "model": "claude-opus-4-8"} | logged
    cost = served(response, price=PriceBook.load().price, v=1, provider="anthropic").cost
    kind = {"service_tier": "batch", "region": "us", "searches": 2}
    nano = PriceBook.load().price("anthropic", "claude-opus-4-8", TokenUsage(**USAGE), None, **kind)
    assert cost == Cost(nano=nano, estimated=True)


def test_input_is_as_logged_where_nothing_is_cached():
    """The usual case needs no rule."""
    assert served({"usage": {"input": 600, "output": 7}}, provider="openai").usage.input == 600


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"cost_usd": 0.0310275}, Cost(nano=31_027_500)),
        ({"cost_usd": 0}, Cost(nano=0, unchecked=True)),
        ({"cost_usd": 0, "attempt": {"cost": {"source": "unknown"}}}, None),
        ({"cost_usd": 0, "attempt": {"cost": {"source": "provider_reported"}}}, Cost(nano=0, unchecked=True)),
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


def test_a_response_is_priced_for_the_provider_that_served_it():
    """Its own provider, by either name that logs have for it, before the session's; as its record in the ledger."""
    asked = []
    price = lambda provider, *_, **__: asked.append(provider)  # noqa: E731 - returns None: no price
    response = {"usage": {"input": 1, "output": 1}, "model": "m", "provider": "lmstudio"}
    assert served(response, price, v=1, provider="openai").cost is None
    served({**response, "attempt": {"provider_system": "vllm"}}, price, v=1, provider="openai")
    for start in ({"resolved_harness": "codex"}, {"resolved_harness": "codex", "v": 1}):
        served({"usage": {"input": 1}, "model": "m"}, price, **start)
    assert asked == ["lmstudio", "vllm", "codex", ""]  # our own logs have the name of any command there


def test_a_response_names_the_model_of_its_request():
    """Several requests may be under way: the last one is not always its own."""
    asked = []
    price = lambda _provider, model, *_, **__: asked.append(model)  # noqa: E731 - as above
    events = [
        event("llm.request", {"model": "other", "messages": []}),
        event("llm.response", {"usage": {"input": 1}, "requested_model": "mine"}),
    ]
    list(fold_replay(events, price=price))
    assert asked == ["mine"]


def test_the_last_end_has_the_totals_of_reports():
    """Whatever the responses and the end of this log say."""
    numbers = {
        "requests": 4, "failed_requests": 1, "input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3,
        "cache_write_tokens": 4, "reasoning_tokens": 1, "known_nano": 5, "estimated_nano": 6, "cost_is_partial": True,
        "duration_ms": 7,
    }  # fmt: skip
    rows = [
        ("llm.response", {"usage": {"input": 99}, "cost_usd": 9}),
        ("tool.call", {"tool": "a", "error": "exit 1"}),
        ("session.end", {"tokens": {"input": 100}, "duration_ms": 1}),
    ]
    [end] = ends(*rows, totals=lambda: summary(**numbers))
    assert end.totals == {"request": 4, "failed request": 1, "tool": 1, "failed tool": 1}
    assert end.usage == TokenUsage(input=1, output=2, cache_read=3, cache_write=4, reasoning=1)
    assert end.cost == Cost(nano=11, estimated=True, partial=True)
    assert end.duration_ms == 7
    [torn] = ends(*rows[:-1], totals=lambda: summary(**numbers))
    assert (torn.end, torn.totals, torn.cost) == (None, end.totals, end.cost)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, None),
        ({"cost_is_partial": True}, None),
        ({"known_nano": 0}, Cost(nano=0)),
        ({"estimated_nano": 0}, Cost(nano=0, estimated=True)),
        ({"known_nano": 5, "estimated_nano": 0}, Cost(nano=5)),
        ({"known_nano": 5, "cost_is_partial": True}, Cost(nano=5, partial=True)),
    ],
)
def test_a_cost_of_reports_is_unknown_known_or_estimated(numbers, expected):
    """Unknown is never 0, and known money is shown even where another part is unknown."""
    [end] = ends(("session.end", {}), totals=lambda: summary(requests=1, **numbers))
    assert end.cost == expected


@pytest.mark.parametrize("totals", [None, lambda: None])
def test_without_totals_an_end_has_what_it_reports(totals):
    """Where reports do not know the session; its 0 was not compared with a list price."""
    row = ("session.end", {"tokens": {"input": 3}, "cost_usd": 1.5, "duration_ms": 2000})
    [end] = ends(row, totals=totals)
    assert (end.usage, end.cost, end.duration_ms) == (
        TokenUsage(input=3),
        Cost(nano=1_500_000_000, unchecked=True),
        2000,
    )
    [end] = ends(("session.end", {"cost_usd": -1}), totals=totals)
    assert (end.usage, end.cost, end.duration_ms) == (TokenUsage(), None, None)


def test_an_end_after_which_the_session_goes_on_has_no_totals():
    """They come once, with the last end; the others have what their run reports."""
    asked = []
    run = [("llm.response", {"content": "x"}), ("session.end", {"tokens": {"input": 5}, "duration_ms": 1500})]
    totals = lambda: asked.append(1) or summary(requests=2, duration_ms=3000)  # noqa: E731 - counts its calls
    first, last = ends(*run, *run, totals=totals)
    assert (first.usage.input, first.duration_ms, first.totals["request"]) == (5, 1500, 0)
    assert (last.usage.input, last.duration_ms, last.totals["request"]) == (0, 3000, 2)
    assert asked == [1]


def test_a_note_after_an_end_does_not_make_it_the_last():
    """A session that is continued may begin with another history, or there is damage between."""
    asked = []
    run, end = event("llm.response", {"content": "x"}), event("session.end", {"tokens": {"input": 5}})
    totals = lambda: asked.append(1) or summary(requests=2)  # noqa: E731 - counts its calls
    damage = Problem(path="s.jsonl", line=3, kind="not_json", detail="not JSON", severity="damage")
    for after in (event("history.clear", {}), event("unheard.of", {}), damage):
        blocks = list(fold_replay([event("session.start", {"v": 1}), run, end, after, run, end], totals=totals))
        kinds = [SessionStartBlock, ResponseBlock, SessionEndBlock, NoteBlock, ResponseBlock, SessionEndBlock]
        assert [type(block) for block in blocks] == kinds
        first, last = (block for block in blocks if isinstance(block, SessionEndBlock))
        assert (first.totals["request"], last.totals["request"]) == (0, 2)
        assert asked == [1]
        asked.clear()


def test_damage_without_end_is_not_held():
    """A log may have any number of damaged pieces after its end."""
    rows = [event("session.start", {"v": 1}), event("session.end", {})]
    damage = Problem(path="s.jsonl", line=3, kind="not_json", detail="not JSON", severity="damage")
    pieces = iter([damage] * 1000)
    blocks = fold_replay(chain(rows, pieces), totals=lambda: summary(requests=2))
    shown = [next(blocks) for _ in range(2)]
    assert shown[1].totals["request"] == 2
    assert len(list(pieces)) > 800
    assert len(list(blocks)) < 200


def test_what_follows_the_end_stands_below_it():
    """A note and a damaged piece, with the totals above; an end is not shown twice."""
    end = event("session.end", {"status": "success"}, "2026-11-21T10:00:05Z")
    damage = Problem(path="s.jsonl", line=3, kind="not_json", detail="not JSON", severity="damage")
    for after in (event("unheard.of", {"a": 1}), damage):
        blocks = list(fold_replay([event("session.start", {"v": 1}), end, after], totals=lambda: summary(requests=2)))
        assert [type(block) for block in blocks] == [SessionStartBlock, SessionEndBlock, NoteBlock]
        assert blocks[1].totals["request"] == 2
        assert blocks[1].time_ns == end.time_ns


def test_totals_are_not_asked_for_where_no_end_is_shown():
    """They may take longer than all that is shown."""
    rows = [event("session.start", {"v": 1}), event("session.end", {})]
    chosen = lambda kind: kind == "session.start"  # noqa: E731
    assert len(list(fold_replay(rows, chosen=chosen, totals=lambda: pytest.fail("asked")))) == 1


def test_an_end_that_reports_less_is_quoted():
    """In money, where the session has no other end."""
    run = [("llm.response", {"cost_usd": 2}), ("session.end", {"cost_usd": 0.5})]
    totals = lambda: summary(requests=1, known_nano=2_000_000_000)  # noqa: E731
    [end] = ends(*run, totals=totals)
    assert end.end_cost == Cost(nano=500_000_000, unchecked=True)
    [end] = ends(("session.end", {"cost_usd": 2}), totals=totals)
    assert end.end_cost is None
    assert [end.end_cost for end in ends(*run, *run, totals=totals)] == [None, None]


def test_the_first_start_names_the_session():
    """A later one is a line; one that comes late is the start."""
    start, response = ("session.start", {"provider": "q", "prompt": "hello"}), ("llm.response", {"cost_usd": 1})
    [end] = ends(response, start, response, ("session.end", {}), provider="p")
    assert end.start.provider == "p"
    *_, end = fold_replay([event("llm.response", {"cost_usd": 1}), event("session.start", {"provider": "p"})])
    assert end.start.provider == "p"


def test_tool_calls_and_failures_are_counted():
    """What the end line says of them is what is shown."""
    [end] = ends(("tool.call", {"tool": "a"}), ("tool.call", {"tool": "b", "error": "exit 1"}))
    assert end.totals == {"tool": 2, "failed tool": 1}
