"""check_source: a source that keeps its promises passes, and each broken promise fails by name."""

import dataclasses
import hashlib
import os
import re
import tempfile
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.source_check import _OTHERS
from sessionlog.sources.kit import ToolCall, json_lines, source
from sessionlog.sources.native import SOURCE as NATIVE
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.registry import load_source
from sessionlog.testing import check_source
from tests.sources.logs import answered, asked, ended, start, write_log
from tests.sources.plugin.scribe import SOURCE, Row, is_row
from tests.sources.plugin.scribe import steps as page_steps
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
    return check_source(replace(SOURCE, **changes), logs, cuts=12, damages=14)


def fails(logs, pattern, **changes):
    with pytest.raises(AssertionError, match=pattern):
        check(logs, **changes)


def made(steps, **changes):
    """A source whose steps are these."""
    given = {"is_row": is_row, "state": None, **changes}
    return source(id="scribe", title="Scribe", places=(), logs="*.scroll", rows=json_lines(Row), steps=steps, **given)


def fails_with(logs, pattern, steps, **changes):
    with pytest.raises(AssertionError, match=pattern) as failure:
        check_source(made(steps, **changes), logs, cuts=12, damages=14)
    return str(failure.value)


def changed(**fields):
    """The page's steps, with other fields in each that has them."""

    def steps(row, state):
        for step in page_steps(row, state):
            for name, value in fields.items():
                if hasattr(step, name):
                    setattr(step, name, value(row) if callable(value) else value)
            yield step

    return steps


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
    assert check_source(NATIVE, tmp_path, cuts=12, damages=14) == 2


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
                record.usage = dataclasses.replace(usage, input=usage.input - 1, cache_read=1)
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

    fails(logs, r"^deep/two.scroll:\d: (damage|a row with .*) raised KeyError\('at'\)", **{name: strict})


def test_damage_must_not_raise_half_way(logs):
    """What is read lazily is read to its end."""

    def read(path, session_id):
        for item in SOURCE.read(path, session_id):
            match item:
                case Problem():
                    raise ValueError(item.kind)
            yield item

    write_scroll(logs / "one.scroll", *story(answers=3), row("bye", "11:00:00", how="success"))
    fails(logs, r"\w+.scroll:\d: damage raised ValueError\('\w+'\), at test_source_check.py:\d+ \(read\)", read=read)


# --- mistakes in a description


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (lambda row, _: None, r"raised TypeError.* \(`steps` has to yield steps, and returned something else\)"),
        (lambda row, _: iter(["hi"]), r"raised KeyError.* \(`steps` yields a str, which is no step\)"),
        (lambda row, _: [1 / 0], r"raised ZeroDivisionError\(.*\), at test_source_check.py:\d+ \(<lambda>\)"),
        (changed(time=lambda row: row.at), r"raised TypeError"),
    ],
)
def test_whatever_a_source_raises_is_shown_with_its_row(logs, steps, why):
    """The log as the reader knows it, the row, the exception and the line of the source; no temporary path."""
    message = fails_with(logs, why, steps)
    assert re.match(r"deep/two.scroll:\d: a scan raised", message)
    assert '; the row: {"scribe":"' in message
    assert "sessionlog-check-" not in message


def test_what_cannot_be_added_up_is_no_success(logs):
    """A number as a key: neither fold looks at it."""
    fails_with(logs, "^deep/two.scroll: inserting the result of a scan raised AttributeError", changed(key=7))


def test_a_row_is_shown_in_short(logs):
    """A row may hold a whole file."""
    write_scroll(logs / "deep" / "two.scroll", row("hello", "10:00:00"), row("ask", "10:00:01", text="x" * 9999))

    def steps(row, _):
        if row.scribe == "ask":
            raise ValueError("no asking")
        return ()

    message = fails_with(logs, r"^deep/two.scroll:2: a scan raised ValueError\('no asking'\)", steps)
    assert len(message) < 600


