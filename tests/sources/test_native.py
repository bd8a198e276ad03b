"""The scan of a native log: it passes over what it need not decode, and misses nothing by it."""

import gzip
import io
import json
import os
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.scanning import scan_or_explain
from sessionlog.reader.stream import read_events
from sessionlog.reader.unpack import zstd_module
from sessionlog.sources import native
from sessionlog.sources.native import SOURCE, holds_events, session_id_of
from sessionlog.sources.protocol import Log
from tests.profiles import examples
from tests.sources.logs import (
    answered,
    as_line,
    asked,
    ended,
    event,
    progress,
    scan_log,
    scanned,
    start,
    write_log,
)  # fmt: skip

TORN = b'{"session_id":"inside","seq":7,"type":"progress","ts":"2026-11-20T10:00:01Z","data":{"note":"cut he'


def spaced(item):
    """The line as `json.dumps` writes it by default."""
    return json.dumps(item).encode() + b"\n"


def reordered(item):
    """The line with its keys the other way round."""
    return json.dumps(dict(reversed(item.items())), separators=(",", ":")).encode() + b"\n"


# --- files


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/logs/s-1.jsonl", "s-1"),
        ("s-1.jsonl.gz", "s-1"),
        ("s-1.jsonl.zst", "s-1"),
        ("s-1.log", "s-1.log"),
        ("a.jsonl.b.jsonl", "a.jsonl.b"),
        ("s-1.gz", "s-1.gz"),
    ],
)
def test_the_file_name_is_the_session(path, name):
    """Only the suffix of a log is taken off."""
    assert session_id_of(path) == name


def test_ids_inside_do_not_matter(tmp_path):
    """One file is one session, whoever wrote its lines."""
    other = answered(usage={"input": 2}) | {"session_id": "somebody-else"}
    session = scanned(tmp_path, start(), answered(usage={"input": 1}), other, name="mine.jsonl")
    assert (session.session_id, sum(r.usage.input for r in session.records)) == ("mine", 3)


def zipped(content):
    return zstd_module("the test").compress(content)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zipped)])
def test_packed_logs_are_read(tmp_path, suffix, pack):
    """Agents pack closed logs; a packed log gives the same records."""
    plain = write_log(tmp_path / "s.jsonl", start(model="m"), progress(), answered(usage={"input": 5}), ended())
    packed = tmp_path / f"s.jsonl{suffix}"
    packed.write_bytes(pack(Path(plain).read_bytes()))
    assert scan_log(str(packed)).records == scan_log(plain).records


def test_a_packed_log_that_ends_early_gives_what_it_has(tmp_path):
    """The damage is one problem, and the lines before it count."""
    plain = b"".join(map(as_line, [start(), *[answered(usage={"input": 1})] * 2000]))
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(plain)[:-400])
    os.utime(path, (1, 1))
    session = scan_log(str(path))
    assert 0 < sum(r.usage.input for r in session.records) <= 2000
    assert "bad_compression" in {problem.kind for problem in session.problems.first}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf\n"])
def test_a_file_without_events_is_no_session(tmp_path, content):
    """An empty file is not a session of zero tokens."""
    assert scan_log(write_log(tmp_path / "s.jsonl", content)) is None


def test_a_missing_file_is_an_error_alone_and_a_problem_among_many(tmp_path):
    """`scan_log` raises, `scan_or_explain` names it."""
    path = str(tmp_path / "none.jsonl")
    with pytest.raises(LogNotReadable):
        scan_log(path)
    scan, _ = scan_or_explain(Log(source=SOURCE, path=path))
    assert scan.sessions == ()
    problems = scan.problems
    [problem] = problems.first
    assert (problem.path, problem.kind, problems.count) == (path, "unreadable", 1)
    assert not problem.detail.startswith(path)


# --- damage


