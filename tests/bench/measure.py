"""Whole processes, measured: wall time, time to the first byte, peak memory; and a table to print them in.

Rounds are interleaved, so that a slow moment of the machine hits every contestant. The measuring process stays small:
Linux counts a parent's memory at the moment of the start as the child's.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SESSIONLOG = (sys.executable, "-m", "sessionlog")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(slots=True)
class Measured:
    """What the runs of one command took.

    Attributes:
        seconds: Wall time of each run, start and end of the process included.
        first: Seconds to the first byte of output of each run.
        peak: Peak memory of each run in bytes.
        lines: Lines of output of the last run.
        code: Exit code of the last run.
    """

    seconds: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    lines: int = 0
    code: int = 0

    @property
    def least(self) -> float:
        """The fastest run."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)

    @property
    def peak_mb(self) -> str:
        """The greatest peak, in 10^6 bytes."""
        return f"{max(self.peak) / 1e6:.0f}"


def measure(commands: Mapping[str, Sequence[str]], *, rounds: int, folder: str) -> dict[str, Measured]:
    """Run each command once a round, with no settings, logs or ledger but those in `folder`."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "TZ": "UTC", "TERM": "dumb"}
    env |= {f"XDG_{name}_HOME": os.path.join(folder, name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    found = {name: Measured() for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            _run(command, env, found[name])
    return found


def _run(command: Sequence[str], env: Mapping[str, str], measured: Measured) -> None:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    assert process.stdout is not None
    first, lines = None, 0
    while piece := os.read(process.stdout.fileno(), 1 << 16):
        first = first or time.perf_counter() - start
        lines += piece.count(b"\n")
    _, status, usage = os.wait4(process.pid, 0)
    measured.seconds.append(time.perf_counter() - start)
    process.stdout.close()
    process.returncode = measured.code = os.waitstatus_to_exitcode(status)
    measured.first.append(first or 0.0)
    measured.peak.append(usage.ru_maxrss * _RSS_UNIT)
    measured.lines = lines


def make_corpus(folder: str, *, megabytes: float, files: int | None = None) -> str:
    """Write a corpus in a process of its own and return its folder; the truth is in `FOLDER.truth.json`."""
    out = os.path.join(folder, f"logs-{megabytes:g}")
    options = [] if files is None else ["--files", str(files)]
    script = str(Path(__file__).with_name("corpus.py"))
    command = [sys.executable, script, "--out", out, "--megabytes", str(megabytes), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a head: the first column to the left, figures to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if not n else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
