"""What a report asks for: closed words, bound values, and keys that a hostile log cannot turn into SQL."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.selection import FILTERS, KEYS, Selection
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.zones import day_key, hour_key, month_key, week_key
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.columns import Label, names_of
from tests.ledger.entries import NOON, SECOND, book_of, record, session
from tests.profiles import examples

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def selection(**fields):
    known = {"window": None, "by": (), "filters": {}, "zone": UTC, "now_ns": NOON}
    return Selection(**(known | fields))


def grouped(book, *by, **fields):
    """Group values → requests."""
    rows = fold_usage(book, selection(by=by, **fields)).rows
    return {"/".join(row.keys.values()): row.requests for row in rows}


FULL = session(
    "s-1",
    record(
        provider="p",
        model="m",
        response_model="m-1",
        branch="main",
        version="2.1",
        agent="Explore",
        skill="release:notes",
        plugin="release",
        mcp="tracker",
        service_tier="flex",
        region="us",
        kind="advisor",
        time_ns=at("2026-11-21T23:30:00"),
    ),
    source="fizeau",
    project="/srv/app",
    harness="claude",
    route="fast",
    metadata={"team": "core"},
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source", "fizeau"),
        ("provider", "p"),
        ("model", "m"),
        ("branch", "main"),
        ("version", "2.1"),
        ("agent", "Explore"),
        ("skill", "release:notes"),
        ("plugin", "release"),
        ("mcp", "tracker"),
        ("tier", "flex"),
        ("region", "us"),
        ("kind", "advisor"),
        ("response_model", "m-1"),
        ("session", "s-1"),
        ("project", "/srv/app"),
        ("hour", "2026-11-22T00:00+01:00"),
        ("day", "2026-11-22"),
        ("week", "2026-W47"),
        ("month", "2026-11"),
        ("status", "success"),
        ("route", "fast"),
        ("harness", "claude"),
        ("meta.team", "core"),
    ],
)
def test_every_key_groups(key, value):
    """Times are those of the zone; each key is its own word in the row."""
    [row] = fold_usage(book_of(FULL), selection(by=(key,), zone=BERLIN)).rows
    assert row.keys == {key: value}


def test_every_key_is_tested():
    """A new group key needs a value above; machines have theirs in `test_place`."""
    [mark] = test_every_key_groups.pytestmark
    assert {key for key, _ in mark.args[1]} == {*KEYS, "meta.team"} - {"machine"}


def test_missing_keys_are_unknown():
    """Every key of an empty session is the word, but for what no response is charged to."""
    bare = session("s", record(provider="unknown", model="unknown", time_ns=None), source="unknown", status="")
    keys = (*(key for key in KEYS if key not in ("session", "agent", "machine")), "meta.team")
    [row] = fold_usage(book_of(bare), selection(by=keys)).rows
    assert row.keys == dict.fromkeys(keys, "unknown") | dict.fromkeys(names_of(Label, "charged"), "-") | {
        "tier": "standard", "region": "-", "kind": "-",
    }  # fmt: skip
    assert tuple(row.keys) == keys


HOSTILE = [
    'quo"te',
    "quo'te",
    "a.b",
    ".",
    "x) FROM records; DROP TABLE records; --",
    "%s {status} :now_ns ?",
    "ü\n\t",
    " ",
    "$.a[0]",
]


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_metadata_keys_are_keys(key):
    """Quotes and dots are characters of a name, not of a query or a path."""
    book = book_of(session("a", record(), metadata={key: "mine", "a": {"b": "not mine"}}), session("b", record()))
    assert grouped(book, f"meta.{key}") == {"mine": 1, "unknown": 1}


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_are_values(value):
    """Whatever a log says is one row's name."""
    book = book_of(session(value, record(provider=value, model=value), metadata={"k": value}))
    [row] = fold_usage(book, selection(by=("session", "provider", "model", "meta.k"))).rows
    assert set(row.keys.values()) == {value}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (10**30, str(10**30)),
        ("", "unknown"),
        (None, "unknown"),
        (["b", "a"], '["b", "a"]'),
        ({"b": 1, "a": "ü"}, '{"a": "ü", "b": 1}'),
    ],
)
def test_metadata_of_any_type_have_a_name(value, name):
    """Texts as they are, all else as JSON."""
    assert grouped(book_of(session("s", record(), metadata={"k": value})), "meta.k") == {name: 1}


