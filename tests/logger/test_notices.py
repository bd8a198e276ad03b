"""Notices: one line per cause per minute, harmless on any terminal."""

import io
import sys

from sessionlog.logger import notices
from sessionlog.logger.notices import Notices


def test_one_notice_per_cause_and_minute(monkeypatch):
    """The first is reported, the others are not, until a minute has gone by; each cause counts for itself."""
    now = [1000.0]
    monkeypatch.setattr(notices, "monotonic", lambda: now[0])
    reported = []
    limited = Notices(reported.append)
    for cause, seconds in (("ENOSPC", 0), ("ENOSPC", 59.9), ("EIO", 0), ("ENOSPC", 0.1), ("EIO", 59.5), ("EIO", 0.5)):
        now[0] += seconds
        limited.report(cause, f"{cause} at {now[0]:.1f}")
    assert reported == ["ENOSPC at 1000.0", "EIO at 1059.9", "ENOSPC at 1060.0", "EIO at 1120.0"]


def test_a_failing_listener_is_left_alone():
    """What the caller's function does is not the logger's problem."""

    def fail(text):
        raise RuntimeError(text)

    Notices(fail).report("EIO", "text")


def test_notices_go_to_stderr_by_default(monkeypatch):
    """One line, without a control character that a terminal would interpret."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    Notices().report("EIO", "log\x1b[2J \x07 \u202e é\n\ud800")
    text = sys.stderr.getvalue()
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    assert text.isascii()


def test_without_stderr_nothing_is_reported(monkeypatch):
    """A daemon may have none."""
    monkeypatch.setattr(sys, "stderr", None)
    Notices().report("EIO", "text")


def test_at_the_end_of_the_process_the_descriptor_is_written_to(monkeypatch, capfd):
    """A thread that was stopped may hold the stream."""
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    Notices().report("EIO", "text")
    assert capfd.readouterr() == ("", "text\n")


def test_a_closed_stderr_is_left_alone(monkeypatch):
    """An agent must not die of a notice."""
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    Notices().report("EIO", "text")


def test_some_causes_are_reported_once():
    """However much time goes by; and at most a hundred of them."""
    reported = []
    notices = Notices(reported.append)
    for number in range(300):
        notices.report_once(f"cause {number // 2}", f"text {number}")
    assert reported[:2] == ["text 0", "text 2"]
    assert len(reported) == 100
