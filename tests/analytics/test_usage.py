"""Usage: every record once, in its own time, under its own names; sessions and durations once in the totals."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import InvalidQuery
from sessionlog.events.tokens import MAX_COUNT
from sessionlog.pricing import ModelPricing, PricingTable
from tests.analytics.week import DATA, check_golden, fold, usage, week_report
from tests.ledger.entries import NOON, PRICES, SECOND, record, session
from tests.profiles import examples
from tests.sources.logs import answered, ended, go_start, start, write_log

LAW = examples(60)


# --- the week


def test_the_weeks_document():
    """`sessionlog.usage/1` of a week of lessons; floats to nine digits, which every machine agrees on."""
    document = json.loads(json.dumps(week_report().to_dict()), parse_float=lambda text: float(f"{float(text):.9g}"))
    check_golden("week.json", json.dumps(document, indent=2) + "\n")


@pytest.mark.parametrize("by", [(), ("model",), ("day", "source"), ("session", "response_model"), ("status", "hour")])
def test_every_grouping_has_the_same_totals(by):
    """What rows are does not change what was used; additive columns of the rows add up to it."""
    report = week_report(by=by)
    assert report.totals.to_dict() == week_report().totals.to_dict()
    for name in ("requests", "failed_requests", "total_tokens", "reasoning_tokens", "unpriced_requests"):
        assert sum(getattr(row, name) for row in report.rows) == getattr(report.totals, name)
    for name in ("known_nano", "estimated_nano"):
        assert sum(getattr(row, name) or 0 for row in report.rows) == getattr(report.totals, name)


def test_totals_count_sessions_and_durations_once():
    """A session with two models stands in two rows with its whole duration, and once in the totals."""
    one = session("one", record(model="a"), record(model="b"), duration_ms=8000)
    two = session("two", record(model="a"), duration_ms=500)
    report = fold(one, two)
    assert [(r.model, r.sessions, r.duration_ms) for r in report.rows] == [("a", 2, 8500), ("b", 1, 8000)]
    assert (report.totals.sessions, report.totals.duration_ms) == (2, 8500)


def test_a_session_is_known_by_its_file():
    """Two files of one name in two folders are two sessions, under one name in a row."""
    report = fold(session("same", record(), place="a"), session("same", record()), by=("session",))
    assert [(r.keys["session"], r.sessions) for r in report.rows] == [("same", 2)]


def test_provenance_is_in_requests():
    """Exact, partial, estimated or a session's totals: together they are the requests."""
    report = fold(
        session("a", record(), record(quality="partial"), record(quality="estimated", failed=True)),
        session("b", record(granularity="session", quality="partial"), record(requests=0)),
    )
    assert report.provenance == {"exact": 1, "partial": 1, "estimated": 1, "session": 1}
    assert sum(report.provenance.values()) == report.totals.requests
    week = week_report()
    assert sum(week.provenance.values()) == week.totals.requests == 13


def test_provenance_follows_the_window():
    """It speaks of the requests in the report and of no others."""
    report = fold(session("a", record(), record(time_ns=NOON + SECOND, quality="partial")), end_ns=NOON + 1)
    assert report.provenance == {"exact": 1, "partial": 0, "estimated": 0, "session": 0}


# --- time belongs to the record


def test_a_session_across_midnight_is_used_on_both_days():
    """Weakness 10: each response counts on its own day, the session on each, its duration in each whole."""
    report = week_report(by=("day",), filters={"project": "*/shop"})
    rows = {r.keys["day"]: (r.sessions, r.requests, r.known_cost_usd, r.duration_ms) for r in report.rows}
    assert rows == {"2026-11-18": (1, 1, 0.031, 210_000), "2026-11-19": (2, 3, 0.042, 218_000)}
    assert report.totals.sessions == 2


@pytest.mark.parametrize(("window", "requests", "cost"), [("2026-11-18", 1, 0.031), ("2026-11-19", 1, 0.042)])
def test_a_window_takes_only_its_part_of_a_session(window, requests, cost):
    """Today is not empty for a session that began yesterday."""
    rows = {r.keys["session"]: r for r in week_report(window=window, by=("session",)).rows}
    part = rows["crosses-midnight"]
    assert (part.sessions, part.requests, part.known_cost_usd) == (1, requests, cost)


