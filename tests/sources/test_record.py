"""Records are values: what is not said has one meaning, and nothing changes after the scan."""

from sessionlog.events.names import UNKNOWN
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.record import Record, ScannedSession


def least_record():
    return Record(time_ns=None, provider="p", model="m", response_model=None, usage=TokenUsage(), cost_nano=None)


def test_a_record_is_one_exact_request_unless_it_says_otherwise():
    """The defaults are those of an answered call whose cost may be asked for."""
    record = least_record()
    assert (record.requests, record.failed, record.priced) == (1, False, True)
    assert (record.granularity, record.quality) == ("request", "exact")
    assert (record.latency_ms, record.active_ms) == (None, 0)


def test_a_session_without_facts_is_unknown_and_counts():
    """Missing group keys are the word, never null; a session counts unless a source says no."""
    session = ScannedSession(source="native", session_id="s", path="s.jsonl", start_ns=None, last_ns=None)
    assert {session.project, session.harness, session.route} == {UNKNOWN} == {"unknown"}
    assert (session.status, session.duration_ms, session.counted) == (None, None, True)
    assert (session.records, session.tools, session.part) == ((), (), False)


def test_records_are_equal_by_value():
    """Two scans of one line give the same value."""
    assert least_record() == least_record()
