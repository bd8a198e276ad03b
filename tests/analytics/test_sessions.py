"""The list of sessions: one each, newest first, with the sums that usage has."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.session_tree import key_of
from sessionlog.analytics.sessions import COLUMNS, list_known_sessions, list_sessions
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import InvalidQuery, InvalidWindow
from tests.analytics.week import NOW, week_report, week_sessions
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.sources.logs import answered, ended, event, start, write_log

NAMES = names_of(COLUMNS)

NEWEST_FIRST = [
    "still-running", "rejected-pin", "partly-unknown", "killed", "failed-call-and-a-damaged-line", "free-and-local",
    "totals-only", "cost-only-in-the-end", "two-models-one-session", "crosses-midnight",
]  # fmt: skip
KEYS = [
    "source", "session", "path", "start", "last", "status", "project", "harness", "route", "models", "duration_ms",
    "prompt", "error", "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "total_tokens", "known_cost_usd", "estimated_cost_usd", "cost_usd",
    "cost_is_partial", "counted", "archived", "parent",
]  # fmt: skip


def listed(paths, **options):
    return list_sessions(paths, **({"prices": PRICES, "now": NOW} | options))


def named(**options):
    return {s.session: s for s in week_sessions(**options).rows}


def test_sessions_stand_newest_first():
    """By their start; one that is not counted in usage is listed all the same."""
    assert [s.session for s in week_sessions().rows] == NEWEST_FIRST


def test_sessions_without_a_time_come_last(tmp_path):
    """Nobody knows when they were."""
    for name, clock in (("a", ""), ("b", "10:00:00"), ("c", "11:00:00")):
        write_log(tmp_path / f"{name}.jsonl", start(clock))
    assert [s.session for s in listed(tmp_path).rows] == ["c", "b", "a"]


def test_one_session_in_full():
    """Every fact of its log is in its entry."""
    one = named()["crosses-midnight"].to_dict()
    assert one.pop("path").endswith("testdata/usage/week/crosses-midnight.jsonl")
    assert one == {
        "source": "native",
        "session": "crosses-midnight",
        "start": "2026-11-18T23:58:00.000000Z",
        "last": "2026-11-19T00:01:30.000000Z",
        "status": "success",
        "project": "/home/ada/shop",
        "harness": "unknown",
        "route": "unknown",
        "models": ["large"],
        "duration_ms": 210_000,
        "prompt": "Move the basket to the new store",
        "error": "",
        "requests": 2,
        "failed_requests": 0,
        "input_tokens": 1600,
        "output_tokens": 1200,
        "cache_read_tokens": 9200,
        "cache_write_tokens": 8000,
        "reasoning_tokens": 350,
        "total_tokens": 20_000,
        "known_cost_usd": 0.073,
        "estimated_cost_usd": None,
        "cost_usd": 0.073,
        "cost_is_partial": False,
        "counted": True,
        "archived": False,
        "parent": "",
    }


def test_the_document_has_the_promised_keys_in_order():
    """`sessionlog.sessions/2`, as other programs rely on it."""
    document = week_sessions(window="2026-11-20..", limit=2).to_dict()
    assert list(document) == [
        "schema", "window", "group_by", "rows", "totals", "provenance", "hidden_rows", "archived_sessions", "problems",
    ]  # fmt: skip
    assert document["schema"] == "sessionlog.sessions/2"
    assert document["window"] == {"start": "2026-11-20T00:00:00Z", "end": None}
    assert [list(one) for one in document["rows"]] == [KEYS, KEYS]
    assert list(NAMES) == KEYS
    assert (document["hidden_rows"], document["problems"]["count"]) == (4, 1)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_statuses_are_those_of_usage():
    """What the end says, else running or unfinished; an end without a word is unknown."""
    found = {s.session: s.status for s in week_sessions().rows}
    assert (found["still-running"], found["killed"], found["totals-only"]) == (
        "running",
        "unfinished",
        "iteration_limit",
    )


def test_an_end_without_a_word_is_unknown(tmp_path):
    """The session did end."""
    write_log(tmp_path / "s.jsonl", start(), ended(status=None))
    assert listed(tmp_path).rows[0].status == "unknown"


def test_models_stand_by_their_output():
    """The one that wrote the most is the session's."""
    assert named()["two-models-one-session"].models == ("large", "small")


def test_known_and_estimated_cost_are_kept_apart():
    """A part without a price is told, and hides nothing."""
    found = named()
    known = found["partly-unknown"]
    assert (known.known_nano, known.estimated_nano, known.cost_nano) == (4_000_000, None, 4_000_000)
    assert known.cost_is_partial
    guessed = found["two-models-one-session"]
    assert (guessed.known_nano, guessed.cost_is_partial) == (None, False)
    assert guessed.cost_nano == guessed.estimated_nano > 0
    nothing = found["totals-only"]
    assert (nothing.cost_nano, nothing.cost_is_partial) == (None, True)


def test_what_used_nothing_has_no_unknown_cost():
    """A rejected pin costs nothing that could be unknown."""
    pin = named()["rejected-pin"]
    assert (pin.cost_nano, pin.cost_is_partial, pin.counted, pin.requests) == (None, False, False, 0)
    assert pin.error == "unknown model"


