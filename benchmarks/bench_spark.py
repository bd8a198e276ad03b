"""Print how long `sessionlog usage` takes with one process, with several, and on Spark, and that all count the same.

python benchmarks/bench_spark.py [--megabytes 1000 4000] [--cores 2] [--master spark://HOST:7077]

Needs pyspark and Java. The rounds are interleaved. Memory is that of the command's whole tree of processes, so a local
Spark with its workers, but not the workers of another master. A Spark report of one log of a few lines is its start-up.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import ROOT, SESSIONLOG, Measured, make_homes, markdown_table, run_into

STORY = ROOT / "testdata" / "replay" / "story.jsonl"


def contestants(cores: int, master: str | None) -> dict[str, tuple[str, ...]]:
    """Name → options of the report."""
    found = {
        "one process": ("--jobs", "1"),
        f"{cores} processes": ("--jobs", str(cores)),
        f"Spark, local[{cores}]": ("--engine", "spark", "--master", f"local[{cores}]"),
    }
    return found | ({f"Spark, {master}": ("--engine", "spark", "--master", master)} if master else {})


def main() -> None:
    """Make the logs, run all contestants in turn, compare what they count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1000])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--master")
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TZ": "UTC", "TERM": "dumb", "HOME": folder, "PYTHONPATH": str(ROOT)}
        places = {"start-up": str(STORY)}
        for size in chosen.megabytes:
            homes = os.path.join(folder, f"homes-{size}")
            places[f"{size} MB"] = make_homes(homes, claude_megabytes=size * 0.7, codex_megabytes=size * 0.3)
        found = {(what, name): Measured() for what in contestants(chosen.cores, chosen.master) for name in places}
        for name, place in [(name, place) for _ in range(chosen.rounds) for name, place in places.items()]:
            documents = set()
            for what, options in contestants(chosen.cores, chosen.master).items():
                out = os.path.join(folder, "report.json")
                command = [*SESSIONLOG, "usage", place, "--json", "--now", "2026-11-23T00:00:00Z", *options]
                run_into(out, command, env, found[what, name])
                assert found[what, name].code == 0, Path(f"{out}.err").read_text()
                documents.add(json.dumps(json.loads(Path(out).read_text())))
            assert len(documents) == 1, f"{name}: they count differently"
    head = ["", *(f"{name}: {unit}" for name in places for unit in ("s", "MB"))]
    rows = [
        [what, *(text for name in places for text in (f"{found[what, name].median:.1f}", found[what, name].peak_mb))]
        for what in contestants(chosen.cores, chosen.master)
    ]
    print(markdown_table(head, rows))


if __name__ == "__main__":
    main()
