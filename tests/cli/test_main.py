"""The entry point: whatever happens to the streams, the exit code is right and no traceback is shown."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sessionlog import __version__
from sessionlog.cli import app, fast_path, main
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock

FULL = Path("/dev/full")
WRITERS = (
    ["--version"], ["--help"], ["usage"], ["usage", "--json"], ["sessions"], ["sessions", "--csv"], ["check"],
    ["routing-quality"], ["pricing", "--list"],
)  # fmt: skip


@pytest.fixture
def own_logs(home, logs, monkeypatch):
    """The three sessions as the user's own."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    return logs


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """A log whose replay does not fit in a pipe."""
    folder = tmp_path_factory.mktemp("long")
    with SessionLogger(folder, "long", clock=FixedClock(), prompt="count", work_dir="/src") as log:
        for number in range(600):
            log.llm_request([{"role": "user", "content": f"question {number}"}])
            log.llm_response(f"answer {number} " + "and so on " * 40)
    return folder / "long.jsonl"


@pytest.mark.parametrize(
    "arguments", [["--version"], ["usage", "--help"], ["usage"], ["sessions", "--csv"], ["pricing", "--list", "--json"]]
)
def test_a_pipe_that_nobody_reads_is_silent(process, own_logs, arguments):
    """No word and no complaint, whichever library was writing."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert process(*arguments, stdout=writer) == (0, "", "")
    finally:
        os.close(writer)


@pytest.mark.parametrize("option", ["--plain", "--json"])
def test_a_reader_that_leaves_early_is_no_error(home, long_log, option):
    """As in `sessionlog replay LOG | head -1`."""
    command = [sys.executable, "-m", "sessionlog", "replay", str(long_log), option]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        first = running.stdout.readline()
        running.stdout.close()
        complaint = running.stderr.read()
    assert (running.returncode, complaint) == (0, b"")
    assert b"long" in first


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_a_full_disk_is_a_sentence(own_logs, monkeypatch, capsys, arguments):
    """Exit code 3 and one line, whichever library was writing."""
    with FULL.open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(arguments) == 3
        assert full.closed
    assert capsys.readouterr().err.splitlines()[-1] == "sessionlog: the output: No space left on device"


@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_a_closed_stdout_is_nobodys(own_logs, monkeypatch, arguments):
    """A daemon without stdout still gets its exit code."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(arguments) == 0


def test_a_closed_stderr_lets_no_note_slip_into_the_data(home, monkeypatch, capsys):
    """Python's print would fall back to stdout."""
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["usage", "--by", "nonsense"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_what_an_encoding_lacks_is_replaced(own_logs, monkeypatch, encoding, arguments):
    """Words and figures stay."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(arguments) == 0
    assert stdout.buffer.getvalue().decode(encoding).strip()


def test_ctrl_c_exits_with_130(home, record, tmp_path):
    """In the middle of a replay that waits."""
    log = record(tmp_path / "logs", "s-slow")
    command = [sys.executable, "-m", "sessionlog", "replay", str(log), "--speed", "0.001x"]
    # A shell in the background ignores the signal, and its children would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with running:
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=30)[1]
    assert (running.returncode, said) == (130, b"")


def test_an_interrupt_anywhere_is_130(monkeypatch, home):
    """Also outside of typer, and on the fast path."""
    for module in (app, fast_path):
        monkeypatch.setattr(module, "run", lambda argv: signal.raise_signal(signal.SIGINT))
        assert main(["--help"]) == 130


def test_what_is_no_broken_pipe_passes(monkeypatch, home):
    """A SystemExit of somebody else's keeps its code."""
    monkeypatch.setattr(app, "run", lambda argv: sys.exit(7))
    with pytest.raises(SystemExit, match="7"):
        main(["--help"])


def test_python_dash_m_is_the_same_command(process):
    """`python -m sessionlog` ends with the code of the command."""
    assert process("--version") == (0, f"sessionlog {__version__}\n", "")
    assert process("usage", "--by", "nonsense").code == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["help"], ["--help"]),
        (["help", "usage"], ["usage", "--help"]),
        (["version"], ["--version"]),
        (["daily"], ["usage", "--by", "day"]),
        (["weekly", "--json"], ["usage", "--by", "week", "--json"]),
        (["monthly", "-n", "3"], ["usage", "--by", "month", "-n", "3"]),
        (["daily", "-b", "model", "-j"], ["usage", "--by", "day", "-b", "model", "-j"]),
    ],
    ids=" ".join,
)
def test_words_that_people_try(process, words, meant):
    """They are other words for what there is."""
    ran = process(*words)
    assert ran == process(*meant)
    assert ran.code == 0


def test_daily_is_no_path(process):
    """Only as the first word."""
    assert process("usage", "daily").code == 3
