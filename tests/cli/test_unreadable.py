"""One log that the system cannot read costs nothing but itself."""

import sys

import pytest

from sessionlog import SessionLogger
from sessionlog.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a file whose reads fail is only at hand on Linux")


@pytest.fixture
def folder(home, tmp_path):
    """Two logs, of which one is a file that can be opened and fails when it is read."""
    folder = tmp_path / "logs"
    with SessionLogger(folder, "good") as log:
        log.emit("llm.response", {"usage": {"input": 5, "output": 6}, "model": "m-1", "provider": "p"})
    (folder / "bad.jsonl").symlink_to("/proc/self/mem")
    return folder


@pytest.mark.parametrize(
    ("command", "code", "out", "says"),
    [
        (["check"], 1, "2 logs, 3 events", "bad.jsonl unreadable: input/output error"),
        (["check", "--repair"], 1, "2 logs, 3 events", "not repaired: "),
        (["routing-quality"], 0, "1 session", "bad.jsonl: input/output error"),
        (["usage"], 0, "m-1", "bad.jsonl: input/output error"),
        (["usage", "--no-ledger"], 0, "m-1", "bad.jsonl: input/output error"),
        (["sessions"], 0, "m-1", "bad.jsonl: input/output error"),
        (["tools"], 0, "0 calls", "bad.jsonl: input/output error"),
        (["blocks"], 0, "m-1", "bad.jsonl: input/output error"),
    ],
)
def test_p08_the_other_logs_of_a_folder_are_read(folder, capsys, command, code, out, says):
    """The report is there, and the log is named with the system's reason."""
    assert main([*command, str(folder)]) == code
    shown = capsys.readouterr()
    assert out in shown.out
    assert says in shown.out + shown.err


@pytest.mark.parametrize("command", [["replay"], ["context"], ["diff", "good.jsonl"]])
def test_p08_a_log_that_is_asked_for_is_named(folder, capsys, monkeypatch, command):
    """Not the output."""
    monkeypatch.chdir(folder)
    assert main([*command, "bad.jsonl"]) == 3
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "sessionlog: bad.jsonl: input/output error\n")
