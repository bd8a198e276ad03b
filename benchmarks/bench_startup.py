"""Print what it costs to start each command: whole processes over a small corpus, against `python -c pass`.

python benchmarks/bench_startup.py [--rounds 15] [--megabytes 2]
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, make_corpus, measure, print_table

BARE = "python -c pass"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the start of each command.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=float, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        logs = make_corpus(folder, megabytes=options.megabytes, files=20)
        smallest = min((e for e in os.scandir(logs) if e.name.endswith(".jsonl")), key=lambda e: e.stat().st_size).path
        named = {
            "--version": ["--version"],
            "--help": ["--help"],
            "usage": ["usage", logs],
            "usage --json": ["usage", logs, "--json"],
            "sessions": ["sessions", logs],
            "replay": ["replay", smallest, "--plain"],
            "check": ["check", logs],
            "routing-quality": ["routing-quality", logs],
            "pricing": ["pricing", "claude-opus-4-5"],
        }
        commands = {
            BARE: [sys.executable, "-c", "pass"],
            "import sessionlog": [sys.executable, "-c", "import sessionlog"],
            "import SessionLogger": [sys.executable, "-c", "from sessionlog import SessionLogger"],
            **{f"sessionlog {name}": [*SESSIONLOG, *words] for name, words in named.items()},
        }
        measure(commands, rounds=1, folder=folder)  # writes the .pyc files
        found = measure(commands, rounds=options.rounds, folder=folder)
    print(f"{options.megabytes:g} MB in 20 logs, stdout a pipe; {options.rounds} rounds, {os.cpu_count()} cores\n")
    bare = found[BARE]
    rows = [
        [
            name, f"{runs.least * 1e3:.0f}", f"{runs.median * 1e3:.0f}", f"{runs.least / bare.least:.1f}",
            f"{runs.median / bare.median:.1f}", runs.peak_mb, str(runs.code),
        ]
        for name, runs in found.items()
    ]  # fmt: skip
    print_table(["", "min ms", "median", "x pass (min)", "(median)", "peak MB", "exit"], rows)


if __name__ == "__main__":
    main()
