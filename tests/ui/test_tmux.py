"""The terminal application in a real terminal: tmux, at small and large sizes, and while its size changes."""

import os
import shutil
import subprocess
import sys
import time
import uuid

import pytest

pytest.importorskip("textual", reason="the terminal application needs sessionlog[tui]")

from tests.security.commands import STORY

TMUX = shutil.which("tmux")
PATIENCE = 30
pytestmark = [pytest.mark.slow, pytest.mark.skipif(TMUX is None, reason="tmux is not installed")]


class Terminal:
    """A session of a tmux server of its own."""

    def __init__(self, columns, rows):
        self._socket = f"sessionlog-{uuid.uuid4().hex[:8]}"
        size = ["-u", "COLUMNS", "-u", "LINES"]  # they would count as the terminal's
        command = ["env", *size, sys.executable, "-m", "sessionlog", "ui", "--tz", "UTC"]
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(rows), *command)

    def _tmux(self, *words):
        command = [TMUX, "-L", self._socket, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def press(self, *keys):
        """Send keys by their names in tmux."""
        self._tmux("send-keys", *keys)

    def resize(self, columns, rows):
        """Change the terminal's size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self):
        """The lines on the screen."""
        return self._tmux("capture-pane", "-p").split("\n")[:-1]

    def until(self, columns, rows, *texts):
        """Wait until the screen is whole at this size and shows all these texts: a picture may be half painted."""
        ends = time.monotonic() + PATIENCE
        while True:
            lines = self.screen()
            missing = [text for text in texts if text not in "\n".join(lines)]
            if is_whole(lines, columns, rows) and not missing:
                return
            assert time.monotonic() < ends, (missing, "\n".join(lines))
            time.sleep(0.05)

    def close(self):
        """End the server and all in it."""
        self._tmux("kill-server")


@pytest.fixture
def open_ui(tmp_path, monkeypatch):
    """Start the application over three sessions in a terminal of some size."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("first", "second", "third"):
        shutil.copy(STORY, logs / f"{name}.jsonl")
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    monkeypatch.setenv("TERM", "xterm-256color")
    terminals = []

    def start(columns, rows):
        terminals.append(Terminal(columns, rows))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def is_whole(lines, columns, rows):
    """Whether the first line has the views, the last ones the keys, and no line is longer than the terminal."""
    return (
        len(lines) == rows
        and lines[0].startswith("sessionlog")
        and any("q quit" in line for line in lines[-3:])
        and max(map(len, lines)) <= columns
    )


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60)])
def test_every_view_is_shown(open_ui, columns, rows):
    """Sessions, a replay, usage, running sessions and budgets."""
    terminal = open_ui(columns, rows)
    terminal.until(columns, rows, "3 sessions", "/ search")
    terminal.press("Enter")
    terminal.until(columns, rows, "you ▸", "esc back", "o open as HTML")
    terminal.press("Escape")
    terminal.until(columns, rows, "3 sessions")
    for key, texts in (("2", ("by day · 7d", "←/→ period")), ("3", ("running",)), ("4", ("No budgets are set",))):
        terminal.press(key)
        terminal.until(columns, rows, *texts)


def test_a_storm_of_sizes_leaves_a_whole_screen(open_ui):
    """After forty sizes the replay fits the last one, at its place."""
    terminal = open_ui(80, 24)
    terminal.until(80, 24, "3 sessions")
    terminal.press("Enter")
    terminal.until(80, 24, "you ▸")
    for step in range(40):
        terminal.resize(40 + step * 37 % 160, 10 + step * 13 % 50)
    terminal.resize(100, 30)
    terminal.until(100, 30, "━━ third", "you ▸")
