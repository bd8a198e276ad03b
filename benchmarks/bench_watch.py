"""Print what `sessionlog watch` takes of one core while ten sessions write: in a terminal, start-up apart.

Every session appends a request, a response and a tool call every half second. The history is of the same kind.

python benchmarks/bench_watch.py [--megabytes 20] [--seconds 20] [--sessions 10] [--interval 2]
"""

import argparse
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, make_corpus, print_table
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock

ROWS, COLUMNS = 50, 160
EVERY = 0.5
WARM = 6.0
"""Seconds until the first look is over, and the folders that were written to a moment ago are settled."""

_CONFIG = '[budgets.daily]\nusd = 200\nperiod = "day"\n[budgets.block]\ntokens = 50_000_000\nwindow = "5h"\n'
_TICKS = os.sysconf("SC_CLK_TCK")


class Writers(threading.Thread):
    """Agents at work, in the measuring process."""

    def __init__(self, folder, count, before):
        super().__init__(daemon=True)
        self._random = random.Random(20261121)
        self._loggers = [self._logger(folder, number, before) for number in range(count)]
        self.done = threading.Event()

    def _logger(self, folder, number, before):
        clock = FixedClock("2026-11-21T10:00:00Z", step_ns=0)
        clock.now_ns = time.time_ns() - before * 1_000_000_000
        options = {"provider": "anthropic", "model": "claude-opus-4-5-20251101", "work_dir": f"/src/project-{number}"}
        log = SessionLogger(folder, f"running-{number:02}", clock=lambda: clock.now_ns, prompt="go on", **options)
        for _ in range(before):
            clock.now_ns += 1_000_000_000
            self._step(log)
        return SessionLogger(folder, f"running-{number:02}")

    def _step(self, log):
        log.llm_request([{"role": "user", "content": "go on " * 40}], model="claude-opus-4-5-20251101")
        usage = {"input": 800, "output": self._random.randint(50, 900), "cache_read": 60_000}
        log.llm_response("Done. " * 60, model="claude-opus-4-5-20251101", usage=usage, latency_ms=900)
        log.tool_call("bash", {"command": "make"}, output="ok " * 100, duration_ms=120)

    def run(self):
        """Append until told to stop, spread over the half second."""
        while not self.done.is_set():
            for log in self._loggers:
                self._step(log)
                time.sleep(EVERY / len(self._loggers))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure `sessionlog watch`.")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--before", type=int, default=120, help="steps of each session before")
    parser.add_argument("--interval", type=float, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        logs = os.path.join(folder, "state", "sessionlog", "sessions")
        os.makedirs(os.path.dirname(logs))
        os.rename(make_corpus(folder, megabytes=options.megabytes), logs)
        config = Path(folder, "config", "sessionlog", "config.toml")
        config.parent.mkdir(parents=True)
        config.write_text(_CONFIG)
        env = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONLOG_")}
        env |= {f"XDG_{n}_HOME": os.path.join(folder, n.lower()) for n in ("CONFIG", "DATA", "STATE")}
        env |= {"HOME": os.path.join(folder, "home"), "TERM": "xterm-256color"}
        writers = Writers(logs, options.sessions, options.before)
        subprocess.run([*SESSIONLOG, "watch", "--once"], env=env, check=True, stdout=subprocess.DEVNULL)
        idle = _watched(env, options)
        writers.start()
        busy = _watched(env, options)
        writers.done.set()
        writers.join()
    print(f"{options.megabytes:g} MB of history, a look every {options.interval:g} s, {COLUMNS} x {ROWS}\n")
    rows = [["nothing is written", *idle], [f"{options.sessions} sessions write", *busy]]
    print_table(["", "CPU s", "wall s", "% of a core", "looks", "CPU ms a look", "bytes a look"], rows)


def _watched(env, options):
    """Run a watch in a terminal, and tell what it took after its start."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [*SESSIONLOG, "watch", "--interval", str(options.interval)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = []
    reader = threading.Thread(target=_drain, args=(ours, shown))
    reader.start()
    time.sleep(WARM)
    shown.clear()
    start, before = time.monotonic(), _cpu(process.pid)
    time.sleep(options.seconds)
    cpu, wall = _cpu(process.pid) - before, time.monotonic() - start
    screens = b"".join(shown)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=10)
    reader.join()
    os.close(ours)
    looks = max(1, screens.count(b"\x1b[H"))
    return [
        f"{cpu:.2f}", f"{wall:.1f}", f"{cpu / wall * 100:.1f}", str(looks), f"{cpu / looks * 1000:.1f}",
        f"{len(screens) // looks:,}",
    ]  # fmt: skip


def _cpu(pid):
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _drain(fd, pieces):
    try:
        while piece := os.read(fd, 65_536):
            pieces.append(piece)
    except OSError:  # Linux says that the last writer has gone by EIO
        pass


if __name__ == "__main__":
    main()
