"""check_source: a source that keeps its promises passes, and each broken promise fails by name."""

import hashlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.sources.native import SOURCE as NATIVE
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.testing import check_source
from tests.sources.logs import answered, asked, ended, start, write_log
from tests.sources.plugin.scribe import SOURCE
from tests.sources.plugin.scrolls import row, story, write_scroll


@pytest.fixture(autouse=True)
def _copies_in_memory(monkeypatch):
    """Where there is any: a log is written thousands of times."""
    if os.access("/dev/shm", os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")


@pytest.fixture
def logs(tmp_path):
    """Two scrolls, one of them with an open call and without an end; and something else."""
    folder = tmp_path / "logs"
    write_scroll(folder / "one.scroll", *story(answers=3))
    write_scroll(folder / "deep" / "two.scroll", *story(answers=1, name="q", bye=None)[:-1])
    (folder / "ink.ini").write_text("burn_after = 10")
    return folder


def check(logs, **changes):
    return check_source(replace(SOURCE, **changes), logs, cuts=40, damages=20)


def fails(logs, pattern, **changes):
    with pytest.raises(AssertionError, match=pattern):
        check(logs, **changes)


def rescanned(path, resume, /, **changes):
    """The scan, with something wrong in what it gives."""
    return replace(SOURCE.scan(path, resume), **changes)


def test_a_source_that_keeps_its_promises_passes(logs):
    """And says how many logs it was tried on."""
    assert check(logs) == 2


def test_the_logs_stay_as_they_are(logs):
    """It works on a copy, whatever it does to that."""

    def state():
        return {p: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest()) for p in logs.rglob("*.*")}

    before = state()
    check(logs)
    assert state() == before


def test_a_source_may_read_from_the_start_each_time(logs):
    """To go on is no duty; nor is it to read what cannot be opened."""
    assert check(logs, scan=lambda path, _: rescanned(path, None, resume=None)) == 2

    def choosy(path, resume):
        if b"\n" not in Path(path).read_bytes():
            raise LogNotReadable(f"{path}: not one line")
        return SOURCE.scan(path, resume)

    assert check(logs, scan=choosy) == 2


# --- broken promises


def test_a_folder_in_which_nothing_is_listed_is_no_success(logs):
    """A test that tried nothing would pass for ever."""
    fails(logs, "none of its files is listed as a log: deep/two.scroll, ink.ini, one.scroll", list_logs=lambda _: ())


def test_a_source_that_finds_nothing_is_no_success(logs):
    """Nothing agrees with nothing; the message says where it looked."""
    nothing = {"scan": lambda *_: LogScan(), "read": lambda *_: iter(())}
    fails(logs, "no session and no damage is found in deep/two.scroll, one.scroll", **nothing)


def test_our_own_logs_pass(tmp_path):
    """An end repeats what its run used, or reports more; a session may be continued, and have totals only."""
    run = [asked(model="m", messages=[]), answered(usage={"input": 5}), answered(usage={"output": 2}, cost_usd=0.5)]
    end = ended(tokens={"input": 5, "output": 2}, cost_usd=0.5)
    more = ended(tokens={"input": 90, "output": 1}, cost_usd=3)
    write_log(tmp_path / "one.jsonl", start(), *run, end, *run, more, more, *run)
    write_log(tmp_path / "two.jsonl", start(), more)
    assert check_source(NATIVE, tmp_path, cuts=40, damages=20) == 2


def test_a_folder_that_cannot_be_listed(logs):
    """The problem is the message."""
    one = Problem(path="/x", line=0, offset=0, kind="unreadable", detail="no")
    fails(logs, "/x unreadable no: not listed", list_logs=lambda _: (one,))


def test_a_listed_log_must_be_recognised(logs):
    """Else a PATH to it would be nobody's."""
    fails(logs, "listed, but not recognised", recognises=lambda path, head: "deep" not in path)


def test_scan_and_events_must_agree_on_requests(logs):
    """A response that is not told."""

    def read(path, session_id):
        told = False
        for item in SOURCE.read(path, session_id):
            if told or isinstance(item, Problem) or item.type != "llm.response":
                yield item
            told = told or (not isinstance(item, Problem) and item.type == "llm.response")

    fails(logs, r"scan and events differ: .*'requests': \(\d, \d\)", read=read)


