"""Print how long `sessionlog usage` takes over a cold corpus, against reading alone and against orjson on every line.

python tests/bench/bench_usage.py [--megabytes 100] [--files N] [--rounds 5]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.measure import SESSIONLOG, make_corpus, measure, print_table

READ = """
import os, sys
buffer = bytearray(1 << 18)
for entry in os.scandir(sys.argv[1]):
    with open(entry.path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
"""
"""The floor: every byte through one buffer, nothing looked at."""

NAIVE = """
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
        usage = [*SESSIONLOG, "usage", logs, "--json"]
        found = measure(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "read every byte": [sys.executable, "-c", READ, logs],
                "orjson on every line": [sys.executable, "-c", NAIVE, logs],
                "sessionlog usage --json": usage,
            },
            rounds=options.rounds,
            folder=folder,
        )
        report = json.loads(subprocess.run(usage, check=True, capture_output=True).stdout)
    _print(truth, report, found, options.rounds)


def _print(truth, report, found, rounds):
    stored, bare = truth["stored_bytes"], found["python -c pass"].least
    print(
        f"{stored / 1e6:.0f} MB, {truth['files']} files, {truth['lines']:,} lines; {rounds} rounds, {os.cpu_count()} cores"
    )
    print("whole processes; the columns after the median are of the fastest run\n")
    floor, naive = found["read every byte"].least, found["orjson on every line"].least
    rows = []
    for name, runs in found.items():
        work = max(runs.least - bare, 1e-9)
        rows.append(
            [name, f"{runs.least * 1e3:.0f}", f"{runs.median * 1e3:.0f}", "", "", "", runs.peak_mb]
            if runs is found["python -c pass"]
            else [
                name, f"{runs.least * 1e3:.0f}", f"{runs.median * 1e3:.0f}", f"{stored / 1e6 / runs.least:.0f}",
                f"{runs.least / floor:.2f}", f"{naive / runs.least:.2f}", runs.peak_mb,
            ]
        )  # fmt: skip
        if runs is not found["python -c pass"]:
            rows[-1][4] += f" ({work / max(floor - bare, 1e-9):.1f})"
    print_table(["", "min ms", "median", "MB/s", "x read (less start)", "orjson / it", "peak MB"], rows)
    totals = report["totals"]
    same = all(
        totals[name] == truth["totals"][name] for name in totals if name.endswith("_tokens") and name in truth["totals"]
    )
    print(
        f"\ntokens and requests {'equal' if same else 'DIFFER FROM'} the corpus's truth: {totals['total_tokens']:,} tokens"
    )


if __name__ == "__main__":
    main()