@pytest.mark.parametrize("window", [None, "2026-11-18", "2026-11-19", "2026-11-20.."])
def test_the_sums_are_those_of_usage(window):
    """Of the same window: listed or reported, a session has used the same."""
    rows = {r.keys["session"]: r for r in week_report(window=window, by=("session",)).rows}
    sessions = {s.session: s for s in week_sessions(window=window).rows if s.counted}
    assert sessions.keys() == rows.keys()
    for name, one in sessions.items():
        for column in (
            "requests",
            "failed_requests",
            "total_tokens",
            "reasoning_tokens",
            "known_nano",
            "estimated_nano",
        ):
            assert getattr(one, column) == getattr(rows[name], column)
        assert one.duration_ms == rows[name].duration_ms


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"status": ["run*"]}, {"still-running"}),
        ({"status": "UNFINISHED"}, {"killed", "rejected-pin"}),
        ({"provider": ["llama*", "codex"]}, {"free-and-local", "totals-only"}),
        ({"project": ["*/API"]}, {"cost-only-in-the-end", "failed-call-and-a-damaged-line"}),
        ({"model": ["huge"]}, {"rejected-pin"}),
        ({"source": ["fizeau"]}, {"totals-only"}),
    ],
)
def test_filters_are_those_of_usage(filters, found):
    """The same globs, whatever the case."""
    assert named(filters=filters).keys() == found


def test_a_filter_on_one_model_leaves_that_models_part():
    """Numbers are those of the responses that were asked for."""
    one = named(filters={"model": "small"})["two-models-one-session"]
    assert (one.models, one.requests, one.total_tokens) == (("small",), 1, 50_100)


@pytest.mark.parametrize(("limit", "kept", "hidden"), [(None, 10, 0), (3, 3, 7), (0, 0, 10), (-2, 0, 10)])
def test_a_limit_keeps_the_newest(limit, kept, hidden):
    """And says how many more there are."""
    found = week_sessions(limit=limit)
    assert [s.session for s in found.rows] == NEWEST_FIRST[:kept]
    assert found.hidden_rows == hidden


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": "sometime"}, InvalidWindow),
        ({"tz": "Mars/Olympus"}, InvalidWindow),
        ({"filters": {"colour": ["red"]}}, InvalidQuery),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_read(options, error):
    """Nothing is scanned for a typing error."""
    steps = []
    with pytest.raises(error):
        week_sessions(progress=lambda *step: steps.append(step), **options)
    assert steps == []


def test_where_nothing_is_the_list_is_empty(tmp_path):
    """A folder that is missing or empty is no error here."""
    for paths in (tmp_path, tmp_path / "nothing", []):
        assert listed(paths).to_dict()["rows"] == []


def test_the_list_says_what_it_skipped(tmp_path):
    """Damage is counted also where no session came of it."""
    path = write_log(tmp_path / "s.jsonl", b"garbage\n")
    assert listed(tmp_path).to_dict()["problems"] == {"count": 1, "first": [f"{path}:1 not_json 7 bytes are not JSON"]}


def test_file_names_may_be_any_bytes(tmp_path):
    """A name that is no text is listed, and its session counted."""
    write_log(str(tmp_path).encode() + b"/odd\xff.jsonl", start(), answered(usage={"input": 5}))
    [one] = listed(tmp_path).rows
    assert (one.session, one.total_tokens) == ("odd\\udcff", 5)
    assert aggregate_usage(tmp_path, prices=PRICES, now=NOW, by=("session",)).totals.input_tokens == 5


def test_what_is_only_listed(tmp_path):
    """A null start and a log without any session event are listed without use."""
    write_log(tmp_path / "null.jsonl", event("session.start", "10:00:00", None))
    write_log(tmp_path / "other.jsonl", event("tool.call", "10:00:00", {}))
    found = listed(tmp_path)
    assert [(s.counted, s.requests) for s in found.rows] == [(False, 0)] * 2
    assert aggregate_usage(tmp_path, prices=PRICES, now=NOW).totals.sessions == 0


def test_what_a_limit_leaves_out_is_at_hand_for_the_last_day():
    """A day's sum needs the sessions that are not shown."""
    found, whole = week_sessions(limit=3), week_sessions()
    assert found.rows == whole.rows[:3]
    assert found.left_out
    assert found.left_out == whole.rows[3 : 3 + len(found.left_out)]
    last_day = [row for row in whole.rows[3:] if row.start[:10] == found.rows[-1].start[:10]]
    assert set(map(key_of, last_day)) <= set(map(key_of, found.left_out))
    assert found.hidden_rows == len(whole.rows) - 3
    assert (found.ids, found.totals, found.provenance) == (whole.ids, whole.totals, whole.provenance)


def test_a_fork_names_its_parent():
    """As its log tells it, by the id of the session that it came from."""
    folder = Path(__file__).parents[2] / "testdata" / "sources" / "codex" / "fork-of-a-fork"
    first, second, third = reversed(listed(folder).rows)
    assert (first.parent, second.parent, third.parent) == ("", first.session, second.session)
    assert [one["parent"] for one in listed(folder).to_dict()["rows"]] == [third.parent, second.parent, ""]


def test_known_sessions_are_those_of_the_ledger_as_it_is(tmp_path):
    """They come before any look at the logs, with the answer whether anything has changed; a bad ledger has none."""
    home = LittleHome(tmp_path)
    home.append("s/n1.jsonl", [("answer", 1, 1)])
    shown = []

    def known():
        shown.clear()
        return list_known_sessions(home.ledger, home.env, shown.append, window=None, filters={}, tz="UTC")

    def whole():
        return list_sessions(env=home.env, ledger=home.ledger).rows

    assert (known(), shown) == (False, []), "there is no ledger yet"
    first = whole()
    assert known()
    assert shown[0].rows == first
    home.append("s/n1.jsonl", [("answer", 2, 2)])
    assert not known()
    assert shown[0].rows == first
    assert whole() != first
    with closing(sqlite3.connect(home.ledger)) as connection:
        connection.execute("DROP TABLE quarter_hours")
    assert (known(), shown) == (False, []), "it is damaged"