@pytest.mark.parametrize(
    "steps",
    [
        lambda row, _: [None for _ in row.id or ()] and (),
        lambda row, _: page_steps(row, None) if row.text is None or row.text.strip() else (),
        lambda row, _: page_steps(row, None) if row.how is None or row.how in {"success", "cancelled"} else (),
    ],
)
def test_no_value_of_another_type_raises(logs, steps):
    """Random damage seldom makes valid JSON of another type."""
    message = fails_with(logs, r"a row with `\w+` = .* raised (TypeError|AttributeError)", steps)
    assert "at test_source_check.py:" in message


def test_a_long_log_is_shortened_for_that_and_keeps_its_line_numbers(tmp_path):
    """Else each of a thousand rows would be read four hundred times."""
    rows = [row("note", "10:00:00", n=n) for n in range(300)]
    write_scroll(tmp_path / "one.scroll", *story(answers=1, bye=None), *rows, row("bye", "11:00:00", how="success"))
    last = 4 + 300 + 1

    def steps(row, _):
        return page_steps(row, None) if row.scribe != "bye" or row.how.strip() else ()

    message = ""
    for damages in (100, 400):
        try:
            check_source(made(steps), tmp_path, cuts=3, damages=damages)
        except AssertionError as error:
            message = str(error)
            break
    assert message.startswith(f"one.scroll:{last}: a row with `how` = "), message


def test_is_row_must_not_raise(logs):
    """It is called with rows of any agent."""
    fails_with(
        logs, r"`recognises` raised KeyError\('of'\), at test_source_check.py", page_steps, is_row=lambda row: row["of"]
    )


def test_logs_of_other_agents_are_not_claimed(logs):
    """By a test that is too broad."""
    fails_with(
        logs, "it also claims a log of claude-code", page_steps, is_row=lambda row: "scribe" in row or "cwd" in row
    )


@pytest.mark.parametrize("agent", _OTHERS)
def test_the_rows_of_other_agents_are_theirs(agent):
    """Else the check would try nothing."""
    assert load_source(agent).recognises("/w/s.jsonl", _OTHERS[agent].encode() + b"\n")


def test_times_must_be_times(logs):
    """Seconds are no nanoseconds, and one time at least is known."""
    fails_with(logs, "two.scroll: a time lies before 2015 or is none: 1795000000;", changed(time=1_795_000_000))
    fails_with(logs, "no record has a time, in deep/two.scroll, one.scroll", changed(time=None))


def test_a_tool_call_has_a_key(logs):
    """All without one would be one call."""

    def steps(row, _):
        for step in page_steps(row, None):
            yield ToolCall(step.time, "", step.tool) if isinstance(step, ToolCall) else step

    fails_with(logs, "two.scroll: a `ToolCall` of 'quill' has an empty key", steps)


def test_damaged_logs_may_hold_odd_times_and_keys(logs):
    """Nobody knows what was lost."""
    for path in logs.rglob("*.scroll"):
        write_scroll(path, b"{torn\n", *story(answers=1))
    assert check_source(made(changed(time=None)), logs, cuts=3, damages=2) == 2


def test_what_is_remembered_outside_state_is_named(logs):
    """With the field and both values."""
    known = {}

    def steps(row, _):
        known["rows"] = 0 if row.scribe == "hello" else known.get("rows", 0) + 1
        for step in page_steps(row, None):
            if isinstance(step, ToolCall):
                step.tool = f"{step.tool}-{known['rows']}"
            yield step

    message = fails_with(logs, r"and resumed, the tools differ: `tool` is '\w+-\d', and '\w+-\d' when", steps)
    assert message.endswith("is something remembered outside `state`?")


def test_state_without_its_type_is_refused_at_once():
    """A later scan could not decode it."""

    class State(Struct):
        answers: int = 0

    with pytest.raises(TypeError, match="scribe: `state` needs `state_type`, the Struct that it returns"):
        made(page_steps, state=lambda _: State())
    assert made(page_steps, state=lambda _: State(), state_type=State)


def test_a_session_is_read_without_naming_it(logs):
    """The first is meant, as with None."""
    path = str(logs / "one.scroll")
    assert list(SOURCE.read(path)) == list(SOURCE.read(path, None))
