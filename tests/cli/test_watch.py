"""`sessionlog watch`: a picture for scripts, and a live screen that follows its terminal and leaves it as it was."""

import fcntl
import os
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time

import pytest

from sessionlog.logger.session_logger import SessionLogger

PRESENT = ("--now", "2026-11-20T10:00:40Z", "--tz", "UTC")
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e"
PATIENCE = 30


@pytest.fixture
def sessions(home):
    """Where sessions are unless told otherwise."""
    return home / ".local" / "state" / "sessionlog" / "sessions"


@pytest.fixture
def running(sessions, record):
    """A session that is running in the present of these tests, and one that has ended."""
    record(sessions, "s-running", status=None, cost=0.5)
    record(sessions, "s-ended", cost=0.25)
    return sessions


# --- once


def test_one_picture(cli, running):
    """What is running, how fast, and what happened last; the exit code is 0 and nothing is on stderr."""
    ran = cli("watch", "--once", *PRESENT)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("Watch · 20 Nov 10:00:40 (UTC) · 1 running")
    assert [line.split()[1] for line in lines if line.startswith("●")] == ["s-running"]
    assert any("s-ended" in line and "session ended" in line for line in lines)
    assert ran.out.count("response") == 2


def test_one_document(cli, running):
    """The same for programs."""
    ran = cli("watch", "--once", "--json", *PRESENT)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["schema"] == "sessionlog.watch/1"
    assert [one["session"] for one in ran.json["sessions"]] == ["s-running"]
    assert (ran.json["totals"]["requests"], ran.json["totals"]["cost_usd"]) == (2, 0.75)


def test_it_agrees_with_usage(cli, running):
    """Of the same window."""
    document = cli("watch", "--once", "--json", *PRESENT).json
    window = f"{document['window']['start']}..{document['window']['end']}"
    totals = cli("usage", "--since", window, "--json", *PRESENT).json["totals"]
    assert document["totals"]["total_tokens"] == totals["total_tokens"] > 0
    assert document["totals"]["cost_usd"] == totals["cost_usd"]


@pytest.mark.parametrize("columns", [80, 160])
def test_a_picture_fits(cli, running, config, monkeypatch, columns):
    """With budgets, too."""
    config('[budgets.daily]\nusd = 1\nperiod = "day"\n')
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli("watch", "--once", *PRESENT).out.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("daily") and "75 %" in line for line in lines)


def test_a_picture_for_a_pipe(cli, running, monkeypatch):
    """Is about as wide as other reports."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert max(map(len, cli("watch", "--once", *PRESENT).out.splitlines())) <= 100


def test_one_mistake_leaves_the_other_budgets(cli, running, config):
    """They are shown, and the mistake is said with its file."""
    config('[budgets.daily]\nusd = 1\nperiod = "day"\n[budgets.typo]\ndollars = 20\nperiod = "day"\n')
    ran = cli("watch", "--once", *PRESENT)
    assert ran.code == 0
    assert any(line.startswith("daily") for line in ran.out.splitlines())
    assert "config.toml: [budgets.typo] unknown key 'dollars' (did you mean 'usd'?)" in " ".join(ran.out.split())


def test_filters(cli, running, record):
    """As they are everywhere."""
    record(running, "s-site", status=None, work_dir="/src/site")
    ran = cli("watch", "--once", "--json", "--project", "*/site", "--source", "native,codex", *PRESENT)
    assert [one["session"] for one in ran.json["sessions"]] == ["s-site"]


def test_hostile_names(cli, sessions, record):
    """What a log says can do nothing."""
    record(sessions, "s-1", status=None, model=EVIL, provider=EVIL, work_dir=f"/{EVIL}")
    log = sessions / "s-1.jsonl"
    log.write_bytes(log.read_bytes() + b'{"session_id":"s-1","seq":9,"type":"tool.call","ts":"2026-11-20T10:00:09Z",'
                    b'"data":{"tool":"\\u001b[2J\\u202e","input":{},"output":"x","duration_ms":1}}\n')  # fmt: skip
    for form in ([], ["--json"]):
        ran = cli("watch", "--once", *form, *PRESENT)
        assert ran.code == 0
        assert "s-1" in ran.out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", ran.out)


def test_no_ledger(cli, home, running):
    """Nothing is written."""
    assert cli("watch", "--once", "--no-ledger", "--json", *PRESENT).json["totals"]["requests"] == 2
    assert not (home / ".local" / "share").exists()


def test_a_ledger_that_is_none(cli, running, tmp_path):
    """The picture says so, and is there."""
    path = tmp_path / "ledger.sqlite"
    path.write_text("a text, and no database at all", "utf-8")
    ran = cli("watch", "--once", "--ledger", path, *PRESENT)
    assert ran.code == 0
    assert "the ledger is not used" in ran.out
    assert "● s-running" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "sessionlog watch --once"),
        (("--json",), "--json needs --once"),
        (("--now", "2026-11-20T10:02:00Z"), "--now needs --once"),
        (("--once", "--source", "nobody"), "nobody"),
        (("--once", "--interval", "0.1"), "0.2 to 86,400 seconds"),
        (("--once", "--interval", "nan"), "--interval nan"),
        (("--once", "--ledger", "x", "--no-ledger"), "choose only one"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage(cli, home, words, said):
    """Exit code 2 and what to do; without a terminal there is no live screen."""
    ran = cli("watch", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_dumb_terminal_gets_no_screen(cli, home, monkeypatch):
    """It would be shown letters that it cannot obey."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli("watch").code == 2


