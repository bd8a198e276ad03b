"""Print how fast `sessionlog ui` opens on a large ledger, against the smallest application that textual can show.

Both run in a pseudo-terminal; the clock stops when their bytes are there: the first frame, and the list of sessions.
Rounds are interleaved; on a busy machine the least CPU time tells most.

python benchmarks/bench_ui.py [--megabytes 1000] [--home FOLDER] [--rounds 7]

Goal: 1.5 times the smallest application. A home of `agent_homes.py` can be given, so that it is made only once.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, make_homes, print_table

SMALLEST = """
from textual.app import App
from textual.widgets import Static

class Smallest(App):
    def compose(self):
        yield Static("ready to go")

Smallest().run()
"""
SIZE = (40, 120)
PATIENCE = 120
_TICKS = os.sysconf("SC_CLK_TCK")

APPLICATIONS = {
    "smallest": ([sys.executable, "-c", SMALLEST], {"frame": rb"ready to go"}),
    "sessionlog ui": ([*SESSIONLOG, "ui"], {"frame": rb"Sessions", "list": rb"\d sessions"}),
}
"""Command lines, and what each shows at its stages."""


def open_once(command, env, stages):
    """Run an application until it has shown the last stage; return the wall and CPU seconds of each."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=env, start_new_session=True
    )
    os.close(terminal)
    shown, reached, missing = b"", {}, dict(stages)
    try:
        while missing:
            if not select.select([controller], [], [], PATIENCE)[0]:
                raise TimeoutError(f"{command} does not show {missing}: {shown[-2000:]!r}")
            shown += os.read(controller, 1 << 16)
            now = time.perf_counter() - start, _cpu(process.pid)
            for name in [name for name, pattern in missing.items() if re.search(pattern, shown)]:
                reached[name] = now
                del missing[name]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(controller)
    return reached


def _cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the opening of `sessionlog ui`.")
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--home", help="a folder of agent_homes.py, instead of a new one")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        home = options.home or make_homes(
            os.path.join(folder, "home"), claude_megabytes=options.megabytes * 0.7,
            codex_megabytes=options.megabytes * 0.3,
        )  # fmt: skip
        env = _environment(folder, home)
        for _ in range(2):  # reads the logs, writes the .pyc files
            for words in (["sessions"], ["usage"]):
                subprocess.run([*SESSIONLOG, *words], env=env, stdout=subprocess.DEVNULL, check=True)
        found = {}
        for number in range(options.rounds + 1):
            for name, (command, stages) in APPLICATIONS.items():
                for stage, times in open_once(command, env, stages).items():
                    if number:  # the first round only warms up
                        found.setdefault((name, stage), []).append(times)
    least = {key: [min(column) for column in zip(*runs, strict=True)] for key, runs in found.items()}
    base = least["smallest", "frame"]
    print(f"{options.rounds} rounds, {os.cpu_count()} cores, {SIZE[1]}×{SIZE[0]}\n")
    rows = [
        [
            f"{name}: {stage}", f"{wall * 1e3:.0f}", f"{wall / base[0]:.2f}", f"{cpu * 1e3:.0f}",
            f"{cpu / base[1]:.2f}",
        ]
        for (name, stage), (wall, cpu) in least.items()
    ]  # fmt: skip
    print_table(["", "min ms", "x smallest", "CPU ms", "x smallest"], rows)


def _environment(folder, home):
    """Return the environment: the logs of that home alone, all else in a folder of its own."""
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("SESSIONLOG_", "CODEX_", "CLAUDE_"))
    }
    env |= {f"XDG_{name}_HOME": os.path.join(folder, name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    return env | {
        "HOME": folder, "CLAUDE_CONFIG_DIR": os.path.join(home, "claude"), "CODEX_HOME": os.path.join(home, "codex"),
        "TZ": "UTC", "TERM": "xterm-256color", "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip


if __name__ == "__main__":
    main()
