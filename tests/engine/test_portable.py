"""Portable rows: workers that know no ledger decide on copies as the ledger does, and one bad log is a problem."""

import json
import os
import subprocess
import sys
from collections import defaultdict

from hypothesis import given

from sessionlog.engine import portable
from sessionlog.engine.spark import rows_that_count, sessions_near_wire
from sessionlog.engine.spark_session import package_archive
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Response
from sessionlog.ledger.scanning import Job, Scanned
from sessionlog.ledger.wire import NEAR_NS
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.record import ToolUse
from tests.engine import cluster
from tests.ledger.entries import NOON, PRICES, record, scan_of, session
from tests.ledger.test_copies import COLUMNS, LOGS
from tests.profiles import examples
from tests.security.commands import STORY

COUNTING = COLUMNS.replace("SELECT r.key,", "SELECT")
CALLS = "SELECT s.session, c.time_ns, c.tool, c.finished FROM tools c JOIN sessions s ON s.id = c.session_id"


def scans_of_logs(logs):
    """(rank, path, scan) of logs, in the order of their paths."""
    return [(rank, path, scan_of(*logs[path])) for rank, path in enumerate(sorted(logs))]


def scanned(rank, scan):
    """The result of a job."""
    return Scanned(number=rank, scan=scan, source="native", settled=True)


def by_one_process(logs):
    """What a ledger counts."""
    book = Book(PRICES)
    for _, _, scan in scans_of_logs(logs):
        book.add_scan(scan)
    return found(book)


def by_workers(logs):
    """What workers count, each of which sees one log, or the copies of one response."""
    scans, known, superseding, paths = [], set(), set(), {}
    book = Book(PRICES)
    for rank, path, scan in scans_of_logs(logs):
        scans += portable.scans_of(scanned(rank, scan), PRICES)
        header = portable.read_header(scans[-1][0], {rank: Job(number=rank, source="native", path=path, size=0)})
        known |= {f"{name[0]}:{name[1]}" for name in (span.name for span in header.spans)}
        superseding |= header.superseding
        paths[rank] = path
        book.add_scan(header.scanned.scan)
    for row in cluster.counting_responses(scans, known & superseding, 1):
        book.append_rows(paths[row.file_id], *rows_that_count([row], []))
    for one in cluster.counting_calls(scans, known & superseding, 1):
        book.append_rows(paths[one.file_id], *rows_that_count([], one.calls))
    return found(book)


def found(book):
    return sorted(book.query(COUNTING, {}), key=repr), sorted(book.query(CALLS, {}), key=repr)


@examples(60)
@given(LOGS)
def test_workers_count_the_copies_that_a_ledger_counts(entries):
    """Of any copies in any logs, with superseded ones."""
    sessions = defaultdict(lambda: defaultdict(list))
    for name, path, fields in entries:
        sessions[f"{path}.jsonl"][name].append(record(**fields))
    logs = {
        path: [session(name, *records, path=path) for name, records in named.items()]
        for path, named in sessions.items()
    }
    assert by_workers(logs) == by_one_process(logs)


def test_calls_are_decided_on_as_well():
    """The finished copy counts, then the earliest; none if another session has it."""
    calls = [
        [ToolUse(key="a", time_ns=NOON + 1, tool="x", finished=True), ToolUse(key="b", time_ns=NOON, tool="y")],
        [ToolUse(key="a", time_ns=NOON, tool="x"), ToolUse(key="c", time_ns=NOON, tool="z", superseded_by="native:s0")],
    ]
    logs = {f"{n}.jsonl": [session(f"s{n}", tools=tuple(some), path=f"{n}.jsonl")] for n, some in enumerate(calls)}
    assert by_workers(logs) == by_one_process(logs) == ([], [("s0", NOON, "y", 0), ("s0", NOON + 1, "x", 1)])


def test_numbers_that_columns_cannot_hold_are_as_in_a_ledger():
    """Those beyond 64 bits are clamped, NaN is null, true is 1."""
    logs = {
        "a.jsonl": [session("s", record(input=2**70, latency_ms=float("nan"), failed=True, key="k"), path="a.jsonl")]
    }
    assert by_workers(logs) == by_one_process(logs)
    [(_, [row], _)] = portable.scans_of(scanned(0, scan_of(*logs["a.jsonl"])), PRICES)
    one = Response._make(row)._asdict()
    assert (one["input"], one["latency_ms"], one["failed"], type(one["failed"])) == (2**63 - 1, None, 1, int)


