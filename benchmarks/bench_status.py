"""Print what `sessionlog status` takes: as a process, against `python -c pass`, and as a function; and `usage --json`.

The logs are a home of Claude Code; the ledger knows them. `after an append` is the first answer after a response was
added to the newest log. On a machine that others use CPU time is the steadier figure.

python benchmarks/bench_status.py [--megabytes 50] [--rounds 15]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, Measured, make_homes, measure, print_table
from sessionlog.analytics.status.reader import session_status

BARE = "python -c pass"
LONG_AGO = 1_700_000_000
_BUDGETS = '[budgets.daily]\nusd = 20\nperiod = "day"\n[budgets.weekly]\ntokens = 100_000_000\nwindow = "7d"\n'


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `sessionlog status`.")
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        home = make_homes(os.path.join(folder, "homes"), claude_megabytes=options.megabytes)
        for name in [name for name in os.environ if name.startswith(("SESSIONLOG_", "CODEX_"))]:
            del os.environ[name]
        os.environ |= {"HOME": os.path.join(folder, "home"), "CLAUDE_CONFIG_DIR": os.path.join(home, "claude")}
        newest = _settle(os.environ["CLAUDE_CONFIG_DIR"])
        commands = {
            BARE: [sys.executable, "-c", "pass"],
            "status --json": [*SESSIONLOG, "status", "--json"],
            "status --line": [*SESSIONLOG, "status", "--line"],
            "usage --json": [*SESSIONLOG, "usage", "--json"],
        }
        measure(commands, rounds=2, folder=folder)  # reads the logs, writes the .pyc files
        found = measure(commands, rounds=options.rounds, folder=folder)
        config = Path(folder, "config", "sessionlog", "config.toml")
        config.parent.mkdir(parents=True)
        config.write_text(_BUDGETS)
        budgeted = {f"{name}, two budgets": commands[name] for name in ("status --json", "status --line")}
        found |= measure(budgeted, rounds=options.rounds, folder=folder)
        config.unlink()
        _measure_appended(found, newest, commands, options.rounds, folder)
        _print(found, options)
        _function(newest, folder)


def _settle(folder):
    """Make nothing newer than it can be told, and return the log with the newest event."""
    logs = sorted(Path(folder).rglob("*.jsonl"))
    for place in (folder, *Path(folder).rglob("*")):
        os.utime(place, (LONG_AGO, LONG_AGO))
    return max(logs, key=lambda log: log.stat().st_size)


def _append(log):
    """Add the log's last response once more, with ids of its own and a moment later: it counts."""
    lines = log.read_bytes().splitlines()
    row = json.loads(next(line for line in reversed(lines) if b'"usage"' in line and b'"requestId"' in line))
    row["message"]["id"], row["requestId"], row["uuid"] = (str(uuid.uuid4()) for _ in range(3))
    row["timestamp"] = (datetime.fromisoformat(row["timestamp"]) + timedelta(milliseconds=1)).isoformat()
    with log.open("ab") as file:
        file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")


def _measure_appended(found, log, commands, rounds, folder):
    """Run each command after an append of its own, and `python -c pass` beside them."""
    titles = {BARE: BARE} | {name: f"{name}, after an append" for name in ("status --line", "usage --json")}
    for _ in range(rounds):
        for name, title in titles.items():
            _append(log)
            [run] = measure({name: commands[name]}, rounds=1, folder=folder).values()
            whole = found.setdefault(title, Measured())
            whole.seconds += run.seconds
            whole.cpu += run.cpu
            whole.peak += run.peak
            whole.code = run.code


def _print(found, options):
    print(f"{options.megabytes:g} MB of Claude Code's logs; {options.rounds} rounds, {os.cpu_count()} cores\n")
    bare = found[BARE]
    rows = [
        [
            name, f"{runs.least * 1e3:.1f}", f"{runs.median * 1e3:.1f}", f"{runs.least / bare.least:.1f}",
            f"{runs.median / bare.median:.1f}", f"{statistics.median(runs.cpu) / statistics.median(bare.cpu):.1f}",
            runs.peak_mb, str(runs.code),
        ]
        for name, runs in found.items()
    ]  # fmt: skip
    print_table(["", "min ms", "median", "x pass (min)", "(median)", "(CPU)", "peak MB", "exit"], rows)


def _function(log, folder):
    """As an agent asks: in its own process, again and again."""
    env = {**os.environ, **{f"XDG_{n}_HOME": os.path.join(folder, n.lower()) for n in ("CONFIG", "DATA", "STATE")}}
    rows = []

    def timed(name, count, before=lambda: None):
        took = []
        for _ in range(count):
            before()
            start = time.perf_counter()
            session_status(log.stem, env=env)
            took.append((time.perf_counter() - start) * 1e6)
        rows.append([name, f"{min(took):.0f}", f"{statistics.median(took):.0f}", f"{max(took):.0f}"])

    timed("the first time", 1)
    timed("the second time", 1)
    timed("again, nothing changed", 1000)
    timed("after an append", 5, lambda: _append(log))
    timed("a second later", 3, lambda: time.sleep(1.01))
    print()
    print_table(["session_status()", "min us", "median", "max"], rows)


if __name__ == "__main__":
    main()
