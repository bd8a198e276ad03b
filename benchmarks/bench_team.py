"""Print whether five machines' exports give the same reports as one scan of all their logs, and how long both take.

python benchmarks/bench_team.py [--megabytes 1000] [--machines 5]

Claude Code's home has forks and resumed sessions, which are spread over the machines; a third of all logs is on two of
them, as after a restored backup. Each machine has a home and a ledger of its own, and exports to one place.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_homes import generate as generate_agents
from benchmarks.corpus import generate as generate_native
from benchmarks.measure import ROOT, SESSIONLOG, print_table

REPORTS = (
    ("usage",), ("usage", "--by", "source,session"), ("usage", "--by", "day,project"), ("models",), ("tools",),
    ("usage", "--since", "2026-11-01"),
)  # fmt: skip
COMPARED = ("rows", "totals", "provenance")
_ON_TWO = 1 / 3


def homes_of(machine: Path) -> dict[str, str]:
    """Return the environment of a machine whose home is a folder."""
    home = {
        "HOME": str(machine), "CLAUDE_CONFIG_DIR": str(machine / "claude"), "CODEX_HOME": str(machine / "codex"),
        "SESSIONLOG_DIR": str(machine / "native"), "PYTHONPATH": str(ROOT),
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
    """Copy each session to one machine, a share of them to two."""
    for paths in sessions_of(folder):
        for machine in rng.sample(machines, 2 if rng.random() < _ON_TWO else 1):
            for path in paths:
                copy = machine / path.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)


def run(machine: Path, *arguments: str) -> tuple[bytes, float]:
    """Run a command on a machine; return its output and its seconds."""
    began = time.perf_counter()
    done = subprocess.run([*SESSIONLOG, *arguments], env=homes_of(machine), capture_output=True, check=True)
    return done.stdout, time.perf_counter() - began


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


def main() -> None:
    """Make the homes, export them, compare all reports, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--machines", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as name:
        whole, place = Path(name, "whole"), str(Path(name, "place"))
        generate_agents(whole, claude_megabytes=options.megabytes * 0.7, codex_megabytes=options.megabytes * 0.2)
        generate_native(whole / "native", megabytes=options.megabytes * 0.1)
        machines = [Path(name, f"machine-{number}") for number in range(options.machines)]
        spread(whole, machines, random.Random(17))
        exports = [run(machine, "export", place, "--parquet")[1] for machine in machines]
        again = [run(machine, "export", place, "--parquet")[1] for machine in machines]
        rows = [["export, slowest of all machines", f"{max(exports):.2f}", f"nothing new: {max(again):.2f}"]]
        differing = 0
        for report in REPORTS:
            expected, alone = run(whole, *report, "--json", "--tz", "UTC")
            answer, together = run(machines[0], report[0], place, *report[1:], "--json", "--tz", "UTC")
            one, total = json.loads(expected), json.loads(answer)
            found = first_difference(one, total)
            differing += bool(found)
            rows.append(
                [" ".join(report), f"{together:.2f}", f"{alone:.2f}", f"DIFFERS: {found}" if found else "equal"]
            )
    print_table(["report", "s, place", "s, one ledger (first: scan)", ""], [[*row, ""][:4] for row in rows])
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
