"""The fuzz run: every parser of bytes that others wrote, with inputs nobody would write.

    python -m tests.reliability.fuzz --runs 100000 --seed 7 --findings /tmp/findings
    python -m tests.reliability.fuzz --runs 20000 --seed 7 --target source:codex
    python -m tests.reliability.fuzz --replay /tmp/findings/reader-0a1b2c3d4e5f

Nothing but the house's named errors may be raised, no input may take two seconds of processor time, what is printed
passes a terminal parser, and each target has laws of its own. With atheris (`pip install '.[fuzz]'`) coverage guides
the inputs; without it they are random changes of the test data. Inputs that fail are kept, and those that have been
mended live in `testdata/fuzz`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> int:
    """Run from the command line; 0 without findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000, help="inputs over all targets, or of the one target")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"))
    parser.add_argument("--target", default="", help="one target, or the beginning of several")
    parser.add_argument("--seconds", type=int, default=0, help="at most so long for each target")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="where inputs that fail are kept")
    parser.add_argument("--random", action="store_true", help="random changes, although atheris is there")
    parser.add_argument("--replay", type=Path, help="try one kept input")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    is_guided = find_spec("atheris") is not None and not options.random
    if options.one:
        return _run_one(options, is_guided=is_guided)
    from tests.reliability.fuzz.targets import all_targets

    if options.replay:
        return _replay(options.replay)
    targets = [target for target in all_targets() if target.name.startswith(options.target)]
    if not targets:
        parser.error(f"no target {options.target!r}; there are {', '.join(target.name for target in all_targets())}")
    options.findings.mkdir(parents=True, exist_ok=True)
    known = len(_found(options.findings))
    print(f"seed {options.seed}, {'guided by coverage (atheris)' if is_guided else 'random changes'}", flush=True)
    total = 0
    shares = sum(target.share for target in targets)
    for target in targets:
        runs = max(1, -(-options.runs * target.share // shares))
        words = [sys.executable, "-m", "tests.reliability.fuzz", "--one", "--target", target.name, "--runs", str(runs),
                 "--seed", str(options.seed), "--findings", str(options.findings), "--seconds", str(options.seconds),
                 *(["--random"] if options.random else [])]  # fmt: skip
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        counted = re.findall(r"(?:number_of_executed_units:|^runs) +(\d+)", done.stdout, re.MULTILINE)
        covered = re.findall(r"cov: (\d+)", done.stdout)
        total += int(counted[-1]) if counted else 0
        found = [one for one in _found(options.findings)[known:] if one["target"] == target.name]
        if not counted or done.returncode:
            print(f"  {target.name} ended with {done.returncode}:\n{done.stdout[-2000:]}")
        coverage = f", {covered[-1]} places covered" if covered else ""
        print(f"{target.name}: {counted[-1] if counted else '?'} runs{coverage}, {len(found)} findings", flush=True)
    found = _found(options.findings)[known:]
    for one in found:
        kept = options.findings / f"{one['target'].replace(':', '-')}-{one['input']}"
        print(f"{one['target']}: {one['what']}: {one['words']}\n  {' < '.join(reversed(one['trace']))}")
        print(f"  python -m tests.reliability.fuzz --replay {kept}")
    print(f"{total} runs over {len(targets)} targets, seed {options.seed}, {len(found)} findings")
    return bool(found)


def _found(folder: Path) -> list[dict[str, object]]:
    path = folder / "findings.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _run_one(options: argparse.Namespace, *, is_guided: bool) -> int:
    """Run one target in this process."""
    if is_guided:
        import atheris

        with atheris.instrument_imports(include=["sessionlog"]):
            from tests.reliability.fuzz.targets import target_named
    else:
        from tests.reliability.fuzz.targets import target_named
    from tests.reliability.fuzz.run_target import Findings, run_guided, run_random

    target = target_named(options.target)
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="fuzz-") as folder, tempfile.TemporaryDirectory() as corpus:
        findings = Findings(target.name, options.findings)
        inputs = target.make(Path(folder))
        if is_guided:
            run_guided(
                inputs, findings, runs=options.runs, seed=options.seed, corpus=Path(corpus), seconds=options.seconds
            )
        else:
            run_random(inputs, findings, runs=options.runs, seed=options.seed)
            print(f"runs {findings.runs}")
    return 0


def _replay(path: Path) -> int:
    from tests.reliability.fuzz.laws import limited
    from tests.reliability.fuzz.targets import all_targets

    target = next(one for one in all_targets() if path.name.startswith(one.name.replace(":", "-") + "-"))
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="fuzz-") as folder:
        inputs = target.make(Path(folder))
        with limited():
            inputs.check(path.read_bytes())
    print(f"{target.name}: passes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
