"""Print how `sessionlog find` does on logs of Claude Code: indexing, size of the index, and the time of searches.

"search" is the query alone (the index, the texts in the logs, the marks), of which the command prints the time; its goal is
50 ms on 1 GB. "process" is the whole command, with Python's start and a look at each log whether it has grown.

The generated transcripts hold slices of what is on this machine (Python's library, documentation), because made-up
texts repeat few words, and an index of them would be small.

python benchmarks/bench_find.py [--megabytes 1000] [--rounds 3]
"""

import argparse
import gzip
import json
import os
import random
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_homes import Texts, Truth
from benchmarks.claude_home import ClaudeHome
from benchmarks.measure import SESSIONLOG, measure, print_table
from sessionlog.cli.find import read_logs
from sessionlog.engine.scanner import scanner
from sessionlog.ledger.opening import open_ledger
from sessionlog.pricing.book import PriceBook
from sessionlog.search.find import Place, Question, find
from sessionlog.search.query import parse_query
from sessionlog.search.store import index_path, open_index
from sessionlog.search.update import update

PLACES = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], "/usr/share/doc")
SUFFIXES = ("py", "txt", "md", "gz", "rst")
QUERIES = (
    ["getaddrinfo"], ["import subprocess"], ["connection", "refused"], ["retry budget"], ["Traceback"],
    ["unicode_literals"], ["serializ*"], ["deprecated", "-warning"], ["return self"], ["for the"], ["self"], ["the"],
)  # fmt: skip


class Slices(Texts):
    """Texts that are slices of files of this machine."""

    def __init__(self, rng, *, megabytes=60):
        super().__init__(rng, longest=400_000)
        paths = sorted(path for place in PLACES for suffix in SUFFIXES for path in Path(place).rglob(f"*.{suffix}"))
        rng.shuffle(paths)
        pieces, size = [], 0
        for path in paths:
            content = path.read_bytes()[:300_000]
            try:
                content = gzip.decompress(content) if path.suffix == ".gz" else content
            except (OSError, EOFError):
                continue
            pieces.append(content.decode("utf-8", "replace"))
            size += len(pieces[-1])
            if size > megabytes << 20:
                break
        self._all = "\n".join(pieces)

    def pick(self, length):
        """A slice of about this many characters."""
        length = int(min(length, self.longest))
        start = self._rng.randrange(len(self._all) - length - 1)
        return json.dumps(self._all[start : start + length], ensure_ascii=False)[1:-1] or "ok"


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time `sessionlog find` on generated logs.")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        rng = random.Random(5)
        home = Path(folder) / "claude"
        ClaudeHome(rng, Slices(rng), Truth(), home).write(options.megabytes << 20)
        env = {"HOME": folder, "CLAUDE_CONFIG_DIR": str(home)}
        place = Place(ledger=str(Path(folder) / "ledger.sqlite3"), env=env, runner=read_logs)
        _measure_indexing(home, place, folder)
        _measure_searches(place, env, folder, options.rounds)


def _measure_indexing(home, place, folder):
    logs = [path for path in home.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in logs)
    begun = time.perf_counter()
    for path in logs:
        path.read_bytes()
    floor = time.perf_counter() - begun
    begun = time.perf_counter()
    book = open_ledger(place.ledger, PriceBook.load())
    book.refresh(place.env, scanner=scanner())
    book.close()
    scanned = time.perf_counter() - begun
    path = index_path(place.ledger)
    index, _ = open_index(path)
    begun, used = time.perf_counter(), os.times()
    update(index, place.ledger, runner=read_logs)
    seconds, after = time.perf_counter() - begun, os.times()
    cpu = sum(after[:4]) - sum(used[:4])
    index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    stored = os.path.getsize(path)
    print(f"{len(logs):,} logs of {size / 1e6:,.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    rows = [
        ["read all bytes", f"{floor:.2f}", f"{size / 1e6 / floor:,.0f}", ""],
        ["scan for the ledger", f"{scanned:.2f}", f"{size / 1e6 / scanned:,.0f}", ""],
        ["index", f"{seconds:.2f}", f"{size / 1e6 / seconds:,.0f}", f"{cpu:.2f}"],
    ]
    print_table(["", "s", "MB/s", "CPU s"], rows)
    print(f"\nthe index has {stored / 1e6:.1f} MB: {stored / size:.1%} of the logs\n")


def _measure_searches(place, env, folder, rounds):
    os.environ.update(env)
    commands = {
        " ".join(words): [*SESSIONLOG, "find", *(word for word in words if word[0] != "-"), "--ledger", place.ledger]
        for words in QUERIES
    }
    processes = measure(commands, rounds=rounds, folder=folder)
    rows = []
    for words, (name, process) in zip(QUERIES, processes.items(), strict=True):
        found = [find(Question(query=parse_query(words)), place) for _ in range(rounds)]
        total = f"{'' if found[0].is_exact else '≤ '}{found[0].total:,}"
        times = min(one.seconds for one in found), process.least, min(process.cpu)
        rows.append([name, total, *(f"{seconds * 1e3:.0f}" for seconds in times)])
    print_table(["words", "hits", "search ms", "process ms", "CPU"], rows)


if __name__ == "__main__":
    main()
