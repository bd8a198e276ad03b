"""Native logs as real agents leave them, with a fixed seed and the exact truth about what they used.

The truth is summed while the files are written, by rules of its own, and knows nothing of the reader. Shapes follow real
samples: requests are most of the bytes because their messages grow turn by turn, deltas and progress most of the lines;
some logs are cut by a crash, some use two models, some are spaced as `json.dumps` does, some are packed, and a third
speak the Go dialect, whose input includes the cached tokens.

    python benchmarks/corpus.py --out FOLDER --megabytes 100 [--files N] [--seed N]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.corpus_session import MODELS, Session, snippets

NOW = "2026-11-21T12:00:00Z"
"""A present in which no session of the corpus is still running."""

OWN_PRICES = {
    f"{m.provider}/{m.name}": dict(
        zip(("input", "output", "cache_read", "cache_write"), (n / 1000 for n in m.nano), strict=True)
    )
    for m in MODELS
    if m.nano is not None and not m.recorded
}
"""A user's price table (US dollars per million tokens) that makes every estimate of the corpus exact."""

_COLUMNS = (
    "sessions", "success_sessions", "failed_sessions", "unfinished_sessions", "requests", "failed_requests",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "known_nano",
    "estimated_nano", "unpriced_requests",
)  # fmt: skip


@dataclass(slots=True)
class Truth:
    """What was written, exactly.

    Attributes:
        rows: (provider, model) → column → sum.
        totals: The same over all, every session once.
        lines: Event type → lines.
        bytes: Event type → bytes before packing.
        kinds: What is special about how many files.
        files: How many there are.
        stored: Bytes on disk.
    """

    rows: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    files: int = 0
    stored: int = 0

    def add(self, session: Session) -> None:
        """Count one finished session."""
        if not session.counts:
            return
        status = {None: "unfinished_sessions", "success": "success_sessions"}.get(session.status, "failed_sessions")
        for counts in (*session.rows.values(), self.totals):
            counts.update({"sessions": 1, status: 1})
        for key, counts in session.rows.items():
            self.rows.setdefault(key, Counter()).update(counts)
            self.totals.update({name: n for name, n in counts.items() if not name.endswith("sessions")})

    def to_dict(self) -> dict[str, Any]:
        """The JSON document beside a corpus."""
        rows = [
            {"provider": provider, "model": model, **{name: counts[name] for name in _COLUMNS}}
            for (provider, model), counts in sorted(self.rows.items())
        ]
        return {
            "schema": "sessionlog.corpus/1",
            "now": NOW,
            "own_prices": OWN_PRICES,
            "rows": rows,
            "totals": {name: self.totals[name] for name in _COLUMNS},
            "damaged_lines": self.kinds["torn"],
            "files": self.files,
            "stored_bytes": self.stored,
            "bytes": self.bytes.total(),
            "lines": self.lines.total(),
            "lines_by_type": dict(self.lines.most_common()),
            "bytes_by_type": dict(self.bytes.most_common()),
            "kinds": dict(sorted(self.kinds.items())),
        }


def generate(out: Path, *, megabytes: float, files: int | None = None, seed: int = 20261121) -> dict[str, Any]:
    """Write a corpus into a folder and return its truth, which is also written beside the folder as `NAME.truth.json`."""
    rng = random.Random(seed)
    texts = list(snippets(rng))
    out.mkdir(parents=True, exist_ok=True)
    total = int(megabytes * 1_000_000)
    count = files or max(1, int(megabytes * 2))
    truth = Truth()
    left = total
    for number in range(count):
        share = left / (count - number)
        target = left if number == count - 1 else min(left, share * rng.lognormvariate(-0.125, 0.5))
        session = Session(rng, texts, int(max(1000, target)), number)
        session.write()
        left -= session.size
        packed = count > 1 and rng.random() < 0.05
        _count(truth, session, packed=packed)
        truth.stored += _store(out, session, packed=packed)
    document = truth.to_dict()
    out.with_name(f"{out.name}.truth.json").write_text(json.dumps(document, indent=1) + "\n")
    return document


def _count(truth: Truth, session: Session, *, packed: bool) -> None:
    truth.files += 1
    truth.add(session)
    for type_, line in session.lines:
        truth.lines[type_] += 1
        truth.bytes[type_] += len(line)
    kinds = {
        "crashed": session.status is None, "torn": session.torn, "packed": packed, "two models": session.two_models,
        "spaced": session.spaced, "go dialect": not session.native, "unlogged calls": session.unlogged,
    }  # fmt: skip
    truth.kinds.update(kind for kind, so in kinds.items() if so)


def _store(out: Path, session: Session, *, packed: bool) -> int:
    content = b"".join(line for _, line in session.lines)
    path = out / f"{session.name}.jsonl{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content, 6, mtime=0) if packed else content)
    path.chmod(0o600)
    os.utime(path, ns=(session.now_ns, session.now_ns))  # an old file: its torn line is damage, not a writer at work
    return path.stat().st_size


def main() -> None:
    """Write a corpus and print its truth."""
    parser = argparse.ArgumentParser(description="Write native logs with a known truth.")
    parser.add_argument("--out", required=True, type=Path, help="folder to write to")
    parser.add_argument("--megabytes", type=float, default=100, help="bytes before packing, in 10^6")
    parser.add_argument("--files", type=int, help="how many logs; two per megabyte by default")
    parser.add_argument("--seed", type=int, default=20261121)
    arguments = parser.parse_args()
    truth = generate(arguments.out, megabytes=arguments.megabytes, files=arguments.files, seed=arguments.seed)
    print(json.dumps(truth, indent=1))


if __name__ == "__main__":
    main()
