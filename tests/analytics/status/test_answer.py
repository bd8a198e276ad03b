"""A status: sums over requests, the context apart from them, and a reason for each null."""

import os
import time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.status.answer import Status, choose_session, nothing_known
from sessionlog.analytics.status.document import day_of
from sessionlog.analytics.status.reader import session_status
from sessionlog.errors import AmbiguousSession
from tests.analytics.status.statuses import HOUR, MINUTE, MODEL, NOW, alone, limited, status, word, write
from tests.ledger.entries import NOON, book_of, record, session
from tests.profiles import examples


def nulls(value, place=""):
    """The places of all nulls in a document, indices left out."""
    if isinstance(value, dict):
        return {found for name, part in value.items() for found in nulls(part, f"{place}.{name}" if place else name)}
    if isinstance(value, list):
        return {found for part in value for found in nulls(part, place)}
    return {place} if value is None else set()


# --- sums


def test_a_session_is_the_sum_of_its_requests_and_never_its_last_turn():
    """Readers who take the last turn's numbers for the whole under-count forty times."""
    rows = [record(time_ns=NOON + n * MINUTE, cache_read=100, cache_write=3, cost_nano=10**9) for n in range(40)]
    found = status(book_of(session("s", *rows, turns=2, last_turn_ns=NOON + 39 * MINUTE)))
    assert found["usage"]["session"] == {
        "turns": 2, "requests": 40, "input": 400, "output": 200, "cacheRead": 4000, "cacheWrite": 120,
        "totalTokens": 4720, "cost": 40.0, "costIsPartial": False, "costSource": "recorded",
    }  # fmt: skip
    assert found["usage"]["lastTurn"] == {
        "requests": 1, "input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 3, "totalTokens": 118, "cost": 1.0,
        "costIsPartial": False, "costSource": "recorded",
    }  # fmt: skip


def test_a_log_that_does_not_tell_of_turns_has_none():
    """Both are null, and the reason names the agent."""
    found = status(book_of(session("s", record(), source="llm")))
    assert found["usage"]["session"]["turns"] is found["usage"]["lastTurn"] is None
    assert "llm" in found["unavailable"]["usage.session.turns"]
    assert "llm" in found["unavailable"]["usage.lastTurn"]


@pytest.mark.parametrize(
    ("rows", "cost", "partial", "source"),
    [
        ([record(cost_nano=5)], 5e-9, False, "recorded"),
        ([record()], 30e-6, False, "estimated"),
        ([record(cost_nano=1000), record()], 31e-6, False, "mixed"),
        ([record(cost_nano=10**9), record(provider="none", model="none")], 1.0, True, "recorded"),
        ([record(provider="none", model="none")], None, False, None),
    ],
    ids=["recorded", "estimated", "mixed", "partly unknown", "unknown"],
)
def test_what_is_known_of_a_cost_is_said(rows, cost, partial, source):
    """Unknown is null with a reason, never 0, and does not hide what is known."""
    found = status(book_of(session("s", *rows)))
    used = found["usage"]["session"]
    assert (used["cost"], used["costIsPartial"], used["costSource"]) == (cost, partial, source)
    assert ("usage.session.cost" in found["unavailable"]) == (cost is None)