def test_damage_is_named_and_costs_only_its_line(tmp_path):
    """Garbage, arrays and NULs between events are problems with a line; every event counts."""
    garbage = [b"not json\n", b"[1,2]\n", b"\x00\x00\x00\n"]
    lines = [answered(usage={"input": 10}), *garbage, answered(usage={"input": 5})]
    session = scanned(tmp_path, start(), *lines)
    assert sum(r.usage.input for r in session.records) == 15
    assert [(p.line, p.kind) for p in session.problems.first] == [(3, "not_json"), (4, "not_object"), (5, "nul_bytes")]


def test_a_file_of_nothing_but_damage_is_not_silent(tmp_path):
    """There is no session in it, but the report must say what was skipped."""
    path = write_log(tmp_path / "s.jsonl", b"not json\n", b"nor this\n")
    scan = SOURCE.scan(path, None)
    problems = scan.problems
    assert scan.sessions == ()
    assert [p.line for p in problems.first] == [1, 2]
    assert problems.count == 2


def test_all_damage_is_counted_and_the_first_hundred_named(tmp_path):
    """A file of garbage must not fill the memory with findings, nor hide how many there are."""
    wrong = answered(usage={"input": -1})
    session = scanned(tmp_path, start(), *[b"not json\n"] * 70, *[wrong] * 80, *[b"not json\n"] * 10)
    assert (len(session.problems.first), session.problems.count) == (100, 160)
    assert len(session.records) == 80


def test_news_are_not_damage(tmp_path):
    """A mended envelope lost nothing: reports do not warn for it."""
    session = scanned(tmp_path, start(), answered() | {"session_id": 5})
    assert (session.problems.first, session.problems.count, len(session.records)) == ((), 0, 1)


@pytest.mark.parametrize(("age", "count"), [(0, 0), (60, 1)])
def test_a_torn_tail_is_damage_once_the_writer_is_gone(tmp_path, age, count):
    """While the file is young somebody may be writing the line."""
    path = write_log(tmp_path / "s.jsonl", start(), answered(usage={"input": 3}), TORN)
    now = time.time()
    os.utime(path, (now - age, now - age))
    session = scan_log(path)
    assert (session.problems.count, session.records[0].usage.input) == (count, 3)


def test_a_torn_line_that_is_passed_over_is_damage_too(tmp_path):
    """A line without its end is named whatever type its head says; it is no event."""
    session = scanned(tmp_path, start("10:00:00"), TORN + b"\n", answered("10:00:02"))
    assert [(p.line, p.kind) for p in session.problems.first] == [(2, "not_json")]


# --- passing over


@pytest.mark.parametrize("spell", [as_line, spaced, reordered])
def test_an_event_glued_to_a_torn_line_counts(tmp_path, spell):
    """A killed writer's line ends where the next one begins: the response behind it is found, in any spelling."""
    response = answered("10:00:04", usage={"input": 7}, cost_usd=0.5)
    session = scanned(tmp_path, start(), TORN + spell(response), ended())
    assert [(r.usage.input, r.cost_nano) for r in session.records] == [(7, 500_000_000)]
    assert session.problems.count == 1


def test_two_whole_events_on_a_line_count(tmp_path):
    """A lost newline loses nothing."""
    session = scanned(tmp_path, start(), as_line(progress()).rstrip(b"\n") + as_line(answered(usage={"input": 7})))
    assert (session.records[0].usage.input, session.problems.first) == (7, ())


@pytest.mark.parametrize("spell", [as_line, spaced])
def test_an_event_inside_a_text_does_not_count(tmp_path, spell):
    """A tool that printed a log has not called a model."""
    quoted = as_line(answered(usage={"input": 7})).decode()
    lines = [spell(event("tool.call", "10:00:01", {"output": quoted})), spell(asked(messages=[quoted]))]
    session = scanned(tmp_path, start(), *lines, answered(usage={"input": 1}))
    assert [r.usage.input for r in session.records] == [1]


def test_an_event_inside_a_payload_does_not_count(tmp_path):
    """An object that looks like an event is data where it is not a line."""
    inner = answered(usage={"input": 7})
    session = scanned(tmp_path, start(), progress(replayed=inner), progress(items=[{"session_id": "x"}]), answered())
    assert [r.usage.input for r in session.records] == [0]


