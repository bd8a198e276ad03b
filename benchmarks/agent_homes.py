"""The homes of Claude Code and Codex as those agents leave them, with a fixed seed and the exact truth about their use.

The truth is summed while the files are written, by rules of its own, and knows nothing of any reader: a response counts
once, when it is made up; what the agents then do to their logs (copies, replays, echoes, repeats) counts nothing and is
only entered as a trap: what a reader would get wrong who falls for it.

    python benchmarks/agent_homes.py --out FOLDER [--claude-megabytes 100] [--codex-megabytes 100] [--seed N] [--zst]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.corpus_session import snippets

NOW = "2026-11-21T12:00:00Z"
"""A present in which nothing is still running."""

DAYS = 90
_DAY_MS = 86_400_000
FIRST_MS = int(datetime(2026, 8, 22, tzinfo=UTC).timestamp()) * 1000

COLUMNS = (
    "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "cache_write_1h_tokens", "reasoning_tokens",
)  # fmt: skip
"""`requests` counts failed ones too; `cache_write_1h` is a part of `cache_write`, `reasoning` of `output`."""


@dataclass(slots=True, kw_only=True)
class Truth:
    """What one agent used, and what its logs do to whoever counts it.

    Attributes:
        totals: Column → sum.
        by_model: Model → column → sum.
        by_day: UTC day of a response's first row → column → sum.
        by_day_model: "day model" → column → sum.
        by_session: Session → column → sum.
        parents: Sub-agent's session → the session that started it, where sub-agents have sessions of their own.
        traps: Trap → column → what a reader gets wrong who falls for it: too much, or what is only found here.
        kinds: What is special about how many rows or files.
        files: Logs written.
        rows: Lines in them.
        stored: Bytes on disk.
        written: Bytes before packing.
    """

    totals: Counter[str] = field(default_factory=Counter)
    by_model: dict[str, Counter[str]] = field(default_factory=dict)
    by_day: dict[str, Counter[str]] = field(default_factory=dict)
    by_day_model: dict[str, Counter[str]] = field(default_factory=dict)
    by_session: dict[str, Counter[str]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    traps: dict[str, Counter[str]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    files: int = 0
    rows: int = 0
    stored: int = 0
    written: int = 0

    def request(self, tokens: Mapping[str, int], *, model: str, session: str, ms: int) -> None:
        """Count one response (or failed request) at the time of its first row."""
        day = stamp(ms)[:10]
        for sums, key in (
            (self.by_model, model),
            (self.by_day, day),
            (self.by_day_model, f"{day} {model}"),
            (self.by_session, session),
        ):
            sums.setdefault(key, Counter()).update(tokens)
        self.totals.update(tokens)

    def trap(self, name: str, tokens: Mapping[str, int]) -> None:
        """Enter what a reader gets wrong who falls for this copy, and count it as a kind."""
        self.traps.setdefault(name, Counter()).update(tokens)
        self.kinds[name] += 1

    def store(self, path: Path, lines: Sequence[str], *, ms: int, packer: Any = None) -> None:
        """Write one log; its file is as old as its last row, so that a torn line is damage, not a writer at work."""
        content = "".join(lines).encode()
        self.written += len(content)
        if path.suffix != ".json":  # a sub-agent's sidecar is no log
            self.files += 1
            self.rows += len(lines)
        if packer is not None:
            content = packer(content)
        self.stored += len(content)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def to_dict(self) -> dict[str, Any]:
        """The agent's part of the JSON document beside the homes."""
        groups = {
            name: {key: _columns(sums) for key, sums in sorted(getattr(self, name).items())}
            for name in ("by_model", "by_day", "by_day_model", "by_session", "traps")
        }
        return {
            "totals": _columns(self.totals),
            **groups,
            "parents": dict(sorted(self.parents.items())),
            "kinds": dict(sorted(self.kinds.items())),
            "files": self.files,
            "rows": self.rows,
            "stored_bytes": self.stored,
            "bytes": self.written,
        }


