"""The records of one native log: whose they are, what an end adds to its run's responses, and for which money."""

import pytest

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.record import LONGEST_NAME
from tests.sources.logs import answered, asked, at, ended, event, go_start, one_record, scanned, start


def costs(session):
    return [(record.cost_nano, record.priced) for record in session.records]


# --- whose it is


def ways_to_a_model(*, native, without=()):
    """A log that names its model in every way that is not left out; each way is its own model."""
    names = ("attempt", "request", "response", "resolved", "start", "end")
    said = {name: name for name in names if name not in without}
    begin = start if native else go_start
    return (
        begin(resolved_model=said.get("resolved"), model=said.get("start")),
        asked(model=said.get("request")),
        answered(model=said.get("response"), attempt={"requested_model": said.get("attempt")}),
        ended(model=said.get("end")),
    )


@pytest.mark.parametrize(
    ("native", "order"),
    [
        (True, ["attempt", "request", "response", "resolved", "start", "end", "unknown"]),
        (False, ["attempt", "request", "resolved", "start", "end", "response", "unknown"]),
    ],
)
def test_the_model_is_found_in_one_order(tmp_path, native, order):
    """What was asked for goes before what answered; the Go dialect believes its session before a response."""
    found = [
        one_record(tmp_path, *ways_to_a_model(native=native, without=order[:missing])).model
        for missing in range(len(order))
    ]
    assert found == order


def test_names_of_the_wrong_type_are_passed_over(tmp_path):
    """An empty text, a number or a table is no name."""
    record = one_record(
        tmp_path,
        start(provider=7, model=""),
        asked(model={"id": "x"}),
        answered(model=None, attempt={"requested_model": 3, "provider_system": ["p"]}),
    )
    assert (record.provider, record.model, record.response_model) == ("unknown", "unknown", None)


@pytest.mark.parametrize(
    ("begin", "system", "provider", "harness", "found"),
    [
        (start, "azure", "openai", "codex", "azure"),
        (start, None, "openai", "codex", "openai"),
        (start, None, "", "my-agent.py", "unknown"),
        (start, None, None, None, "unknown"),
        (go_start, None, "openai", "codex", "openai"),
        (go_start, None, "", "codex", "codex"),
        (go_start, None, None, None, "unknown"),
    ],
)
def test_the_provider_is_found_in_one_order(tmp_path, begin, system, provider, harness, found):
    """Who served the call, else whom the session asked, else in the Go dialect the harness; a command is no provider."""
    begun = begin(provider=provider, resolved_harness=harness)
    assert one_record(tmp_path, begun, answered(attempt={"provider_system": system})).provider == found


def test_failover_has_two_providers(tmp_path):
    """Responses of one session may be served by several."""
    session = scanned(
        tmp_path,
        start(provider="a"),
        answered(attempt={"provider_system": "b"}),
        answered(),
        ended(tokens={"input": 1}),
    )
    assert [r.provider for r in session.records] == ["b", "a", "a"]


# --- when it was


def test_totals_alone_are_one_record_at_the_start(tmp_path):
    """A log without responses gives what its end says, as one request, marked as a session's totals."""
    tokens = {"input": 10, "output": 5, "cache_read": 3, "reasoning": 2, "total": 999}
    record = one_record(tmp_path, start("10:00:00", provider="p", model="m"), ended("11:00:00", tokens=tokens))
    assert (record.time_ns, record.granularity, record.requests) == (at("10:00:00"), "session", 1)
    assert record.usage == TokenUsage(input=10, output=5, cache_read=3, reasoning=2)
    assert (record.provider, record.model) == ("p", "m")


def test_a_session_without_tokens_is_one_empty_record(tmp_path):
    """It happened, but nothing was asked."""
    record = one_record(tmp_path, start("10:00:00"), ended("10:01:00"))
    assert (record.time_ns, record.requests, record.usage.total) == (at("10:00:00"), 0, 0)