def test_today_is_the_day_of_the_zone():
    """What was used yesterday is not in it, whoever used it."""
    book = book_of(
        session("old", record(time_ns=NOON - 13 * HOUR)), session("new", record(time_ns=NOON - 12 * HOUR)),
        session("other", record(), source="codex"),
    )  # fmt: skip
    today = status(book)["usage"]["today"]
    assert (today["requests"], today["since"]) == (2, "2026-11-20T00:00:00.000000Z")


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system's zone cannot be changed")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_the_machines_day_is_that_of_its_zone(monkeypatch, zone):
    """Without a calendar the C library says when it begins, the days of 23 and 25 hours among them."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for day in (NOON, NOON - 26 * 24 * HOUR, NOON - 236 * 24 * HOUR, NOON - 257 * 24 * HOUR):
            assert day_of(day, None) == day_of(day, ZoneInfo(zone))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_all_is_the_sum_over_all_sessions():
    """No session, no last turn and no context are claimed; turns are those of who tells."""
    book = book_of(session("a", record(), turns=3), session("b", record(), source="llm"))
    found = status(book, everything=True)
    assert found["session"] is found["usage"]["lastTurn"] is found["context"] is None
    assert (found["usage"]["session"]["requests"], found["usage"]["session"]["turns"]) == (2, 3)
    assert found["usage"]["session"]["turnsArePartial"]
    assert {"session", "usage.lastTurn", "context"} <= found["unavailable"].keys()


@pytest.mark.parametrize(
    ("row", "turns", "cost", "turn"),
    [
        ({}, 0, "list has none", "no prompt yet"), ({"input": 0, "output": 0, "failed": True}, None, "no request has", "do not show"),
    ],
)  # fmt: skip
def test_reasons_are_true(row, turns, cost, turn):
    """No prompt is not no word of prompts, and no usage is not no price."""
    why = status(book_of(session("s", record(provider="none", model="none", **row), turns=turns)))["unavailable"]
    assert cost in why["usage.session.cost"]
    assert turn in why["usage.lastTurn"]


# --- which session


def test_the_newest_event_chooses():
    """And not the latest start; what claims to be of the future comes after what has happened."""
    long = session("long", record(), start_ns=NOON - HOUR, last_ns=NOON + 2)
    book = book_of(session("late", record(), last_ns=NOON + 1), long, session("odd", record(), last_ns=NOW + HOUR))
    assert status(book)["session"]["id"] == "long"


@pytest.mark.parametrize(("target", "found"), [("s-1", "s-1"), ("s-2", "s-234"), ("-234", "s-234"), ("s-1x", None)])
def test_an_id_its_beginning_or_its_end_names_a_session(target, found):
    """The whole id wins over a longer one that begins so."""
    book = book_of(session("s-1", record()), session("s-12", record()), session("s-234", record()))
    chosen = choose_session(book.query, target, NOW)
    assert (chosen and chosen.session) == found


def test_what_names_several_is_ambiguous():
    """The candidates are ids, or logs where the ids are the same."""
    book = book_of(session("s-1", record()), session("s-2", record()), session("s-2", record(), source="pi", path="x"))
    with pytest.raises(AmbiguousSession) as raised:
        choose_session(book.query, "s-", NOW)
    assert set(raised.value.candidates) == {"s-1.jsonl", "s-2.jsonl", "x"}


# --- context


def with_model(model, *, provider="anthropic", **fields):
    """A record of a model whose window is known."""
    return record(model=model, provider=provider, **fields)


def test_the_context_is_what_the_last_request_of_the_main_agent_sent():
    """Not a sum, not a sub-agent's or an advisor's, and without what was answered."""
    rows = [
        with_model(MODEL, time_ns=NOON, input=9, cache_read=5),
        with_model(MODEL, time_ns=NOON + 1, input=1000, cache_read=90_000, cache_write=9_000, output=7777),
        with_model(MODEL, time_ns=NOON + 2, input=5, agent="explore"),
        with_model(MODEL, time_ns=NOON + 3, input=0, output=0, failed=True),
        with_model("wise", time_ns=NOON + 4, input=500, kind="advisor"),
    ]
    found = status(book_of(session("s", *rows)))["context"]
    assert found == {
        "used": 100_000, "window": 200_000, "percent": 50.0, "model": MODEL, "time": "2026-11-20T12:00:00.000000Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "window"),
    [(with_model("no-such-model"), None), (with_model(MODEL, input=300_000), None), (with_model(MODEL), 200_000)],
    ids=["unknown", "larger than known", "known"],
)
def test_a_window_that_is_not_known_is_not_guessed(row, window):
    """Then there are no percent either, and both have a reason."""
    found = status(book_of(session("s", row)))
    assert found["context"]["window"] == window
    assert ("context.percent" in found["unavailable"]) == (window is None)


def test_a_log_of_sums_has_no_context():
    """A session's total is not what one request sent."""
    found = status(book_of(session("s", record(granularity="session"))))
    assert found["context"] is None
    assert found["unavailable"]["context"]


