"""check for every agent: what a report skips and what a replay skips is named, and foreign logs stay as they are."""

import hashlib
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.sources.check import check_foreign, check_sources
from sessionlog.sources.protocol import Log
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import load_source
from tests.sources.logs import answered, start, write_log
from tests.sources.plugin.scribe import SOURCE
from tests.sources.plugin.scrolls import POINT, installed, row, story, write_scroll


@pytest.fixture(autouse=True)
def plug_in():
    """Scribe is installed."""
    with installed(POINT):
        yield


def checked(path, **changes):
    return check_foreign(Log(source=replace(SOURCE, **changes), path=path))


def test_a_sound_log_has_events_and_nothing_else(tmp_path):
    """They are counted as a replay would show them."""
    found = checked(write_scroll(tmp_path / "s.scroll", *story(answers=2)))
    assert (found.events, found.damaged, found.damage, found.notes, found.counts) == (8, 0, (), (), {})


def test_damage_is_named_once_though_it_is_met_twice(tmp_path):
    """The scan and the reading meet the same bytes."""
    found = checked(write_scroll(tmp_path / "s.scroll", *story(), b"broken\n", b'{"scribe":"as'))
    assert [(p.line, p.kind) for p in found.damage] == [(8, "not_json"), (9, "torn_tail")]
    assert (found.damaged, found.counts) == (2, {"not_json": 1, "torn_tail": 1})


def test_what_only_a_report_skips_is_damage_too(tmp_path):
    """Wrong numbers are read as words by a replay."""
    path = write_scroll(tmp_path / "s.scroll", row("answer", "10:00:00", id="r", **{"in": -5, "out": 1}))
    assert [p.kind for p in checked(path).damage] == ["bad_number"]


def test_our_own_logs_can_be_read_as_those_of_others(tmp_path):
    """Their events are counted as they are, and a number that a report skips is damage."""
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-20T10:00:00Z","data":{"v":1}}\n'
        '{"session_id":"s","seq":1,"type":"llm.response","ts":"2026-11-20T10:00:01Z","data":{"usage":{"input":-5}}}\n'
    )
    found = check_foreign(Log(source=load_source("native"), path=str(path)))
    assert (found.events, found.counts) == (2, {"bad_number": 1})


def test_notes_are_no_damage(tmp_path):
    """A line in the writing is news."""
    path = write_scroll(tmp_path / "s.scroll", *story(), b'{"scribe":"as')
    os.utime(path)
    found = checked(path)
    assert (found.damaged, [p.kind for p in found.notes]) == (0, ["torn_tail"])


def test_all_sessions_of_a_log_are_read():
    """A log may hold many."""
    path, source = "testdata/sources/otel/claude-code-logs/home/logs.jsonl", load_source("otel")
    sessions = [list(source.read(path, name)) for name in source.name_sessions(path)]
    assert len(sessions) == 2
    assert check_foreign(Log(source=source, path=path)).events == sum(map(len, sessions))


def test_more_damage_than_is_kept_is_still_counted(tmp_path):
    """A scan names only the first hundred."""
    one = Problem(path="s", line=1, offset=0, kind="not_json", detail="?")
    path = write_scroll(tmp_path / "s.scroll", *story())
    assert checked(path, check=lambda _: iter([Problems(count=5000, first=(one,))])).damaged == 5000
    found = checked(write_scroll(tmp_path / "t.scroll", *[b"broken\n"] * 1500))
    assert (found.damaged, len(found.damage), found.counts) == (1500, 1000, {"not_json": 1500})


def test_a_log_that_cannot_be_opened_is_one_finding(tmp_path):
    """Its path is not said twice."""

    def refuse(path):
        raise LogNotReadable(f"{path}: database is locked")

    [problem] = checked(write_scroll(tmp_path / "s.scroll"), check=refuse).damage
    assert str(problem) == f"{tmp_path}/s.scroll unreadable database is locked"


# --- many logs


@pytest.fixture
def home(tmp_path):
    """A damaged scroll in its place, a native log, and things that are no logs."""
    folder = tmp_path / "home"
    write_scroll(folder / ".scribe" / "one.scroll", *story(), b"broken\n")
    write_log(folder / "logs" / "ours.jsonl", start(), answered())
    (folder / "logs" / "other.jsonl").write_bytes(b'{"who": "knows"}\n')
    (folder / "logs" / "package.json").write_bytes(b'{"name": "x"}')
    return folder


def env(home):
    return {"HOME": str(home), "SESSIONLOG_DIR": str(home / "logs")}


def told(home, paths):
    return [
        (source, Path(found.path).name, found.damaged, [note.kind for note in found.notes if note.kind != "wide_mode"])
        for source, found in check_sources(paths, env(home))
    ]


def test_every_log_of_a_folder_is_checked_by_its_source(home):
    """A .jsonl file that nobody knows is a note, other files are nothing."""
    assert told(home, [str(home)]) == [
        ("scribe", "one.scroll", 1, []), ("", "other.jsonl", 0, ["unknown_format"]), ("native", "ours.jsonl", 0, []),
    ]  # fmt: skip


def test_without_a_path_all_agents_are_checked(home):
    """In their places, where every .jsonl of ours is a log."""
    assert [one[:2] for one in told(home, None)] == [
        ("native", "other.jsonl"), ("native", "ours.jsonl"), ("scribe", "one.scroll"),
    ]  # fmt: skip


def test_a_folder_that_cannot_be_listed_is_damage(home):
    """It is nobody's, and named."""
    (home / "loop").symlink_to(home / "loop")
    environment = {**env(home), "SCRIBE_HOME": str(home / "loop" / "x")}
    source, found = list(check_sources(None, environment))[-1]
    assert (source, found.damaged, found.counts) == ("", 1, {"unreadable": 1})


def test_checking_changes_nothing(home):
    """Neither bytes nor times, and no file more."""

    def state():
        return {
            str(p): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest())
            for p in sorted(home.rglob("*"))
            if p.is_file()
        }

    before = state()
    assert len(told(home, [str(home)])) == 3
    assert state() == before