def test_two_metadata_keys_do_not_mix():
    """Each has its own function, in the order asked for."""
    book = book_of(session("s", record(), metadata={"a": "1", "b": "2"}))
    assert list(grouped(book, "meta.b", "model", "meta.a")) == ["2/m/1"]


@pytest.mark.parametrize("by", [("nothing",), ("meta.",), ("meta",), ("Model",), ("model", "r.model"), ("",)])
def test_unknown_keys_are_refused(by):
    """The error names the keys that there are."""
    with pytest.raises(InvalidQuery, match="group by source, provider, model"):
        selection(by=by)


def test_a_key_cannot_be_named_twice():
    """Its column would have two meanings."""
    with pytest.raises(InvalidQuery, match="twice"):
        selection(by=("model", "day", "model"))


# --- days


@pytest.mark.parametrize(
    ("instant", "hour", "day"),
    [
        ("2026-03-29T00:59:59", "2026-03-29T01:00+01:00", "2026-03-29"),
        ("2026-03-29T01:00:00", "2026-03-29T03:00+02:00", "2026-03-29"),
        ("2026-03-29T22:00:00", "2026-03-30T00:00+02:00", "2026-03-30"),
        ("2026-10-25T00:30:00", "2026-10-25T02:00+02:00", "2026-10-25"),
        ("2026-10-25T01:30:00", "2026-10-25T02:00+01:00", "2026-10-25"),
        ("2026-10-25T22:59:59", "2026-10-25T23:00+01:00", "2026-10-25"),
        ("2026-10-25T23:00:00", "2026-10-26T00:00+01:00", "2026-10-26"),
    ],
)
def test_hours_and_days_follow_the_clock_of_the_zone(instant, hour, day):
    """In spring an hour is missing, in autumn one comes twice and its rows stay apart."""
    book = book_of(session("s", record(time_ns=at(instant))))
    assert grouped(book, "hour", "day", zone=BERLIN) == {f"{hour}/{day}": 1}


@pytest.mark.parametrize(
    ("instant", "week", "month"),
    [
        ("2026-11-22T22:59:59", "2026-W47", "2026-11"),
        ("2026-11-22T23:00:00", "2026-W48", "2026-11"),
        ("2026-11-30T23:00:00", "2026-W49", "2026-12"),
        ("2026-12-31T23:00:00", "2026-W53", "2027-01"),
    ],
)
def test_weeks_begin_on_monday_and_belong_to_a_year(instant, week, month):
    """The first of January may be in the last week of the year before."""
    book = book_of(session("s", record(time_ns=at(instant))))
    assert grouped(book, "week", "month", zone=BERLIN) == {f"{week}/{month}": 1}


@examples(100)
@given(
    st.lists(st.integers(at("2000-01-01"), at("2040-01-01")), min_size=1, max_size=5),
    st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", "UTC"]),
)
def test_keys_cached_by_quarter_hour_are_exact(instants, name):
    """Every zone's clock changes on a quarter hour, also where it is no whole hour."""
    zone = ZoneInfo(name)
    book = book_of(session("s", *[record(time_ns=instant) for instant in instants]))
    keys = (hour_key, day_key, week_key, month_key)
    expected = {"/".join(key(instant, zone) for key in keys) for instant in instants}
    assert set(grouped(book, "hour", "day", "week", "month", zone=zone)) == expected


# --- filters


