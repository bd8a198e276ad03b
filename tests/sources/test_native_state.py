"""Going on with a native log: in any number of pieces it gives what it gives whole."""

import gzip
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessionlog.sources.native import SOURCE
from sessionlog.sources.protocol import Resume
from sessionlog.sources.record import Problems
from tests.profiles import examples
from tests.sources.logs import LONG_AGO, answered, as_line, asked, ended, event, go_start, progress, start
from tests.sources.test_native_rows import LINES, SPELLINGS

TESTDATA = Path(__file__).parents[2] / "testdata"
TORN = b'{"session_id":"inside","seq":7,"type":"progress","ts":"2026-11-20T10:00:01Z","data":{"note":"cut he'
CONFORMANCE = os.environ.get("SESSIONLOG_CONFORMANCE")
MOST = 5_000
"""Bytes of a log that is cut at all its lines; of a longer one the beginning is taken."""


class Growing:
    """A log that is scanned again and again as it grows, and what is known of it, as the ledger knows it.

    Attributes:
        read: Where the scans began; 0 for those that read all of the log.
    """

    def __init__(self, folder, name="s.jsonl"):
        self.path = str(folder / name)
        self.read = []
        self._resume = self._session = None
        self._records, self._tools, self._problems = [], [], Problems()

    def scan(self, content):
        """Let it hold this and scan it; returns what is known of it."""
        resume = self._resume if len(self._problems.first) == self._problems.count else None
        found = scan(self.path, content, resume)
        anew = resume is None or found.full_rescan
        self.read.append(0 if anew else resume.offset)
        self._records = [] if anew else self._records[: len(self._records) - found.replaced_count]
        self._tools = [] if anew else self._tools
        before = [] if anew else [one for one in self._problems.first if one.offset < resume.offset]
        self._problems = Problems(
            count=found.problems.count + len(before), first=(*before, *found.problems.first)[:100]
        )
        for session in found.sessions:
            self._records += session.records
            self._tools += session.tools
            self._session = replace(session, records=tuple(self._records), tools=tuple(self._tools))
        self._resume = found.resume
        assert not (found.resume and content[found.resume.offset - 1 : found.resume.offset] != b"\n")
        return repr((self._session if found.sessions else None, self._problems))


def scan(path, content, resume=None):
    """Scan a log that holds this and was written long ago."""
    Path(path).write_bytes(content)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return SOURCE.scan(str(path), resume)


def whole(folder, content, name="s.jsonl"):
    """What is known of a log that is scanned once."""
    return Growing(folder, name).scan(content)


