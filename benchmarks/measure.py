"""Whole processes, measured: wall and CPU time, time to the first byte, peak memory; the floors; tables to print them in.

Rounds are interleaved, so that a slow moment of the machine hits every contestant. The measuring process stays small:
Linux counts a parent's memory at the moment of the start as the child's.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.process_tree import TreeMemory

ROOT = Path(__file__).parents[1]
SESSIONLOG = (sys.executable, "-m", "sessionlog")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

READ_EVERY_BYTE = """
import os, sys
buffer = bytearray(1 << 18)
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
"""
"""The floor of a cold report: every byte through one buffer, nothing looked at."""

STAT_EVERY_FILE = """
import os, sys
folders = [sys.argv[1]]
while folders:
    with os.scandir(folders.pop()) as entries:
        for entry in entries:
            if entry.is_dir():
                folders.append(entry.path)
            else:
                entry.stat()
"""
"""The floor of a report over unchanged logs: nothing opened, only looked at whether it has changed."""


@dataclass(slots=True)
class Measured:
    """What the runs of one command took.

    Attributes:
        seconds: Wall time of each run, start and end of the process included.
        cpu: User and system time of each run, children that it has waited for included.
        first: Seconds to the first byte of output of each run.
        peak: Peak memory of each run in bytes; of the greatest process, or of the whole tree where that was watched.
        lines: Lines of output of the last run.
        code: Exit code of the last run.
    """

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
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
    _wait(process, start, measured)
    process.stdout.close()
    measured.first.append(first or 0.0)
    measured.lines = lines


def run_into(out: str, command: Sequence[str], env: Mapping[str, str], measured: Measured) -> None:
    """Run a command once, its output in a file and its errors in `OUT.err`, its whole tree of processes watched."""
    with open(out, "wb") as said, open(f"{out}.err", "wb") as complained:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=complained, env=env)
        with TreeMemory(process.pid) as tree:
            _wait(process, start, measured)
    measured.peak[-1] = max(measured.peak[-1], tree.peak)


def _wait(process: subprocess.Popen[bytes], start: float, measured: Measured) -> None:
    _, status, usage = os.wait4(process.pid, 0)
    measured.seconds.append(time.perf_counter() - start)
    measured.cpu.append(usage.ru_utime + usage.ru_stime)
    measured.peak.append(usage.ru_maxrss * _RSS_UNIT)
    process.returncode = measured.code = os.waitstatus_to_exitcode(status)


def make_corpus(folder: str, *, megabytes: float, files: int | None = None) -> str:
    """Write a corpus in a process of its own and return its folder; the truth is in `FOLDER.truth.json`."""
    out = os.path.join(folder, f"logs-{megabytes:g}")
    options = [] if files is None else ["--files", str(files)]
    script = str(Path(__file__).with_name("corpus.py"))
    command = [sys.executable, script, "--out", out, "--megabytes", str(megabytes), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def make_homes(
    out: str, *, claude_megabytes: float, codex_megabytes: float = 0, seed: int = 20261121, zst: bool = False
) -> str:
    """Write homes of agents in a process of its own and return their folder; the truth is in `OUT.truth.json`."""
    script = str(Path(__file__).with_name("agent_homes.py"))
    sizes = ["--claude-megabytes", str(claude_megabytes), "--codex-megabytes", str(codex_megabytes)]
    command = [sys.executable, script, "--out", out, *sizes, "--seed", str(seed), *(["--zst"] if zst else [])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: Collection[int] = (0,)) -> str:
    """A Markdown table: the columns of words stand to the left, figures to the right."""
    widths = [max(3, *(len(row[column]) for row in (head, *rows))) for column in range(len(head))]
    rule = ["-" * width if n in words else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(_aligned(row, widths, words))} |" for row in (head, rule, *rows))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a head: the first column to the left, figures to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(_aligned(row, widths, (0,))).rstrip())


def _aligned(row: Sequence[str], widths: Sequence[int], words: Collection[int]) -> list[str]:
    return [
        cell.ljust(width) if n in words else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