# --- live


class Terminal:
    """A watch on a pseudo-terminal that is its controlling one, so that it hears of resizes and of Ctrl-C."""

    def __init__(self, *arguments, columns, rows):
        self._ours, self._theirs = os.openpty()
        self.resize(columns, rows)
        command = shlex.join([sys.executable, "-m", "sessionlog", "watch", *arguments])
        name = shlex.quote(os.ttyname(self._theirs))
        # The first terminal that the leader of a session opens becomes its own.
        self.process = subprocess.Popen(["sh", "-c", f"exec {command} <>{name} >&0 2>&1"], start_new_session=True)
        self.shown = b""

    def resize(self, columns, rows):
        """Be of another size, and say so."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, words):
        """Read until something is shown; return all that was, and forget it."""
        until = time.monotonic() + PATIENCE
        while words.encode() not in self.shown:
            assert time.monotonic() < until, self.shown.decode(errors="replace")
            if select.select([self._ours], [], [], 0.1)[0]:
                self.shown += os.read(self._ours, 65_536)
        shown, self.shown = self.shown, b""
        return shown.decode(errors="replace")

    def type(self, keys):
        """Press keys."""
        os.write(self._ours, keys)

    def end(self):
        """Read what comes at the end, and return it with the exit code."""
        os.close(self._theirs)
        self._theirs = -1
        try:
            while piece := os.read(self._ours, 65_536):
                self.shown += piece
        except OSError:  # Linux says that the last writer has gone by EIO
            pass
        return self.shown.decode(errors="replace"), self.process.wait(timeout=PATIENCE)

    def close(self):
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self._ours, self._theirs):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def terminal(home):
    """Start a watch on a terminal."""
    made = []

    def start(*arguments, columns=80, rows=24):
        made.append(Terminal(*arguments, columns=columns, rows=rows))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_live_screen(terminal, sessions):
    """It follows the logs, is laid out anew at once when the terminal is resized, and Ctrl-C gives the terminal back."""
    log = SessionLogger(sessions, "s-live", provider="anthropic", model="claude-opus-4-5", prompt="go on")
    log.llm_response("ok", model="claude-opus-4-5", usage={"input": 100, "output": 10})
    shown = terminal("--interval", "0.2")
    first = shown.wait_for("s-live")
    assert "\x1b[?1049h" in first  # on a busy machine the bar of the first scan is before it
    assert "SOURCE" not in first
    log.tool_call("make-it-so", {}, output="done")
    shown.wait_for("make-it-so")
    shown.resize(160, 50)
    shown.wait_for("SOURCE")
    shown.type(b"\x03")
    last, code = shown.end()
    log.close()
    assert code == 130
    assert "\x1b[?1049l" in last
    assert "\x1b[?25h" in last
    assert "Traceback" not in last


def test_settings_that_break_while_they_are_watched(terminal, config):
    """Are shown in a line; the budgets of before stay until there are new ones."""
    config('[budgets.daily]\nusd = 1\nperiod = "day"\n')
    shown = terminal("--interval", "0.2", columns=160)
    shown.wait_for("daily")
    config("[budgets.weekly]\nusd = ")
    assert "daily" in shown.wait_for("the last valid budgets are shown")
    config('[budgets.weekly]\nusd = 3\nperiod = "week"\n')
    shown.wait_for("weekly")
    shown.type(b"\x03")
    assert shown.end()[1] == 130


def test_a_resize_does_not_wait_for_the_next_look(terminal, home):
    """Which is far away here; a process that is told to end gives the terminal back, too."""
    shown = terminal("--interval", "600", "--tz", "UTC")
    assert "(UTC)" not in shown.wait_for("No session is running.")
    shown.resize(160, 24)
    shown.wait_for("(UTC)")
    shown.process.terminate()
    last, code = shown.end()
    assert code == 143
    assert "\x1b[?1049l" in last
