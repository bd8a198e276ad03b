"""Print how long reports take over the exports of many machines, how much memory, and how both grow.

python benchmarks/bench_place.py [--machines 100] [--days 365] [--per-day 100] [--rounds 3]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, measure, print_table
from benchmarks.team_place import make_place

REPORTS = {
    "usage": [],
    "usage --by machine": ["--by", "machine"],
    "usage --by day": ["--by", "day"],
    "usage --since 2025-11": ["--since", "2025-11"],
}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time reports over the exports of many machines.")
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--per-day", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        commands = {}
        for share in (10, 1):
            machines = max(1, options.machines // share)
            place = f"{folder}/{machines}"
            rows = make_place(place, machines=machines, days=options.days, per_day=options.per_day)
            for name, arguments in REPORTS.items():
                commands[f"{name}: {machines} machines, {rows:,} rows"] = [
                    *SESSIONLOG,
                    "usage",
                    place,
                    "--json",
                    *arguments,
                ]
            found = json.loads(
                subprocess.run([*SESSIONLOG, "usage", place, "--json"], capture_output=True, check=True).stdout
            )
            assert found["totals"]["requests"] == machines * options.days * options.per_day, "copies count once"
        found = measure(commands, rounds=options.rounds, folder=folder)
    rows = [[name, f"{runs.least:.2f}", f"{runs.median:.2f}", runs.peak_mb] for name, runs in found.items()]
    print_table(["report", "s, fastest", "s, median", "peak MB"], rows)


if __name__ == "__main__":
    main()