def test_scan_and_events_must_agree_on_every_class(logs):
    """The same sum in other classes is another number."""

    def scan(path, resume):
        found = SOURCE.scan(path, resume)
        for session in found.sessions:
            for record in session.records:
                usage = record.usage
                record.usage = replace(usage, input=usage.input - 1, cache_read=1)
        return found

    fails(logs, r"scan and events differ: .*'cache_read': \(\d, 0\)", scan=scan)


def test_going_on_must_not_count_twice(logs):
    """A source that forgets to skip what it has read; keys would hide it, so there are none."""

    def scan(path, resume):
        found = SOURCE.scan(path, None)
        for session in found.sessions:
            for record in session.records:
                record.key = ""
        return replace(found, resume=resume or found.resume)

    fails(logs, "and resumed, the records differ", scan=scan)


def test_going_on_must_not_lose_anything(logs):
    """Neither records, nor facts, nor calls that were open."""
    blank = SOURCE.scan(write_scroll(logs / "blank.scroll"), None).resume
    (logs / "blank.scroll").unlink()

    def forgetful(path, resume):
        return SOURCE.scan(path, resume and replace(resume, state=blank.state))

    fails(logs, "and resumed, the (records|sessions|tools) differ", scan=forgetful)
    fails(logs, "and resumed, the records differ", scan=lambda p, r: SOURCE.scan(p, r) if r is None else LogScan())


def test_going_on_must_not_forget_turns(logs):
    """They are all the turns so far, not those of what was appended."""

    def scan(path, resume):
        found = SOURCE.scan(path, resume)
        turns = len(found.sessions[0].records) if found.sessions else 0
        return replace(found, sessions=tuple(replace(session, turns=turns) for session in found.sessions))

    fails(logs, "and resumed, the sessions differ", scan=scan)


def test_going_on_must_not_change_how_long_a_session_was_active(logs):
    """A source that gives what comes after the last record of a scan to that record."""

    def scan(path, resume):
        found = SOURCE.scan(path, resume)
        for session in found.sessions:
            for record in session.records[-1:]:
                record.active_ms += (session.last_ns - (record.time_ns or session.last_ns)) // 1_000_000
        return found

    fails(logs, "and resumed, the records differ", scan=scan)


def test_going_on_must_be_possible_again_and_again(logs):
    """A source that goes on once, and not from there."""

    def weary(path, resume):
        found = SOURCE.scan(path, resume and replace(resume, state=resume.state[1:]))
        if found.resume is None:
            return found
        scans = 1 + (0 if resume is None else resume.state[0])
        going_on = replace(found.resume, state=bytes([scans]) + found.resume.state)
        return replace(found, sessions=found.sessions if scans < 3 else (), resume=going_on)

    fails(logs, r"cut \d+ times and resumed, the records differ", scan=weary)


def test_going_on_must_not_pass_an_unfinished_line(logs):
    """The rest of the line would be read as a line of its own."""

    def scan(path, resume):
        size = Path(path).stat().st_size
        return rescanned(path, resume, resume=replace(SOURCE.scan(path, resume).resume, offset=size + 1))

    fails(logs, r"cut at \d+, it would resume at \d+", scan=scan)

    def eager(path, resume):
        size = Path(path).stat().st_size
        return rescanned(path, resume, resume=replace(SOURCE.scan(path, resume).resume, offset=size))

    fails(logs, "cut at byte .* and resumed, the (records|sessions|tools) differ", scan=eager)


def test_where_to_go_on_must_be_bytes(logs):
    """It is stored between two reports."""
    fails(
        logs,
        "the state of a resume is bytes, not dict",
        scan=lambda path, resume: rescanned(path, resume, resume=Resume(offset=0, state={"seen": 1})),
    )


@pytest.mark.parametrize("name", ["scan", "read", "recognises", "name_sessions"])
def test_damage_must_not_raise(logs, name):
    """The message shows the log and the error."""
    whole = {path.read_bytes() for path in logs.rglob("*.scroll")}
    function = getattr(SOURCE, name)

    def strict(path, *more):
        content = Path(path).read_bytes()
        if content not in whole and not any(log.startswith(content) for log in whole):
            raise KeyError("at")
        return function(path, *more)

    fails(logs, r"damage raised KeyError\('at'\)", **{name: strict})


def test_damage_must_not_raise_half_way(logs):
    """What is read lazily is read to its end."""

    def read(path, session_id):
        for item in SOURCE.read(path, session_id):
            match item:
                case Problem():
                    raise ValueError(item.kind)
            yield item

    write_scroll(logs / "one.scroll", *story(answers=3), row("bye", "11:00:00", how="success"))
    fails(logs, "damage raised ValueError", read=read)
