"""A terminal in the hands of a hostile log: nothing but our own colours arrives there."""

import os
import pty
import re
import sys

import pytest

from tests.security.commands import command_lines, judge, run, run_on_tty
from tests.security.fragments import MARKUP, TERMINAL
from tests.security.hostile import EVIL, everywhere, logs
from tests.security.vt import findings

TEXTS = [name for name in logs() if name.startswith("text-")]
SHOWN = ["usage", "sessions", "tools", "blocks", "routing-quality", "replay", "diff"]


@pytest.fixture
def evil(tmp_path):
    """A log that is hostile in every field."""
    path = tmp_path / "evil.jsonl"
    path.write_bytes(everywhere(EVIL, key=EVIL))
    return str(path)


@pytest.mark.parametrize("steps", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", logs())
def test_p18_every_text_on_a_terminal(name, steps, tmp_path):
    """Tables and conversations in colour carry no sequence of the log's; numbers are shortened there alone.

    In the quick tier each text is shown by a quarter of the commands, the next ones by the others.
    """
    path = tmp_path / "log.jsonl"
    path.write_bytes(logs()[name])
    shown_by = SHOWN[TEXTS.index(name) % steps :: steps] if name in TEXTS else ("replay",)
    for arguments in command_lines(str(path), first_only=True, commands=shown_by):
        shown = ["replay", str(path)] if arguments[0] == "replay" else arguments
        judge(shown, run_on_tty(*shown), sgr=True)


def test_the_terminal_is_one(evil):
    """The colours are there: else the test above would prove nothing."""
    out = run_on_tty("replay", evil).out
    assert b"\x1b[" in out
    assert findings(out, sgr=True) == []


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colours_where_none_are_wanted(name, value, evil, monkeypatch):
    """With NO_COLOR or a dumb terminal not even our own sequences are written."""
    monkeypatch.setenv(name, value)
    for arguments in command_lines(evil, first_only=True, commands=SHOWN):
        judge(arguments, run_on_tty(*arguments))


@pytest.mark.parametrize("name", ["wide", "right-to-left", "combining"])
def test_an_ascii_terminal(name, tmp_path):
    """Where the locale has no letters for it, content is replaced and nothing crashes."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(everywhere({**TERMINAL, **MARKUP}[name]))
    for arguments in command_lines(str(path)):
        outcome = run(*arguments, encoding="ascii")
        judge(arguments, outcome)
        assert outcome.out.isascii()


@pytest.mark.parametrize("options", [["replay"], ["usage", "--wide"], ["check", "--notes"]])
def test_p18_a_real_process_on_a_real_terminal(options, evil, monkeypatch):
    """The same through the kernel: stdout, stderr and a pager on one terminal."""
    monkeypatch.setenv("PAGER", "cat")
    command, *rest = options
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "sessionlog", command, evil, *rest])
    chunks = []
    try:
        while piece := os.read(master, 65_536):
            chunks.append(piece)
    except OSError:  # EIO: the process has gone
        pass
    os.close(master)
    _, status = os.waitpid(pid, 0)
    out = b"".join(chunks).replace(b"\r\n", b"\n")  # the terminal's own doing
    if b"reading logs" in out:  # the bar of a scan that takes long, on a busy machine
        out = re.sub(rb"\x1b\[\?25l.*\x1b\[\?25h(?:\r|\n|\x1b\[2K|\x1b\[1A)*", b"", out, flags=re.DOTALL)
    assert out
    assert os.waitstatus_to_exitcode(status) in {0, 1}
    assert findings(out, sgr=True) == []
