"""Print how `sessionlog replay` does on one very long session: time to the first line, peak memory, lines a second.

python benchmarks/bench_replay.py [--megabytes 200] [--rounds 3]
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, make_corpus, measure, print_table


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `sessionlog replay` on one long log.")
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        logs = make_corpus(folder, megabytes=options.megabytes, files=1)
        (log,) = os.scandir(logs)
        size = log.stat().st_size
        found = measure(
            {
                "cat": ["cat", log.path],
                "replay --plain": [*SESSIONLOG, "replay", log.path, "--plain"],
                "replay --plain --full": [*SESSIONLOG, "replay", log.path, "--plain", "--full"],
                "replay --plain --only tool.call": [*SESSIONLOG, "replay", log.path, "--plain", "--only", "tool.call"],
                "replay --json": [*SESSIONLOG, "replay", log.path, "--json"],
            },
            rounds=options.rounds,
            folder=folder,
        )
    print(
        f"one log of {size / 1e6:.0f} MB, {found['cat'].lines:,} lines; {options.rounds} rounds, {os.cpu_count()} cores\n"
    )
    rows = [
        [
            name, f"{min(runs.first) * 1e3:.0f}", f"{runs.least:.2f}", f"{runs.median:.2f}", f"{size / 1e6 / runs.least:.0f}",
            f"{runs.lines:,}", f"{runs.lines / runs.least:,.0f}", runs.peak_mb,
        ]
        for name, runs in found.items()
    ]  # fmt: skip
    print_table(["", "first line ms", "min s", "median", "MB/s read", "lines out", "lines/s out", "peak MB"], rows)


if __name__ == "__main__":
    main()
