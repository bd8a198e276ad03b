"""Agents at work: some of a home's sessions get one more turn, and what it used is told.

Only logs that a running agent would append to are taken: whole to their last byte, not archived, not packed, and (Codex)
with a counter that stands where the last response left it.

    python benchmarks/growth.py --home FOLDER --source claude-code|codex --seed N [--share 0.01]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from datetime import datetime
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_homes import Texts, Truth
from benchmarks.claude_home import VERSIONS
from benchmarks.claude_transcript import OPUS, Account, Transcript
from benchmarks.codex_rollout import MODELS, Rollout

_STAMP = re.compile(r'"timestamp":"(\d{4}-\d\d-\d\dT[\d:.]+)Z"')
_TOTAL = re.compile(
    r'"total_token_usage":\{"input_tokens":(\d+),"cached_input_tokens":(\d+),"output_tokens":(\d+),'
    r'"reasoning_output_tokens":(\d+)'
)


def grow(home: Path, source: str, *, seed: int, share: float) -> Truth:
    """Append a turn to a share of a source's logs (at least one) and return what the turns used."""
    rng = random.Random(f"{seed} growth {source}")
    texts, truth = Texts(rng, longest=6000), Truth()
    more = {"claude-code": _more_of_claude, "codex": _more_of_codex}[source]
    logs = sorted(path for path in home.rglob("*.jsonl") if path.name != "journal.jsonl")
    wanted = max(1, round(len(logs) * share))
    for path in rng.sample(logs, len(logs)):
        if truth.files == wanted:
            break
        rows = more(path, rng, texts, truth)
        if rows:
            with path.open("a") as file:
                file.write("".join(rows))
            truth.files += 1
            truth.rows += len(rows)
    return truth


def _more_of_claude(path: Path, rng: random.Random, texts: Texts, truth: Truth) -> list[str]:
    if path.parent.parent.name != "projects":  # a sub-agent's log: it has ended
        return []
    content = path.read_text()
    cwd, ms = re.search(r'"cwd":"([^"]+)"', content), _last_ms(content)
    if cwd is None or not ms:
        return []
    transcript = Transcript(
        rng, texts, truth, session=path.stem, cwd=cwd[1], version=VERSIONS[-1], account=Account(), model=OPUS,
        ms=ms + 60_000,
    )  # fmt: skip
    transcript.prompt(220)
    transcript.turn(1)
    return transcript.rows


def _more_of_codex(path: Path, rng: random.Random, texts: Texts, truth: Truth) -> list[str]:
    home = next(folder.parent for folder in path.parents if folder.name in {"sessions", "archived_sessions"})
    if "archived_sessions" in path.parts or os.path.exists(home / "archived_sessions" / path.name):
        return []
    content = path.read_text()
    totals, ms = _TOTAL.findall(content), _last_ms(content)
    if not totals or not ms or int(totals[-1][0]) < max(int(total[0]) for total in totals):
        return []
    thread = Rollout(rng, texts, truth, cwd="/home/dev/src/tool00", model=MODELS[0], ms=ms + 60_000)
    a, b, c, d = map(int, totals[-1])
    thread.total = (a, b, c, d)
    thread.turn(1)
    return thread.lines()


def _last_ms(content: str) -> int:
    """When the log's last whole row was written, in milliseconds since 1970; 0 if its last row is torn."""
    stamps = _STAMP.findall(content) if content.endswith("\n") else []
    return max((int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000) for text in stamps[-40:]), default=0)


def main() -> None:
    """Let a home grow and print what was added."""
    parser = argparse.ArgumentParser(description="Append turns to some of an agent's logs.")
    parser.add_argument("--home", required=True, type=Path, help="the agent's home")
    parser.add_argument("--source", required=True, choices=("claude-code", "codex"))
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--share", type=float, default=0.01)
    options = parser.parse_args()
    truth = grow(options.home, options.source, seed=options.seed, share=options.share)
    print(json.dumps({"files": truth.files, "rows": truth.rows, "totals": truth.totals}))


if __name__ == "__main__":
    main()