def test_what_the_end_reports_beyond_is_one_more_record_at_its_time(tmp_path):
    """Per class the larger number counts: the rest is what session.end has more, never less."""
    session = scanned(
        tmp_path,
        start("10:00:00", model="m"),
        answered("10:00:05", usage={"input": 100, "output": 10, "cache_read": 7}),
        answered("10:00:06", usage={"input": 1, "output": 50}),
        ended("10:30:00", tokens={"input": 111, "output": 40, "cache_write": 5}),
    )
    *_, rest = session.records
    assert rest.usage == TokenUsage(input=10, cache_write=5)
    assert (rest.time_ns, rest.requests, rest.granularity) == (at("10:30:00"), 0, "request")


def test_an_end_that_says_no_more_adds_no_record(tmp_path):
    """The usual log: the totals are the responses' sum."""
    session = scanned(
        tmp_path, start(), answered(usage={"input": 3, "output": 4}), ended(tokens={"input": 3, "output": 4})
    )
    assert len(session.records) == 1


# --- what it cost


def test_recorded_costs_stay_with_their_responses(tmp_path):
    """A cost is a number of nano-dollars, exactly; what is absent, null or negative is unknown."""
    lines = [answered(cost_usd=cost) for cost in (0.1, "0.2", 0, None, -1)]
    session = scanned(tmp_path, start(), *lines, answered())
    assert costs(session) == [(100_000_000, True), (200_000_000, True), (0, True), *[(None, True)] * 3]


def test_the_ends_cost_covers_responses_without_one(tmp_path):
    """$0.50 for all, $0.20 of it named: the rest is shared by tokens, and nothing is left to be estimated."""
    session = scanned(
        tmp_path,
        start(),
        answered(usage={"input": 5}, cost_usd=0.2),
        answered(usage={"input": 5}),
        ended("10:09:00", tokens={"input": 12}, cost_usd=0.5),
    )
    assert costs(session) == [(200_000_000, False), (214_285_714, False), (85_714_286, False)]
    assert session.records[-1].usage == TokenUsage(input=2)


def test_a_response_that_was_free_is_covered_by_the_ends_cost_too(tmp_path):
    """What the session says it cost is the whole: a listed price must not come on top."""
    session = scanned(tmp_path, start(), answered(cost_usd=0), answered(cost_usd=0.5), ended(cost_usd=0.5))
    assert costs(session) == [(0, False), (500_000_000, False)]


def test_rounding_is_not_money(tmp_path):
    """A nano-dollar per response between the end and the sum of its responses is noise."""
    session = scanned(tmp_path, start(), answered(cost_usd=0.1), answered(cost_usd=0.2), ended(cost_usd=0.300000002))
    assert costs(session) == [(100_000_000, False), (200_000_000, False)]
    more = scanned(tmp_path, start(), answered(cost_usd=0.1), answered(cost_usd=0.2), ended(cost_usd=0.300000003))
    assert costs(more)[-1] == (3, False)


def test_an_end_that_knows_less_takes_nothing_away(tmp_path):
    """Known money is never reduced."""
    session = scanned(tmp_path, start(), answered(cost_usd=0.5), ended(cost_usd=0.2))
    assert costs(session) == [(500_000_000, False)]


def test_an_end_that_cost_nothing_makes_its_responses_free(tmp_path):
    """A recorded 0 of the session is a recorded 0 of each part that names no cost; list prices may doubt it."""
    session = scanned(tmp_path, start(), answered(usage={"input": 1}), ended(tokens={"input": 3}, cost_usd=0))
    assert costs(session) == [(0, True), (0, True)]


def test_an_end_without_cost_leaves_its_rest_unknown(tmp_path):
    """What the end reports beyond its responses has no price, theirs stay."""
    session = scanned(tmp_path, start(), answered(usage={"input": 1}, cost_usd=0.5), ended(tokens={"input": 3}))
    assert costs(session) == [(500_000_000, True), (None, True)]


CALL = event("tool.call", "10:00:01", {"tool": "bash"})