def test_totals_only_and_remainders_have_their_times(tmp_path):
    """A session's totals are used at its start, what its end reports beyond its responses at the end."""
    tokens = {"input": 10}
    write_log(tmp_path / "totals.jsonl", start("09:00:00"), ended("15:00:00", tokens=tokens))
    write_log(tmp_path / "rest.jsonl", start("09:00:00"), answered("12:00:00"), ended("15:00:00", tokens=tokens))
    rows = usage(tmp_path, by=("hour", "session")).rows
    used = [(r.keys["hour"][11:13], r.keys["session"], r.requests, r.input_tokens) for r in rows]
    assert used == [("09", "totals", 1, 10), ("12", "rest", 1, 0), ("15", "rest", 0, 10)]


def test_active_time_is_that_of_the_window():
    """Where no end says how long it took, a window counts the activity of its own records."""
    one = session("s", record(active_ms=1000), record(time_ns=NOON + SECOND, active_ms=20), duration_ms=None)
    assert [fold(one, end_ns=end).totals.duration_ms for end in (None, NOON + 1)] == [1020, 1000]


def test_a_logged_duration_is_whole_in_every_window():
    """The end's word is about the session, not about the window."""
    one = session("s", record(active_ms=1), record(time_ns=NOON + SECOND), duration_ms=5000)
    assert fold(one, end_ns=NOON + 1).totals.duration_ms == 5000


# --- whose, how and for what


def test_harness_sessions_have_a_provider(tmp_path):
    """Weakness 8: without a provider the harness is one."""
    write_log(tmp_path / "s.jsonl", go_start(provider="", resolved_harness="claude"), ended(tokens={"input": 1}))
    assert [r.provider for r in usage(tmp_path).rows] == ["claude"]


def test_failover_is_in_two_rows(tmp_path):
    """Weakness 9: each response is credited to who served it and to the model asked for."""
    other = answered("10:00:05", usage={"input": 7}, attempt={"provider_system": "b", "requested_model": "m-2"})
    write_log(tmp_path / "s.jsonl", start(provider="a", model="m"), answered(usage={"input": 5}), other)
    rows = [(r.provider, r.model, r.input_tokens) for r in usage(tmp_path).rows]
    assert rows == [("b", "m-2", 7), ("a", "m", 5)]


def test_sessions_are_counted_by_how_they_ended():
    """Success, failure of any kind, or no end; a running one is an unfinished one."""
    ends = ["success", "success", "error", "iteration_limit", "", None, None]
    sessions = [session(f"s{n}", record(), status=status) for n, status in enumerate(ends[:-1])]
    sessions.append(session("old", record(), status=None, last_ns=NOON - 10**12))
    totals = fold(*sessions).totals
    assert (totals.sessions, totals.success_sessions, totals.failed_sessions) == (7, 2, 3)
    assert (totals.unfinished_sessions, totals.running_sessions) == (2, 1)
    assert totals.success_rate == 2 / 5


def test_known_money_is_never_hidden():
    """Weakness 5: one session without a price leaves the row's and the totals' known and estimated cost as they are."""
    report = fold(
        session("a", record(cost_nano=500_000_000, provider="p")),
        session("b", record(provider="p"), record(provider="p", requests=0)),
        session("c", record()),
    )
    [row] = [row for row in report.rows if row.provider == "p"]
    assert (row.provider, row.known_cost_usd, row.estimated_cost_usd, row.cost_usd) == ("p", 0.5, None, 0.5)
    assert (row.unknown_cost_sessions, row.unpriced_requests) == (1, 1)
    totals = report.totals
    assert (totals.known_nano, totals.estimated_nano, totals.unknown_cost_sessions) == (500_000_000, 30_000, 1)


