"""The survey: which agents have logs here, how long they stay, and what cannot be read — each said apart."""

import os
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sessionlog.analytics.survey import survey_sources
from sessionlog.errors import InvalidQuery, LogNotReadable
from sessionlog.events.times import parse_time
from sessionlog.sources import registry
from sessionlog.sources.protocol import LogScan, Retention
from tests.ledger.entries import record, session
from tests.sources.logs import answered, start, write_log
from tests.sources.plugin import scribe
from tests.sources.plugin.scrolls import POINT, installed, row, story, write_scroll

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path):
    """Two scrolls of Scribe, which is installed."""
    write_scroll(tmp_path / ".scribe" / "one.scroll", *story(answers=2))
    write_scroll(tmp_path / ".scribe" / "two.scroll", *story(answers=3, name="q"))
    with installed(POINT):
        yield tmp_path


def survey(home, *sources, **options):
    return survey_sources(
        env={"HOME": str(home), "SESSIONLOG_DIR": str(home / "ours")}, filters={"source": sources}, now=NOW, **options
    )


def of(home, source="scribe"):
    [found] = survey(home, source).rows
    return found


def aged(path, days):
    """Last written so many days before now."""
    moment = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (moment, moment))


def test_logs_are_counted_with_what_is_in_them(home):
    """Files and bytes as on disk; sessions and requests as a report counts them."""
    found = of(home)
    paths = list((home / ".scribe").iterdir())
    assert (found.files, found.bytes) == (2, sum(path.stat().st_size for path in paths))
    assert (found.sessions, found.requests, found.title) == (2, 5, "Scribe")
    assert (found.oldest_ns, found.newest_ns) == (
        parse_time("2026-11-20T10:00:02Z"), parse_time("2026-11-20T10:02:02Z"),
    )  # fmt: skip
    assert found.places == ((f"{home}/.scribe", True),)
    assert (found.problem_count, found.problems) == (0, ())


def test_copies_count_once(home):
    """As in every report."""
    write_scroll(home / ".scribe" / "copy.scroll", *story(answers=2))
    assert (of(home).files, of(home).requests) == (3, 5)


def test_what_another_session_tells_better_does_not_count(home):
    """As in every report, too."""

    def scan(path, resume):
        name = Path(path).stem
        told_by = "scribe:two" if name == "one" else ""
        return LogScan(sessions=(session(name, record(superseded_by=told_by), source="scribe", path=path),))

    with patch.object(scribe, "SOURCE", replace(scribe.SOURCE, scan=scan)), installed(POINT):
        assert (of(home).files, of(home).requests) == (2, 1)


# --- no logs, and logs that cannot be read


def test_no_place_and_an_empty_place_are_told_apart(home):
    """Neither is a problem."""
    for name in ("one", "two"):
        (home / ".scribe" / f"{name}.scroll").unlink()
    empty = of(home)
    (home / ".scribe").rmdir()
    missing = of(home)
    assert (empty.files, empty.places, empty.problem_count) == (0, ((f"{home}/.scribe", True),), 0)
    assert (missing.files, missing.places, missing.problem_count) == (0, ((f"{home}/.scribe", False),), 0)
    assert (missing.sessions, missing.requests, missing.oldest_ns) == (0, 0, None)


def test_a_place_that_cannot_be_looked_at_is_named(home):
    """No log was found there, and it says why."""
    (home / ".scribe").rename(home / "kept")
    (home / ".scribe").symlink_to(home / ".scribe")
    found = of(home)
    assert (found.files, found.problem_count) == (0, 1)
    assert str(found.problems[0]).startswith(f"{home}/.scribe unreadable ")


def test_a_log_that_cannot_be_opened_is_counted_and_named(home):
    """The others' requests are there."""

    def refuse(path, resume):
        if path.endswith("one.scroll"):
            raise LogNotReadable(f"{path}: database is locked")
        return known.scan(path, resume)

    known = scribe.SOURCE
    with patch.object(scribe, "SOURCE", replace(known, scan=refuse)), installed(POINT):
        found = of(home)
    assert (found.files, found.requests, found.problem_count) == (2, 3, 1)
    assert str(found.problems[0]) == f"{home}/.scribe/one.scroll unreadable database is locked"


