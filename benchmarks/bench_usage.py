"""Print how long `sessionlog usage` takes over a cold corpus, against reading alone and against orjson on every line.

python benchmarks/bench_usage.py [--megabytes 100] [--files N] [--rounds 5]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import READ_EVERY_BYTE, SESSIONLOG, make_corpus, measure, print_table

BARE, FLOOR, NAIVE = "python -c pass", "read every byte", "orjson on every line"

_NAIVE = """
import gzip, os, sys
import orjson
sums = {}
for entry in os.scandir(sys.argv[1]):
    with (gzip.open if entry.name.endswith(".gz") else open)(entry.path, "rb") as file:
        for line in file:
            try:
                event = orjson.loads(line)
            except ValueError:
                continue
            if event["type"] == "llm.response":
                usage = event["data"].get("usage") or {}
                key = event["data"].get("model")
                sums[key] = sums.get(key, 0) + usage.get("input", 0) + usage.get("output", 0)
print(sums)
"""
"""What one writes in five minutes: orjson on every line."""


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `sessionlog usage` against two floors.")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--files", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        logs = make_corpus(folder, megabytes=options.megabytes, files=options.files)
        truth = json.loads(Path(f"{logs}.truth.json").read_text())
        usage = [*SESSIONLOG, "usage", logs, "--json", "--no-ledger"]
        found = measure(
            {
                BARE: [sys.executable, "-c", "pass"],
                FLOOR: [sys.executable, "-c", READ_EVERY_BYTE, logs],
                NAIVE: [sys.executable, "-c", _NAIVE, logs],
                "sessionlog usage --json --no-ledger": usage,
            },
            rounds=options.rounds,
            folder=folder,
        )
        report = json.loads(subprocess.run(usage, check=True, capture_output=True).stdout)
    _print(truth, report, found, options.rounds)


def _print(truth, report, found, rounds):
    stored, bare = truth["stored_bytes"] / 1e6, found[BARE].least
    print(f"{stored:.0f} MB, {truth['files']} files, {truth['lines']:,} lines; {rounds} rounds, {os.cpu_count()} cores")
    print("whole processes; all but the median is of the fastest run; (in brackets: less what starting Python takes)\n")
    floor, naive = found[FLOOR].least, found[NAIVE].least
    rows = [
        [
            name,
            f"{runs.least * 1e3:.0f}",
            f"{runs.median * 1e3:.0f}",
            f"{stored / runs.least:.0f}",
            f"{runs.least / floor:.1f} ({(runs.least - bare) / (floor - bare):.1f})",
            f"{naive / runs.least:.2f}",
            runs.peak_mb,
        ]
        for name, runs in found.items()
        if name != BARE
    ]
    rows.insert(0, [BARE, f"{bare * 1e3:.0f}", f"{found[BARE].median * 1e3:.0f}", "", "", "", found[BARE].peak_mb])
    print_table(["", "min ms", "median", "MB/s", "x read every byte", "x as fast as orjson", "peak MB"], rows)
    totals, sums = report["totals"], truth["totals"]
    same = all(totals[name] == sums[name] for name in totals.keys() & sums.keys())
    print(f"\ntotals {'equal' if same else 'DIFFER FROM'} the corpus's truth: {totals['total_tokens']:,} tokens")


if __name__ == "__main__":
    main()
