"""Print what `sessionlog status` takes: as a process, against `python -c pass`, and as a function.

The logs are a home of Claude Code; the ledger knows them. `after an append` is the first status after a response was
added to the newest log.

python tests/bench/bench_status.py [--megabytes 50] [--rounds 15]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[2]))

from sessionlog.analytics.status.reader import session_status
from tests.bench.measure import SESSIONLOG, Measured, make_homes, measure, print_table

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
        }
        measure(commands, rounds=2, folder=folder)  # reads the logs, writes the .pyc files
        found = measure(commands, rounds=options.rounds, folder=folder)
        config = Path(folder, "config", "sessionlog", "config.toml")
        config.parent.mkdir(parents=True)
        config.write_text(_BUDGETS)
        budgeted = {f"{name}, two budgets": commands[name] for name in list(commands)[1:]}
        found |= measure(budgeted, rounds=options.rounds, folder=folder)
        config.unlink()
        found |= _appended(newest, commands["status --line"], options.rounds, folder)
        _print(found, options)
        _function(newest, folder)


def _settle(folder):
    """Make nothing newer than it can be told, and return the log with the newest event."""
    logs = sorted(Path(folder).rglob("*.jsonl"))
    for place in (folder, *Path(folder).rglob("*")):
        os.utime(place, (LONG_AGO, LONG_AGO))
    return max(logs, key=lambda log: log.stat().st_size)


def _append(log):
    """Add the log's last line that is a response once more: the copies of one response count once."""
    lines = [line for line in log.read_bytes().splitlines() if b'"usage"' in line]
    with log.open("ab") as file:
        file.write(lines[-1] + b"\n")


def _appended(log, command, rounds, folder):
    whole = Measured()
    for _ in range(rounds):
        _append(log)
        [run] = measure({"run": command}, rounds=1, folder=folder).values()
        whole.seconds += run.seconds
        whole.peak += run.peak
        whole.code = run.code
    return {"status --line, after an append": whole}


def _print(found, options):
    print(f"{options.megabytes:g} MB of Claude Code's logs; {options.rounds} rounds, {os.cpu_count()} cores\n")
    bare = found[BARE]
    rows = [
        [
            name, f"{runs.least * 1e3:.1f}", f"{runs.median * 1e3:.1f}", f"{runs.least / bare.least:.1f}",
            f"{runs.median / bare.median:.1f}", runs.peak_mb, str(runs.code),
        ]
        for name, runs in found.items()
    ]  # fmt: skip
    print_table(["", "min ms", "median", "x pass (min)", "(median)", "peak MB", "exit"], rows)


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
