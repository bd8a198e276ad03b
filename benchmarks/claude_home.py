"""Claude Code's half of the homes: projects, sessions, their sub-agents, and every way in which the CLI repeats itself.

Nothing that bears a message id again (resumed and forked files, side questions, progress echoes) is a request of its own.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from benchmarks.agent_homes import DAYS, FIRST_MS, Texts, Truth, start_of_session, uuid4
from benchmarks.claude_transcript import HAIKU, OPUS, SONNET, Account, Transcript, Version

AGENT_TYPES = ("Explore", "Explore", "general-purpose", "Plan", "code-reviewer")

VERSIONS = (
    Version(name="2.0.61", echoes=False, late=False),
    Version(name="2.1.2", echoes=True, late=False),
    Version(name="2.1.31", echoes=True, late=False),
    Version(name="2.1.58", echoes=True, late=True),
    Version(name="2.1.90", echoes=False, late=True),
)
"""The oldest first; a session has the one of its day, or a neighbour."""

ACCOUNTS = (
    (Account(), 73),
    (Account(split="5m"), 14),
    (Account(split="both"), 8),
    (Account(prefix="global.anthropic.", request_ids=False, split="none"), 4),
    (Account(split="zeros"), 1),
)
"""With their weights. Bedrock sends no request id; some gateways split cache writes into zeros."""


class ClaudeHome:
    """Projects and their sessions under `FOLDER/projects`, until they have the size wanted."""

    def __init__(self, rng: random.Random, texts: Texts, truth: Truth, folder: Path, **_: Any) -> None:
        self.rng, self.texts, self.truth, self.folder = rng, texts, truth, folder / "projects"
        self.projects = [f"/home/dev/{rng.choice(('src', 'work'))}/service.{number:02}" for number in range(60)]
        self._kept: list[tuple[Path, Transcript]] = []

    def write(self, total: int) -> None:
        """Write sessions until the home has this many bytes."""
        mean = min(430_000, max(25_000, total // 60))
        while self.truth.written < total:
            if self._kept and self.rng.random() < 0.07:
                self._fork(mean)
            else:
                self._session(mean)

    def _session(self, mean: int) -> None:
        rng = self.rng
        ms = start_of_session(rng)
        age = (ms - FIRST_MS) / (DAYS * 86_400_000) * len(VERSIONS) + rng.gauss(0, 0.4)
        cwd = rng.choice(self.projects[: 1 + int(rng.random() ** 2 * len(self.projects))])
        main = Transcript(
            rng, self.texts, self.truth, session=uuid4(rng), cwd=cwd, model=rng.choice((OPUS, OPUS, SONNET)), ms=ms,
            version=VERSIONS[max(0, min(len(VERSIONS) - 1, int(age)))],
            account=rng.choices(*zip(*ACCOUNTS, strict=True))[0],
        )  # fmt: skip
        if rng.random() < 0.2:
            main.put(f'{{"type":"summary","summary":"{self.texts.pick(60)}","leafUuid":"{uuid4(rng)}"}}\n')
        path = self.folder / re.sub(r"[/.]", "-", cwd) / f"{main.session}.jsonl"
        self._run(path, main, mean)
        self._kept = [*self._kept[-7:], (path, main)]

    def _run(self, path: Path, main: Transcript, mean: int) -> None:
        rng = self.rng
        target = main.size + rng.lognormvariate(-0.32, 0.8) * mean
        agents = rng.choice((0, 0, 0, 1, 1, 2, 3, 6)) if rng.random() < 0.9 else 0
        workflow = f"workflows/wf_{rng.getrandbits(32):08x}/" if rng.random() < 0.03 else ""
        while main.size < target or agents > 0:
            main.prompt(220)
            while agents > 0 and rng.random() < 0.6:
                self._delegate(path.with_suffix("") / "subagents" / workflow, main, mean * 0.36)
                agents -= 1
            main.turn(rng.choice((0, 1, 2, 4, 7, 12)))
            self._disturb(main)
            if main.version.late or rng.random() < 0.5:
                main.add(f'"type":"system","subtype":"turn_duration","durationMs":{rng.randrange(2000, 400_000)}')
            main.pause()
        if workflow:
            journal = path.with_suffix("") / "subagents" / workflow / "journal.jsonl"
            self.truth.store(journal, [f'{{"t":"agent_done","tokens":{rng.randrange(90_000)}}}\n'] * 3, ms=main.ms)
        if rng.random() < 0.06 and main.account.request_ids:
            self._aside(path, main)
        self._store(path, main)

    def _disturb(self, main: Transcript) -> None:
        """What happens now and then between two turns."""
        rng = self.rng
        if rng.random() < 0.025:
            main.fail()
        if rng.random() < 0.03:
            main.request(["Bash"], cut=True)
            main.add(
                '"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted]"}]}'
            )
        if rng.random() < 0.04:
            main.cwd = main.cwd.removesuffix("/api") + rng.choice(("", "/api"))
            main.branch = rng.choice(("main", "release/2", "fix/torn-tail"))
        if rng.random() < 0.03:
            main.model = rng.choice((OPUS, SONNET, HAIKU))

    def _delegate(self, folder: Path, main: Transcript, mean: float) -> None:
        rng = self.rng
        kind = rng.choice(AGENT_TYPES)
        [tool_id] = main.request(["Task"])
        child = Transcript(
            rng, self.texts, self.truth, session=main.session, cwd=main.cwd, version=main.version, ms=main.ms + 300,
            account=main.account, agent=f"a{rng.getrandbits(24):06x}",
            model=HAIKU if kind == "Explore" else main.model,
        )  # fmt: skip
        if main.version.echoes and rng.random() < 0.6:
            child.echoes, child.lost = [], rng.random() < 0.04
        child.prompt(900)
        target = rng.lognormvariate(-0.32, 0.8) * mean
        while True:
            child.turn(rng.choice((1, 3, 6)))
            target -= 12_000 if child.lost else 0  # a lost file does not grow
            if child.size >= target:
                break
        main.answer_task(tool_id, child)
        if not child.lost:
            path = folder / f"agent-{child.agent}.jsonl"
            self._store(path, child)
            meta = f'{{"agentType":"{kind}","description":"Look around"}}'
            self.truth.store(path.with_suffix(".meta.json"), [meta], ms=child.ms)

    def _aside(self, path: Path, main: Transcript) -> None:
        """A side question: the last rows again, as a sidechain with other request ids, and then a real answer."""
        rng = self.rng
        aside = Transcript(
            rng, self.texts, self.truth, session=main.session, cwd=main.cwd, version=main.version, ms=main.ms + 900,
            account=main.account, model=main.model, agent=f"aside_question-a{rng.getrandbits(24):06x}",
        )  # fmt: skip
        for mark in main.marks[-rng.randrange(1, 5) :]:
            other = f'"requestId":"req_011C{rng.getrandbits(80):020x}","type":"assistant"'
            for row in main.rows[mark.first : mark.end]:
                row = row.replace('"isSidechain":false', f'"isSidechain":true,"agentId":"{aside.agent}"', 1)
                aside.put(re.sub(r'"requestId":"req_\w+","type":"assistant"', other, row, count=1))
            self.truth.trap("side question's replay", mark.tokens)
        aside.prompt(120)
        aside.request(())
        self._store(path.with_suffix("") / "subagents" / f"agent-{aside.agent}.jsonl", aside)

    def _fork(self, mean: int) -> None:
        """Resume or fork: the first rows of another session, then a life of its own under a greater id.

        A greater id, because nothing in a log says which of two equal rows is the copy: by path the original comes first.
        """
        rng = self.rng
        path, old = rng.choice(self._kept)
        if len(old.marks) < 2:
            return
        copied = old.marks[: rng.randrange(1, len(old.marks))]
        session = f"{rng.randrange(int(old.session[:8], 16), 16**8):08x}{uuid4(rng)[8:]}"
        if session <= old.session:
            return
        new = Transcript(
            rng, self.texts, self.truth, session=session, cwd=old.cwd, version=old.version, account=old.account,
            model=old.model, ms=old.ms + rng.randrange(60_000, 7_200_000),
        )  # fmt: skip
        verbatim = rng.random() < 0.5
        for row in old.rows[: copied[-1].end]:
            given = row.replace(f'"sessionId":"{old.session}"', f'"sessionId":"{session}"', 1)
            new.put(row if verbatim else given)
        for mark in copied:
            self.truth.trap("fork's copy", mark.tokens)
        self._run(path.with_name(f"{session}.jsonl"), new, mean // 2)

    def _store(self, path: Path, transcript: Transcript) -> None:
        rows, rng = transcript.rows, self.rng
        if rng.random() < 0.01:  # killed while writing: the last row, of a response that has no other, is torn
            size = len(rows)
            lost = Transcript(
                rng, self.texts, Truth(), session=transcript.session, cwd=transcript.cwd, agent=transcript.agent,
                version=transcript.version, account=transcript.account, model=transcript.model, ms=transcript.ms + 5,
            )  # fmt: skip
            lost.request(())
            rows = [*rows, lost.rows[0][: rng.randrange(200, len(lost.rows[0]) - 2)]]
            self.truth.kinds["torn last rows"] += len(rows) - size
        self.truth.store(path, rows, ms=transcript.ms)
