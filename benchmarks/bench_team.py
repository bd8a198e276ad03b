"""Print whether five machines' exports give the same reports as one scan of all their logs, and what each way takes.

python benchmarks/bench_team.py [--megabytes 1000] [--machines 5] [--spark] [--ccusage]

Claude Code's home has forks and resumed sessions, which are spread over the machines; a third of all logs is on two of
them, as after a restored backup. Each machine has a home and a ledger of its own, and exports to one place.

With `--spark`, which needs pyspark and Java, Spark reads the logs of all machines together: on this machine, on a
master with two workers of one core, and on such a one of which a worker is killed in the middle of the scan. With
`--ccusage`, which needs npm, that tool reads the agents' logs of the undivided home: it has no way to merge machines.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_homes import generate as generate_agents
from benchmarks.corpus import generate as generate_native
from benchmarks.measure import ROOT, SESSIONLOG, Measured, print_table, run_into
from benchmarks.peers import install
from benchmarks.spark_cluster import kill, spark_cluster, wait_for

REPORTS = (
    ("usage",), ("usage", "--by", "source,session"), ("usage", "--by", "day,project"), ("models",), ("tools",),
    ("usage", "--since", "2026-11-01"),
)  # fmt: skip
COMPARED = ("rows", "totals", "provenance")
AGENTS = ("claude", "codex", "native")
_ON_TWO = 1 / 3
_STORY = ROOT / "testdata" / "replay" / "story.jsonl"


def homes_of(machine: Path) -> dict[str, str]:
    """Return the environment of a machine whose home is a folder."""
    home = {
        "HOME": str(machine), "CLAUDE_CONFIG_DIR": str(machine / "claude"), "CODEX_HOME": str(machine / "codex"),
        "SESSIONLOG_DIR": str(machine / "native"), "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    return {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SESSIONLOG_"))} | home


def sessions_of(folder: Path) -> Iterator[list[Path]]:
    """Yield the logs of each session: a sub-agent's logs lie in a folder that is named for its session."""
    known: dict[Path, list[Path]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        relative = path.relative_to(folder)
        parts = relative.parts[:3] if relative.parts[0] == "claude" else relative.parts
        known.setdefault(Path(*parts).with_suffix(""), []).append(path)
    yield from known.values()


def spread(folder: Path, machines: list[Path], rng: random.Random) -> None:
    """Put each session on one machine, a share of them on two: the first has a link to save room, the second a copy."""
    for paths in sessions_of(folder):
        for place, machine in zip(
            (os.link, shutil.copy2), rng.sample(machines, 2 if rng.random() < _ON_TWO else 1), strict=False
        ):
            for path in paths:
                copy = machine / path.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                place(path, copy)


class Runs:
    """The measured runs of one benchmark, as rows of its table.

    Attributes:
        rows: What was run, its seconds of wall and of CPU time, the peak of its whole tree of processes in 10^6 bytes,
            and whether it agrees.
        differing: How many reports differ from the undivided home's.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: list[list[str]] = []
        self.differing = 0
        self._out = str(folder / "out")

    def run(self, machine: Path, command: Sequence[str], name: str = "") -> bytes:
        """Run a command on a machine and return its output; with a name it becomes a row."""
        measured = Measured()
        run_into(self._out, command, homes_of(machine), measured)
        if measured.code:
            raise SystemExit(f"{' '.join(command)}: exit {measured.code}\n{Path(f'{self._out}.err').read_text()}")
        if name:
            self.rows.append([name, f"{measured.least:.2f}", f"{measured.cpu[-1]:.2f}", measured.peak_mb, ""])
        return Path(self._out).read_bytes()

    def report(self, machine: Path, report: Sequence[str], *more: str, name: str = "") -> dict[str, Any]:
        """Return a report as its JSON document; the first of `report` is the command."""
        command = [*SESSIONLOG, report[0], *more, *report[1:], "--json", "--tz", "UTC", "--now", "2026-11-23T00:00:00Z"]
        document: dict[str, Any] = json.loads(self.run(machine, command, name))
        return document

    def compare(self, one: Mapping[str, Any], total: Mapping[str, Any]) -> None:
        """Write into the last row whether its report is the undivided home's."""
        found = first_difference(one, total)
        self.differing += bool(found)
        self.rows[-1][-1] = f"DIFFERS: {found}" if found else "equal"


def first_difference(one: Mapping[str, Any], total: Mapping[str, Any]) -> str:
    """Return the first row and column in which two reports differ, with both values; empty for none."""
    keys = one["group_by"]
    for part in COMPARED:
        if one[part] == total[part]:
            continue
        if part != "rows":
            return f"{part}: {_columns_that_differ(one[part], total[part])}"
        for mine, theirs in zip_longest(one[part], total[part], fillvalue={}):
            if mine != theirs:
                return f"{[mine.get(key) for key in keys]}: {_columns_that_differ(mine, theirs)}"
    return ""


def _columns_that_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {one.get(name)} {other.get(name)}" for name in {**one, **other} if one.get(name) != other.get(name)
    )