@pytest.mark.parametrize(
    "lines", [(), (ended(),), (ended(status="error"),), (CALL, ended()), (ended(cost_usd=0, tokens={"input": 0}),)]
)
def test_a_session_that_sent_no_request_has_no_unknown_cost(tmp_path, lines):
    """Nothing is known to have cost anything; it is listed, and not counted."""
    session = scanned(tmp_path, start(prompt="x"), *lines)
    [record] = session.records
    assert (session.counted, record.priced, record.requests, record.usage.total) == (False, False, 0, 0)


def test_a_session_counts_with_its_first_response(tmp_path):
    """A request that was interrupted before it makes no budget unknown, as in the logs of other agents."""
    for lines in ((), (ended(status="error"),), (ended(), CALL, ended())):
        session = scanned(tmp_path, start(), asked(model="m"), *lines)
        assert (session.counted, [record.priced for record in session.records]) == (False, [False])
    assert scanned(tmp_path, start(), asked(model="m"), answered()).counted


def test_totals_without_a_request_count(tmp_path):
    """An end that reports tokens or a cost knows of requests that nobody logged."""
    tokens = scanned(tmp_path, start(), ended(tokens={"input": 1}))
    assert (tokens.counted, costs(tokens)) == (True, [(None, True)])
    cost = scanned(tmp_path, start(), ended(cost_usd=0.5))
    assert (cost.counted, cost.records[0].cost_nano) == (True, 500_000_000)


def test_in_the_go_dialect_a_session_without_a_request_counts(tmp_path):
    """As the original has it: the cost of one that ended without any is unknown."""
    session = scanned(tmp_path, go_start(), ended())
    assert (session.counted, costs(session)) == (True, [(None, True)])


# --- how it ended


def test_a_continued_session_has_several_ends(tmp_path):
    """Each run's end speaks of its own responses: what it has beyond them, its cost and its duration add up."""
    session = scanned(
        tmp_path,
        start(),
        answered("10:00:01", usage={"input": 1000}, cost_usd=5),
        ended("10:00:02", tokens={"input": 1000}, cost_usd=5, duration_ms=2000),
        answered("11:00:00", usage={"input": 100}),
        ended("11:00:05", tokens={"input": 500}, cost_usd=0.5, duration_ms=5000),
    )
    assert sum(r.usage.input for r in session.records) == 1500
    assert sum(r.cost_nano or 0 for r in session.records) == 5_500_000_000
    assert [r.time_ns for r in session.records][-1] == at("11:00:05")
    assert (session.duration_ms, session.status) == (7000, "success")


def test_a_second_end_of_the_same_run_replaces_the_first(tmp_path):
    """Two ends with nothing between them are one."""
    session = scanned(
        tmp_path,
        start(),
        answered("10:00:01", usage={"input": 1}),
        ended("10:00:03", tokens={"input": 10}, cost_usd=1),
        ended("10:00:05", tokens={"input": 20}, cost_usd=2),
    )
    assert sum(r.usage.input for r in session.records) == 20
    assert sum(r.cost_nano or 0 for r in session.records) == 2_000_000_000


def test_a_failed_call_that_used_nothing_has_nothing_to_price(tmp_path):
    """It makes no known cost partial; but a session that ended without any cost has an unknown one."""
    failed = answered(usage={}, error="429")
    session = scanned(tmp_path, start(), failed, answered(cost_usd=0.01))
    assert costs(session) == [(None, False), (10_000_000, True)]
    assert costs(scanned(tmp_path, start(), failed)) == [(None, False)]
    assert costs(scanned(tmp_path, start(), failed, ended())) == [(None, True)]


def test_an_answer_that_was_cut_has_partial_counts(tmp_path):
    """Its usage is that of its beginning: where an agent's own log of it knows more, that one counts."""
    session = scanned(tmp_path, start(), answered(partial="cancelled", usage={"output": 1}), answered())
    assert [record.quality for record in session.records] == ["partial", "exact"]