# --- the document


def test_every_null_has_a_reason_and_every_reason_a_null():
    """Whatever is asked about."""
    books = [
        book_of(), book_of(session("s", record(provider="none", model="none"), start_ns=None)), limited(word()),
        limited(word(resets_ns=NOW), word("secondary", 3.0, 10080, resets_ns=None, plan="pro")), limited(word(minutes=None, resets_ns=None, name="odd")),
        book_of(session("s", record(), metadata={"task": "x"}, project="/p", turns=1, last_turn_ns=NOON)),
    ]  # fmt: skip
    for book in books:
        for options in ({}, {"everything": True}, {"alone": True}):
            found = status(book, **options)
            why = found.pop("unavailable")
            assert nulls(found) == why.keys() - {"typical.ofThisTask"}
            assert all(why.values())


def test_damage_is_counted_and_named(tmp_path):
    """A line that could not be read may have been a request: the status says so."""
    path = write(tmp_path, "s-1")
    with path.open("ab") as log:
        log.write(b'{"broken\n')
    os.utime(path, (1_700_000_000, 1_700_000_000))
    found = session_status(path=path, env=alone(tmp_path)).to_dict()
    assert found["problems"]["count"] == 1
    assert "s-1.jsonl" in found["problems"]["first"][0]


def test_a_status_does_not_change():
    """What it gives away is a copy."""
    made = nothing_known("because")
    made.usage["budgets"]["x"] = made.to_dict()["session"] = 1
    assert made == nothing_known("because") != Status({})
    assert made.usage["budgets"] == {}
    assert made.unavailable["context"] == "because"
    assert made.session is made.context is made.typical is None
    with pytest.raises(AttributeError):
        made.usage = {}


COUNT = st.integers(0, 10**6)
ROW = st.builds(
    lambda usage, cost, hours, agent, known: record(
        **dict(zip(("input", "output", "cache_read", "cache_write"), usage, strict=True)), cost_nano=cost,
        time_ns=NOON - hours * HOUR, agent=agent, **({} if known else {"provider": "none", "model": "none"}),
    ),
    st.tuples(COUNT, COUNT, COUNT, COUNT), st.none() | st.integers(0, 10**10), st.integers(0, 30),
    st.sampled_from(["main", "explore"]), st.booleans(),
)  # fmt: skip


@examples(60)
@given(st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=4))
def test_totals_are_the_sums_over_records(sessions):
    """Of one session, of all, of today and of the last turn; tokens are the classes' sum."""
    turn_ns = NOON - 3 * HOUR
    book = book_of(*(session(f"s{n}", *rows, last_turn_ns=turn_ns) for n, rows in enumerate(sessions)))
    rows = [row for made in sessions for row in made]
    today = [row for row in rows if row.time_ns >= NOON - 12 * HOUR]
    whole = status(book, everything=True)["usage"]
    one = status(book, "s0")["usage"]
    asked = [
        (whole["session"], rows), (whole["today"], today), (one["session"], sessions[0]), (one["today"], today),
        (one["lastTurn"], [row for row in sessions[0] if row.time_ns >= turn_ns]),
    ]  # fmt: skip
    for found, meant in asked:
        usages = [row.usage for row in meant]
        assert found["requests"] == len(meant)
        assert found["input"] == sum(usage.input for usage in usages)
        assert found["output"] == sum(usage.output for usage in usages)
        assert found["cacheRead"] == sum(usage.cache_read for usage in usages)
        assert found["cacheWrite"] == sum(usage.cache_write for usage in usages)
        assert found["totalTokens"] == sum(usage.total for usage in usages)
        recorded = [row.cost_nano for row in meant if row.cost_nano is not None]
        if recorded and all(row.cost_nano is not None for row in meant):
            assert found["cost"] == pytest.approx(sum(recorded) / 1e9)
