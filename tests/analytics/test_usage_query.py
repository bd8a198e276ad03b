"""What a usage report is asked: which days, in which order, of which paths; wrong calls are refused unread."""

import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.usage_row import COLUMNS
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.errors import InvalidQuery, InvalidWindow
from tests.analytics.week import NOW, fold, usage, week_report
from tests.ledger.entries import record, session
from tests.sources.logs import answered, start, write_log

NAMES = names_of(COLUMNS)

# --- which days


def test_days_are_those_of_the_zone():
    """23:30 in Berlin and 22:30 UTC are one instant: the day is the reader's."""
    options = {"by": ("day",), "filters": {"project": "*/shop"}}
    days = [[r.keys["day"] for r in week_report(tz=tz, **options).rows] for tz in ("UTC", "Europe/Berlin")]
    assert days == [["2026-11-18", "2026-11-19"], ["2026-11-19"]]
    assert [r.keys for r in week_report(tz=ZoneInfo("Europe/Berlin"), **options).rows] == [{"day": "2026-11-19"}]


def test_a_window_in_words_is_of_the_zone():
    """`2026-11-19` in Berlin begins an hour before midnight UTC."""
    options = {"filters": {"project": "*/shop"}, "by": ("session",)}
    found = [week_report(window="2026-11-18", tz=tz, **options).totals.requests for tz in ("UTC", "Europe/Berlin")]
    assert found == [1, 0]


def test_windows_are_values_or_texts():
    """A parsed window and its text give one report; `until` is the command's."""
    parsed = parse_usage_window("2026-11-19..2026-11-20", now=NOW)
    texts = [week_report(window="2026-11-19..2026-11-20"), week_report(window="2026-11-19", until="2026-11-20")]
    assert [r.to_dict() for r in texts] == [week_report(window=parsed).to_dict()] * 2


# --- order


def ordered(sort, **options):
    return [f"{r.provider}/{r.model}" for r in week_report(sort=sort, **options).rows]


BY_KEY = ["acme/large", "acme/small", "codex/house-model", "llama-box/qwen-9b", "stranger/nova"]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (None, [0, 1, 4, 3, 2]),
        ("cost", [0, 1, 4, 3, 2]),
        ("-OK", "-success_rate"),
        ("provider", [0, 1, 2, 3, 4]),
        ("-provider", [4, 3, 2, 0, 1]),
        ("model", [2, 0, 4, 3, 1]),
        ("sessions", [0, 1, 2, 3, 4]),
        ("-sessions", [2, 3, 4, 1, 0]),
        ("input_tokens", [2, 0, 1, 3, 4]),
        ("-input_tokens", [4, 3, 1, 0, 2]),
        ("cost_usd", [0, 1, 4, 3, 2]),
        ("-cost_usd", [2, 3, 4, 1, 0]),
    ],
)
def test_rows_are_sorted_by_a_column_or_a_key(sort, order):
    """Columns largest first, keys smallest first, `-` turns it round; equal rows keep the order of their keys."""
    assert ordered(sort) == (ordered(order) if isinstance(order, str) else [BY_KEY[index] for index in order])


@pytest.mark.parametrize("name", NAMES)
def test_every_column_can_be_sorted_by(name):
    """Unknown values are the smallest."""
    values = [getattr(row, name) for row in week_report(sort=name).rows]
    numbers = [float("-inf") if value is None else value for value in values]
    assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize(("limit", "kept", "hidden"), [(None, 5, 0), (9, 5, 0), (2, 2, 3), (0, 0, 5), (-1, 0, 5)])
def test_a_limit_hides_rows_and_says_so(limit, kept, hidden):
    """The totals are over all rows."""
    report = week_report(limit=limit, sort="sessions")
    assert (len(report.rows), report.hidden_rows) == (kept, hidden)
    assert report.totals == week_report().totals


def test_rows_are_ordered_whatever_the_locale(monkeypatch):
    """The order of rows has nothing to do with how this system spells file names."""
    monkeypatch.setattr("os.fsencode", lambda name: name.encode("ascii"))
    report = fold(session("a", record(model="模型")), session("b", record(model="a")), by=("model",))
    assert [row.model for row in report.rows] == ["a", "模型"]


# --- what is asked wrongly, and what is not there


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": "sometime"}, InvalidWindow),
        ({"until": "later"}, InvalidWindow),
        ({"tz": "Mars/Olympus"}, InvalidWindow),
        ({"now": datetime(2026, 11, 21)}, InvalidWindow),
        ({"by": ["colour"]}, InvalidQuery),
        ({"by": ["model", "model"]}, InvalidQuery),
        ({"sort": "colour"}, InvalidQuery),
        ({"sort": "day"}, InvalidQuery),
        ({"sort": "--sessions"}, InvalidQuery),
        ({"filters": {"colour": ["red"]}}, InvalidQuery),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_read(options, error):
    """Hours of scanning must not end in a typing error."""
    steps = []
    with pytest.raises(error):
        week_report(progress=lambda *step: steps.append(step), **options)
    assert steps == []


def missing(tmp_path):
    return tmp_path / "nothing"


def empty(tmp_path):
    return tmp_path


@pytest.mark.parametrize("paths", [missing, empty, lambda _: [], lambda _: "", lambda _: "\0"])
def test_where_nothing_is_the_report_is_empty(tmp_path, paths):
    """No rows, zero totals, no money, and a document all the same."""
    report = usage(paths(tmp_path))
    assert (report.rows, report.totals.sessions, report.totals.cost_usd) == ((), 0, None)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["rows"] == []


def test_paths_may_be_given_in_any_way(tmp_path, monkeypatch):
    """A text, a path, several of them, or the default folder; nothing is read twice."""
    path = write_log(tmp_path / "s.jsonl", start(), answered(usage={"input": 5}))
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # the user's own may have logs
    for paths in (path, Path(path), [path, Path(path)], [tmp_path, path, "/nonexistent"], None):
        assert usage(paths).totals.input_tokens == 5


def test_group_keys_may_be_said_as_people_do():
    """In the plural, in capitals, `date` for a day; a key of metadata is taken as it is."""
    assert week_report(by=["days", "Model"]) == week_report(by=["day", "model"])
    assert week_report(by=["date"]) == week_report(by=["day"])
    assert week_report(by=["meta.Keys"]).group_by == ("meta.Keys",)


def test_days_come_oldest_first_and_the_costliest_of_a_day_before_the_others():
    """The usual order of time keys and of all others."""
    rows = week_report(by=["day", "model"]).rows
    days = [row.keys["day"] for row in rows]
    assert days == sorted(days)
    for day in set(days):
        costs = [-(row.cost_usd or 0) for row in rows if row.keys["day"] == day]
        assert costs == sorted(costs)


def test_a_period_that_the_window_cuts_is_named():
    """Of the keys that are shown, and only where the window begins within one that has a row."""
    cut = "Thu 19 Nov is only a part of the day: the window begins on 19 Nov at 10:00"
    assert cut in list(week_report(by=["day"], window="2026-11-19T10:00:00Z..").footnotes())
    for options in (
        {"by": ["day"], "window": "2026-11-19.."}, {"by": ["model"], "window": "2026-11-19T10:00:00Z.."}, {"by": ["day"]},
        {"by": ["day"], "window": "2026-11-17T10:00:00Z.."},
    ):  # fmt: skip
        assert not [line for line in week_report(**options).footnotes() if "is only a part" in line]