class Texts:
    """Texts by length, escaped for JSON beforehand: a row is put together, never encoded."""

    _SIZES = (24, 60, 150, 400, 1000, 2500, 6000, 15_000, 40_000, 120_000, 400_000)

    def __init__(self, rng: random.Random, *, longest: int) -> None:
        """Prepare blocks of every size up to the longest wanted (bytes, about)."""
        self._rng = rng
        quoted = json.dumps(_QUOTED_ROW)
        raw = [*snippets(rng), *(f"{number}: {quoted}\n" for number in range(6))]
        self._sizes = [size for size in self._SIZES if size <= longest]
        self._blocks = [self._make(raw, size) for size in self._sizes]
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        self._sealed = ["".join(rng.choices(letters, k=4000)) for _ in range(24)]
        self.longest = longest

    def _make(self, raw: Sequence[str], size: int) -> list[str]:
        blocks = []
        for _ in range(max(2, min(60, 600_000 // size))):
            text = self._rng.choice(raw)
            while len(text) < size:
                text += self._rng.choice(raw)
            blocks.append(json.dumps(text[:size], ensure_ascii=False)[1:-1])
        return blocks

    def pick(self, length: float) -> str:
        """A text of about this many bytes."""
        left, parts = min(length, self.longest), []
        while left >= self._sizes[0]:
            parts.append(self._rng.choice(self._blocks[bisect_right(self._sizes, left) - 1]))
            left -= len(parts[-1]) * 1.05
        return "".join(parts) or "ok"

    def skewed(self, median: float, sigma: float) -> str:
        """A text whose length is log-normal: mostly short, now and then huge."""
        return self.pick(self._rng.lognormvariate(0, sigma) * median)

    def sealed(self, length: int) -> str:
        """Base64 of exactly this length (up to 4,000): a signature, an encrypted thought."""
        return self._rng.choice(self._sealed)[:length]


_QUOTED_ROW = json.dumps(
    {
        "type": "assistant",
        "message": {"id": "msg_quoted", "model": "claude-opus-4-5", "usage": {"input_tokens": 10**6}},
        "payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 10**6}}},
    },
    separators=(",", ":"),
)
"""Agents read logs of agents; what they quote is text."""


def _columns(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: sums.get(name, 0) for name in COLUMNS}


@cache
def _date(day: int) -> str:
    return f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}"


def stamp(ms: int) -> str:
    """Milliseconds since 1970 as RFC 3339."""
    day, rest = divmod(ms, _DAY_MS)
    seconds, milli = divmod(rest, 1000)
    return f"{_date(day)}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milli:03}Z"


def uuid4(rng: random.Random) -> str:
    """A random UUID."""
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def uuid7(rng: random.Random, ms: int) -> str:
    """A UUID that sorts by time."""
    text = f"{ms:012x}{rng.getrandbits(80):020x}"
    return f"{text[:8]}-{text[8:12]}-7{text[13:16]}-a{text[17:20]}-{text[20:]}"


def start_of_session(rng: random.Random) -> int:
    """A moment of the 90 days, mostly in working hours, early enough for a long session to end in time."""
    hour = rng.choices(range(24), weights=[2, 1, 1, 1, 1, 2, 4, 8, *[12] * 10, 9, 8, 8, 7, 6, 4])[0]
    return FIRST_MS + rng.randrange(DAYS - 3) * _DAY_MS + hour * 3_600_000 + rng.randrange(3_600_000)


def generate(
    out: Path, *, claude_megabytes: float, codex_megabytes: float, seed: int = 20261121, zst: bool = False
) -> dict[str, Any]:
    """Write `out/claude` and `out/codex` and return their truth, which is also written to `OUT.truth.json`.

    Args:
        out: Folder to write to; an older home there is refused (FileExistsError).
        claude_megabytes: Size of Claude Code's home in 10^6 bytes; 0 for none.
        codex_megabytes: Size of Codex's home before packing; 0 for none.
        seed: The same seed and sizes give the same bytes.
        zst: Pack a share of Codex's older rollouts, as its newer versions do.
    """
    from benchmarks.claude_home import ClaudeHome  # the homes take the values above from here
    from benchmarks.codex_home import CodexHome

    sources = {}
    for source, home, megabytes in (
        ("claude-code", ClaudeHome, claude_megabytes),
        ("codex", CodexHome, codex_megabytes),
    ):
        rng = random.Random(f"{seed} {source}")
        total = int(megabytes * 1_000_000)
        texts, truth = Texts(rng, longest=min(450_000, max(2000, total // 25))), Truth()
        folder = out / source.partition("-")[0]
        folder.mkdir(parents=True)  # what an older home left there would not be in the truth
        home(rng, texts, truth, folder, zst=zst).write(total)
        sources[source] = truth.to_dict()
    document = {"schema": "sessionlog.homes/1", "now": NOW, "seed": seed, "sources": sources}
    out.with_name(f"{out.name}.truth.json").write_text(json.dumps(document, indent=1) + "\n")
    return document


def main() -> None:
    """Write the homes and print what they are."""
    parser = argparse.ArgumentParser(description="Write the homes of coding agents with a known truth.")
    parser.add_argument("--out", required=True, type=Path, help="folder to write to; the truth goes beside it")
    parser.add_argument("--claude-megabytes", type=float, default=100)
    parser.add_argument("--codex-megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--zst", action="store_true", help="pack a share of Codex's rollouts")
    options = parser.parse_args()
    document = generate(
        options.out,
        claude_megabytes=options.claude_megabytes,
        codex_megabytes=options.codex_megabytes,
        seed=options.seed,
        zst=options.zst,
    )
    for source, truth in document["sources"].items():
        summary = {name: truth[name] for name in ("files", "rows", "bytes", "stored_bytes", "totals", "kinds")}
        print(source, json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
