"""The mutation run: seeded small changes of the modules that must not be wrong, and which of them no test notices.

    python -m tests.reliability.mutation.run --mutants 400 --seed 13 --workers 2 --results /tmp/mutants.jsonl

It can be stopped and started again: a mutant that the results have is not tried again (`--again survived` does that,
after a test was added). Mutants are chosen by a hash of the seed and their own text, so a change of one module leaves
the choice in the others as it was.
"""

import argparse
import compileall
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.reliability.mutation.mutants import Mutant, find_mutants
from tests.reliability.mutation.worker import LIMIT_SECONDS, TESTS, Worker

MODULES = (
    "sessionlog/files",
    "sessionlog/logger",
    "sessionlog/reader",
    "sessionlog/ledger/sync.py",
    "sessionlog/ledger/scanning.py",
)
"""Files, and folders of files; what is not there is passed over."""

_PARTS = ("sessionlog", "tests", "benchmarks", "testdata", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
          "pyproject.toml")  # fmt: skip
_ROOT = Path(__file__).resolve().parents[3]


def modules(root: Path) -> list[str]:
    """Return the modules that are mutated, from the project's folder."""
    found = []
    for name in MODULES:
        path = root / name
        found += sorted(path.glob("*.py")) if path.is_dir() else [path] if path.exists() else []
    return [str(path.relative_to(root)) for path in found]


def choose_mutants(root: Path, *, count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of all modules."""
    mutants = [mutant for path in modules(root) for mutant in find_mutants(path, (root / path).read_bytes())]
    mutants.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
    return mutants[:count]


def _read(results: Path) -> dict[str, dict[str, str]]:
    """Return key → the newest result."""
    lines = results.read_text().splitlines() if results.exists() else []
    return {line["key"]: line for line in map(json.loads, lines)}


def _copy(into: Path) -> Path:
    for part in _PARTS:
        if (_ROOT / part).is_dir():
            shutil.copytree(_ROOT / part, into / part, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy2(_ROOT / part, into / part)
    return into


def _start(
    folder: Path, baseline: Path, mutants: Sequence[Mutant], results: Path, limit: float
) -> subprocess.Popen[bytes]:
    """Start a worker in a copy of the project."""
    root = _copy(folder / f"copy-{len(list(folder.iterdir()))}")
    compileall.compile_dir(root / "sessionlog", quiet=2)  # bytecode is not written below: that of a mutant would stay
    (root / "home").mkdir()
    todo = root / "todo.json"
    rows = [asdict(mutant) | {"old": mutant.old.decode(), "new": mutant.new.decode()} for mutant in mutants]
    todo.write_text(json.dumps(rows))
    env = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(root / "home")}
    words = [sys.executable, "-m", __spec__.name, "--worker", str(todo), "--baseline", str(baseline)]
    return subprocess.Popen(
        [*words, "--results", str(results), "--limit", str(limit)], cwd=root, env=env, stdout=subprocess.DEVNULL
    )


def _work(todo: Path, baseline: Path, results: Path, limit: float) -> int:
    root = Path.cwd()
    rows = json.loads(todo.read_text())
    mutants = [Mutant(**row | {"old": row["old"].encode(), "new": row["new"].encode(), "lines": tuple(row["lines"])})
               for row in rows]  # fmt: skip
    worker = Worker(root, modules(root), baseline, mutants, results, limit)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", "-s"]
    return int(pytest.main([*options, *TESTS], plugins=[worker]))


def _report(chosen: Sequence[Mutant], results: dict[str, dict[str, str]]) -> None:
    tried = [(mutant, results[mutant.key]) for mutant in chosen if mutant.key in results]
    for mutant, result in tried:
        if result["outcome"] != "killed":
            print(f"{mutant.key} {mutant} ({result['outcome']}: {result['by']})")
    totals: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    for mutant, result in tried:
        part = mutant.path if mutant.path.count("/") < 2 or "ledger" in mutant.path else mutant.path.rpartition("/")[0]
        totals[part] += 1
        killed[part] += result["outcome"] == "killed"
    for part in sorted(totals):
        print(f"{part}: {killed[part]} of {totals[part]} killed")
    print(f"{killed.total()} of {totals.total()} killed, {len(chosen) - totals.total()} not tried")


def main() -> int:
    """Run from the command line; 0 if at least 85 % are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="only modules whose path begins so")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds of tests for one mutant")
    parser.add_argument("--again", default="", help="try again what has this outcome")
    parser.add_argument("--report", action="store_true", help="only print what the results say")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--baseline", type=Path, help="what each test runs; made beside the results by default")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    baseline = options.baseline or options.results.with_suffix(".tests.json")
    if options.worker:
        return _work(options.worker, baseline, options.results, options.limit)
    chosen = choose_mutants(_ROOT, count=options.mutants, seed=options.seed)
    print(f"seed {options.seed}, {len(chosen)} mutants")
    if not options.report:
        known = _read(options.results)
        todo = [mutant for mutant in chosen if mutant.path.startswith(options.only)]
        todo = [mutant for mutant in todo if known.get(mutant.key, {}).get("outcome", "") == options.again]
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            _start(Path(folder), baseline, [], options.results, options.limit).wait()
            shares = [todo[number :: options.workers] for number in range(options.workers)]
            running = [
                _start(Path(folder), baseline, share, options.results, options.limit) for share in shares if share
            ]
            for process in running:
                process.wait()
    results = _read(options.results)
    _report(chosen, results)
    tried = [results[mutant.key]["outcome"] for mutant in chosen if mutant.key in results]
    return 0 if tried and tried.count("killed") >= 0.85 * len(tried) else 1


if __name__ == "__main__":
    sys.exit(main())
