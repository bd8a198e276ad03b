"""The comparisons, each a stage: who runs over which logs in which state, and what the right answer is.

Truths are read after the last run: documents as large as these would make the measuring process, and with it what it
measures, larger.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attribution import verdict
from benchmarks.contestants import SOURCES, Asker, Contestant, Week
from benchmarks.measure import Measured

HEAD = ("", "tool", "wall s", "least", "CPU s", "peak MB", "wall / ours", "CPU / ours", "totals")
WEEK = Week(first="2026-11-14", last="2026-11-20", after="2026-11-21")
NAMES = {"claude-code": "Claude Code", "codex": "Codex"}


SETTLED_SECONDS = 3


@dataclass(slots=True, kw_only=True)
class Stage:
    """Contestants over the same logs in the same state.

    Attributes:
        title: What is compared.
        contestants: Who takes part, in the order of their turns.
        warm: Each runs once, unmeasured, before the first round.
        truth: Gives the right totals, when all is measured; None if there is nothing to compare.
        before: What happens to the logs before each round.
    """

    title: str
    contestants: Sequence[Contestant]
    warm: bool = False
    truth: Callable[[], Mapping[str, int]] | None = None
    before: Callable[[], None] | None = None

    def run(self, rounds: int) -> None:
        """Run all in turn, round after round."""
        print(f"… {self.title}", file=sys.stderr)
        if self.warm:
            self._settle()
        for _ in range(rounds):
            if self.before is not None:
                self.before()
            for contestant in self.contestants:
                contestant.run()

    def _settle(self) -> None:
        """Let everybody see all logs, twice: what was written a moment ago is looked into again."""
        for number in range(2):
            time.sleep(SETTLED_SECONDS * number)
            for contestant in self.contestants:
                contestant.run()
                contestant.taken = Measured()

    def rows(self) -> Iterator[list[str]]:
        """The stage in the table."""
        ours = next(contestant.taken for contestant in self.contestants if contestant.name == "ours")
        truth = self.truth() if self.truth else None
        for number, contestant in enumerate(self.contestants):
            taken = contestant.taken
            yield [
                "" if number else self.title,
                contestant.name if taken.code == 0 else f"{contestant.name} (exit {taken.code})",
                f"{taken.median:.3f}",
                f"{taken.least:.3f}",
                f"{statistics.median(taken.cpu):.3f}",
                taken.peak_mb,
                _ratio(taken.median / ours.median),
                _ratio(statistics.median(taken.cpu) / statistics.median(ours.cpu)),
                _verdict(contestant, truth),
            ]


def _ratio(times: float) -> str:
    return f"{times:.2f}" if times >= 0.1 else f"{times:.3f}"


def _verdict(contestant: Contestant, truth: Mapping[str, int] | None) -> str:
    if truth is None or contestant.read_totals is None:
        return ""
    answer = contestant.answer()
    return verdict(truth, contestant.read_totals(answer) if answer else None)


class Growth:
    """A home whose agent goes on working; what its turns use is added to the truth."""

    def __init__(self, home: str, source: str) -> None:
        self.home, self.source, self.added, self.turns = home, source, Counter[str](), 0

    def grow(self) -> None:
        """Append a turn to one log in a hundred, in a process of its own."""
        self.turns += 1
        script = str(Path(__file__).with_name("growth.py"))
        command = [sys.executable, script, "--home", self.home, "--source", self.source, "--seed", str(self.turns)]
        grown = subprocess.run(command, check=True, capture_output=True).stdout
        self.added.update(json.loads(grown)["totals"])


def agent_stages(asker: Asker, homes: str, source: str, *, grow: bool) -> list[Stage]:
    """Cold, unchanged, the last seven days, and one log in a hundred grown."""
    home, name = os.path.join(homes, SOURCES[source][0]), NAMES[source]
    growth = Growth(home, source)
    single = asker.ours(home, source, cold=True, jobs=1) if "--jobs" in asker.tools.options else []
    cold = [
        asker.read_floor(home),
        *asker.ours(home, source, cold=True),
        *single,
        *asker.tokscale(home, source, cold=True),
        *asker.ccusage(home, source),
        *asker.ccusage(home, source, "--single-thread", label="ccusage --single-thread"),
    ]
    stages = [
        Stage(title=f"{name}, cold", contestants=cold, truth=lambda: agent_truth(homes, source)["totals"]),
        Stage(
            title=f"{name}, unchanged",
            contestants=[asker.stat_floor(home), *_all(asker, home, source)],
            warm=True,
            truth=lambda: agent_truth(homes, source)["totals"],
        ),
        Stage(
            title=f"{name}, unchanged, 7 days",
            contestants=_all(asker, home, source, WEEK),
            warm=True,
            truth=lambda: _week_of(agent_truth(homes, source)),
        ),
    ]
    if grow:
        stages.append(
            Stage(
                title=f"{name}, 1 % of the logs grown",
                contestants=_all(asker, home, source),
                warm=True,
                truth=lambda: Counter(agent_truth(homes, source)["totals"]) + growth.added,
                before=growth.grow,
            )
        )
    return stages


def native_stages(asker: Asker, logs: str) -> list[Stage]:
    """Native logs with no ledger: one scan against reading alone, and against a database that reads JSON lines."""
    words = ("--no-ledger",) if "--no-ledger" in asker.tools.options else ()
    single = asker.ours(logs, "native", *words, cold=True, jobs=1) if "--jobs" in asker.tools.options else []
    contestants = [
        asker.read_floor(logs),
        *asker.ours(logs, "native", *words, cold=True),
        *single,
        *asker.duckdb(logs),
    ]
    return [Stage(title="native, no ledger", contestants=contestants, truth=lambda: _truth(logs)["totals"])]


def small_file_stages(asker: Asker, logs: str) -> list[Stage]:
    """A great many small logs, unchanged: against looking at each file once."""
    contestants = [asker.stat_floor(logs), *asker.ours(logs, "native")]
    title = f"native, {len(os.listdir(logs)):,} small logs, unchanged"
    return [Stage(title=title, contestants=contestants, warm=True, truth=lambda: _truth(logs)["totals"])]


def start_stage(asker: Asker, homes: str) -> Stage:
    """What it takes to start: a home so small that nothing else counts."""
    home = os.path.join(homes, "claude")
    return Stage(
        title="start-up (a small home)",
        contestants=[asker.start_floor(), *_all(asker, home, "claude-code", narrow=False)],
        warm=True,
        truth=lambda: agent_truth(homes, "claude-code")["totals"],
    )


def size_stage(asker: Asker, homes: str, megabytes: float) -> Stage:
    """Claude Code's unchanged logs at one size."""
    contestants = _all(asker, os.path.join(homes, "claude"), "claude-code")
    return Stage(title=f"{megabytes:g} MB", contestants=contestants, warm=True)


def _all(asker: Asker, home: str, source: str, week: Week | None = None, *, narrow: bool = True) -> list[Contestant]:
    ours, theirs = (week.ours, week.theirs) if week else ((), ())
    return [
        *asker.ours(home, source, *ours, narrow=narrow),
        *asker.tokscale(home, source, *theirs),
        *asker.ccusage(home, source, *theirs),
    ]


def agent_truth(homes: str, source: str) -> dict[str, Any]:
    """The truth about one agent's home."""
    return _truth(homes)["sources"][source]


def _truth(corpus: str) -> dict[str, Any]:
    return json.loads(Path(f"{corpus}.truth.json").read_text())


def _week_of(truth: Mapping[str, Any]) -> Mapping[str, int]:
    total: Counter[str] = Counter(dict.fromkeys(truth["totals"], 0))
    for day, sums in truth["by_day"].items():
        if WEEK.first <= day <= WEEK.last:
            total.update(sums)
    return total
