"""The state of budgets: use is what `usage` reports, times are the calendar's, and nothing unknown looks like nothing."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.budgets.clock import ClockReading
from sessionlog.analytics.budgets.reservations import Live, reserve
from sessionlog.analytics.budgets.rules import parse_budget
from sessionlog.analytics.budgets.states import FUNCTIONS, budget_states
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.zones import local_time, resolve_zone
from sessionlog.errors import InvalidWindow
from tests.ledger.entries import NOON, SECOND, book_of, record, session
from tests.profiles import examples

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
BERLIN = ZoneInfo("Europe/Berlin")
THEN = ClockReading(wall_ns=NOON, boot="b", boot_ns=HOUR)


def ns(text):
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def states(book, *tables, now_ns=NOON, zone=UTC, **options):
    """The states of budgets that are called by their numbers."""
    for name, function in FUNCTIONS.items():
        book.define(name, function)
    rules = [parse_budget(str(number), table) for number, table in enumerate(tables)]
    return budget_states(book.query, rules, now_ns=now_ns, zone=zone, **({"moment": THEN} | options))


def state(book, now_ns=NOON, zone=UTC, moment=THEN, session_id=None, **table):
    return states(book, table, now_ns=now_ns, zone=zone, moment=moment, session_id=session_id)[0]


def used(book, **table):
    return state(book, **table).used


# --- how much


def test_amounts_of_each_unit():
    """Dollars are recorded or estimated, tokens those of all classes, requests one each."""
    book = book_of(session("s", record(cost_nano=2 * 10**9), record(input=10**6, output=0, cache_read=5)))
    assert used(book, usd=10, window="5h") == 3.0000005
    assert used(book, tokens=10, window="5h") == 1_000_020
    assert used(book, requests=10, window="5h") == 2


def test_a_window_is_half_open_and_has_no_end():
    """Its first nanosecond is inside, and use in the future of now counts."""
    times = [NOON - HOUR - 1, NOON - HOUR, NOON, NOON + 24 * HOUR]
    book = book_of(session("s", *(record(time_ns=time_ns, key=str(time_ns)) for time_ns in times)))
    assert used(book, requests=9, window="1h") == 3
    assert used(book, requests=9, window="60min") == 3


def test_the_scope():
    """As the filters of usage, whatever the case, and by what sessions say of themselves."""
    book = book_of(
        session("s", record(model="Claude-X"), record(provider="Öko"), metadata={"team": "X", "night": True}),
        session("t", record(model="other", project="/w/api"), source="codex", metadata={"team": "y", "n": 3}),
    )
    for scope, count in [
        ({}, 3), ({"model": "claude-*"}, 1), ({"model": ["claude-*", "OTHER"]}, 2), ({"provider": "öKO"}, 1),
        ({"source": "codex"}, 1), ({"project": "*/api"}, 1), ({"meta": {"team": "x"}}, 2), ({"meta": {"n": "3"}}, 1),
        ({"meta": {"night": "true"}}, 2), ({"meta": {"team": ["x", "y"], "n": "*"}}, 1), ({"meta": {"no": "*"}}, 0),
        ({"model": "m", "source": "codex"}, 0),
    ]:  # fmt: skip
        assert used(book, requests=9, window="5h", **scope) == count, scope


def test_requests_without_a_price_are_counted():
    """Then what is used is a lower bound; tokens need no price."""
    book = book_of(session("s", record(provider="nobody", model="knows"), record(cost_nano=10**9)))
    found = state(book, usd=10, window="5h")
    assert (found.used, found.unpriced) == (1.0, 1)
    assert state(book, tokens=100, window="5h").unpriced == 0


_MODELS = st.sampled_from(["m", "gift", "Claude-1", "nobody/has"])
_RECORDS = st.tuples(
    st.integers(-40, 40), _MODELS, st.sampled_from(["acme", "Öko"]), st.integers(0, 9), st.none() | st.integers(0, 9)
)
_SESSIONS = st.lists(st.tuples(st.sampled_from(["native", "codex"]), st.lists(_RECORDS, max_size=6)), max_size=4)


@given(
    sessions=_SESSIONS,
    filters=st.fixed_dictionaries(
        {},
        optional={
            "source": st.sampled_from(["native", "co*"]),
            "model": st.sampled_from(["claude-*", "*", ["m", "gift"]]),
            "provider": st.sampled_from(["ACME", "öko"]),
        },
    ),
    minutes=st.integers(1, 600),
    unit=st.sampled_from(["usd", "tokens", "requests"]),
)
@examples(120)
def test_use_is_what_usage_reports(sessions, filters, minutes, unit):
    """For the same window and filters, to the nanodollar."""
    book = book_of(
        *(
            session(
                f"s{number}",
                *(
                    record(
                        time_ns=NOON + at * 7 * MINUTE + index, model=model, provider=provider, output=output,
                        cost_nano=cost, key=f"{number}-{index}",
                    )
                    for index, (at, model, provider, output, cost) in enumerate(records)
                ),
                source=source,
            )
            for number, (source, records) in enumerate(sessions)
        )
    )  # fmt: skip
    window = UsageWindow(start_ns=NOON - minutes * MINUTE)
    report = fold_usage(book, Selection(window=window, by=(), filters=filters, zone=UTC, now_ns=NOON)).totals
    found = state(book, **{unit: 7}, window=f"{minutes}min", **filters)
    reported = {"usd": report.cost_usd or 0, "tokens": report.total_tokens, "requests": report.requests}
    assert found.used == reported[unit]
    assert found.unpriced == (report.unpriced_requests if unit == "usd" else 0)


# --- when


@given(
    hours=st.integers(0, 24 * 800),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"]),
    period=st.sampled_from(["hour", "day", "week", "month"]),
)
@examples(150)
def test_periods_are_the_calendars(hours, zone, period):
    """They hold the present, begin and end at round local times, and the next one begins where one ends."""
    now_ns, whose = NOON + hours * HOUR + 1234 * SECOND, resolve_zone(zone)
    book = book_of()
    found = state(book, requests=1, period=period, now_ns=now_ns, zone=zone)
    after = state(book, requests=1, period=period, now_ns=found.resets_ns, zone=zone)
    assert found.start_ns <= now_ns < found.resets_ns == after.start_ns
    for edge in (found.start_ns, found.resets_ns):
        moment = local_time(edge, whose)
        assert (moment.minute, moment.second) == (0, 0)
        assert period == "hour" or moment.hour == 0
        assert period != "week" or moment.weekday() == 0
        assert period != "month" or moment.day == 1
    assert found.window_seconds * SECOND == found.resets_ns - found.start_ns


@pytest.mark.parametrize(
    ("now", "period", "hours"),
    [
        ("2026-10-25T12:00:00+01:00", "day", 25),
        ("2026-03-29T12:00:00+02:00", "day", 23),
        ("2026-10-25T12:00:00+01:00", "week", 169),
        ("2026-10-25T02:30:00+02:00", "hour", 1),
        ("2026-10-25T02:30:00+01:00", "hour", 1),
    ],
)
def test_days_on_which_clocks_are_set(now, period, hours):
    """Have as many hours as they have; the hour that comes twice is two."""
    found = state(book_of(), requests=1, period=period, now_ns=ns(now), zone=BERLIN)
    assert found.window_seconds == hours * 3600
    assert found.start_ns <= ns(now) < found.resets_ns


def test_a_rolling_window_resets_as_its_oldest_use_drops_out():
    """A record that used nothing does not."""
    times = {NOON - 4 * HOUR: 0, NOON - 3 * HOUR: 7, NOON: 7}
    rows = (record(time_ns=at, input=count, output=0, key=str(at)) for at, count in times.items())
    book = book_of(session("s", *rows))
    found = state(book, tokens=9, window="5h")
    assert (found.resets_ns, found.window_seconds) == (NOON + 2 * HOUR, 5 * 3600)
    assert state(book, tokens=9, window="5h", model="none").resets_ns is None


def test_rolling_months_are_of_the_calendar():
    """A month before 31 March begins on the last of February."""
    found = state(book_of(), requests=1, window="1mo", now_ns=ns("2026-03-31T12:00:00+00:00"))
    assert (found.start_ns, found.window_seconds) == (ns("2026-02-28T12:00:00+00:00"), 31 * 86_400)


def test_rolling_months_reset_by_the_calendar():
    """What was used on the last of January leaves the month after the last of February, with its first nanosecond."""
    book = book_of(session("s", record(time_ns=ns("2026-01-31T12:00:00+00:00"))))
    now = ns("2026-02-10T12:00:00+00:00")
    found = state(book, requests=9, window="1mo", now_ns=now)
    assert found.used == 1
    after, before = (
        state(book, requests=9, window="1mo", now_ns=found.resets_ns - back * SECOND).used for back in (0, 1)
    )
    assert (before, after) == (1, 0)


def test_an_unknown_zone():
    """Is refused by name."""
    with pytest.raises(InvalidWindow, match="Nowhere"):
        state(book_of(), requests=1, period="day", zone="Nowhere")


# --- whose


def of_sessions(*rows):
    """Sessions of so many requests, that ended or are running."""
    return book_of(
        *(
            session(name, *(record(key=f"{name}{n}") for n in range(count)), status=None if running else "success")
            for name, count, running in rows
        )
    )


def test_a_session_has_its_own():
    """Of those of the last ten minutes the one that has used most is shown, whether it is between turns or not."""
    book = of_sessions(("done", 9, False), ("one", 1, True), ("two", 2, True))
    names = dict(book.query("SELECT id, session FROM sessions", {}))
    worst = state(book, requests=3, per="session")
    assert (worst.used, names[worst.session], worst.resets_ns, worst.window_seconds) == (9, "done", None, None)
    for number, name in names.items():
        assert state(book, requests=3, per="session", session_id=number).used == {"done": 9, "one": 1, "two": 2}[name]


def test_no_session_goes_on():
    """Then nothing is known of what a session has used, which is not 0."""
    none = state(of_sessions(("done", 9, False)), now_ns=NOON + HOUR, requests=3, per="session")
    assert (none.session, none.is_idle, none.level) == (None, True, "ok")
    assert (none.to_dict()["used"], none.to_dict()["percent"]) == (None, None)


def test_a_session_that_has_not_used_any_of_it_yet():
    """What it has reserved is shown."""
    book = book_of(session("s", record(model="other")))
    [(number,)] = book.query("SELECT id FROM sessions", {})
    rule = parse_budget("b", {"requests": 9, "per": "session", "model": "m"})
    reserve(book.connection, book.query, rule.key("s"), "s", 7, THEN, Live())
    found = state(book, requests=9, per="session", model="m", session_id=number)
    assert (found.used, found.reserved, found.session, found.is_idle) == (0, 7, number, False)


@pytest.mark.parametrize("value", [None, "x"])
def test_metadata_without_a_value(value):
    """Fits nothing, and breaks nothing."""
    book = book_of(session("s", record(), metadata={"team": value}))
    assert used(book, requests=9, window="5h", meta={"team": "*"}) == (value is not None)


def test_use_without_a_request_and_without_a_price():
    """Totals of a session's end may be all that is told: they are no less unknown."""
    book = book_of(session("s", record(requests=0, provider="nobody", model="knows", input=5_000_000)))
    assert state(book, usd=9, window="5h").unpriced == 1


