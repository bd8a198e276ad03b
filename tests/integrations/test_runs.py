"""`integrations.runs`: a session for each run, and errors that stay with the logger."""

import pytest

from sessionlog import SessionLogger, read_events
from sessionlog.errors import NotRecorded
from sessionlog.integrations.runs import Guard, Runs


def events_in(folder):
    """(type, status or error) of the events of each log, by log."""
    return [
        [(event.type, event.data.get("status")) for event in read_events(path)]
        for path in sorted(folder.glob("*.jsonl"))
    ]


def test_an_error_is_counted_and_goes_no_further(tmp_path):
    """The host goes on; health() has the cause, and the log the gap."""
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with log:
        with Guard(log):
            raise LookupError("no such field")
        log.llm_response("answer")
    health = log.health()
    assert (health.dropped, health.dropped_by, health.ok) == (1, {"integration": 1}, False)
    assert health.last_error == "integration: no such field"
    assert "log.gap" in [event.type for event in read_events(tmp_path / "s.jsonl")]


def test_errors_reach_a_host_that_asked_for_them(tmp_path):
    """`on_error="raise"`."""
    log = SessionLogger(tmp_path, "s", on_error="raise", notify=lambda _: None)
    with pytest.raises(NotRecorded, match="no such field"), Guard(log):
        raise LookupError("no such field")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_passes(tmp_path, error):
    """Only errors are kept back."""
    log = SessionLogger(tmp_path, "s", notify=lambda _: None)
    with pytest.raises(error), Guard(log):
        raise error
    assert log.health().ok


def test_each_run_has_a_session(tmp_path):
    """It ends as the run ended; runs beside each other do not mix."""
    runs = Runs(None, {"directory": tmp_path})
    first, second = runs.begin(1, prompt="a"), runs.begin(2)
    assert runs.begin(1) is first
    assert runs.find(1) is first
    first.llm_response("one")
    second.llm_response("two")
    runs.end(2, error=LookupError("lost"))
    runs.end(1, output="one")
    runs.end(3)
    assert runs.find(1) is None
    assert sorted(events_in(tmp_path)) == [
        [("session.start", None), ("llm.response", None), ("session.end", "error")],
        [("session.start", None), ("llm.response", None), ("session.end", "success")],
    ]


def test_a_given_logger_has_all_runs_and_is_ended_by_its_owner(tmp_path):
    """The integration neither begins nor ends it."""
    with SessionLogger(tmp_path, "s") as log:
        runs = Runs(log, {})
        assert runs.begin(1) is runs.begin(2) is log
        runs.end(1, error=LookupError())
        log.llm_response("still open")
    assert [kind for kind, _ in events_in(tmp_path)[0]] == ["session.start", "llm.response", "session.end"]


def test_wrong_options_are_errors_of_the_call(tmp_path):
    """Not of the first run, and no file is made."""
    with pytest.raises(TypeError):
        Runs(None, {"directory": tmp_path, "colour": "red"})
    with pytest.raises(ValueError, match="on_error"):
        Runs(None, {"directory": tmp_path, "on_error": "shout"})
    with pytest.raises(TypeError, match="directory"):
        Runs(SessionLogger(tmp_path), {"directory": tmp_path})
    assert list(tmp_path.iterdir()) == []