def test_every_spelling_gives_the_same_session(tmp_path):
    """Spaces and the order of keys are the writer's taste."""
    items = [
        start(provider="p", model="m", prompt="do it"),
        progress("10:00:30"),
        asked("10:01:00", model="asked", messages=[]),
        answered("10:02:00", usage={"input": 5, "output": 1}, latency_ms=4, cost_usd=0.1),
        event("tool.call", "10:03:00", {"tool": "bash"}),
        ended("10:04:00", tokens={"input": 6, "output": 1}),
    ]
    plain = scanned(tmp_path, *items)
    for spell in (spaced, reordered):
        assert scanned(tmp_path, *map(spell, items)) == plain
    assert plain.records[0].model == "asked"


def test_lines_that_end_in_crlf_are_lines(tmp_path):
    """A log that went through Windows."""
    lines = [as_line(item).replace(b"\n", b"\r\n") for item in (start(), progress(), answered(usage={"input": 7}))]
    session = scanned(tmp_path, *lines)
    assert (session.records[0].usage.input, session.problems.first) == (7, ())


def test_lines_that_are_passed_over_are_activity(tmp_path):
    """Their times make the session's duration and its last event."""
    session = scanned(tmp_path, start("10:00:00"), progress("10:01:00"), progress("10:02:00"))
    assert session.records[0].active_ms == 120_000
    assert session.last_ns - session.start_ns == 120 * 10**9


# --- the law


COUNTS = st.one_of(st.none(), st.integers(-2, 50), st.floats(0, 9), st.sampled_from(["7", "x", True, 2**60]))
USAGES = st.one_of(
    st.none(),
    st.just("?"),
    st.dictionaries(st.sampled_from(["input", "output", "cache_read", "cache_write", "reasoning"]), COUNTS),
)
CENTS = st.one_of(st.none(), st.integers(-1, 300).map(lambda cents: cents / 100), st.sampled_from(["0.5", "?"]))
NAMES = st.sampled_from(["", "m-1", "m-2", "ü"])
CLOCKS = st.integers(0, 7199).map(lambda s: f"{10 + s // 3600}:{s // 60 % 60:02}:{s % 60:02}") | st.just("")
DATA = {
    "session.start": st.fixed_dictionaries({"v": st.just(1)}, optional={"model": NAMES, "provider": NAMES}),
    "llm.request": st.fixed_dictionaries({"messages": st.just([])}, optional={"model": NAMES}),
    "llm.response": st.fixed_dictionaries(
        {"usage": USAGES, "cost_usd": CENTS, "error": st.sampled_from(["", "boom"])},
        optional={"model": NAMES, "attempt": st.fixed_dictionaries({"requested_model": NAMES})},
    ),
    "session.end": st.fixed_dictionaries({"tokens": USAGES, "cost_usd": CENTS}),
    "progress": st.fixed_dictionaries({"text": st.sampled_from(['{"session_id":', "}", "ü\n"])}),
    "x-custom.2": st.just({}),
}
EVENTS = st.sampled_from([*DATA, "llm.response"]).flatmap(
    lambda kind: st.builds(event, st.just(kind), CLOCKS, st.none() | DATA[kind])
)
SPELLINGS = st.sampled_from([as_line, as_line, spaced, reordered, lambda item: TORN + as_line(item)])
LINES = st.builds(lambda item, spell: spell(item), EVENTS, SPELLINGS)


