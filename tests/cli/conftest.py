"""A command line in a world of its own: an empty home, no settings, no terminal, and logs that never change."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from typing import NamedTuple

import pytest

from sessionlog.cli import main
from sessionlog.logger.event_writer import EventWriter
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock

_OURS = ("SESSIONLOG_", "XDG_", "_SESSIONLOG", "_TYPER")
_LOOKS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PAGER", "LESS", "TZ")


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Its output as one JSON document."""
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home folder, and no setting or terminal of the one who runs the tests."""
    for name in os.environ:
        if name.startswith(_OURS) or name in _LOOKS:
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def cli(home, capsys):
    """Run a command line in this process, as the entry point does."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def process(home):
    """Run a command line in a process of its own."""

    def run(*arguments, stdout=subprocess.PIPE, **environment):
        command = [sys.executable, "-m", "sessionlog", *map(str, arguments)]
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            timeout=60,
        )
        return Ran(ended.returncode, (ended.stdout or b"").decode(), ended.stderr.decode())

    return run


@pytest.fixture
def terminal(home):
    """Run a command on a pseudo-terminal of some columns; return what it showed, with or without its notes.

    A slow machine would see a progress bar among the notes.
    """

    def run(*arguments, columns=100, notes=True, **environment):
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        command = [sys.executable, "-m", "sessionlog", *map(str, arguments)]
        running = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs if notes else subprocess.DEVNULL,
            env={**os.environ, **environment},
        )  # fmt: skip
        os.close(theirs)
        shown = _until_closed(ours)
        running.wait(timeout=30)
        return shown.decode().replace("\r\n", "\n")

    return run


def _until_closed(fd):
    pieces = []
    try:
        while piece := os.read(fd, 65_536):
            pieces.append(piece)
    except OSError:  # Linux says that the last writer has gone by EIO
        pass
    os.close(fd)
    return b"".join(pieces)


@pytest.fixture
def record(tmp_path):
    """Record a session of one request; None as the status leaves it without an end."""

    def write(
        folder, name, *, start="2026-11-20T10:00:00Z", status="success", model="claude-opus-4-5", cost=None, **more
    ):
        options = {"provider": "anthropic", "prompt": "make the tests pass", "work_dir": "/src/api", **more}
        log = SessionLogger(folder, name, clock=FixedClock(start), model=model, **options)
        log.llm_request([{"role": "user", "content": "make the tests pass"}], model=model)
        log.llm_response("Done.", model=model, usage={"input": 800, "output": 200}, latency_ms=2000, cost_usd=cost)
        if status is not None:
            log.end(status, error="the tests still fail" if status == "error" else None, duration_ms=3000)
        EventWriter.close(log)
        return folder / f"{name}.jsonl"

    return write


@pytest.fixture
def logs(tmp_path, record):
    """Three sessions of two days: a success with an estimated cost, a failure with a recorded one, one without a price."""
    folder = tmp_path / "logs"
    record(folder, "s-first", start="2026-11-19T23:30:00Z")
    record(folder, "s-failed", status="error", model="gpt-5.3-codex", provider="openai", cost=0.25)
    record(folder, "s-free", status=None, model="qwen3.6-27b", provider="vllm", start="2026-11-21T11:55:00Z")
    return folder


@pytest.fixture
def damaged(logs):
    """The same, with half a line in the middle of one log that nobody is writing any more."""
    path = logs / "s-failed.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:1], lines[1][:40] + b"\n", *lines[1:]]))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return logs


@pytest.fixture
def config(home):
    """Write the user's config.toml."""

    def write(text, path=None):
        path = path or home / ".config" / "sessionlog" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
def warmed(sessions, cli):
    """The `sessions` of a test, after a first report."""
    assert cli("usage").code == 0
    return sessions