def test_what_is_charged_beside_tokens_is_a_part_of_the_cost():
    """Searches and their cost are sums of the rows; a window that cuts a quarter hour has them, too."""
    opus = {"provider": "anthropic", "model": "claude-opus-4-8", "input": 1000, "output": 0}
    searched = session("a", record(searches=3, **opus), record(searches=2, cost_nano=50_000_000, **opus))
    plain = session("b", record(**opus))
    for when in ({}, {"window": UsageWindow(start_ns=NOON - SECOND, end_ns=NOON + SECOND)}):
        report = fold(searched, plain, by=("session",), **when)
        rows = {row.keys["session"]: row for row in report.rows}
        assert (rows["a"].searches, rows["a"].extra_cost_usd) == (5, pytest.approx(0.05))
        assert (rows["a"].estimated_cost_usd, rows["a"].known_cost_usd) == (pytest.approx(0.035), pytest.approx(0.05))
        assert (rows["b"].searches, rows["b"].extra_cost_usd) == (0, None)
        assert (report.totals.searches, report.totals.extra_cost_usd) == (5, pytest.approx(0.05))


def test_requests_are_told_apart_by_tier_region_and_kind():
    """What is the standard one has a name in the report."""
    some = {"provider": "anthropic", "model": "claude-opus-4-8"}
    one = session("a", record(**some), record(region="us", service_tier="batch", kind="advisor", **some))
    found = [{row.keys[key]: row.cost_usd for row in fold(one, by=(key,)).rows} for key in ("tier", "region", "kind")]
    standard, special = 0.000175, 0.00009625
    names = (("standard", "batch"), ("-", "us"), ("-", "advisor"))
    assert found == [pytest.approx(dict(zip(pair, (standard, special), strict=True))) for pair in names]


def test_unknown_money_is_not_zero():
    """No price at all is None; a free run is 0 and known."""
    rows = fold(session("a", record(provider="p")), session("b", record(provider="q", cost_nano=0))).rows
    assert [(r.provider, r.cost_usd, r.unknown_cost_sessions) for r in rows] == [("q", 0.0, 0), ("p", None, 1)]


def test_a_free_local_run_costs_nothing(tmp_path):
    """Weakness 18: a recorded 0 of a model without a list price is $0."""
    write_log(tmp_path / "s.jsonl", go_start(provider="box", model="m"), ended(tokens={"input": 9}, cost_usd=0))
    totals = usage(tmp_path).totals
    assert (totals.cost_usd, totals.unknown_cost_sessions) == (0.0, 0)


def test_the_ends_cost_is_not_estimated_again(tmp_path):
    """What the session says it cost is what it cost, whether its responses named a cost or not."""
    lines = [answered(usage={"input": 10**6}, **cost) for cost in ({}, {"cost_usd": 0}, {"cost_usd": 0.2})]
    end = ended("10:00:09", tokens={"input": 4 * 10**6}, cost_usd=0.5)
    write_log(tmp_path / "s.jsonl", start(provider="acme", model="m"), *lines, end)
    totals = usage(tmp_path).totals
    assert (totals.known_cost_usd, totals.estimated_cost_usd, totals.unknown_cost_sessions) == (0.5, None, 0)
    assert totals.input_tokens == 4 * 10**6


def test_an_end_of_zero_cost_is_estimated_where_there_is_a_price(tmp_path):
    """A recorded 0 of a model that has a list price is a writer who did not know."""
    line = answered(usage={"input": 10**6})
    write_log(tmp_path / "s.jsonl", start(provider="acme", model="m"), line, ended(cost_usd=0))
    totals = usage(tmp_path).totals
    assert (totals.known_cost_usd, totals.estimated_cost_usd) == (None, 1.0)


def test_unpriced_pairs_are_named_by_how_many_sessions_have_them():
    """The most frequent first, then by name; priced ones are not among them."""
    odd = [session(f"o{n}", record(provider="odd", model="m")) for n in range(2)]
    rare = session("r", record(provider="b", model="m"), record(provider="a", model="n"), record())
    assert fold(*odd, rare).unpriced == (("odd", "m"), ("a", "n"), ("b", "m"))