# --- how it goes on


def test_the_rate_is_that_of_the_last_hour():
    """Or of a shorter window; at this rate it runs out, unless it is reset before."""
    times = [NOON - 3 * HOUR, NOON - 30 * MINUTE, NOON - 20 * MINUTE]
    book = book_of(session("s", *(record(time_ns=at, key=str(at)) for at in times)))
    found = state(book, requests=9, window="5h")
    assert (found.burn_per_hour, found.runs_out_ns) == (2.0, NOON + 3 * HOUR)
    assert state(book, requests=9, window="25min").burn_per_hour == pytest.approx(2.4)
    assert state(book, requests=99, window="5h").runs_out_ns is None
    assert state(book, requests=99, period="day").runs_out_ns is None
    assert state(book, requests=99, period="month").runs_out_ns == NOON + 48 * HOUR
    assert state(book, requests=3, window="5h").runs_out_ns is None
    assert state(book, requests=10, stop=50, warn=9, window="5h").runs_out_ns == NOON + HOUR


@pytest.mark.parametrize(("count", "level"), [(0, "ok"), (7, "ok"), (8, "warn"), (9, "warn"), (10, "exceeded")])
def test_levels(count, level):
    """From 80 and 100 percent on, unless the budget says otherwise."""
    book = book_of(session("s", *(record(key=str(n)) for n in range(count))))
    found = state(book, requests=10, window="5h")
    assert (found.level, found.percent) == (level, count * 10)
    assert state(book, requests=20, window="5h", warn=40, stop=50).level == level


