"""One target, tried with many inputs: coverage-guided by atheris where it is installed, else by random changes."""

import hashlib
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.reliability.fuzz.changes import change
from tests.reliability.fuzz.laws import Inputs, TooLong, limited

_PACKAGE = f"{os.sep}sessionlog{os.sep}"


class Findings:
    """What went wrong, each kind of it once: an error's type and the product's line that it came from."""

    def __init__(self, target: str, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self._known: set[str] = set()
        self.runs = 0

    def try_one(self, check: Callable[[bytes], None], data: bytes) -> None:
        """Check an input; keep it if it is the first that fails in its way."""
        self.runs += 1
        try:
            with limited():
                check(data)
        except (Exception, TooLong) as error:
            self._keep(error, data)

    def _keep(self, error: BaseException, data: bytes) -> None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in frame.filename]
        place = f"{frames[-1].filename.rpartition(_PACKAGE)[2]}:{frames[-1].lineno}" if frames else "a law"
        words = str(error)[:60] if not frames or isinstance(error, AssertionError) else ""
        signature = f"{type(error).__name__} {place} {words}".strip()
        if signature in self._known:
            return
        self._known.add(signature)
        name = hashlib.sha256(data).hexdigest()[:12]
        (self._folder / f"{self._target.replace(':', '-')}-{name}").write_bytes(data)
        line = {"target": self._target, "input": name, "what": signature, "words": str(error)[:400],
                "trace": [f"{f.filename.rpartition(_PACKAGE)[2]}:{f.lineno} {f.name}" for f in frames[-6:]]}  # fmt: skip
        with (self._folder / "findings.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def run_random(inputs: Inputs, findings: Findings, *, runs: int, seed: int, until: float | None = None) -> None:
    """Try the seeds, then random changes of them; `until` is the monotonic time at which to stop."""
    chance = random.Random(seed)
    for data in inputs.seeds[: runs // 2]:
        findings.try_one(inputs.check, data)
    while findings.runs < runs and (until is None or time.monotonic() < until):
        data = chance.choice(inputs.seeds)
        findings.try_one(inputs.check, change(data, chance, inputs.seeds, inputs.header))


def run_guided(inputs: Inputs, findings: Findings, *, runs: int, seed: int, corpus: Path, seconds: int) -> None:
    """Let atheris choose the inputs; it ends this process."""
    import atheris

    for number, data in enumerate(inputs.seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def mutate(data: bytes, most: int, chosen: int) -> bytes:
        chance = random.Random(chosen)
        if chance.random() < 0.4 and len(data) > inputs.header:
            return bytes(data[: inputs.header]) + bytes(atheris.Mutate(data[inputs.header :], most - inputs.header))
        others: Sequence[bytes] = [chance.choice(inputs.seeds)]
        return change(bytes(data), chance, others, inputs.header)[:most]

    words = [sys.argv[0], str(corpus), f"-runs={runs}", f"-seed={seed}", "-max_len=65536", "-len_control=0", "-timeout=120",
             "-rss_limit_mb=3000", "-print_final_stats=1", f"-artifact_prefix={corpus}/crash-"]  # fmt: skip
    if seconds:
        words.append(f"-max_total_time={seconds}")
    atheris.Setup(words, lambda data: findings.try_one(inputs.check, data), custom_mutator=mutate)
    atheris.Fuzz()