def test_reasoning_that_only_the_end_knows_is_kept(tmp_path):
    """A part of the output that the responses do not name is one more record."""
    session = scanned(tmp_path, start(), answered(usage={"output": 90}), ended(tokens={"output": 90, "reasoning": 60}))
    assert sum(r.usage.reasoning for r in session.records) == 60


def test_names_are_cut_wherever_they_come_from(tmp_path):
    """A hostile name in session.start does not fill a report any more than one in a response does."""
    session = scanned(tmp_path, start(provider="p" * 9000, model="m" * 9000), ended(tokens={"input": 1}))
    assert {len(session.records[0].provider), len(session.records[0].model)} == {LONGEST_NAME}


# --- what is billed beside a response's tokens


def iteration(kind, given, output, **more):
    return {"type": kind, "input_tokens": given, "output_tokens": output, **more}


USED = {"input": 23, "output": 10, "iterations": [iteration("compaction", 180, 35), iteration("message", 23, 10)]}


def test_a_compaction_and_an_advisor_inside_a_response_are_records_before_it(tmp_path):
    """Each has its own model and tokens, and belongs to its response; an end that knows only the others adds nothing."""
    advisor = iteration("advisor_message", 500, 80, model="wise", server_tool_use={"web_search_requests": 2})
    usage = USED | {"iterations": [*USED["iterations"], advisor], "inference_geo": "us", "service_tier": "priority"}
    session = scanned(
        tmp_path, start(provider="anthropic", model="m"), answered(usage={"input": 1}), answered(usage=usage, response_id="r"),
        ended(tokens={"input": 24, "output": 10}),
    )  # fmt: skip
    plain, compaction, advice, response = session.records
    assert [record.usage.total for record in session.records] == [1, 215, 580, 33]
    assert [record.kind for record in session.records] == ["", "compaction", "advisor", ""]
    assert [record.model for record in session.records] == ["m", "m", "wise", "m"]
    assert [record.searches for record in session.records] == [0, 0, 2, 0]
    assert {(record.region, record.service_tier) for record in session.records[1:]} == {("us", "priority")}
    assert (compaction.parent, advice.parent, plain.parent) == (response.key, response.key, "")
    assert (advice.response_id, len({record.key for record in session.records})) == ("r#advisor-1", 4)


def test_what_a_response_says_of_itself_goes_before_its_usage(tmp_path):
    """Under the names of the event, or of an SDK inside the usage; what is standard has no name."""
    said = {"service_tier": "flex", "speed": "fast", "region": "EU", "searches": 3}
    usage = {"input": 1, "service_tier": "batch", "inference_geo": "us", "server_tool_use": {"web_search_requests": 2}}
    session = scanned(
        tmp_path, start(), answered(usage=usage, **said), answered(usage=usage), answered(usage={"input": 1})
    )
    found = [(one.service_tier, one.speed, one.region, one.searches) for one in session.records]
    assert found == [("flex", "fast", "eu", 3), ("batch", "", "us", 2), ("", "", "", 0)]


def test_a_recorded_cost_is_that_of_all_inside(tmp_path):
    """So what is inside has no estimate beside it; without a recorded cost it has one."""
    session = scanned(tmp_path, start(), answered(usage=USED, cost_usd=0.5), answered(usage=USED))
    assert costs(session) == [(0, False), (500_000_000, True), (None, True), (None, True)]


def test_an_ends_cost_covers_what_is_inside(tmp_path):
    """By its share of the tokens."""
    session = scanned(tmp_path, start(), answered(usage=USED), ended(cost_usd=0.248))
    assert costs(session) == [(215_000_000, False), (33_000_000, False)]


def test_numbers_that_are_none_inside_a_response_are_named(tmp_path):
    """The response keeps its counts."""
    usage = {
        "input": 1,
        "iterations": [iteration("compaction", "many", 5)],
        "server_tool_use": {"web_search_requests": -1},
    }
    session = scanned(tmp_path, start(), answered(usage=usage))
    assert [record.usage.total for record in session.records] == [5, 1]
    assert session.problems.count == 2