def test_speed_is_of_answers_with_a_latency():
    """Weakness 11: output of calls whose latency is not known does not count as generated in no time, failures neither."""
    one = session(
        "s",
        record(output=100, latency_ms=2000.0),
        record(output=999),
        record(output=0, latency_ms=60_000.0, failed=True),
        duration_ms=100_000,
    )
    totals = fold(one).totals
    assert totals.generation_tokens_per_second == 50.0
    assert totals.output_tokens_per_second == 1099 / 100
    assert (totals.requests, totals.failed_requests) == (3, 1)


def test_latencies_are_those_of_the_row():
    """Each row has its own percentiles, the totals those of all."""
    fast = session("a", *[record(model="fast", latency_ms=10.0)] * 3)
    slow = session("b", record(model="slow", latency_ms=1000.0), record(model="none"))
    report = fold(fast, slow)
    found = {r.model: (r.latency_p50_ms, r.latency_p95_ms) for r in report.rows}
    assert found == {
        "fast": pytest.approx((10, 10), rel=0.02),
        "none": (None, None),
        "slow": pytest.approx((1000, 1000), rel=0.02),
    }
    totals = report.totals
    assert (totals.latency_p50_ms, totals.latency_p99_ms) == pytest.approx((10, 1000), rel=0.02)


# --- damage, and what is beyond measure


def test_the_report_says_what_it_skipped(tmp_path):
    """Weakness 2: a bad line costs itself, is counted and is named by file and line."""
    path = write_log(tmp_path / "s.jsonl", start(), b"garbage\n", answered(usage={"input": 5, "output": -1}))
    report = usage(tmp_path)
    assert report.totals.input_tokens == 5
    first = [
        f"{path}:2 not_json 7 bytes are not JSON",
        f"{path}:3 bad_number llm.response seq 2: output: a negative count",
    ]
    assert report.to_dict()["problems"]["count"] == 2
    assert sorted(report.to_dict()["problems"]["first"]) == first


def test_a_file_of_nothing_but_damage_is_in_the_report(tmp_path):
    """There is no session in it, but it is not passed over in silence."""
    write_log(tmp_path / "s.jsonl", b"garbage\n")
    report = usage(tmp_path)
    assert (report.rows, report.problem_count, [p.line for p in report.problems]) == ((), 1, [1])


def test_listed_sessions_do_not_count(tmp_path):
    """A rejected pin is no usage: its model has no row."""
    assert "huge" not in {row.model for row in week_report().rows}


def test_sums_beyond_64_bits_saturate():
    """A hostile log cannot end a report: the sum stops at the largest number."""
    one = session("s", *[record(input=MAX_COUNT, output=MAX_COUNT, provider="p", latency_ms=1.0)] * 1100)
    report = fold(one, by=("provider", "day"))
    assert report.rows[0].input_tokens == report.totals.input_tokens == 2**63 - 1
    assert (report.totals.requests, report.totals.cost_usd) == (1100, None)
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_log_without_times_is_used_at_an_unknown_day(tmp_path):
    """It is in the report of all time."""
    write_log(tmp_path / "s.jsonl", start(""), answered("", usage={"input": 5}))
    rows = usage(tmp_path, by=("hour", "day", "week", "month")).rows
    assert [set(row.keys.values()) for row in rows] == [{"unknown"}]
    assert usage(tmp_path, window="2000-01-01..").rows == ()


# --- laws


RECORDS = st.builds(
    record,
    time_ns=st.none() | st.integers(NOON - 5, NOON + 5),
    provider=st.sampled_from(["acme", "p"]),
    model=st.sampled_from(["m", "n", "gift"]),
    cost_nano=st.none() | st.integers(0, 5) | st.just(10**9),
    requests=st.integers(0, 1),
    failed=st.booleans(),
    priced=st.booleans(),
    input=st.integers(0, 9),
    output=st.integers(0, 9),
    cache_read=st.integers(0, 9),
    active_ms=st.integers(0, 9),
)


SESSIONS = st.lists(
    st.tuples(
        st.lists(RECORDS, max_size=4),
        st.sampled_from(["success", "error", None]),
        st.none() | st.integers(1, 50),
        st.booleans(),
    ).map(lambda s: session("s", *s[0], status=s[1], duration_ms=s[2], counted=s[3])),
    max_size=4,
)