def places(content):
    """Every line's end, and a place in the middle of every line."""
    ends = [0, *(match.end() for match in re.finditer(rb"\n", content)), len(content)]
    middles = [(one + other) // 2 for one, other in pairwise(ends)]
    return sorted({*ends, *middles})


def goes_on_everywhere(folder, content):
    """Scanned at every place, once and again and again, a log gives what it gives when it is scanned whole there."""
    growing, expected = Growing(folder), whole(folder, content)
    for place in places(content):
        assert growing.scan(content[:place]) == whole(folder, content[:place]), place
        twice = Growing(folder)
        twice.scan(content[:place])
        assert twice.scan(content) == expected, place
    return growing


def native_logs(folder):
    """Logs below a folder that look native, unpacked; cut where they are long."""
    for path in filter(Path.is_file, sorted(Path(folder).rglob("*.jsonl*"))):
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        if b'"session_id"' in content[:4000].lower():
            yield path, content[:MOST]


def as_ours(content):
    """The same log, begun as our logger begins it."""
    begun = re.sub(rb'("type": ?"session.start".*?"data": ?\{)', rb'\1"v":1,', content, count=1)
    return begun if begun != content else as_line(start(provider="p")) + content


# --- the law


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ours", [True, False])
def test_the_logs_of_the_test_data_go_on(tmp_path, ours, step):
    """Each of them, at every line and inside every line; in the quick tier every third one."""
    logs = list(native_logs(TESTDATA))
    assert len(logs) > 50
    for _, content in logs[ours::step]:
        goes_on_everywhere(tmp_path, as_ours(content) if ours else content)


@pytest.mark.skipif(CONFORMANCE is None, reason="SESSIONLOG_CONFORMANCE is not set: its logs are not cut")
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("folder", ["logs", "edge"])
@pytest.mark.parametrize("ours", [True, False])
def test_the_logs_of_others_go_on(tmp_path, folder, ours, step):
    """The same of real logs of the original, and of these as ours."""
    logs = list(native_logs(Path(CONFORMANCE or "") / folder))
    assert logs
    for _, content in logs[ours::step]:
        goes_on_everywhere(tmp_path, (as_ours(content) if ours else content))


NAMES = st.sampled_from(["m-1", "m-2", None])
CLOCKS = st.integers(0, 1199).map(lambda s: f"10:{s // 60:02}:{s % 60:02}") | st.just("")
COSTS = st.sampled_from([None, None, 0, 0.25, 2, -1])
ITERATIONS = st.lists(
    st.builds(dict, type=st.sampled_from(["message", "compaction", "advisor_message"]), input_tokens=st.integers(0, 9)),
    max_size=3,
)
USAGES = (
    st.builds(dict, input=st.integers(0, 9), output=st.integers(0, 9), reasoning=st.integers(0, 3))
    | st.builds(dict, input_tokens=st.integers(0, 9), iterations=ITERATIONS)
    | st.just({})
)
TOTALS = st.builds(dict, input=st.integers(0, 40), output=st.integers(0, 20)) | st.none()
METADATA = st.sampled_from([None, {"task": "a"}, {"task": float("nan")}, {"n": 2**70}])
TURNS = st.one_of(
    st.builds(answered, CLOCKS, usage=USAGES, cost_usd=COSTS, model=NAMES, error=st.sampled_from(["", "", "boom"])),
    st.builds(lambda clock: answered(clock, error="boom", usage=None), CLOCKS),
    st.builds(asked, CLOCKS, model=NAMES, messages=st.just([{"role": "user", "content": "go"}])),
    st.builds(lambda clock: event("tool.call", clock, {"tool": "bash", "output": "ü"}), CLOCKS),
    st.builds(progress, CLOCKS),
    st.builds(
        ended, CLOCKS, tokens=TOTALS, cost_usd=COSTS, model=NAMES, metadata=METADATA,
        status=st.sampled_from(["success", "error"]), duration_ms=st.sampled_from([None, 5, 7.5, -1]),
    ),
    st.builds(lambda clock: event("rejected_override", clock, {"rejection_error": "no"}), CLOCKS),
)  # fmt: skip
STARTS = st.builds(start, CLOCKS, provider=st.just("p"), model=NAMES, metadata=METADATA, prompt=NAMES)


@examples(60)
@given(
    turns=st.lists(TURNS, max_size=14),
    begun=STARTS,
    late=st.integers(0, 3),
    spell=st.sampled_from(["compact", "spaced"]),
)
def test_sessions_go_on(growing, turns, begun, late, spell):
    """Any session of ours: several runs, costs at any place, a start that comes late, calls that fail."""
    items = [*turns[:late], begun, *turns[late:]]
    goes_on_everywhere(growing, b"".join(map(SPELLINGS[spell], items)))


@examples(30)
@given(lines=st.lists(LINES, max_size=10), begun=st.sampled_from([start(), start(model="m"), go_start()]))
def test_damaged_sessions_go_on(growing, lines, begun):
    """Torn, glued, spread over lines or no JSON at all; with numbers that are none."""
    goes_on_everywhere(growing, as_line(begun) + b"".join(lines))


# --- how much is read


TURN = [asked("10:00:01", model="m", messages=[]), answered(usage={"input": 5}, cost_usd=0.5), progress("10:00:05")]


def grown(tmp_path, *pieces):
    """Scan a log after each piece, as it must be; returns where the scans began, as pieces that were there."""
    growing, content, lengths = Growing(tmp_path), b"", [0]
    for piece in pieces:
        content += b"".join(map(as_line, piece))
        assert growing.scan(content) == whole(tmp_path, content)
        lengths.append(len(content))
    return [lengths.index(place) for place in growing.read]


def test_what_has_been_read_is_not_read_again(tmp_path):
    """Turn by turn, and event by event, from the first response on."""
    assert grown(tmp_path, [start()], TURN, TURN, TURN * 3) == [0, 0, 2, 3]
    assert grown(tmp_path, *([item] for item in [start(), *TURN * 3])) == [0, 0, 0, *range(3, 10)]


def test_an_end_is_read_with_its_run(tmp_path):
    """What it adds, and its cost, are about all responses of the run; nothing goes on from it until the next one."""
    end = [ended("10:00:09", tokens={"input": 90}, cost_usd=3, duration_ms=7)]
    assert grown(tmp_path, [start(), *TURN], end, TURN, TURN, end, end) == [0, 0, 0, 3, 0, 0]
    assert grown(tmp_path, [start(), *TURN * 3], TURN, [*TURN, *end, *TURN], TURN) == [0, 1, 0, 3]
    assert grown(tmp_path, [start(), *TURN, *end], [progress("10:00:20")], TURN[:1], TURN) == [0, 0, 0, 0]


def test_the_first_price_is_read_with_the_calls_that_have_none(tmp_path):
    """Where none has one when a run ends, the session's cost is unknown all the same."""
    failed, end = [answered(error="boom")] * 2, [ended(tokens={"input": 9})]
    assert grown(tmp_path, [start(), *failed], failed, end, failed, TURN, TURN) == [0, 1, 0, 0, 0, 5]


def test_an_end_that_names_another_model_is_read_with_what_it_names(tmp_path):
    """Requests and responses may name none, nor the start."""
    turn = [answered(usage={"input": 1})] * 2
    assert grown(tmp_path, [start()], turn, [ended(model="m")], turn, turn, [ended(model="n")]) == [0, 0, 0, 0, 4, 0]


@pytest.mark.parametrize(
    "begun", [go_start(), start(v=0), start(v=True), progress(), event("session.start", "", {"v": 1})]
)
def test_a_log_that_does_not_begin_as_ours_is_read_whole(tmp_path, begun):
    """Its counts may turn out to be of the other dialect, and its times may come."""
    assert scan(tmp_path / "s.jsonl", as_line(begun) + as_line(answered(""))).resume is None


def test_an_unfinished_line_that_holds_events_is_read_again_with_the_rest(tmp_path):
    """It has been given, and may become another."""
    content = b"".join(map(as_line, [start(), *TURN]))
    assert scan(tmp_path / "s.jsonl", content[:-1]).resume is None
    assert scan(tmp_path / "s.jsonl", content[:-9]).resume.offset == content[:-9].rindex(b"\n") + 1


def test_packed_logs_are_read_whole(tmp_path):
    """Also when more has been packed behind."""
    one, two = (gzip.compress(b"".join(map(as_line, piece))) for piece in ([start(), *TURN], TURN))
    growing = Growing(tmp_path, "s.jsonl.gz")
    growing.scan(one)
    assert growing.scan(one + two) == whole(tmp_path, one + two, "s.jsonl.gz")
    assert growing.read == [0, 0]


def test_complaints_about_numbers_are_made_once(tmp_path):
    """They have no place in the file, so only those of whole lines are kept."""
    growing, content = Growing(tmp_path), b"".join(map(as_line, [start(), answered(usage={"input": -1})]))
    more = content + as_line(progress())
    told = [growing.scan(piece) for piece in (content[:-1], content, more, more + TORN, more + TORN + b"\n")]
    assert [text.count("kind='bad_number'") for text in told] == [1] * 5
    assert [text.count("kind='torn_tail'") for text in told] == [0, 0, 0, 1, 0]


def test_the_state_stays_small(tmp_path):
    """It does not grow with the log: it is written with every scan."""
    few, many = (scan(tmp_path / "s.jsonl", b"".join(map(as_line, [start(), *TURN * n]))).resume for n in (8, 2000))
    assert isinstance(few, Resume)
    assert len(many.state) < len(few.state) + 100 < 4000


def test_a_fork_that_goes_on_is_still_its_parents(tmp_path):
    """What a resumed scan says of a session has its parent."""
    content = b"".join(map(as_line, [start(parent={"session": "p-1", "seq": 4}), *TURN, *TURN]))
    growing = goes_on_everywhere(tmp_path, content)
    assert "parent='p-1'" in growing.scan(content)
    assert growing.read[-1] > 0