# --- what is left


def test_what_is_left():
    """Of the stop level, neither used nor reserved; where a part has no price that is not known."""
    book = book_of(session("s", record(cost_nano=2 * 10**9)))
    found = state(book, usd=10, stop=50, window="5h")
    assert (found.left, found.estimated, found.is_unknown) == (3, False, False)
    assert state(book, usd=1, window="5h").left == 0
    assert state(book_of(session("s", record(input=10**6, output=0))), usd=10, window="5h").estimated
    unknown = state(book_of(session("s", record(provider="nobody", model="knows"))), usd=10, window="5h")
    assert (unknown.left, unknown.is_unknown) == (None, True)


# --- what is reserved


def test_reservations_are_told_apart():
    """They count for all budgets that limit the same, and end after ten minutes by the boot's clock."""
    book = book_of(session("s", record()))
    key = parse_budget("b", {"requests": 1, "window": "5h"}).key()
    book.reconcile()
    reserve(book.connection, book.query, key, "", 4, THEN, Live())
    late = ClockReading(wall_ns=NOON, boot="b", boot_ns=HOUR + 600 * SECOND)
    found = state(book, requests=9, window="5h")
    assert (found.used, found.reserved) == (1, 4)
    assert state(book, requests=2, window="300min").reserved == 4
    assert state(book, requests=9, window="6h").reserved == 0
    assert state(book, requests=9, window="5h", moment=late).reserved == 0