def price(one):
    """(recorded, estimated) of a record, by DESIGN's sentence about cost."""
    listed = PRICES.price(one.provider, one.model, one.usage, one.time_ns)
    if one.cost_nano == 0 and one.priced and listed:
        return None, listed
    if one.cost_nano is None and one.priced:
        return None, listed
    return one.cost_nano, None


def naive(sessions, key):
    """Group → sums, the slow and obvious way."""
    rows = {}
    for one in sessions:
        groups = {}
        for each in one.records if one.counted else ():
            groups.setdefault(key(each), []).append(each)
        for name, records in groups.items():
            row = rows.setdefault(name, dict.fromkeys(SUMMED, 0) | {"known_nano": None, "estimated_nano": None})
            row["sessions"] += 1
            row["success_sessions"] += one.status == "success"
            row["failed_sessions"] += one.status == "error"
            row["duration_ms"] += one.duration_ms or sum(r.active_ms for r in one.records)
            for each in records:
                row["requests"] += each.requests
                row["failed_requests"] += each.failed
                row["total_tokens"] += each.usage.total
                for column, nano in zip(("known_nano", "estimated_nano"), price(each), strict=True):
                    if nano is not None:
                        row[column] = (row[column] or 0) + nano
            row["unknown_cost_sessions"] += any(r.priced and price(r) == (None, None) for r in records)
    return rows


SUMMED = (
    "sessions", "success_sessions", "failed_sessions", "requests", "failed_requests", "total_tokens", "duration_ms",
    "known_nano", "estimated_nano", "unknown_cost_sessions",
)  # fmt: skip


@LAW
@given(SESSIONS)
def test_a_report_equals_a_naive_fold_over_the_records(sessions):
    """SQL and a loop agree on every row and on the totals."""
    report = fold(*(replace(one, place=str(number)) for number, one in enumerate(sessions)))
    rows = {(r.provider, r.model): {name: getattr(r, name) for name in SUMMED} for r in report.rows}
    assert rows == naive(sessions, lambda r: (r.provider, r.model))
    totals = naive(sessions, lambda r: ()).get(
        (), dict.fromkeys(SUMMED, 0) | {"known_nano": None, "estimated_nano": None}
    )
    assert {name: getattr(report.totals, name) for name in SUMMED} == totals


@LAW
@given(SESSIONS, st.integers(NOON - 6, NOON + 6))
def test_neighbouring_windows_tile(sessions, edge):
    """What lies before an instant and what lies after it are all that has a time."""
    timed = [session("s", *[r for r in one.records if r.time_ns is not None], counted=one.counted) for one in sessions]
    whole, before, after = (
        fold(*timed, start_ns=begin, end_ns=end).totals for begin, end in ((0, None), (None, edge), (edge, None))
    )
    for name in ("requests", "failed_requests", "total_tokens", "unpriced_requests"):
        assert getattr(before, name) + getattr(after, name) == getattr(whole, name)
    assert (before.known_nano or 0) + (after.known_nano or 0) == (whole.known_nano or 0)
    assert max(before.sessions, after.sessions) <= whole.sessions <= before.sessions + after.sessions


def test_the_week_is_all_there():
    """Each lesson is a file of its own."""
    assert len(list((DATA / "week").iterdir())) == 10
    assert week_report().totals.sessions == 9


def test_since_is_the_window_and_a_table_gives_prices(tmp_path):
    """As the original's options are called; a table's prices go before the list's."""
    path = write_log(
        tmp_path / "s.jsonl",
        start(provider="p", model="m"),
        answered("10:00:02", model="m", usage={"input": 1_000_000, "output": 0}),
        ended(),
    )
    table = PricingTable({"m": ModelPricing(3, 15)})
    report = aggregate_usage([path], since="2026-11-20", prices=table)
    assert (report.totals.requests, report.totals.cost_usd) == (1, 3.0)
    assert aggregate_usage([path], since="2026-11-21", prices=table).totals.requests == 0
    with pytest.raises(InvalidQuery, match="since and window"):
        aggregate_usage([path], window="7d", since="7d")