def scan(*jobs, prices=None):
    """The headers of logs that a worker scans."""
    tasks = portable.encode_tasks(enumerate(jobs))
    numbered = dict(enumerate(jobs))
    rows = portable.scan_tasks(tasks, prices or PriceBook.load())
    return [portable.read_header(header, numbered).scanned for header, *_ in rows if header is not None]


def test_a_log_that_a_worker_has_not_is_a_problem(tmp_path):
    """The others of its batch are read."""
    other = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    jobs = [Job(number=7 + i, source="native", path=path, size=1) for i, path in enumerate((other, STORY))]
    gone, read = scan(*jobs)
    assert (gone.number, gone.failed, gone.scan.problems.first[0].path) == (7, True, other)
    assert (read.number, read.failed, len(read.scan.sessions)) == (8, False, 1)


def test_a_scan_that_raises_is_a_problem(tmp_path, monkeypatch):
    """Whatever it raises: a failed task would fail the job of all logs."""
    monkeypatch.setattr(portable, "scan_job", lambda *given: {}["x"])
    [found] = scan(Job(number=0, source="native", path=str(tmp_path / "x.jsonl"), size=1))
    assert found.failed
    assert str(found.scan.problems.first[0]).endswith("source_failed native: KeyError: 'x'")


def test_the_rows_of_a_large_log_come_in_pieces(monkeypatch):
    """Of which the first has the header."""
    monkeypatch.setattr(portable, "_ROWS", 3)
    scan = scan_of(session("s", *[record(key=f"k{n}") for n in range(8)]))
    pieces = list(portable.scans_of(scanned(0, scan), PRICES))
    assert [header is not None for header, *_ in pieces] == [True, False, False]
    assert [row[1] for _, responses, _ in pieces for row in responses] == list(range(8))


def test_sessions_near_the_wire_are_those_at_its_time():
    """Ten minutes around it, as requests are paired; sessions without a time never are."""

    def span(name, start, last, on_wire=False):
        return portable.SessionSpan(name=("native", name, ""), start_ns=start, last_ns=last, on_wire=on_wire)

    near = NEAR_NS
    spans = [
        span("wire", NOON, NOON + 5, True),
        span("at its start", NOON - near - 9, NOON - near),
        span("too early", NOON - near - 9, NOON - near - 1),
        span("around", NOON - 9 * near, NOON + 9 * near),
        span("too late", NOON + 6 + near, NOON + 9 * near),
        span("untimed", None, None),
        span("wire untimed", None, None, True),
    ]
    assert [name for _, name, _ in sessions_near_wire(spans)] == ["wire", "at its start", "around"]
    assert sessions_near_wire([one for one in spans if not one.on_wire]) == []


def test_a_worker_needs_only_python_msgspec_and_orjson(tmp_path):
    """The archive has the code and the prices; nothing else is imported from where packages are installed."""
    archive = tmp_path / "sessionlog.zip"
    archive.write_bytes(package_archive())
    code = """
import json, sys
from sessionlog.engine import portable
from sessionlog.pricing.book import PriceBook
assert portable.__file__.startswith(sys.argv[1]), portable.__file__
from sessionlog.ledger.scanning import Job
tasks = portable.encode_tasks([(0, Job(number=0, source="claude-code", path=sys.argv[2], size=1))])
[(header, [row], calls)] = portable.scan_tasks(tasks, PriceBook.load())
paths = {name.split(".")[0] for name, one in sys.modules.items() if "site-packages" in (getattr(one, "__file__", None) or "")}
print(json.dumps([row[18:21], sorted(paths)]))
"""
    log = tmp_path / "s.jsonl"
    row = {
        "type": "assistant", "sessionId": "s", "uuid": "u", "requestId": "r", "timestamp": "2026-11-20T12:00:00Z",
        "message": {"id": "m", "role": "assistant", "model": "claude-sonnet-4-5", "content": [], "stop_reason": "end_turn",
                    "usage": {"input_tokens": 1000, "output_tokens": 10}},
    }  # fmt: skip
    log.write_text(json.dumps(row) + "\n")
    env = {**os.environ, "PYTHONPATH": str(archive)}
    ran = subprocess.run(
        [sys.executable, "-c", code, archive, log], capture_output=True, text=True, env=env, check=True, cwd=tmp_path
    )
    [recorded, cost, estimate], packages = json.loads(ran.stdout)
    assert (recorded, cost) == (None, None)
    assert estimate > 3_000_000
    assert set(packages) <= {"msgspec", "orjson", "backports", "typing_extensions", "_distutils_hack", "_virtualenv"}


def test_no_copies_are_no_row():
    """What an engine passes for rows without a decision."""
    assert portable.winning_responses(None, ()) is None
    assert portable.winning_calls(None, ()) is None
    assert portable.winning_responses([], ()) == []