def test_damage_is_counted_whatever_is_named(home):
    """Of each log the first hundred, of all the first hundred."""
    write_scroll(home / ".scribe" / "bad.scroll", *[b"broken\n"] * 150)
    found = of(home)
    assert (found.problem_count, len(found.problems)) == (150, 100)


# --- how long logs are kept


@pytest.mark.parametrize(
    ("days", "ages", "due"),
    [
        (10, (2, 1), 0),
        (10, (2.9, 1), 0),
        (10, (3.1, 1), 1),
        (10, (3.1, 400), 2),
        (None, (400, 400), 0),
        (5, (0, 0), 2),
        (0, (0, 0), 2),
    ],
)
def test_logs_that_go_within_a_week_are_counted(home, days, ages, due):
    """By the time of their last change; an agent that keeps its logs deletes none."""
    for name, age in zip(("one", "two"), ages, strict=True):
        aged(home / ".scribe" / f"{name}.scroll", age)
    kept = replace(scribe.SOURCE, retention=lambda _: Retention(days=days, setting="ink.ini"))
    with patch.object(scribe, "SOURCE", kept), installed(POINT):
        found = of(home)
    assert (found.due, found.kept_days, found.kept_by) == (due, days, "ink.ini")


def test_nothing_is_warned_of_where_nothing_is_known(home):
    """Of our own logs nobody deletes any."""
    write_log(home / "ours" / "s.jsonl", start(), answered())
    [native, _] = survey(home, "native").rows
    assert (native.files, native.due, native.kept_days, native.kept_by) == (1, 0, None, None)


# --- all agents


def test_those_with_logs_come_first(home):
    """The others in the order of the registry, so that each can be found."""
    ids = [found.source for found in survey(home).rows]
    assert ids[0] == "scribe"
    assert ids[1:] == list(registry.OURS)


def test_a_pattern_that_fits_nothing_raises(home):
    """As in every report."""
    with pytest.raises(InvalidQuery, match="no source 'quill'"):
        survey(home, "quill")


def test_a_broken_plug_in_is_named_and_breaks_nothing(home):
    """The sources of others are there."""
    with installed(POINT, EntryPoint("bad", "no_such_package_at_all:SOURCE", registry.GROUP)):
        report = survey(home)
    assert report.rows[0].requests == 5
    [problem] = report.to_dict()["problems"]["first"]
    assert problem.startswith("plug-in bad (no_such_package_at_all:SOURCE) unreadable ModuleNotFoundError")


def test_progress_is_over_all_logs(home):
    """Once for each, up to all of them."""
    write_log(home / "ours" / "s.jsonl", start(), answered())
    steps = []
    survey(home, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_the_document(home):
    """Names, units and nulls as they will stay."""
    for path in (home / ".scribe").iterdir():
        aged(path, 1)
    write_scroll(home / ".scribe" / "two.scroll", row("answer", "10:00:00", id="r", **{"in": -1}))
    document = survey(home, "scribe").to_dict()
    assert document["schema"] == "sessionlog.sources/2"
    assert document["problems"] == {"count": 0, "first": []}
    [found] = document["rows"]
    size = sum(path.stat().st_size for path in Path(home / ".scribe").iterdir())
    assert found == {
        "source": "scribe", "title": "Scribe", "places": [f"{home}/.scribe"], "found_places": [f"{home}/.scribe"],
        "files": 2, "bytes": size, "sessions": 2, "requests": 3, "oldest": "2026-11-20T10:00:00.000000Z",
        "newest": "2026-11-20T10:01:02.000000Z", "kept_days": 10, "kept_by": "burn_after in ~/.scribe/ink.ini",
        "caveat": None, "due_within_7_days": 1,
        "problem_count": 1, "problems": [found["problems"][0]],
    }  # fmt: skip
    assert "bad_number input: a negative count" in found["problems"][0]
