"""Codex's half of the homes: threads by day, sub-agents, forks, branches, archives, and packed rollouts.

A fork's file begins with its parent's history, stamped with the second of the fork or with the times it had; the counter
goes on from there. Nothing of that history is a request of its own.
"""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path
from typing import Any

from benchmarks.agent_homes import DAYS, FIRST_MS, Texts, Truth, stamp, start_of_session
from benchmarks.codex_rollout import MODELS, Mark, Rollout


class CodexHome:
    """Threads under `FOLDER/sessions/YYYY/MM/DD` and `FOLDER/archived_sessions`, until they have the size wanted."""

    def __init__(self, rng: random.Random, texts: Texts, truth: Truth, folder: Path, *, zst: bool = False) -> None:
        self.rng, self.texts, self.truth, self.folder = rng, texts, truth, folder
        self.projects = [f"/home/dev/src/tool{number:02}" for number in range(40)]
        self._kept: list[Rollout] = []
        self._pack = _zstd() if zst else None

    def write(self, total: int) -> None:
        """Write rollouts until the home has this many bytes."""
        mean = min(700_000, max(40_000, total // 40))
        while self.truth.written < total:
            way = self.rng.random()
            if self._kept and way < 0.24:
                self._child(mean // 2, way)
            else:
                self._thread(mean)

    def _thread(self, mean: float) -> None:
        rng = self.rng
        thread = self._rollout(rng.choice(self.projects), rng.choice(MODELS), start_of_session(rng))
        thread.meta()
        self._run(thread, mean)
        self._kept = [*self._kept[-7:], thread]

    def _rollout(self, cwd: str, model: str, ms: int) -> Rollout:
        return Rollout(self.rng, self.texts, self.truth, cwd=cwd, model=model, ms=ms)

    def _child(self, mean: float, way: float) -> None:
        """A fork, sub-agent or branch of a thread: what it inherits, then its own turns."""
        rng = self.rng
        parent = rng.choice(self._kept)
        mark = rng.choice(parent.marks)
        ms = parent.rows[mark.end - 1][0] + rng.randrange(1000, 60_000)
        child = self._rollout(parent.cwd, parent.model, ms - ms % 1000 + 40)
        agent = way < 0.14
        spawn = (
            f'{{"subagent":{{"thread_spawn":{{"parent_thread_id":"{parent.id}","depth":1,"agent_role":"explorer"}}}}}}'
        )
        if agent:
            self.truth.parents[child.id] = parent.id
            self.truth.kinds["sub-agents"] += 1
        fresh = child.fresh_agent = agent and rng.random() < 0.4
        forked_from = "" if fresh or (agent and rng.random() < 0.5) else parent.id
        child.meta(source=spawn if agent else '"cli"', forked_from=forked_from)
        if not fresh:
            self._replay(child, parent, mark, branch=not agent and rng.random() < 0.3)
        child.wait(1.5, 20)
        repeat = not fresh and rng.random() < 0.3
        if repeat and mark.stale:
            self.truth.trap("inherited count after a stale one", mark.tokens)
        self._run(child, mean, repeat_inherited=repeat)

    def _replay(self, child: Rollout, parent: Rollout, mark: Mark, *, branch: bool) -> None:
        """Give a child its parent's rows and counter."""
        inherited = parent.rows[: mark.end]
        for number, (ms, type_, payload) in enumerate(inherited):
            again = child.rows[0][0] + number * 900 // len(inherited)
            child.rows.append((ms if branch else again, type_, payload))
            child.size += len(payload) + 70
        child.total, child.info = mark.total, mark.info
        for other in parent.marks:
            if other.end <= mark.end:
                self.truth.trap("branch's copy" if branch else "fork's replay", other.tokens)

    def _run(self, thread: Rollout, mean: float, *, repeat_inherited: bool = False) -> None:
        rng = self.rng
        target = thread.size + rng.lognormvariate(-0.32, 0.8) * mean
        while thread.size < target or not thread.marks:
            thread.turn(rng.choice((0, 1, 3, 6, 12, 20)), repeat_inherited=repeat_inherited)
            repeat_inherited = False
            thread.wait(5, 300)
            if rng.random() < 0.05:
                thread.wait(3600, 20_000)
                thread.restart()
        self._store(thread)

    def _store(self, thread: Rollout) -> None:
        rng, lines = self.rng, thread.lines()
        began = stamp(thread.rows[0][0])
        name = f"rollout-{began[:19].replace(':', '-')}-{thread.id}.jsonl"
        here = self.folder / "sessions" / began[:10].replace("-", "/") / name
        archive = self.folder / "archived_sessions" / name
        idle = thread.ms < FIRST_MS + (DAYS - 7) * 86_400_000
        way = rng.random()
        if way < 0.03:
            self._write(archive, lines, thread.ms)
            for mark in thread.marks:
                self.truth.trap("archive's copy", mark.tokens)
        elif way < 0.09:
            here = archive
        elif self._pack is not None and idle and way < 0.5:
            self.truth.store(here.with_name(f"{name}.zst"), lines, ms=thread.ms, packer=self._pack)
            self.truth.kinds["packed files"] += 1
            for mark in thread.marks:
                self.truth.trap("packed rollout", {column: -n for column, n in mark.tokens.items()})
            return
        self._write(here, lines, thread.ms)

    def _write(self, path: Path, lines: list[str], ms: int) -> None:
        if self.rng.random() < 0.01:  # killed while writing
            lines = [*lines, f'{{"timestamp":"{stamp(ms)}","type":"response_item","payload":{{"type":"mess']
            self.truth.kinds["torn last rows"] += 1
        self.truth.store(path, lines, ms=ms)


def _zstd() -> Any:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return importlib.import_module(name).compress