BOOK = book_of(
    session("a", record(provider="OpenAI", model="gpt-5"), project="/srv/Äpfel", status="success"),
    session("b", record(provider="anthropic", model="claude-[x]"), project="/srv/birnen", status="error"),
    session("c", record(provider="anthropic", model="gpt-5-mini"), status=None, source="fizeau"),
)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, "abc"),
        ({"provider": ["openai"]}, "a"),
        ({"provider": ["OPEN*"]}, "a"),
        ({"provider": "anthropic"}, "bc"),
        ({"provider": ["openai", "anthropic"]}, "abc"),
        ({"provider": ["anthropic"], "model": ["gpt*"]}, "c"),
        ({"model": ["gpt-?"]}, "a"),
        ({"model": ["gpt"]}, ""),
        ({"model": ["claude-[[]X]"]}, "b"),
        ({"model": ["gpt-[4-6]*"]}, "ac"),
        ({"project": ["*äPFEL"]}, "a"),
        ({"project": ["/SRV/*"]}, "ab"),
        ({"project": ["unknown"]}, "c"),
        ({"status": ["unfinished"]}, "c"),
        ({"status": ["s*", "e*"]}, "ab"),
        ({"source": ["Fizeau"]}, "c"),
        ({"model": []}, "abc"),
        ({"model": ["' OR 1 --"]}, ""),
        ({"model": ["\udcff"]}, ""),
    ],
)
def test_filters_are_globs_of_any_case(filters, found):
    """Patterns of one key are alternatives, keys add up; a single text is one pattern."""
    rows = grouped(BOOK, "session", filters=filters, now_ns=NOON + HOUR)
    assert "".join(rows) == found


def test_there_is_a_filter_for_each_word():
    """The command's options and no others."""
    assert FILTERS == ("provider", "model", "project", "status", "source")


@pytest.mark.parametrize("key", ["session", "meta.team", "Provider", ""])
def test_unknown_filters_are_refused(key):
    """At once, not after hours of scanning; the error names those that there are."""
    with pytest.raises(InvalidQuery, match="there are provider, model, project, status, source"):
        selection(filters={key: ["x"]})


# --- windows and the present


@pytest.mark.parametrize(
    ("start", "end", "inside"),
    [(NOON, None, True), (NOON + 1, None, False), (None, NOON, False), (None, NOON + 1, True), (NOON, NOON + 1, True)],
)
def test_a_window_is_half_open_to_the_nanosecond(start, end, inside):
    """The start is inside, the end is not."""
    found = grouped(book_of(session("s", record())), "session", window=UsageWindow(start_ns=start, end_ns=end))
    assert bool(found) is inside


@pytest.mark.parametrize("edge", ["0001-01-01", "1677-01-01", "2262-12-31", "9999-12-31"])
def test_edges_beyond_64_bits_are_edges(edge):
    """The calendar is wider than a 64-bit nanosecond."""
    book = book_of(session("s", record()))
    nanoseconds = (datetime.fromisoformat(edge) - datetime(1970, 1, 1)).days * 24 * HOUR
    before = grouped(book, "session", window=UsageWindow(end_ns=nanoseconds))
    after = grouped(book, "session", window=UsageWindow(start_ns=nanoseconds))
    assert (bool(before), bool(after)) == (edge > "2026", edge < "2026")


def test_what_has_no_time_is_in_no_window():
    """It is in the report of all time only."""
    book = book_of(session("s", record(time_ns=None)))
    assert grouped(book, "session") == {"s": 1}
    assert grouped(book, "session", window=UsageWindow(start_ns=0)) == {}


@pytest.mark.parametrize(
    ("last", "now", "status"),
    [
        (NOON, NOON + 10 * MINUTE - 1, "running"),
        (NOON, NOON + 10 * MINUTE, "unfinished"),
        (NOON + HOUR, NOON, "running"),
        (None, NOON, "unfinished"),
        (NOON, 10**30, "unfinished"),
        (NOON, -(10**30), "running"),
    ],
)
def test_a_session_without_an_end_runs_while_it_is_young(last, now, status):
    """Ten minutes after its last event it is unfinished, however odd the present is."""
    book = book_of(session("s", record(), status=None, last_ns=last))
    assert grouped(book, "status", now_ns=now) == {status: 1}


def test_sessions_that_do_not_count_are_left_out():
    """A rejected pin is no usage."""
    assert grouped(book_of(session("s", record(), counted=False)), "session") == {}
