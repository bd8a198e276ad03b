"""Lean scans: what a log told as tuples that can be sent, with names once and keys as numbers."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.ledger.lean import lean, number_of
from sessionlog.ledger.schema import LABEL, NAME, RESPONSE
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.record import Problems, ToolUse
from tests.ledger.entries import NOON, record, session


def lean_of(*sessions, **fields):
    """A lean scan of these sessions."""
    return lean(LogScan(sessions=sessions, **fields))


def call(key, **fields):
    """A call of Bash at noon."""
    return ToolUse(key=key, time_ns=NOON, tool="Bash", **fields)


def test_names_are_kept_once():
    """However many responses have them in common."""
    scan = lean_of(session("a", record(), record()), session("b", record(), record(model="n")))
    [first, second] = scan.sessions
    assert [row[0] for row in (*first.responses, *second.responses)] == [0, 0, 0, 1]
    assert [len(label) for label in scan.labels] == [len(LABEL)] * 2


def test_a_response_is_a_row_in_the_order_of_the_schema():
    """Less what the book alone can know."""
    [one] = lean_of(session("a", record(latency_ms=50, cost_nano=7))).sessions
    [row] = one.responses
    of_the_book = {"file_id", "n", "session_id", "label_id", "counts", "recorded_nano", "cost_nano", "estimate_nano"}
    told = [name for name in RESPONSE if name not in of_the_book]
    assert len(row) == len(told) + 2  # the label's number, and what the log says it cost
    assert (row[5], row[8], row[9], row[14]) == (NOON, 10, 5, 7)


def test_keys_are_numbers_that_all_copies_share():
    """The same in every log, process and machine of one source, others in another source."""
    copies = [lean_of(session(name, record(key="k", family="f"))).sessions[0].responses[0] for name in "ab"]
    assert copies[0][1:3] == copies[1][1:3]
    other = lean_of(session("a", record(key="k", family="f"), source="codex")).sessions[0].responses[0]
    assert copies[0][1] != other[1]
    alone = lean_of(session("a", record(key="f"))).sessions[0].responses[0]
    assert alone[1] == alone[2] == copies[0][1] != copies[0][2]


def test_a_response_without_a_key_has_no_copies():
    """It is known by its place alone."""
    [row] = lean_of(session("a", record())).sessions[0].responses
    assert row[1:3] == (None, None)


def test_a_failed_response_has_no_latency_to_count():
    """What failed at once was not fast."""
    [row] = lean_of(session("a", record(latency_ms=50, failed=True))).sessions[0].responses
    assert row[-3:-1] == (50, None)


def test_calls_have_the_project_of_their_session_unless_they_say_so():
    """And their names once."""
    scan = lean_of(session("a", tools=(call("1"), call("2", project="/w/own"), call("3")), project="/w"))
    assert [row[0] for row in scan.sessions[0].calls] == [0, 1, 0]
    assert [name[NAME.index("project")] for name in scan.names] == ["/w", "/w/own"]


def test_the_facts_are_kept_without_what_was_counted():
    """And everything that belongs to the log."""
    resume, problems = Resume(offset=9, line=1), Problems(count=3)
    told = LogScan(
        sessions=(session("a", record()),), resume=resume, problems=problems, replaced_count=2, full_rescan=True
    )
    scan = lean(told, failed=True)
    assert (scan.resume, scan.problems, scan.failed) == (resume, problems, True)
    assert (scan.replaced_count, scan.full_rescan) == (2, True)
    assert (scan.sessions[0].facts.records, scan.sessions[0].facts.session_id) == ((), "a")
    assert lean_of() == lean(LogScan())


def test_a_scan_can_be_sent():
    """Workers are other processes."""
    scan = lean_of(session("a", record(key="k"), tools=(call("1"),)))
    assert pickle.loads(pickle.dumps(scan)) == scan


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")), max_size=20), st.binary(max_size=80))
def test_a_number_fits_where_it_is_kept(name, seed):
    """Any name, half characters too, is a number of 64 bits, and always the same one."""
    number = number_of(name, seed)
    assert -(2**63) <= number < 2**63
    assert number_of(name, seed) == number