def count(value):
    """A count as DESIGN reads it, written anew."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    good = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return int(value) if good and 0 <= value <= 2**53 else 0


def tokens(value):
    return {name: count((value if isinstance(value, dict) else {}).get(name)) for name in TokenUsage.__slots__}


def nanos(value):
    amount = {None: -1, "?": -1}.get(value, value)
    return None if float(amount) < 0 else round(float(amount) * 10**9)


def naive_fold(items):
    """The sums of a native log, the slow and obvious way, over decoded events."""
    responses, runs, asked_model, times, models = [], [], None, [], Counter()
    begin = next((i.data or {} for i in items if i.type == "session.start"), {})
    for item in items:
        data = item.data or {}
        times += [item.time_ns] if item.time_ns is not None else []
        if item.type == "llm.request":
            asked_model = data.get("model")
        if item.type == "llm.response":
            responses.append(data)
            wanted = (data.get("attempt") or {}).get("requested_model")
            models[wanted or asked_model or data.get("model") or begin.get("model") or "unknown"] += 1
        if item.type == "session.end":
            if responses or not runs:
                runs.append([responses, data])
                responses = []
            else:
                runs[-1][1] = data
    if responses or not runs:
        runs.append([responses, {}])
    usage, money = Counter(), 0
    for answers, end in runs:
        for name in TokenUsage.__slots__:
            said = tokens(end.get("tokens"))[name]
            usage[name] += max(said, sum(tokens(r.get("usage"))[name] for r in answers))
        money += max(sum(nanos(r.get("cost_usd")) or 0 for r in answers), nanos(end.get("cost_usd")) or 0)
    gaps = [late - early for early, late in pairwise(times)]
    return {
        "usage": {name: usage[name] for name in TokenUsage.__slots__},
        "money": money,
        "failed": sum(bool(r.get("error")) for answers, _ in runs for r in answers),
        "active_ms": sum(gap for gap in gaps if 0 < gap <= 300 * 10**9) // 10**6,
        "models": models,
        "latest": max(times, default=None),
    }


def as_sums(session):
    """The same figures of a scan."""
    answers = [r for r in session.records if r.requests and r.granularity == "request"]
    return {
        "usage": {name: sum(getattr(r.usage, name) for r in session.records) for name in TokenUsage.__slots__},
        "money": sum(r.cost_nano or 0 for r in session.records),
        "failed": sum(r.failed for r in session.records),
        "active_ms": sum(r.active_ms for r in session.records),
        "models": Counter(r.model for r in answers),
        "latest": session.last_ns,
    }


@examples(150)
@given(st.lists(LINES, max_size=12).map(lambda lines: [as_line(start()), *lines]))
def test_a_scan_equals_a_naive_fold_over_all_events(lines):
    """Whatever the events, their spelling and the torn lines before them: the lean scan finds the same sums and damage."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "s.jsonl", *lines)
        items = list(read_events(path))
        session = scan_log(path)
    damage = [i for i in items if isinstance(i, Problem) and i.severity == "damage"]
    assert as_sums(session) == naive_fold([i for i in items if not isinstance(i, Problem)])
    assert [p for p in session.problems.first if p.kind != "bad_number"] == damage


class _NothingYet(io.BytesIO):
    """A file that is read without waiting, as some of the kernel's are, while it has nothing to say."""

    def read(self, size=-1):
        return None


def test_a_file_that_says_nothing_yet_holds_no_events(monkeypatch):
    """A person may name any file; one that neither ends nor gives bytes is no log."""
    monkeypatch.setattr(native, "open_unpacked", lambda _: (_NothingYet(), None))
    assert not holds_events("/proc/kmsg")


def test_of_a_log_and_its_packed_copies_the_first_is_listed(tmp_path):
    """Also where names between them, and a folder's logs, come first; a log of another folder is no copy."""
    names = [
        "a.jsonl.gz", "a.jsonl.zst", "b.jsonl", "b.jsonl-old.jsonl", "b.jsonl.2.jsonl", "b.jsonl.2.jsonl.gz",
        "b.jsonl.d/b.jsonl", "b.jsonl.d/b.jsonl.zst", "b.jsonl.gz", "b.jsonl.zst", "c/b.jsonl.gz",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    listed = [os.path.relpath(path, tmp_path) for path in native.list_logs(str(tmp_path))]
    copies = {"a.jsonl.zst", "b.jsonl.2.jsonl.gz", "b.jsonl.d/b.jsonl.zst", "b.jsonl.gz", "b.jsonl.zst"}
    assert listed == [name for name in names if name not in copies]