def export(runs: Runs, machines: list[Path], place: str) -> None:
    """Export every machine twice; of each round the slowest machine becomes a row."""
    for name in ("export: slowest of all machines", "export: nothing new"):
        first = len(runs.rows)
        for machine in machines:
            runs.run(machine, [*SESSIONLOG, "export", place, "--parquet"], name)
        runs.rows[first:] = [max(runs.rows[first:], key=lambda row: float(row[1]))]


def over_spark(runs: Runs, whole: Path, machines: list[Path], folder: Path) -> None:
    """Compare reports of Spark over all machines' logs with those of the undivided home."""
    expected = {report: runs.report(whole, report) for report in REPORTS[:2]}
    logs = [str(machine / agent) for machine in machines for agent in AGENTS if (machine / agent).exists()]

    def spark(master: str, report: Sequence[str], name: str) -> None:
        engine = ("--engine", "spark", "--master", master)
        total = runs.report(whole, report, *logs, *engine, name=f"{' '.join(report)}: {name}")
        runs.compare(expected[tuple(report)], total)

    runs.report(whole, ("usage",), str(_STORY), "--engine", "spark", "--master", "local[2]", name="Spark's start-up")
    total = runs.report(whole, REPORTS[0], *logs, "--no-ledger", name="usage: all machines' logs in one scan")
    runs.compare(expected[REPORTS[0]], total)
    for report in expected:
        spark("local[2]", report, "Spark, local[2]")
    for name in ("two workers", "a worker killed"):
        work = folder / name.replace(" ", "-")
        work.mkdir()
        with spark_cluster(work, memory="2g") as (master, workers):
            if name == "two workers":
                for report in expected:
                    spark(master, report, f"Spark, {name}")
                continue
            seconds = float(runs.rows[-len(expected)][1])
            killer = threading.Thread(target=_kill_in_the_scan, args=(work, workers[0], seconds / 2))
            killer.start()
            spark(master, REPORTS[0], f"Spark, {name} after {seconds / 2:.0f} s of work")
            killer.join()


def _kill_in_the_scan(work: Path, worker: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill a worker and its executor some seconds after the executors have begun."""
    wait_for(lambda: any(work.glob("app-*/*")))
    time.sleep(seconds)
    kill(worker)


def beside_ccusage(runs: Runs, whole: Path, folder: Path) -> None:
    """Run ccusage over the agents' logs of the undivided home; it keeps nothing between two runs."""
    tools = install(str(folder), ours=None, peers=True, ccusage=None)
    if tools.ccusage is None:
        raise SystemExit("; ".join(tools.missing))
    for agent in AGENTS[:2]:
        command = [tools.ccusage, agent, "daily", "--json", "--offline"]
        runs.run(whole, command, f"ccusage: {agent} of the undivided home")


def main() -> None:
    """Make the homes, export them, compare all reports, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--machines", type=int, default=5)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--ccusage", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as name:
        folder = Path(name)
        whole, place, runs = folder / "whole", str(folder / "place"), Runs(folder)
        generate_agents(whole, claude_megabytes=options.megabytes * 0.7, codex_megabytes=options.megabytes * 0.2)
        generate_native(whole / "native", megabytes=options.megabytes * 0.1)
        machines = [folder / f"machine-{number}" for number in range(options.machines)]
        spread(whole, machines, random.Random(17))
        runs.report(whole, REPORTS[0], name="usage: the undivided home, first")
        runs.report(whole, REPORTS[0], name="usage: the undivided home, again")
        export(runs, machines, place)
        for report in REPORTS:
            total = runs.report(machines[0], report, place, name=f"{' '.join(report)}: the place")
            runs.compare(runs.report(whole, report), total)
        if options.spark:
            over_spark(runs, whole, machines, folder)
        if options.ccusage:
            beside_ccusage(runs, whole, folder)
    print_table(["", "s", "CPU s", "peak MB", ""], runs.rows)
    sys.exit(1 if runs.differing else 0)


if __name__ == "__main__":
    main()