# --- as JSON


def test_the_document():
    """Exactly these names, those that every budget has first; unknown times are null."""
    found = state(book_of(session("s", record(cost_nano=5 * 10**9))), usd=10, window="5h").to_dict()
    assert list(found) == [
        "used", "limit", "percent", "unit", "windowSeconds", "resetsAt", "source", "reserved", "level", "burnPerHour",
        "runsOutAt", "unpricedRequests",
    ]  # fmt: skip
    assert json.loads(json.dumps(found)) == {
        "used": 5.0, "limit": 10.0, "percent": 50.0, "unit": "usd", "windowSeconds": 18_000,
        "resetsAt": "2026-11-20T17:00:00.000000Z", "source": "config", "reserved": 0.0, "level": "ok",
        "burnPerHour": 5.0, "runsOutAt": "2026-11-20T13:00:00.000000Z", "unpricedRequests": 0,
    }  # fmt: skip


def test_a_state_cannot_be_changed():
    """It may be shared."""
    with pytest.raises(AttributeError, match="used"):
        state(book_of(), requests=1, window="5h").used = 3


def test_states_are_in_the_order_of_the_rules():
    """By name."""
    found = states(book_of(), {"usd": 1, "window": "5h"}, {"tokens": 1, "period": "day"})
    assert [one.name for one in found] == ["0", "1"]


def test_the_present_is_the_callers():
    """A day later the day is another."""
    book = book_of(session("s", record()))
    later = NOON + int(timedelta(days=1).total_seconds()) * SECOND
    assert [state(book, requests=9, period="day", now_ns=at).used for at in (NOON, later)] == [1, 0]
