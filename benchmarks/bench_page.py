"""Print how large the page of a long session is, how long it takes, and how much memory, for three kinds of log.

python benchmarks/bench_page.py [--megabytes 10 100] [--rounds 1]

Goal: the page of a session of 10 MB is at most 6 MB, that of 100 MB at most 10 MB: it ends in an outline.
"""

import argparse
import os
import random
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_homes import Texts, Truth
from benchmarks.claude_home import VERSIONS
from benchmarks.claude_transcript import OPUS, Account, Transcript
from benchmarks.codex_rollout import MODELS, Rollout
from benchmarks.measure import SESSIONLOG, make_corpus, measure, print_table

_START_MS = 1_763_800_000_000
_RESPONSES = 8
"""Of each prompt."""


def claude(path, megabytes):
    """Write one transcript of Claude Code."""
    rng = random.Random("page")
    transcript = Transcript(
        rng, Texts(rng, longest=6000), Truth(), session=path.stem, cwd="/home/dev/src/tool", version=VERSIONS[-1],
        account=Account(), model=OPUS, ms=_START_MS,
    )  # fmt: skip
    while transcript.size < megabytes * 1e6:
        transcript.prompt(220)
        transcript.turn(_RESPONSES)
    path.write_text("".join(transcript.rows))


def codex(path, megabytes):
    """Write one rollout of Codex."""
    rng = random.Random("page")
    rollout = Rollout(rng, Texts(rng, longest=6000), Truth(), cwd="/home/dev/src/tool", model=MODELS[0], ms=_START_MS)
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            rollout.turn(_RESPONSES)
            file.writelines(rollout.lines())
            rollout.rows.clear()


def native(path, megabytes):
    """Write one log of our own."""
    [log] = os.scandir(make_corpus(str(path.parent), megabytes=megabytes, files=1))
    os.replace(log.path, path)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `sessionlog replay --html` on long sessions.")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[10, 100])
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        for make in (claude, codex, native):
            for megabytes in options.megabytes:
                log, page = Path(folder, f"{make.__name__}-{megabytes:g}.jsonl"), Path(folder, "page.html")
                writer = get_context("spawn").Process(
                    target=make, args=(log, megabytes)
                )  # its memory would count below
                writer.start()
                writer.join()
                command = [*SESSIONLOG, "replay", str(log), "--html", str(page), "--force"]
                [runs] = measure({"page": command}, rounds=options.rounds, folder=folder).values()
                size, of_page = log.stat().st_size / 1e6, page.stat().st_size / 1e6
                rows.append([
                    make.__name__, f"{size:.1f}", f"{of_page:.1f}", f"{of_page / size:.2f}", f"{runs.least:.2f}",
                    runs.peak_mb,
                ])  # fmt: skip
    print_table(["log", "MB", "page MB", "ratio", "s", "peak MB"], rows)


if __name__ == "__main__":
    main()
