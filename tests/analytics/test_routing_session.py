"""One log as the router's judge sees it, and the laws by which logs add."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.routing import RoutingQualityScan
from sessionlog.analytics.routing_session import RoutingTally, SessionRouting, _Log, fold_session
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from tests.profiles import examples

LAW = examples(100)
UNSIZED = "tokens=unknown,tools=no,reasoning=none"


def event(type_, data=None, ts="2026-11-21T09:00:00Z"):
    return Event(session_id="s", seq=1, type=type_, ts=ts, data=data)


def override(match=False, *, axis="model", **fields):
    return event("override", {"axes_overridden": [axis], "match_per_axis": {axis: match}, **fields})


def fold(*events, **options):
    return fold_session([event("session.start", {}), *events], **options)


def tally(*events):
    return fold(*events).tally


def test_weakness_19_an_outcome_of_its_own_wins():
    """What the override says of itself is not replaced, not even an unknown word; an empty outcome is."""
    end = event("session.end", {"status": "success"})
    cells = tally(
        override(outcome={"status": "failed"}), override(outcome={"status": "weird"}), override(outcome={}), end
    ).pins
    assert {key[3]: count for key, count in cells.items()} == {"failed": 1, "unknown": 1, "success": 1}


def test_weakness_19_the_last_readable_end_counts():
    """A session that was resumed ended as its last end says; an end without payload says nothing."""
    ends = event("session.end", {"status": "error"}), event("session.end", {"status": "success"}), event("session.end")
    assert {key[3] for key in tally(override(), *ends).pins} == {"success"}


@pytest.mark.parametrize(
    "data",
    [None, 3, {"axes_overridden": "model"}, {"axes_overridden": [1]}, {"axes_overridden": [], "match_per_axis": "yes"}],
)
def test_an_override_without_its_axes_cannot_be_read(data):
    """What was pinned must be a list of names, and the verdicts an object."""
    assert tally(event("override", data)).undecodable == 1


def test_weakness_4_a_wrong_detail_does_not_lose_the_override():
    """A score or a token count of the wrong type leaves the override readable."""
    routing = tally(override(auto_score="high", prompt_features={"estimated_tokens": "many", "requires_tools": True}))
    assert dict(routing.pins) == {("tokens=unknown,tools=yes,reasoning=none", "model", False, "unknown"): 1}


def test_the_first_start_decides_about_the_window():
    """A session that was resumed today began when it first began, whatever its payload."""
    old = event("session.start", None, ts="2026-11-01T00:00:00Z")
    window = parse_usage_window("2026-11-21")
    assert fold_session([old, event("session.start", {}), override()], window=window).tally == RoutingTally()
    assert fold_session([event("session.start"), old, override()], window=window).tally.overrides == 1


def test_reading_stops_at_a_start_outside_the_window():
    """The rest of an old log is not even decoded."""

    def log():
        yield event("session.start", {}, ts="2026-11-01T00:00:00Z")
        raise AssertionError("read on")

    assert fold_session(log(), window=parse_usage_window("2026-11-21")) == SessionRouting()


def test_no_axis_is_an_agreement():
    """An override that pins nothing is an override, agrees, and has no cell."""
    routing = tally(event("override", {"axes_overridden": []}), event("override", {}))
    assert (routing.overrides, routing.disagreeing, routing.accepted, routing.pins) == (2, 0, 0, {})


def test_a_missing_verdict_is_a_disagreement():
    """An axis that the log does not call a match did not match."""
    routing = tally(event("override", {"axes_overridden": ["model", "model"], "match_per_axis": {"model": "yes"}}))
    assert (routing.disagreeing, dict(routing.pins)) == (1, {(UNSIZED, "model", False, "unknown"): 1})


def test_one_disagreeing_axis_is_enough():
    """Three pinned axes give three cells and one disagreement."""
    verdicts = {"harness": True, "provider": False, "model": True}
    routing = tally(event("override", {"axes_overridden": list(verdicts), "match_per_axis": verdicts}))
    assert (routing.disagreeing, routing.pins.total()) == (1, 3)


@pytest.mark.parametrize(
    ("block", "failovers", "path"),
    [
        ({}, 0, None),
        ({"attempted_providers": ["a"]}, 0, None),
        ({"attempted_providers": ["a", "b", "c"]}, 2, ("a", "b", "c")),
        ({"attempted_providers": ["a", "b"], "failover_count": 3}, 3, ("a", "b")),
        ({"attempted_providers": ["a", "b"], "failover_count": 0}, 0, None),
        ({"failover_count": 2}, 2, ()),
        ({"failover_count": -1}, 0, None),
    ],
)
def test_a_count_of_failovers_is_believed_before_the_list(block, failovers, path):
    """Without a count every provider after the first is one; without a list the path is empty."""
    routing = tally(event("session.end", block))
    assert (routing.failovers, dict(routing.paths)) == (failovers, {} if path is None else {path: 1})


def test_a_served_name_counts_once_per_session():
    """A hundred answers under another name are one session."""
    answer = event("llm.response", {"attempt": {"requested_model": "a", "response_model": "b"}})
    same = event("llm.response", {"attempt": {"requested_model": "a", "response_model": "a"}})
    odd = event("llm.response", {"attempt": {"requested_model": "a", "response_model": 7}})
    assert dict(tally(answer, answer, same, odd, event("llm.response")).served_changes) == {("a", "b"): 1}


def test_news_about_a_log_is_not_damage():
    """Only damage makes a report less than whole."""
    news = Problem(path="a", line=2, offset=0, kind="torn_tail", detail="", severity="info")
    assert fold(news).problem_count == 0


axes = st.sampled_from(["harness", "provider", "model"])
statuses = st.sampled_from(["success", "error", "budget_halted", "cancelled", "weird", None])
pins = st.builds(
    lambda verdicts, tokens, status: event(
        "override",
        {
            "axes_overridden": list(verdicts),
            "match_per_axis": verdicts,
            "prompt_features": {"estimated_tokens": tokens},
            "outcome": {"status": status},
        },
    ),
    st.dictionaries(axes, st.booleans(), max_size=3),
    st.sampled_from([0, 500, 5_000]),
    statuses,
)
others = st.sampled_from(
    [
        event("override", {"axes_overridden": 1}),
        event("rejected_override", {"rejection_error": "unknown model"}),
        event("rejected_override"),
        event("session.end", {"status": "success", "attempted_providers": ["a", "b"]}),
        event("session.end", {"requested_model": "m", "resolved_model": "n", "failover_count": 2}),
        event("llm.response", {"attempt": {"requested_model": "m", "response_model": "n"}}),
        Problem(path="p", line=1, offset=0, kind="not_json", detail=""),
    ]
)
logs = st.lists(pins | others, max_size=6)
folded = logs.map(lambda events: fold(*events))


@LAW
@given(folded, folded, folded)
def test_sessions_add_associatively(one, two, three):
    """Logs may be folded in groups, on any number of workers."""
    assert (one + two) + three == one + (two + three)
    assert one + SessionRouting() == one == SessionRouting() + one


@LAW
@given(folded, folded)
def test_counts_add_commutatively(one, two):
    """The order of files changes no figure."""
    assert one.tally + two.tally == two.tally + one.tally


@LAW
@given(st.lists(folded, max_size=5))
def test_every_figure_stays_within_its_whole(sessions):
    """Rates are in [0, 1], nothing clamps, and every pinned axis is in exactly one cell."""
    routing = sum(sessions, SessionRouting())
    scan = RoutingQualityScan(routing=routing)
    assert 0 <= scan.accepted_requests <= scan.total_requests == len(sessions)
    assert 0 <= scan.disagreeing_overrides <= scan.total_overrides
    for rate in (scan.auto_acceptance_rate, scan.override_disagreement_rate):
        assert rate is None or 0 <= rate <= 1
    buckets = scan.override_class_breakdown
    assert sum(bucket.count for bucket in buckets) == sum(routing.tally.pins.values())
    keys = [(bucket.prompt_feature_bucket, bucket.axis, bucket.match) for bucket in buckets]
    assert keys == sorted(set(keys))


@LAW
@given(logs, st.randoms(use_true_random=False))
def test_acceptance_does_not_depend_on_order(events, random):
    """Where in its file a pin stands changes nothing about acceptance and disagreement."""
    shuffled = events[:]
    random.shuffle(shuffled)
    for name in ("requests", "accepted", "overrides", "disagreeing", "undecodable", "rejections"):
        assert getattr(fold(*events).tally, name) == getattr(fold(*shuffled).tally, name)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
override_keys = st.sampled_from(["axes_overridden", "match_per_axis", "prompt_features", "outcome", "rejection_error"])
types = st.sampled_from(["override", "rejected_override", "session.end", "llm.response", "session.start"])


@LAW
@given(types, json_values | st.dictionaries(override_keys, json_values))
def test_no_payload_can_break_the_fold(type_, data):
    """Whatever JSON a payload is, the log folds to a report that is JSON."""
    routing = fold(event(type_, data))
    assert routing.tally.requests == 1
    json.dumps(RoutingQualityScan(routing=routing).to_dict())


def test_a_million_overrides_are_as_many_cells_as_they_have_classes():
    """Only what the breakdown needs is kept of an override, not its payload."""
    log = _Log()
    for number in range(50):
        log.take(override(number % 2 == 0, prompt="x" * 1000, candidates=[{"model": str(number)}]))
    assert len(log.pins) == 2
    assert (log.overrides, log.disagreeing) == (50, 25)


def test_an_override_may_pin_nothing():
    """It is counted, and disagrees with nobody."""
    routing = tally(event("override", {"axes_overridden": []}))
    assert (routing.overrides, routing.disagreeing, routing.accepted, routing.pins) == (1, 0, 0, {})
